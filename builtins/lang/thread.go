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

// Fiber is the state of a Starlark thread within its session. Builtins reach it only
// through the thread.
type Fiber struct {
	Runtime *Runtime
	Context context.Context
	// baton is held by the one fiber that runs; nil outside parallel, where no other
	// fiber of the script could run.
	baton *sync.Mutex
	// common is held by a fiber in a builtin, which may use the state of the session; nil:
	// no other script runs. It is locked after baton.
	common *sync.Mutex
	inside bool // it holds common
	// Sink receives the output of the fiber.
	Sink sink
	// Account counts requests that were not answered; catch opens a new one.
	Account *Account
	// Loads are the modules whose top levels run, each loaded by the one before it; until
	// they have finished, nothing may change the fabric.
	Loads []string

	// Place orders the work of fibers as if those of parallel ran one after another:
	// places are compared number by number, and a prefix comes first. It is never
	// changed in place, so copies stay valid.
	Place []int

	begun bool   // steps is set; copies of this fiber share it
	steps *steps // nil: unlimited
}

// Account counts the requests of a script that were not answered.
type Account struct{ Unanswered int }

// sink receives text for one of the two output streams.
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

// Discard is a sink that discards text.
type Discard struct{}

// Emit discards text.
func (Discard) Emit(Stream, string) error { return nil }

// NewThread returns the thread of f; release ends it and detaches it from f's context.
func NewThread(f *Fiber, name string) (t *starlark.Thread, release func()) {
	if f.Place == nil {
		f.Place = []int{f.Runtime.evaluations, 0}
		f.Runtime.evaluations++
	}
	t = &starlark.Thread{
		Name:  name,
		Print: func(t *starlark.Thread, msg string) { FiberOf(t).Print(msg + "\n") },
		Load: func(t *starlark.Thread, module string) (starlark.StringDict, error) {
			f.steps.leave(t) // a module runs in its own thread
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

// Thread returns the thread of an evaluation: it writes to the streams of r, and its
// unanswered requests count for the exit status. release ends it. A thread serves one
// evaluation, because its cancellation is permanent.
func (r *Runtime) Thread(ctx context.Context, name string) (t *starlark.Thread, release func()) {
	return NewThread(&Fiber{Runtime: r, Context: ctx, Sink: r, Account: &r.Account}, name)
}

// Evaluate runs a whole evaluation on its own thread.
func (r *Runtime) Evaluate(ctx context.Context, name string, fn func(t *starlark.Thread) error) error {
	t, release := r.Thread(ctx, name)
	defer release()
	return Finish(ctx, name, func() error { return fn(t) })
}

// Finish is Protect for a whole evaluation: after the end of ctx, any error of fn is
// replaced by the cause of that end.
func Finish(ctx context.Context, what string, fn func() error) error {
	err := Protect(what, fn)
	if err != nil && ctx.Err() != nil {
		return &StopError{Cause: context.Cause(ctx), At: err}
	}
	return err
}

// pass orders the further work of f after its earlier work and that of its fibers.
func (f *Fiber) pass() {
	f.Place = slices.Clone(f.Place)
	f.Place[len(f.Place)-1]++
}

// Block runs fn, which may wait, and lets other fibers run meanwhile. Nothing in this
// package may wait without it. fn must not use Starlark values. If the fiber was
// stopped meanwhile, Block returns the reason and the result of fn is ignored.
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

// yield releases the locks of the fiber while fn waits.
func yield(t *starlark.Thread, baton *sync.Mutex, fn func()) {
	f := FiberOf(t)
	f.steps.leave(t)
	defer f.steps.enter(t)
	if f.inside {
		f.leave()
		defer f.enter()
	}
	if baton != nil {
		baton.Unlock()
		defer baton.Lock()
	}
	fn()
}

// Stopped returns the reason why f must stop; nil if it may continue.
func (f *Fiber) Stopped() error {
	if f.Context.Err() == nil {
		return nil
	}
	return &StopError{Cause: context.Cause(f.Context)}
}

// Print writes text for people, to standard output unless that has structured output.
func (f *Fiber) Print(text string) {
	f.Runtime.Activity.Note()
	f.Sink.Emit(f.Runtime.People(), text) // print cannot fail; a closed pipe ends the process anyway
}

// Warn writes a warning to standard error.
func (f *Fiber) Warn(format string, args ...any) {
	if !f.Runtime.Quiet {
		f.Sink.Emit(Stderr, "warning: "+fmt.Sprintf(format, args...)+"\n")
	}
}

// Note writes a note to standard error.
func (f *Fiber) Note(format string, args ...any) {
	if !f.Runtime.Quiet {
		f.Sink.Emit(Stderr, fmt.Sprintf(format, args...)+"\n")
	}
}

// Protect calls fn and converts a panic to an error: a bug in fabsh must not end the
// session.
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
	return fmt.Sprintf("%s: internal error: %v (please report it; -vv prints a stack trace)", e.what, e.value)
}

// Alone reports whether f is outside parallel, so that no other fiber runs beside it.
func (f *Fiber) Alone() bool { return f.baton == nil && f.common == nil }

// Exclusive calls fn, which may use the state of the session, while no fiber of another
// script is in a builtin.
func (f *Fiber) Exclusive(fn func()) {
	if f.common != nil && !f.inside {
		f.enter()
		defer f.leave()
	}
	fn()
}

// enter locks the state of the session.
func (f *Fiber) enter() {
	f.common.Lock()
	f.inside = true
}

// leave unlocks it.
func (f *Fiber) leave() {
	f.inside = false
	f.common.Unlock()
}
