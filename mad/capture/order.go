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
// then it waits less each time, until it follows the recording again.
type order struct {
	next   int // outcomes before it have been played, or passed over
	vain   int // times that waiting was of no use, less those that needed none
	passed bool
}

const (
	// atOnce is the place of what has none in the recording.
	atOnce = -1
	// longestWait is far more than an asker needs between an answer and the
	// question that follows from it.
	longestWait = 50 * time.Millisecond
	mostVain    = 6 // from then on it does not wait: 2^-6 of that is a millisecond
)

// wait says how long the outcome at place has to wait at most; 0: it is played.
func (o *order) wait(place int) time.Duration {
	if place > o.next && !o.passed && o.vain < mostVain {
		return longestWait >> o.vain
	}
	switch {
	case place > o.next: // others were passed over
		o.vain = min(o.vain+1, mostVain)
	case place == o.next:
		o.vain = max(o.vain-1, 0)
	}
	o.passed = false
	o.next = max(o.next, place+1)
	return 0
}

// skip ends the waiting for the outcome at next.
func (o *order) skip() { o.passed = true }

// turns is a heap: the first in the order of the recording comes first, and of
// those with the same place the one that was pushed first.
type turns struct {
	list []waiting
	seq  int
}

type waiting struct {
	*turn
	place, seq int
}

func (h *turns) push(t *turn, place int) {
	h.seq++
	heap.Push(h, waiting{t, place, h.seq})
}

func (h *turns) pop() *turn { return heap.Pop(h).(waiting).turn }

func (h *turns) Len() int      { return len(h.list) }
func (h *turns) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *turns) Push(x any)    { h.list = append(h.list, x.(waiting)) }

func (h *turns) Less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	return a.place < b.place || a.place == b.place && a.seq < b.seq
}

func (h *turns) Pop() any {
	last := len(h.list) - 1
	w := h.list[last]
	h.list[last] = waiting{}
	h.list = h.list[:last]
	return w
}
