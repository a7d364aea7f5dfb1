package shell

import (
	"fabsh/shell/session"
	"io"
	"testing"
)

// testProgram is a program with session flags, that writes to out.
func testProgram(t *testing.T, out io.Writer, flags ...string) *session.Program {
	t.Helper()
	p := newProgram(session.NewConsole(out, out))
	p.Interrupts = session.WatchInterrupts(p.Console)
	t.Cleanup(p.Interrupts.Stop)
	if err := rootCommand(p).ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	return p
}
