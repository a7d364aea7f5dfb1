package capture

import (
	"container/heap"
	"time"
)

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
// the order of the recording comes first, and of those with the same place the
// one that was pushed first.
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
