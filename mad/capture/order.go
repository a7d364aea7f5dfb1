package capture

import (
	"container/heap"
	"time"
)

// What an asker asks next may depend on who answered first: a sweep goes on to
// a node by the route on which it was found. So answers come in the order of
// the recording. One whose predecessors have not been asked for waits a little
// for that, in case they are about to be: the asker is busy with the answer
// before. An asker who asks for something else altogether finds that out once;
// then it waits less each time, by exponential back-off, until it follows the
// recording again.
type order struct {
	next    int // outcomes before it have been played, or passed over
	backOff int // by how many powers of two the wait is shorter: of waits in vain, less outcomes in order
	expired bool
}

const (
	// unordered is the place of what has none in the recording: it is played at
	// once.
	unordered = -1
	// longestWait is far more than an asker needs between an answer and the
	// question that follows from it.
	longestWait = 50 * time.Millisecond
	maxBackOff  = 6 // from then on it does not wait: 2^-6 of that is a millisecond
)

// wait says how long the outcome at place has to wait at most; 0: it is played.
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
