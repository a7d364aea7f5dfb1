package sim

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// packet is one MAD with the address of its far end.
type packet struct {
	engine.Address
	mad [mad.Size]byte
}

// delayQueue holds what is on its way to one conn. Without delays it is two slices
// that change hands: no timer, no allocation once they have grown.
type delayQueue struct {
	closed atomic.Bool

	// The receiver's own: what it took from ripe and has not handed out yet.
	taken []packet
	next  int

	mu      sync.Mutex // guards all below
	wake    sync.Cond  // ripe has grown, late's first is due, or closed
	ready   []packet
	delayed delayHeap
	seq     uint64
	timer   *time.Timer // runs while the receiver waits for late's first
}

func newDelayQueue() *delayQueue {
	q := &delayQueue{}
	q.wake.L = &q.mu
	return q
}

// push hands p to the receiver, after delay.
func (q *delayQueue) push(p *packet, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return
	}
	if delay <= 0 {
		q.ready = append(q.ready, *p)
	} else {
		q.seq++
		heap.Push(&q.delayed, &delayedPacket{due: time.Now().Add(delay), seq: q.seq, packet: *p})
	}
	q.wake.Signal()
}

// pop waits for a packet. The pointer is good until the next pop.
func (q *delayQueue) pop() (*packet, error) {
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

// refill waits until something is ripe and takes all of it.
func (q *delayQueue) refill() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed.Load() {
			return engine.ErrClosed
		}
		wait := q.moveDue()
		if len(q.ready) > 0 {
			q.taken, q.ready, q.next = q.ready, q.taken[:0], 0
			return nil
		}
		if wait > 0 {
			q.setTimer(wait)
		}
		q.wake.Wait()
	}
}

// moveDue moves what is due to ripe and returns how long the next one takes; 0: there is none.
func (q *delayQueue) moveDue() time.Duration {
	if len(q.delayed) == 0 {
		return 0
	}
	now := time.Now()
	for len(q.delayed) > 0 {
		if wait := q.delayed[0].due.Sub(now); wait > 0 {
			return wait
		}
		q.ready = append(q.ready, heap.Pop(&q.delayed).(*delayedPacket).packet)
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

// delayedPacket is a packet that is to arrive at due; seq keeps those of one
// instant in the order they were sent.
type delayedPacket struct {
	due time.Time
	seq uint64
	packet
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
func (h *delayHeap) Push(x any)   { *h = append(*h, x.(*delayedPacket)) }
func (h *delayHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
