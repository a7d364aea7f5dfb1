package sim

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/mad/engine"
)

// delayQueue holds the packets on their way to the program at one conn. Without
// delays it is two slices that sender and receiver exchange, without a timer, and
// without allocation once they have grown.
type delayQueue struct {
	closed atomic.Bool

	// Used by the receiver alone: the packets that it took from ready, the next one that
	// it returns, and what it calls before it waits; again: it must check once more.
	taken  []agent.Packet
	next   int
	before func() (again bool)

	mu      sync.Mutex // guards all below
	wake    sync.Cond  // ready has grown, the first of delayed is due, or closed
	ready   []agent.Packet
	delayed delayHeap
	seq     uint64
	timer   *time.Timer // runs while the receiver waits for the first of delayed
}

func newDelayQueue() *delayQueue {
	q := &delayQueue{}
	q.wake.L = &q.mu
	return q
}

// push adds p, which the receiver gets after the delay.
func (q *delayQueue) push(p *agent.Packet, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return
	}
	if delay <= 0 {
		q.ready = append(q.ready, *p)
	} else {
		q.seq++
		heap.Push(&q.delayed, &delayedPacket{due: time.Now().Add(delay), seq: q.seq, Packet: *p})
	}
	q.wake.Signal()
}

// waiting returns the number of packets that the receiver has not taken yet.
func (q *delayQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready) + len(q.delayed)
}

// pop waits for a packet. The pointer is valid until the next pop.
func (q *delayQueue) pop() (*agent.Packet, error) {
	if q.closed.Load() {
		return nil, engine.ErrClosed
	}
	if q.next == len(q.taken) {
		if err := q.refill(); err != nil {
			return nil, err
		}
	}
	q.next++
	return &q.taken[q.next-1], nil
}

// refill waits until packets are ready, and takes all of them.
func (q *delayQueue) refill() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked := q.before == nil
	for {
		if q.closed.Load() {
			return engine.ErrClosed
		}
		wait := q.moveDue()
		switch {
		case len(q.ready) > 0:
			q.taken, q.ready, q.next = q.ready, q.taken[:0], 0
			return nil
		case !asked:
			q.mu.Unlock()
			asked = !q.before()
			q.mu.Lock()
			continue // packets may have come meanwhile
		case wait > 0:
			q.setTimer(wait)
		}
		q.wake.Wait()
		asked = q.before == nil
	}
}

// moveDue moves the delayed packets that are due to ready. It returns the time
// until the next one is due; 0 without another.
func (q *delayQueue) moveDue() time.Duration {
	if len(q.delayed) == 0 {
		return 0
	}
	now := time.Now()
	for len(q.delayed) > 0 {
		if wait := q.delayed[0].due.Sub(now); wait > 0 {
			return wait
		}
		q.ready = append(q.ready, heap.Pop(&q.delayed).(*delayedPacket).Packet)
	}
	return 0
}

func (q *delayQueue) setTimer(wait time.Duration) {
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.wake.Signal()
		})
		return
	}
	q.timer.Reset(wait)
}

// close wakes the receiver.
func (q *delayQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed.Store(true)
	if q.timer != nil {
		q.timer.Stop()
	}
	q.delayed, q.ready = nil, nil
	q.wake.Broadcast()
}

// delayedPacket is a packet that arrives at due; seq orders those of one instant.
type delayedPacket struct {
	due time.Time
	seq uint64
	agent.Packet
}

type delayHeap []*delayedPacket

func (h delayHeap) Len() int { return len(h) }

func (h delayHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].seq < h[j].seq
}

func (h delayHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *delayHeap) Push(x any) { *h = append(*h, x.(*delayedPacket)) }

func (h *delayHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
