package builtins

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/routing"
)

// What commands written in Go need of a session: the fabric and its tables as
// Go values, with the warnings, the counts of unanswered requests and the error
// texts that scripts get. Errors name the builtin that does the same.

// CurrentFabric is the fabric at hand: the latest, else what a sweep finds.
func (s *Session) CurrentFabric(ctx context.Context) (*fabric.Fabric, error) {
	t, release := s.mainThread(ctx, "command")
	defer release()
	f, err := s.currentFabric(t)
	if err != nil {
		return nil, err
	}
	return f.f, nil
}

// Sweep discovers the fabric anew. To warn of its problems is up to the caller;
// those that are counted as unanswered requests are.
func (s *Session) Sweep(ctx context.Context) (*fabric.Fabric, error) {
	t, release := newThread(&fiber{s: s, ctx: ctx, sink: silence{}, account: &s.account}, "command")
	defer release()
	c := operation(t, discoverBuiltin.Name)
	f, err := c.sweep(s.sweepOptions())
	if err != nil {
		return nil, err
	}
	return f.f, nil
}

// silence is a sink that drops what it is given.
type silence struct{}

func (silence) emit(stream, string) error { return nil }

// LiveRoutes reads the tables of all switches of a fabric.
func (s *Session) LiveRoutes(ctx context.Context, f *fabric.Fabric) (*routing.Routes, error) {
	t, release := s.mainThread(ctx, "command")
	defer release()
	return operation(t, getRoutesBuiltin.Name).readRoutes(f)
}

// operation is a call without arguments, for Go code that does part of what the
// builtin of that name does.
func operation(t *starlark.Thread, name string) *call {
	return &call{Builtin: &Builtin{Name: name}, thread: t}
}

// Print writes text for people: to stdout, unless that carries structured output.
// As for print of scripts, there is no error: a closed pipe ends the process.
func (s *Session) Print(text string) { s.emit(s.people(), text) }

// Warn writes a warning to stderr, unless the session is quiet.
func (s *Session) Warn(format string, args ...any) {
	if !s.o.Quiet {
		s.emit(stderr, "warning: "+fmt.Sprintf(format, args...)+"\n")
	}
}

// Clock is the session's time.
func (s *Session) Clock() Clock { return s.clock }

// Render is v as Show writes it in a format.
func Render(v starlark.Value, format Format) (string, error) { return render(v, format) }
