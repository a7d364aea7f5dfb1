package builtins

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// fiber is what a Starlark thread carries about its place in the session. It
// is reached from a builtin through the thread, the only route there is.
type fiber struct {
	r   *Runtime
	ctx context.Context
	// baton is held by the one fiber that runs; nil outside parallel,
	// where nobody else could run.
	baton *sync.Mutex
	// sink takes what the fiber prints.
	sink sink
	// account counts requests that got no answer; catch opens a new one.
	account *account
	// loads are the modules whose top levels run, each loaded by the one
	// before it; nothing may change the fabric until they are done.
	loads []string
}

// account counts the MADs that a script asked for and that got no answer.
type account struct{ unanswered int }

// sink takes text for one of the two output streams.
type sink interface {
	emit(st stream, text string) error
}

// stream is one of the two output streams.
type stream uint8

const (
	stdout stream = iota
	stderr
)

const fiberKey = "fabsh"

// fiberOf returns the fiber of a thread made by NewThread.
func fiberOf(t *starlark.Thread) *fiber { return t.Local(fiberKey).(*fiber) }

// newThread makes the thread of f; release unties it from f's context.
func newThread(f *fiber, name string) (t *starlark.Thread, release func() bool) {
	t = &starlark.Thread{
		Name:  name,
		Print: func(t *starlark.Thread, msg string) { fiberOf(t).print(msg + "\n") },
		Load:  f.r.Load,
	}
	t.SetLocal(fiberKey, f)
	libtime.SetNow(t, func() (time.Time, error) { return f.r.Clock.Now(), nil })
	release = context.AfterFunc(f.ctx, func() { t.Cancel(context.Cause(f.ctx).Error()) })
	return t, release
}

// block waits for what fn does, and lets other fibers run meanwhile. Nothing
// in this package may wait in any other way. fn must not touch Starlark values.
// A fiber that was stopped meanwhile goes no further, whatever fn came to.
func block(t *starlark.Thread, fn func(context.Context) error) (err error) {
	f := fiberOf(t)
	if err := f.stopped(); err != nil {
		return err
	}
	yield(f.baton, func() { err = fn(f.ctx) })
	if stopped := f.stopped(); stopped != nil {
		return stopped
	}
	return err
}

// yield hands the baton on while fn waits.
func yield(baton *sync.Mutex, fn func()) {
	if baton != nil {
		baton.Unlock()
		defer baton.Lock()
	}
	fn()
}

// stopped is the reason why f must stop, nil if it may go on.
func (f *fiber) stopped() error {
	if f.ctx.Err() == nil {
		return nil
	}
	return &stopError{cause: context.Cause(f.ctx)}
}

// print writes text for people: to stdout, unless that carries structured output.
func (f *fiber) print(text string) {
	f.sink.emit(f.r.people(), text) // print has no way to fail; a closed pipe ends the process anyway
}

// warn tells people something beside the output.
func (f *fiber) warn(format string, args ...any) {
	if !f.r.Quiet {
		f.sink.emit(stderr, "warning: "+fmt.Sprintf(format, args...)+"\n")
	}
}

// protect calls fn and makes an error of a panic: a bug in fabsh must not end
// the session.
func protect(what string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &bugError{what: what, value: r, stack: string(debug.Stack())}
		}
	}()
	return fn()
}

// bugError is a recovered panic.
type bugError struct {
	what  string
	value any
	stack string
}

func (e *bugError) Error() string {
	return fmt.Sprintf("%s: bug in fabsh: %v (please report it; -vv says where)", e.what, e.value)
}
