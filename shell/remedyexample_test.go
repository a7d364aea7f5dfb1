package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemedyCron: without an answer of Slurm the line for cron makes no plan, in which no host
// would be busy.
func TestRemedyCron(t *testing.T) {
	text, err := os.ReadFile("../examples/remedy/cron")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var line string
	for l := range strings.Lines(string(text)) {
		if _, command, found := strings.Cut(l, " root  squeue"); found {
			line = strings.NewReplacer(`\%`, "%", "/var/lib/fabsh", dir).Replace("squeue" + command)
		}
	}
	for status, want := range map[string]string{"0": "remedy --over last --busy " + dir + "/busy", "1": ""} {
		for name, script := range map[string]string{"squeue": "exit " + status, "fabsh": `echo "$@"`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command("/bin/sh", "-c", line)
		c.Env = []string{"PATH=" + dir}
		out, _ := c.Output()
		if got := string(out); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("squeue with status %s: fabsh gets %q, want %q", status, got, want)
		}
	}
}
