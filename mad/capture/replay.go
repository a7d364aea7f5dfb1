package capture

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Replay is an engine.Transport that answers from a recording. A request equals a
// recorded one if destination, queue pair and content are equal, whatever its transaction
// ID. Made as often as in the recording, it is answered as
// in the recording; made once more, like the last time. If no answer was recorded,
// the engine learns at once that no answer will come, after as many attempts as were
// recorded. Requests that were never recorded are refused with
// engine.ErrNotRecorded.
//
// It is also a clock for scripts: its time is the latest time of the answers given so
// far, and sleep only advances it.
type Replay struct {
	engine.Basic

	recording *Recording
	wake      chan struct{} // to Recv: waiting has grown
	closed    chan struct{}
	close     sync.Once

	mu      sync.Mutex // guards all below
	made    map[*request]int
	calls   map[uint32]*call // open, by engine.CallOf
	waiting waitQueue
	order   order
	out     []engine.Datagram // to be received before anything else
	now     time.Time
}

// call is one of the engine's calls, and its recorded outcome.
type call struct {
	*outcome
	attempt int      // the latest: from 1
	tid     [8]byte  // its own
	head    [24]byte // of the request, for the engine if no answer comes
	place   int      // in the order of outcomes, or unordered
}

// NewReplay returns a transport that answers from r.
func NewReplay(r *Recording) *Replay {
	return &Replay{
		recording: r,
		wake:      make(chan struct{}, 1),
		closed:    make(chan struct{}),
		made:      map[*request]int{},
		calls:     map[uint32]*call{},
		now:       r.began,
	}
}

// Traits returns the traits of the transport; it is simulated if the recorded fabric was.
func (r *Replay) Traits() engine.Traits {
	return engine.Traits{Name: "replay", NoACK: true, Recorded: true, Simulated: r.recording.simulated}
}

// Send searches d in the recording.
func (r *Replay) Send(d *engine.Datagram) error {
	m := make([]byte, max(mad.Size, len(d.MAD)))
	copy(m, d.MAD)
	mad.MaskKeys(m)
	if segmentOf(m) != nil {
		forgetSegments(m)
	}
	req := r.recording.requests[keyOf(&d.Address, m)]
	if req == nil {
		return &engine.SendError{Err: fmt.Errorf("%w %s", engine.ErrNotRecorded, r.recording.name)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := engine.CallOf(tidOf(m))
	c := r.calls[id]
	if c == nil || c.request != req {
		c = r.begin(req)
	}
	if d.Timeout == 0 {
		return nil // no answer is expected
	}
	c.attempt++
	c.tid, c.head = [8]byte(m[mad.TIDOffset:]), [24]byte(m)
	r.calls[id] = c
	place := c.place
	if c.attempt < c.attempts {
		place = unordered
	}
	r.waiting.push(c, place)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return nil
}

// begin begins a call that makes req.
func (r *Replay) begin(req *request) *call {
	n := r.made[req]
	r.made[req]++
	if n < len(req.outcomes) {
		o := req.outcomes[n]
		return &call{outcome: o, place: o.place}
	}
	return &call{outcome: req.outcomes[len(req.outcomes)-1], place: unordered}
}

// Recv waits for the next answer.
func (r *Replay) Recv(d *engine.Datagram) error {
	for {
		wait, ok := r.next(d)
		if ok {
			return nil
		}
		if err := r.pause(wait); err != nil {
			return err
		}
	}
}

// pause waits for something to happen, and no longer than wait, unless that is 0.
func (r *Replay) pause(wait time.Duration) error {
	var timeout <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-r.closed:
		return engine.ErrClosed
	case <-r.wake:
	case <-timeout:
		r.mu.Lock()
		r.order.expire()
		r.mu.Unlock()
	}
	return nil
}

// next fills d with the next answer. If that must wait for another, it returns how
// long at most.
func (r *Replay) next(d *engine.Datagram) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.out) == 0 {
		if r.waiting.Len() == 0 {
			return 0, false
		}
		if wait := r.order.wait(r.waiting.list[0].place); wait > 0 {
			return wait, false
		}
		r.play(r.waiting.pop())
	}
	m := append(d.MAD[:0], r.out[0].MAD...)
	*d = r.out[0]
	d.MAD = m
	r.out = r.out[1:]
	return 0, true
}

