package shell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	simrun "fabsh/fabric/sim/run"
)

// nodeHealth is the directory of the examples for schedulers.
const nodeHealth = "../examples/node_health"

// The examples for Slurm and NHC work as they are: a healthy host passes, one whose ports are
// not active is drained, and starts no job; a usage error drains none.
func TestNodeHealth(t *testing.T) {
	if !simrun.Supported() {
		t.Skip("this host cannot supervise programs (Linux 5.14, seccomp user notification)")
	}
	folder, err := filepath.Abs(nodeHealth)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	nhc, err := os.ReadFile(filepath.Join(folder, "nhc.conf"))
	if err != nil {
		t.Fatal(err)
	}
	_, check, _ := strings.Cut(string(nhc), " -r 0 ")
	for _, c := range []struct {
		name, subnet, expect, command string
		status                        int
		out                           string
	}{
		{"healthy", "ring:n=3", "1xHDR", "fabsh_health.sh", 0, "^$"},
		{"healthy, prolog", "ring:n=3", "1xHDR", "prolog.sh", 0, "^$"},
		{"fault", "ring:n=3 --bare", "1xHDR", "fabsh_health.sh", 0, "<update><nodename=node-7><state=drain><reason=fabsh: host.init:0x[0-9a-f]+/1  ibsim0/1: the link is up, but the state of the port is initialize: no subnet manager has configured it>$"},
		{"fault, prolog", "ring:n=3 --bare", "1xHDR", "prolog.sh", 1, "error     host.init:"},
		{"usage", "ring:n=3 --bare", "nofile", "fabsh_health.sh", 0, "nofile: no such file"},
		{"NHC", "ring:n=3", "", check, 1, "expected: 8 at 4x NDR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := strings.TrimSpace(c.command)
			if strings.HasSuffix(command, ".sh") {
				command = filepath.Join(folder, command)
			}
			x := exec.Command("sh", "-c", "exec fabsh sim "+c.subnet+" --run sh -c '"+command+"'")
			x.Env = append(testEnv(t), "PATH="+dir+":"+os.Getenv("PATH"), "HEALTH_EXPECT="+c.expect, "SLURMD_NODENAME=node-7")
			out, err := x.CombinedOutput()
			status := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				status = exit.ExitCode()
			}
			if status != c.status || !regexp.MustCompile(c.out).Match(out) {
				t.Errorf("status %d, want %d; %s", status, c.status, out)
			}
		})
	}
}
