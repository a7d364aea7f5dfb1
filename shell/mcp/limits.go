package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric/plural"
	"fabsh/mad/engine"
)

// maxTexts is how many requests for texts may wait: they take milliseconds each.
const maxTexts = 64

// queue lets one request run at a time, and a limited number wait.
type queue struct {
	slot    chan struct{}
	max     int32 // that may wait
	waiting *atomic.Int32
}

func newQueue(waiting int) queue {
	return queue{make(chan struct{}, 1), int32(waiting), new(atomic.Int32)}
}

// errBusy means that too many requests wait.
var errBusy = errors.New("busy")

// enter waits for its turn, until ctx ends; leave ends the turn. The error is errBusy if too many
// requests wait.
func (q *queue) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-q.slot }
	select {
	case q.slot <- struct{}{}:
		return leave, nil
	default:
	}
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > q.max {
		return nil, fmt.Errorf("%w: a call runs, and %s; call again when they have ended", errBusy, plural.Count(int(q.max), "call waits", "calls wait"))
	}
	select {
	case q.slot <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// meter limits the datagrams of each minute. It is safe for concurrent use.
type meter struct {
	perMinute int

	mu     sync.Mutex // guards the fields below
	counts [61]int    // datagrams of the last 60 s, and of the current second, by second modulo 61
	second int64      // the current second, since 1970
	sum    int        // of counts
	total  int        // datagrams ever sent
	stop   func(error)
	beyond error // why a datagram was not sent since watch; nil: all were
}

// watch has stop called when a datagram exceeds the limit, until end is called.
func (m *meter) watch(stop func(error)) (end func()) {
	m.set(stop)
	return func() { m.set(nil) }
}

func (m *meter) set(stop func(error)) {
	m.mu.Lock()
	m.stop, m.beyond = stop, nil
	m.mu.Unlock()
}

// err returns why a datagram was not sent since watch; nil: all were.
func (m *meter) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beyond
}

// advance moves the window to now; a clock that was set back gives no further datagrams. m.mu is
// held.
func (m *meter) advance(now time.Time) {
	second := now.Unix()
	if second >= m.second+int64(len(m.counts)) {
		m.counts, m.sum, m.second = [61]int{}, 0, second
	}
	for m.second < second {
		m.second++
		at := &m.counts[m.second%int64(len(m.counts))]
		m.sum -= *at
		*at = 0
	}
}

// take counts a datagram; an error means that it must not be sent.
func (m *meter) take() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.advance(now)
	if m.sum >= m.perMinute {
		err := m.exceeded()
		m.beyond = err
		if m.stop != nil {
			go m.stop(err) // it may wait for the engine, whose goroutine this is
			m.stop = nil
		}
		return err
	}
	m.counts[m.second%int64(len(m.counts))]++
	m.sum++
	m.total++
	return nil
}

// giveBack takes back the count of a datagram that was not sent.
func (m *meter) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := &m.counts[m.second%int64(len(m.counts))]; *at > 0 {
		*at--
		m.sum--
		m.total--
	}
}

// state returns the counts for another process.
func (m *meter) state() state {
	m.mu.Lock()
	defer m.mu.Unlock()
	return state{Counts: m.counts, Second: m.second}
}

// restore takes over the counts of an earlier process.
func (m *meter) restore(x state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts, m.second, m.sum = x.Counts, x.Second, 0
	for _, n := range m.counts {
		m.sum += n
	}
}

// exceeded returns the error of a datagram above the limit. m.mu is held.
func (m *meter) exceeded() error {
	wait := int64(len(m.counts))
	for back := int64(len(m.counts)) - 1; back >= 0; back-- { // the oldest second with datagrams
		if second := m.second - back; second >= 0 && m.counts[second%int64(len(m.counts))] > 0 {
			wait = int64(len(m.counts)) - back
			break
		}
	}
	return &lang.LimitError{Reason: fmt.Sprintf("limit of %s per minute exceeded; call again in %d s and read less: fewer ports, or rows of the latest sweep (max_age)", plural.Count(m.perMinute, "datagram", "datagrams"), wait)}
}

// sent returns the number of datagrams ever sent.
func (m *meter) sent() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

// metered is a transport whose datagrams a meter counts.
type metered struct {
	engine.Transport
	meter *meter
}

// Send sends a datagram within the limit.
func (t *metered) Send(d *engine.Datagram) error {
	if err := t.meter.take(); err != nil {
		return &engine.SendError{Err: err}
	}
	return t.Transport.Send(d)
}

// TrySend sends a datagram within the limit. One that would have to wait is counted by Send.
func (t *metered) TrySend(d *engine.Datagram) (sent bool, err error) {
	if err := t.meter.take(); err != nil {
		return false, &engine.SendError{Err: err}
	}
	if sent, err = t.Transport.TrySend(d); !sent && err == nil {
		t.meter.giveBack()
	}
	return sent, err
}

// sweepGate limits how often the fabric is swept.
type sweepGate struct {
	interval time.Duration

	mu   sync.Mutex
	next time.Time // when the next sweep may begin
}

// pass waits until a sweep may begin, unless ctx ends before.
func (g *sweepGate) pass(ctx context.Context, waiting func(time.Duration)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := time.Until(g.next); wait > 0 {
		waiting(wait)
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	g.next = time.Now().Add(g.interval)
	return nil
}
