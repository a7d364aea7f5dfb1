//go:build linux && (amd64 || arm64)

package shell

import (
	"bufio"
	"os"
	"strings"
	"syscall"
	"testing"

	simrun "fabsh/fabric/sim/run"
)

// Ctrl-C at a terminal interrupts the command of sim --run once, and fabsh exits with its
// status; a command that ignores it goes on, until the second one.
func TestRunInterrupt(t *testing.T) {
	if !simrun.Supported() {
		t.Skip(simrun.ErrUnsupported)
	}
	s := startTerminal(t, t.TempDir(), "sim", "ring:n=3", "--run", "sh", "-c", `trap 'n=$((n+1)); echo interrupt $n; [ $n = 2 ] && exit 5' INT
(trap '' INT; exec sleep 1003) & echo ready; while :; do sleep .05; done`)
	s.expect("ready\r\n")
	s.send(ctrlC)
	s.expect("interrupt 1\r\n")
	s.send(ctrlC)
	s.expect("interrupt 2\r\n")
	s.exit(5)

	s = startTerminal(t, t.TempDir(), "sim", "ring:n=3", "--run", "sh", "-c", "echo ready; exec sleep 1003")
	s.expect("ready\r\n")
	s.send(ctrlC)
	s.exit(130)
}

// TestRunEnds: sim --run ends at the second signal, whatever the command and what it has started
// ignore, and leaves no process and no file.
func TestRunEnds(t *testing.T) {
	if !simrun.Supported() {
		t.Skip(simrun.ErrUnsupported)
	}
	const deaf = `trap '' INT TERM HUP QUIT; (trap '' INT TERM HUP; exec setsid sleep 1004) & echo ready; while :; do sleep .05; done`
	for _, signals := range [][2]syscall.Signal{{syscall.SIGTERM, syscall.SIGINT}, {syscall.SIGINT, syscall.SIGTERM}} {
		folder := t.TempDir()
		c := fabsh(t, []string{"TMPDIR=" + folder}, "sim", "ring:n=3", "--run", "sh", "-c", deaf)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		for _, sig := range signals {
			c.Process.Signal(sig)
		}
		c.Wait()
		if got := c.ProcessState.ExitCode(); got != 137 {
			t.Errorf("%v: status %d, want 137", signals, got)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%v: files are left: %v, %v", signals, left, err)
		}
		processes, _ := os.ReadDir("/proc")
		for _, p := range processes {
			if env, _ := os.ReadFile("/proc/" + p.Name() + "/environ"); strings.Contains(string(env), folder) {
				t.Errorf("%v: process %s is left", signals, p.Name())
			}
		}
	}

	s := startTerminal(t, t.TempDir(), "sim", "ring:n=3", "--run", "sh", "-c", `trap 'sleep .2; echo again' INT; echo ready; while :; do sleep .05; done`)
	s.expect("ready\r\n")
	s.send(ctrlC)
	s.expect("again\r\n") // later than a copy of the signal comes
	s.send(ctrlC)
	s.exit(137)
}
