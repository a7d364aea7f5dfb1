package discover

import (
	"context"
	"errors"
	"slices"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// queue asks questions in their order, as many at a time as the engine can have out. The
// engine's goroutines drive it: each answer is handled, and the requests that follow from
// it are started, under mu.
type queue struct {
	engine *engine.Engine
	guards guards
	handle func(*request) error // what follows from an answer; an error ends the sweep
	done   chan struct{}        // closed when nothing is open

	mu      sync.Mutex // guards all that follows, and all that handle touches
	waiting []question // to be asked, in this order, from asked on
	asked   int
	open    []*request // at the engine
	free    []*request // to be used again
	ended   error      // why no more requests are sent
	retries int        // of requests for NodeInfo: 0, the engine's; -1, none
}

// maxOpen bounds the requests at the engine: as many as it can have out, with
// requests that time out too. The others wait in a form that takes a tenth of the memory.
const maxOpen = 4096

// question is what a request is to ask, and what it is about.
type question struct {
	purpose  purpose
	node     *sweepNode // NodeInfo: whose port it leaves; else: who is asked
	port     int
	route    mad.DirectedRoute
	attr     *mad.Attribute
	modifier uint32
	farEnd   *farEnd // that is rechecked; nil: none
}

// request is one SMP of a sweep.
type request struct {
	engine.Call
	question
	queue *queue
	index int // in queue.open
}

// askNode asks for the NodeInfo of what is at route, behind port of n.
func (q *queue) askNode(p purpose, n *sweepNode, port int, route mad.DirectedRoute) *question {
	return q.ask(p, n, port, route, mad.AttrNodeInfo, 0)
}

// ask puts a Get in the queue. The question may be changed until another is asked.
func (q *queue) ask(p purpose, n *sweepNode, port int, route mad.DirectedRoute, a *mad.Attribute, modifier uint32) *question {
	q.waiting = append(q.waiting, question{p, n, port, route, a, modifier, nil})
	return &q.waiting[len(q.waiting)-1]
}

// run starts what waits, and returns when nothing is open, or ctx has ended: why
// the sweep ended, if it was not done.
func (q *queue) run(ctx context.Context) error {
	q.mu.Lock()
	q.startSome()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done():
		q.stop(context.Cause(ctx))
		<-q.done
	}
	return q.ended
}

// startSome starts what waits, as far as there is room.
func (q *queue) startSome() {
	for q.asked < len(q.waiting) && len(q.open) < maxOpen && q.ended == nil {
		q.start(&q.waiting[q.asked])
		q.asked++
	}
	if q.asked > len(q.waiting)/2 {
		n := copy(q.waiting, q.waiting[q.asked:])
		clear(q.waiting[n:])
		q.waiting, q.asked = q.waiting[:n], 0
	}
}

func (q *queue) start(what *question) {
	var r *request
	if i := len(q.free); i > 0 {
		r, q.free = q.free[i-1], q.free[:i-1]
	} else {
		r = &request{queue: q}
		r.Notify = r
	}
	r.question = *what
	r.index = len(q.open)
	q.open = append(q.open, r)
	fabric.Dest{Route: r.route, Guard: q.guards.of(what)}.Put(&r.Call, mad.MethodGet, r.attr, r.modifier, nil)
	if r.Retries = 0; r.attr == mad.AttrNodeInfo {
		r.Retries = q.retries
	}
	q.engine.Start(&r.Call)
}

// Complete handles the end of a request.
func (r *request) Complete(*engine.Call) {
	q := r.queue
	q.mu.Lock()
	last := q.open[len(q.open)-1]
	q.open[r.index], last.index = last, r.index
	q.open = q.open[:len(q.open)-1]
	var broken error
	switch {
	case q.ended != nil:
	case isBroken(r.Err):
		broken = r.Err
	default:
		broken = q.handle(r)
		q.ended = broken
	}
	q.free = append(q.free, r)
	if broken == nil {
		q.startSome()
	}
	idle := len(q.open) == 0
	if idle && broken != nil {
		q.ended = broken
	}
	q.mu.Unlock()
	switch {
	case idle:
		close(q.done)
	case broken != nil:
		q.stop(broken) // the others are open still
	}
}

// stop ends all that is open. It must not be called with mu held, for the
// engine reports each end before Cancel returns.
func (q *queue) stop(cause error) {
	q.mu.Lock()
	if q.ended == nil {
		q.ended = cause
	}
	open := slices.Clone(q.open)
	q.mu.Unlock()
	for _, r := range slices.Backward(open) { // the last have not been sent yet
		q.engine.Cancel(&r.Call, cause)
	}
}

// isBroken reports whether err is not about one request, but ends them all.
func isBroken(err error) bool {
	if err == nil || errors.Is(err, engine.ErrTimeout) {
		return false
	}
	if _, ok := errors.AsType[*engine.SendError](err); ok {
		return false
	}
	e, ok := errors.AsType[*engine.Error](err)
	return ok && e.Status == 0
}