// play puts the outcome of an attempt in r.out.
func (r *Replay) play(c *call) {
	back := engine.Datagram{Undelivered: true, MAD: c.head[:]}
	if c.attempt < c.attempts {
		r.out = append(r.out[:0], back)
		return
	}
	delete(r.calls, c.id())
	r.out = r.out[:0]
	took := c.ended.Sub(c.first)
	back.Took = max(1, took+clockSlack)
	if c.ended.After(r.now) {
		r.now = c.ended
	}
	for i := range c.answers {
		a := &c.answers[i]
		m := padded(a.mad)
		copy(m[mad.TIDOffset:], c.tid[:])
		h := mad.ParseHeader(m)
		r.out = append(r.out, engine.Datagram{Address: a.from, MAD: m, Took: max(1, took), Cut: isTable(h) && h.Status == 0 && !a.segment})
	}
	if len(r.out) == 0 || c.answers[0].segment {
		r.out = append(r.out, back) // the missing part of a table does not come
	}
}

// clockSlack is more than the time between the clock readings of an engine and a
// recorder.
const clockSlack = time.Millisecond

// id returns the engine's ID of c.
func (c *call) id() uint32 { return engine.CallOf(tidOf(c.head[:])) }

// Port returns the facts of the local port at this point of the recording.
func (r *Replay) Port() (engine.Port, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.recording.ports[0].Port
	for _, f := range r.recording.ports[1:] {
		if f.n <= r.order.next {
			p = f.Port
		}
	}
	p.PKeys = slices.Clone(p.PKeys)
	return p, nil
}

// Accept fails: requests of others follow no request that shows when they are due.
func (r *Replay) Accept(mad.Class, mad.Method) (stop func(), err error) {
	return nil, fmt.Errorf("a replay does not deliver events; those of %s are in the file", r.recording.name)
}

// Reports returns the Reports of the subnet administrator that were received while the
// recording was made. The caller must not change them.
func (r *Replay) Reports() [][]byte { return r.recording.reports }

// Close wakes Recv.
func (r *Replay) Close() error {
	r.close.Do(func() { close(r.closed) })
	return nil
}

// Now returns the time in the recording.
func (r *Replay) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Sleep advances the time, and does not wait.
func (r *Replay) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
	return nil
}

// The next request may depend on the order of the answers: a sweep continues to a
// node by the route on which it was found. So answers come in the order of the
// recording. An answer whose predecessors have not been requested waits a little
// for these requests: the requester may be busy with the answer before. For a
// requester with other requests the wait becomes shorter each time, by exponential
// back-off, until it follows the recording again.
type order struct {
	next    int // outcomes before it have been played, or passed over
	backOff int // the wait is shorter by this power of two: waits in vain, minus outcomes in order
	expired bool
}

const (
	// unordered is the place of outcomes without a place in the recording: they
	// are played at once.
	unordered = -1
	// longestWait is far more than a requester needs between an answer and the
	// request that follows from it.
	longestWait = 50 * time.Millisecond
	maxBackOff  = 6 // from then on there is no wait: 2^-6 of longestWait is a millisecond
)

// wait returns how long the outcome at place waits at most; 0: it is played.
func (o *order) wait(place int) time.Duration {
	if place > o.next && !o.expired && o.backOff < maxBackOff {
		return longestWait >> o.backOff
	}
	switch {
	case place > o.next: // others were passed over
		o.backOff = min(o.backOff+1, maxBackOff)
	case place == o.next:
		o.backOff = max(o.backOff-1, 0)
	}
	o.expired = false
	o.next = max(o.next, place+1)
	return 0
}

// expire ends the wait for the outcome at next.
func (o *order) expire() { o.expired = true }

// waitQueue is a heap of calls whose next outcome is to be played: the first in
// the order of the recording comes first, and of calls with one place the call that was
// pushed first.
type waitQueue struct {
	list []waiting
	seq  int
}

type waiting struct {
	*call
	place, seq int
}

func (h *waitQueue) push(c *call, place int) {
	h.seq++
	heap.Push(h, waiting{c, place, h.seq})
}

func (h *waitQueue) pop() *call { return heap.Pop(h).(waiting).call }

func (h *waitQueue) Len() int      { return len(h.list) }
func (h *waitQueue) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *waitQueue) Push(x any)    { h.list = append(h.list, x.(waiting)) }

func (h *waitQueue) Less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	return a.place < b.place || a.place == b.place && a.seq < b.seq
}

func (h *waitQueue) Pop() any {
	last := len(h.list) - 1
	w := h.list[last]
	h.list[last] = waiting{}
	h.list = h.list[:last]
	return w
}
