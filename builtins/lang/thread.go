package lang

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// Fiber is what a Starlark thread carries about its place in the session. It
// is reached from a builtin through the thread, the only route there is.
type Fiber struct {
	Runtime *Runtime
	Context context.Context
	// baton is held by the one fiber that runs; nil outside parallel,
	// where nobody else could run.
	baton *sync.Mutex
	// sink takes what the fiber prints.
	Sink sink
	// account counts requests that got no answer; catch opens a new one.
	Account *Account
	// loads are the modules whose top levels run, each loaded by the one
	// before it; nothing may change the fabric until they are done.
	Loads []string

	// Place orders what fibers do as if those of parallel ran one after the other:
	// it is compared number by number, and what begins another comes before it.
	// Values that were taken stay as they are.
	Place []int

	begun bool   // steps is set; what is copied from this fiber has the same
	steps *steps // nil: any number
}

// Account counts the MADs that a script asked for and that got no answer.
type Account struct{ Unanswered int }

// sink takes text for one of the two output streams.
type sink interface {
	Emit(st Stream, text string) error
}

// Stream is one of the two output streams.
type Stream uint8

const (
	Stdout Stream = iota
	Stderr
)

const fiberKey = "fabsh"

// FiberOf returns the fiber of a thread made by NewThread.
func FiberOf(t *starlark.Thread) *Fiber { return t.Local(fiberKey).(*Fiber) }

// Discard is a sink that drops what it gets.
type Discard struct{}

// Emit drops text.
func (Discard) Emit(Stream, string) error { return nil }

// NewThread makes the thread of f; release ends it and unties it from f's context.
func NewThread(f *Fiber, name string) (t *starlark.Thread, release func()) {
	if f.Place == nil {
		f.Place = []int{f.Runtime.evaluations, 0}
		f.Runtime.evaluations++
	}
	t = &starlark.Thread{
		Name:  name,
		Print: func(t *starlark.Thread, msg string) { FiberOf(t).Print(msg + "\n") },
		Load: func(t *starlark.Thread, module string) (starlark.StringDict, error) {
			f.steps.leave(t) // a module runs in a thread of its own
			defer f.steps.enter(t)
			return f.Runtime.Load(t, module)
		},
	}
	t.SetLocal(fiberKey, f)
	libtime.SetNow(t, func() (time.Time, error) { return f.Runtime.Clock.Now(), nil })
	untie := context.AfterFunc(f.Context, func() { t.Cancel(context.Cause(f.Context).Error()) })
	if !f.begun {
		f.begun = true
		f.steps, _ = f.Context.Value(stepsKey{}).(*steps)
	}
	f.steps.watch(t)
	f.steps.enter(t)
	return t, func() {
		f.steps.leave(t)
		untie()
	}
}

// Thread makes the thread of an evaluation: it writes to the streams of r, and what gets
// no answer counts for the exit status. release ends it. A thread serves one evaluation:
// cancellation is for good.
func (r *Runtime) Thread(ctx context.Context, name string) (t *starlark.Thread, release func()) {
	return NewThread(&Fiber{Runtime: r, Context: ctx, Sink: r, Account: &r.Account}, name)
}

// Evaluate runs a whole evaluation on a thread of its own.
func (r *Runtime) Evaluate(ctx context.Context, name string, fn func(t *starlark.Thread) error) error {
	t, release := r.Thread(ctx, name)
	defer release()
	return Finish(ctx, name, func() error { return fn(t) })
}

// Finish is Protect for a whole evaluation: an error after the end of ctx is the end of
// ctx, whatever fn made of it.
func Finish(ctx context.Context, what string, fn func() error) error {
	err := Protect(what, fn)
	if err != nil && ctx.Err() != nil {
		return &StopError{Cause: context.Cause(ctx), At: err}
	}
	return err
}

// pass has what f does from now on come after what it did, and after its fibers.
func (f *Fiber) pass() {
	f.Place = slices.Clone(f.Place)
	f.Place[len(f.Place)-1]++
}

// Block waits for what fn does, and lets other fibers run meanwhile. Nothing
// in this package may wait in any other way. fn must not touch Starlark values.
// A fiber that was stopped meanwhile goes no further, whatever fn came to.
func Block(t *starlark.Thread, fn func(context.Context) error) (err error) {
	f := FiberOf(t)
	if err := f.Stopped(); err != nil {
		return err
	}
	yield(t, f.baton, func() {
		defer f.Runtime.Activity.wait()()
		err = fn(f.Context)
	})
	if stopped := f.Stopped(); stopped != nil {
		return stopped
	}
	return err
}

// yield hands the baton on while fn waits.
func yield(t *starlark.Thread, baton *sync.Mutex, fn func()) {
	steps := FiberOf(t).steps
	steps.leave(t)
	defer steps.enter(t)
	if baton != nil {
		baton.Unlock()
		defer baton.Lock()
	}
	fn()
}

// stopped is the reason why f must stop, nil if it may go on.
func (f *Fiber) Stopped() error {
	if f.Context.Err() == nil {
		return nil
	}
	return &StopError{Cause: context.Cause(f.Context)}
}

// print writes text for people: to stdout, unless that carries structured output.
func (f *Fiber) Print(text string) {
	f.Runtime.Activity.Note()
	f.Sink.Emit(f.Runtime.People(), text) // print has no way to fail; a closed pipe ends the process anyway
}

// warn tells people something beside the output.
func (f *Fiber) Warn(format string, args ...any) {
	if !f.Runtime.Quiet {
		f.Sink.Emit(Stderr, "warning: "+fmt.Sprintf(format, args...)+"\n")
	}
}

// Protect calls fn and makes an error of a panic: a bug in fabsh must not end
// the session.
func Protect(what string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &BugError{what: what, value: r, Stack: string(debug.Stack())}
		}
	}()
	return fn()
}

// BugError is a recovered panic.
type BugError struct {
	what  string
	value any
	Stack string
}

func (e *BugError) Error() string {
	return fmt.Sprintf("%s: bug in fabsh: %v (please report it; -vv says where)", e.what, e.value)
}

// Alone: no other fiber runs beside f, for it is none of parallel.
func (f *Fiber) Alone() bool { return f.baton == nil }
