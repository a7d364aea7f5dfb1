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

// queue holds what is on its way to one conn. Without delays it is two slices
// that change hands: no timer, no allocation once they have grown.
type queue struct {
	closed atomic.Bool

	// The receiver's own: what it took from ripe and has not handed out yet.
	out  []packet
	next int

	mu    sync.Mutex // guards all below
	wake  sync.Cond  // ripe has grown, late's first is due, or closed
	ripe  []packet
	late  lateHeap
	seq   uint64
	timer *time.Timer // runs while the receiver waits for late's first
}

func newQueue() *queue {
	q := &queue{}
	q.wake.L = &q.mu
	return q
}

// push hands p to the receiver, after delay.
func (q *queue) push(p *packet, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return
	}
	if delay <= 0 {
		q.ripe = append(q.ripe, *p)
	} else {
		q.seq++
		heap.Push(&q.late, &latePacket{due: time.Now().Add(delay), seq: q.seq, packet: *p})
	}
	q.wake.Signal()
}

// pop waits for a packet. The pointer is good until the next pop.
func (q *queue) pop() (*packet, error) {
	if q.closed.Load() {
		return nil, engine.ErrClosed
	}
	if q.next == len(q.out) {
		if err := q.refill(); err != nil {
			return nil, err
		}
	}
	q.next++
	return &q.out[q.next-1], nil
}

// refill waits until something is ripe and takes all of it.
func (q *queue) refill() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed.Load() {
			return engine.ErrClosed
		}
		wait := q.ripen()
		if len(q.ripe) > 0 {
			q.out, q.ripe, q.next = q.ripe, q.out[:0], 0
			return nil
		}
		if wait > 0 {
			q.arm(wait)
		}
		q.wake.Wait()
	}
}

// ripen moves what is due to ripe and returns how long the next one takes; 0: there is none.
func (q *queue) ripen() time.Duration {
	if len(q.late) == 0 {
		return 0
	}
	now := time.Now()
	for len(q.late) > 0 {
		if wait := q.late[0].due.Sub(now); wait > 0 {
			return wait
		}
		q.ripe = append(q.ripe, heap.Pop(&q.late).(*latePacket).packet)
	}
	return 0
}

func (q *queue) arm(wait time.Duration) {
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
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed.Store(true)
	if q.timer != nil {
		q.timer.Stop()
	}
	q.late, q.ripe = nil, nil
	q.wake.Broadcast()
}

// latePacket is a packet that is to arrive at due; seq keeps those of one
// instant in the order they were sent.
type latePacket struct {
	due time.Time
	seq uint64
	packet
}

type lateHeap []*latePacket

func (h lateHeap) Len() int { return len(h) }
func (h lateHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].seq < h[j].seq
}
func (h lateHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *lateHeap) Push(x any)   { *h = append(*h, x.(*latePacket)) }
func (h *lateHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
