package engine

import (
	"math"
	"time"
)

// never is later than all times.
const never = time.Duration(math.MaxInt64)

// timers are the calls by the time when the timer goroutine checks them. Engine.mu
// guards heap and armed.
type timers struct {
	epoch time.Time // all times are since then
	heap  timerHeap
	armed time.Duration // when the timer goroutine will wake
	rearm chan struct{} // to the timer goroutine: armed was brought forward
}

func (t *timers) init() {
	t.epoch = time.Now()
	t.armed = never
	t.rearm = make(chan struct{}, 1)
}

// set makes the timer goroutine check c at the given time.
func (t *timers) set(c *Call, at time.Duration) {
	t.heap.set(c, at)
	t.wakeBy(at)
}

// now returns the time since the start of the engine: monotonic, and cheap to compare.
func (t *timers) now() time.Duration { return time.Since(t.epoch) }

func (t *timers) remove(c *Call) { t.heap.remove(c) }

// first returns the call that is due first, or nil.
func (t *timers) first() *Call {
	if len(t.heap) == 0 {
		return nil
	}
	return t.heap[0]
}

// wakeBy makes sure that the timer goroutine wakes at the given time or before.
func (t *timers) wakeBy(at time.Duration) {
	if at < t.armed {
		t.armed = at
		select {
		case t.rearm <- struct{}{}:
		default: // already signalled
		}
	}
}

// timerHeap is ordered by wake, the earliest first.
type timerHeap []*Call

// set makes at the time when c is checked.
func (h *timerHeap) set(c *Call, at time.Duration) {
	c.s.wake = at
	if c.s.timer == 0 {
		*h = append(*h, c)
		c.s.timer = len(*h)
		h.up(len(*h) - 1)
		return
	}
	i := c.s.timer - 1
	h.up(i)
	h.down(c.s.timer - 1)
}

func (h *timerHeap) remove(c *Call) {
	if c.s.timer == 0 {
		return
	}
	i, last := c.s.timer-1, len(*h)-1
	c.s.timer = 0
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		moved.s.timer = i + 1
		h.up(i)
		h.down(moved.s.timer - 1)
	}
}

func (h timerHeap) up(i int) {
	c := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].s.wake <= c.s.wake {
			break
		}
		h[i] = h[parent]
		h[i].s.timer = i + 1
		i = parent
	}
	h[i] = c
	c.s.timer = i + 1
}

func (h timerHeap) down(i int) {
	c := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].s.wake < h[child].s.wake {
			child++
		}
		if c.s.wake <= h[child].s.wake {
			break
		}
		h[i] = h[child]
		h[i].s.timer = i + 1
		i = child
	}
	h[i] = c
	c.s.timer = i + 1
}
