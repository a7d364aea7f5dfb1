//go:build linux && (amd64 || arm64)

package shell

import (
	"testing"

	simrun "fabsh/fabric/sim/run"
)

// Ctrl-C at a terminal interrupts the command of sim --run once, and fabsh exits with its
// status; a command that ignores it goes on.
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
