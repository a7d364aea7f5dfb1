package shell

import (
	"fmt"
	"math/rand/v2"
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

// TestRemedyWithoutLog: on a live fabric no plan is written without a log, in which budgets and
// isolated ports are kept.
func TestRemedyWithoutLog(t *testing.T) {
	dir := t.TempDir()
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	serveSim(t, name, "fattree:k=4", "--no-sm")
	run := func(words ...string) (string, int) {
		c := exec.Command("fabsh", append([]string{"-F", "ibsim:" + name, "--state=state", "-q", "remedy", "isolate", "--audits", "links", "--out", "x.plan"}, words...)...)
		c.Env, c.Dir = testEnv(t), dir
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	const want = "remedy: --out: the log is kept by subnet, and this one is unknown: it has neither a prefix nor a subnet manager; give --subnet NAME\n"
	if out, status := run(); out != want || status != 2 {
		t.Errorf("status %d, %s", status, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.plan")); err == nil {
		t.Error("a plan was written")
	}
	if out, status := run("--subnet", "lab"); status != 0 {
		t.Errorf("--subnet: status %d, %s", status, out)
	}
}
