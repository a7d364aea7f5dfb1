package lang

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"go.starlark.net/starlark"
)

// Clock is the time that scripts see; a simulation may provide it.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or, if ctx ends earlier, with its cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// UptimeClock is a Clock that also counts the time since the machine booted, which setting
// the clock does not change.
type UptimeClock interface {
	Clock
	// Uptime returns an identifier of the boot, "" if unknown, and the time since then.
	Uptime() (boot string, up time.Duration)
}

// RealClock is the machine's time.
type RealClock struct{}

func (RealClock) Now() time.Time { return time.Now() }

func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Sleep is sleep(), which uses the session's clock.
var Sleep = Builtin{
	Name:   "sleep",
	Group:  GroupRest,
	Params: []Param{{Name: "duration", Kind: KindDuration, Doc: `"500ms", "10s", or a number of seconds`}},
	Doc:    "Waits for a duration; other items of parallel continue.\nAt the deadline it fails.",
	Example: `
> sleep("1ms")
`,
	Run: Do(func(c *Call, a *struct{ Duration time.Duration }) (starlark.Value, error) {
		if err := c.Sleep(a.Duration); err != nil {
			return nil, err
		}
		return starlark.None, nil
	}),
}

// Wait waits by a clock, for functions in Block. It fails at the deadline.
func Wait(ctx context.Context, clock Clock, d time.Duration) error {
	ctx, cancel := untilDeadline(ctx)
	defer cancel()
	return clock.Sleep(ctx, d)
}

// Sleep waits, by the clock of the fiber; other items of parallel continue. It fails at
// the deadline.
func (c *Call) Sleep(d time.Duration) error {
	err := c.Block(func(ctx context.Context) error { return Wait(ctx, c.Clock(), d) })
	if err != nil && c.Fiber().Stopped() == nil {
		return Errorf("%w", err)
	}
	return err
}

// VirtualClock is a clock that stops while a script runs or waits for the fabric. When
// all fibers sleep, it advances to the time when the next one wakes up.
type VirtualClock struct {
	mu     sync.Mutex // guards all below
	now    time.Time
	fibers int // that do not wait for other fibers
	asleep sleepers
	seq    int
}

// NewVirtualClock returns a clock that begins with the year 2000.
func NewVirtualClock() *VirtualClock {
	return &VirtualClock{now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), fibers: 1}
}

func (c *VirtualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *VirtualClock) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	c.seq++
	s := &sleeper{due: c.now.Add(d), seq: c.seq, wake: make(chan struct{})}
	heap.Push(&c.asleep, s)
	c.advance()
	c.mu.Unlock()
	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.place >= 0 {
			heap.Remove(&c.asleep, s.place)
		}
		return context.Cause(ctx)
	}
}

// addFibers records that n more fibers run.
func (c *VirtualClock) addFibers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fibers += n
	c.advance()
}

// advance wakes the next fiber if all sleep. c.mu is held.
func (c *VirtualClock) advance() {
	if len(c.asleep) == 0 || len(c.asleep) < c.fibers {
		return
	}
	s := heap.Pop(&c.asleep).(*sleeper)
	c.now = s.due
	close(s.wake)
}

// fiberCounter is a clock that depends on the number of fibers.
type fiberCounter interface{ addFibers(n int) }

// countFibers adds n fibers to the count of clock, if it has one.
func countFibers(clock Clock, n int) {
	if c, ok := clock.(fiberCounter); ok {
		c.addFibers(n)
	}
}

// runClock is the clock of a run.
type runClock struct{ Clock }

// WithClock returns a context for a run of r with a clock of its own.
func WithClock(ctx context.Context, r *Runtime, clock Clock) context.Context {
	return WithRun(ctx, r, &runClock{clock})
}

// Clock returns the clock of the run that f belongs to, else of the session.
func (f *Fiber) Clock() Clock {
	if c := RunOf[runClock](f); c != nil {
		return c.Clock
	}
	return f.Runtime.Clock
}

// Clock returns the clock of the call's fiber.
func (c *Call) Clock() Clock { return c.Fiber().Clock() }

// Accompany records that a goroutine sleeps by clock c beside the fibers of a session, so
// that a virtual clock also stops for its sleeps. leave ends that.
func Accompany(c Clock) (leave func()) {
	f, ok := c.(fiberCounter)
	if !ok {
		return func() {}
	}
	f.addFibers(1)
	return func() { f.addFibers(-1) }
}

// sleeper is a fiber that sleeps until due; seq orders sleepers with equal due times.
type sleeper struct {
	due   time.Time
	seq   int
	wake  chan struct{}
	place int // in the heap; -1: awake
}

type sleepers []*sleeper

func (h sleepers) Len() int { return len(h) }
func (h sleepers) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].seq < h[j].seq
}
func (h sleepers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *sleepers) Push(x any) {
	s := x.(*sleeper)
	s.place = len(*h)
	*h = append(*h, s)
}
func (h *sleepers) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.place = -1
	return s
}
