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
		{Name: "width", Kind: KindInt, Default: "64", Doc: "calls under way at once"},
	},
	Doc: `Calls a function with every item, many at a time.
It returns the list of results in the order of the items. One call runs at a time; others go on while it waits for the fabric, so plain code and shared dicts and lists work. What calls print appears in the order of the items. When a call fails, calls for later items are cancelled, calls for earlier ones finish, and the failure of the lowest item is reported.`,
	Example: `
> f = discover()
> parallel(lambda sw: smp_get("SwitchInfo", sw).linear_fdb_top, f.switches[:3])
[44, 44, 44]
`,
	Run: Do(parallel),
}

// errSibling is why an item's wait ended when an earlier item failed. Nobody
// sees it: the earlier failure is reported.
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
	b.parent.Runtime.countFibers(max(b.running-1, 0)) // this one waits
	var wg sync.WaitGroup
	for i := range b.workers {
		w := &b.workers[i]
		w.b, w.item = b, -1
		w.ctx, w.cancel = context.WithCancelCause(b.parent.Context)
		wg.Go(w.run)
	}
	// Not block: it may return before the workers, who watch the context
	// themselves, have let go of the script's values.
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
	next    int // the first item nobody has begun
	failed  int // the lowest item that failed; len(items) if none has
	err     error
	// Output: items before head have ended and their lines are written;
	// head's are written as they come, those of later ones kept in held.
	head int
	done []bool
	held map[int][]line
}

type line struct {
	st   Stream
	text string
}

// worker runs one item after the other on a thread of its own.
type worker struct {
	b      *batch
	item   int // the item under way, -1 if none
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (w *worker) run() {
	b := w.b
	defer w.cancel(nil)
	b.baton.Lock()
	defer b.baton.Unlock()
	f := *b.parent
	f.Context, f.baton, f.Sink = w.ctx, b.baton, w
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
	if b.running--; b.running > 0 { // the last makes room for the parent
		b.parent.Runtime.countFibers(-1)
	}
}

// fail notes that item i failed and cancels the items after it.
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

// finish lets the lines go of the items whose turn has come. Those after a
// failed item never come to it, as in a plain loop.
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

// itemError says which item of parallel failed.
type itemError struct {
	index int
	item  starlark.Value
	err   error
}

func (e *itemError) Error() string {
	return fmt.Sprintf("parallel: item %d, %s: %v", e.index, Brief(e.item), e.err)
}

func (e *itemError) Unwrap() error { return e.err }
