package lang

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.starlark.net/starlark"
)

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
	Run: Do(parallel),
}

// errSibling ends the wait of an item when an earlier item has failed. It is never
// shown: the earlier failure is reported.
var errSibling = errors.New("an earlier item failed")

type parallelArgs struct {
	FN    starlark.Callable
	Items []starlark.Value
	Width int
}

func parallel(c *Call, a *parallelArgs) (starlark.Value, error) {
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
	b.parent.Runtime.countFibers(max(b.running-1, 0)) // the parent waits
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
	held map[int][]line
}

type line struct {
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
		b.parent.Runtime.countFibers(-1)
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
		b.held = make(map[int][]line)
	}
	b.held[w.item] = append(b.held[w.item], line{st, text})
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
