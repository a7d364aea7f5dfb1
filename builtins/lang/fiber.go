package lang

import (
	"context"
	"errors"
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

	// Place orders the work of fibers as if the fibers of parallel ran one after another:
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
	f.begin()
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
	libtime.SetNow(t, func() (time.Time, error) { return f.Clock().Now(), nil })
	ctx := f.Context // Within may change it while ctx ends
	untie := context.AfterFunc(ctx, func() { t.Cancel(context.Cause(ctx).Error()) })
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

// begin gives a fiber outside of parallel its place after the earlier ones.
func (f *Fiber) begin() {
	if f.Place == nil {
		f.Place = []int{f.Runtime.evaluations, 0}
		f.Runtime.evaluations++
	}
}

// Within calls fn; the fiber has the context ctx meanwhile, which is derived from its own.
func (f *Fiber) Within(ctx context.Context, fn func() error) error {
	outer := f.Context
	defer func() { f.Context = outer }()
	f.Context = ctx
	return fn()
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

// leave unlocks the state of the session.
func (f *Fiber) leave() {
	f.inside = false
	f.common.Unlock()
}

// Parallel is parallel().
var Parallel = Builtin{
	Name:  "parallel",
	Group: GroupFlow,
	Params: []Param{
		{Name: "fn", Kind: KindFunction, Doc: "called with each item"},
		{Name: "items", Kind: KindItems, Doc: "any iterable"},
		{Name: "width", Kind: KindInt, Default: "64", Doc: "maximum number of calls at a time"},
	},
	Doc: `Calls a function with each item, many at a time.
It returns the list of results in the order of the items. Only one call runs at a time; others run while it waits for the fabric, so shared dicts and lists need no locks. The output of the calls appears in the order of the items. When a call fails, calls for later items are cancelled, calls for earlier items finish, and the failure of the first failed item is reported.`,
	Example: `
> f = discover()
> parallel(lambda sw: smp_get("SwitchInfo", sw).linear_fdb_top, f.switches[:3])
[44, 44, 44]
`,
	Run: Do(runParallel),
}

// errSibling ends the wait of an item when an earlier item has failed. It is never
// shown: the earlier failure is reported.
var errSibling = errors.New("an earlier item failed")

type parallelArgs struct {
	FN    starlark.Callable
	Items []starlark.Value
	Width int
}

func runParallel(c *Call, a *parallelArgs) (starlark.Value, error) {
	if a.Width < 1 {
		return nil, ParamError("width", "got %d, want at least 1", a.Width)
	}
	b := &batch{parent: FiberOf(c.Thread), fn: a.FN, items: a.Items}
	b.results = make([]starlark.Value, len(b.items))
	b.done = make([]bool, len(b.items))
	b.failed = len(b.items)
	b.baton = b.parent.baton
	if b.baton == nil {
		b.baton = new(sync.Mutex)
		b.baton.Lock() // this thread runs
	}
	b.workers = make([]worker, min(a.Width, len(b.items)))
	b.running = len(b.workers)
	countFibers(b.parent.Clock(), max(b.running-1, 0)) // the parent waits
	var wg sync.WaitGroup
	for i := range b.workers {
		w := &b.workers[i]
		w.b, w.item = b, -1
		w.ctx, w.cancel = context.WithCancelCause(b.parent.Context)
		wg.Go(w.run)
	}
	// Not Block: it could return before the workers, which watch the context
	// themselves, have released the script's values.
	yield(c.Thread, b.baton, wg.Wait)
	b.parent.pass()
	if err := b.parent.Stopped(); err != nil {
		return nil, err
	}
	if b.err != nil {
		return nil, &itemError{index: b.failed, item: b.items[b.failed], err: b.err}
	}
	return starlark.NewList(b.results), nil
}

// batch is one call of parallel. The baton guards all of it.
type batch struct {
	parent  *Fiber
	baton   *sync.Mutex
	fn      starlark.Value
	items   []starlark.Value
	results []starlark.Value
	workers []worker
	running int // workers
	next    int // the first item that is not started
	failed  int // the first failed item; len(items) if none has failed
	err     error
	// Output: items before head have ended and their lines are written; lines of
	// head are written at once, lines of later items are kept in held.
	head int
	done []bool
	held map[int][]outputLine
}

type outputLine struct {
	st   Stream
	text string
}

// worker runs items one after another on its own thread.
type worker struct {
	b      *batch
	item   int // the current item, -1 if none
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (w *worker) run() {
	b := w.b
	defer w.cancel(nil)
	b.baton.Lock()
	defer b.baton.Unlock()
	f := *b.parent
	f.Context, f.baton, f.Sink, f.inside = w.ctx, b.baton, w, false
	t, release := NewThread(&f, "parallel")
	defer release()
	for b.next < b.failed && w.ctx.Err() == nil {
		w.item = b.next
		b.next++
		f.Place = append(slices.Clone(b.parent.Place), w.item, 0)
		err := Protect("parallel", func() (err error) {
			b.results[w.item], err = starlark.Call(t, b.fn, starlark.Tuple{b.items[w.item]}, nil)
			return err
		})
		if err != nil {
			b.fail(w.item, err)
		}
		b.finish(w.item)
	}
	w.item = -1
	if b.running--; b.running > 0 { // the parent continues in place of the last
		countFibers(b.parent.Clock(), -1)
	}
}

// fail records that item i failed and cancels the items after it.
func (b *batch) fail(i int, err error) {
	if i >= b.failed {
		return
	}
	b.failed, b.err = i, err
	for j := range b.workers {
		if b.workers[j].item > i {
			b.workers[j].cancel(errSibling)
		}
	}
}

// finish writes the lines of the items whose turn has come. Lines after a failed item
// are never written, as in a plain loop.
func (b *batch) finish(i int) {
	b.done[i] = true
	for b.head < len(b.done) && b.done[b.head] && b.head < b.failed {
		b.head++
		for _, l := range b.held[b.head] {
			b.parent.Sink.Emit(l.st, l.text)
		}
		delete(b.held, b.head)
	}
}

func (w *worker) Emit(st Stream, text string) error {
	b := w.b
	if w.item == b.head {
		return b.parent.Sink.Emit(st, text)
	}
	if b.held == nil {
		b.held = make(map[int][]outputLine)
	}
	b.held[w.item] = append(b.held[w.item], outputLine{st, text})
	return nil
}

// itemError is the failure of an item of parallel.
type itemError struct {
	index int
	item  starlark.Value
	err   error
}

func (e *itemError) Error() string {
	return fmt.Sprintf("parallel: item %d, %s: %v", e.index, Brief(e.item), e.err)
}

func (e *itemError) Unwrap() error { return e.err }

// RunTogether calls run for the index of each fiber, which makes its threads there; up to width
// of them have begun and not ended. The fibers begin in their order. They are of scripts that
// share no values that may change, so they run at the same time, except that only one is in
// builtins at a time, while it does not wait. With a limit of steps, which they count in common,
// only one runs at a time, as in parallel. Their
// clocks count fibers in common, or not at all.
func RunTogether(fibers []*Fiber, width int, run func(i int)) {
	width = min(width, len(fibers))
	if width == 0 {
		return
	}
	var baton, common sync.Mutex
	limited, _ := fibers[0].Context.Value(stepsKey{}).(*steps)
	for _, f := range fibers {
		f.begin()
		if f.common = &common; limited != nil {
			f.baton, f.common = &baton, nil
		}
	}
	clock := fibers[0].Clock()
	next, running := 0, width     // common guards both
	countFibers(clock, running-1) // the caller waits
	begin := func() (i int, more bool) {
		common.Lock()
		defer common.Unlock()
		if next < len(fibers) {
			next++
			return next - 1, true
		}
		if running--; running > 0 { // the caller continues in place of the last
			countFibers(clock, -1)
		}
		return 0, false
	}
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			if limited != nil {
				baton.Lock()
				defer baton.Unlock()
			}
			for i, more := begin(); more; i, more = begin() {
				run(i)
			}
		})
	}
	wg.Wait()
}
