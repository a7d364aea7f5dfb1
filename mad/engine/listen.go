package engine

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"fabsh/mad"
)

// listeners receive requests of others: one listener for a class and method at a
// time.
type listeners struct {
	mu     sync.Mutex // guards all below, and the Listeners' queues
	byKey  map[listenKey]*Listener
	err    error  // fatal: the transport has failed, or was closed
	counts Counts // Unsolicited, Dropped, Foreign
}

// listenKey identifies a listener.
type listenKey struct {
	class  mad.Class
	method mad.Method
}

// fail ends all with err, which is fatal.
func (ls *listeners) fail(err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.err = err
	for _, l := range ls.byKey {
		l.notify()
	}
}

// addTo adds the counts of the listeners to c.
func (ls *listeners) addTo(c *Counts) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	c.Unsolicited += ls.counts.Unsolicited
	c.Dropped += ls.counts.Dropped
	c.Foreign += ls.counts.Foreign
}

// Listen begins to receive requests of others, of a class and method, and answers
// them: each Report by ReportResp, so that its sender does not send it again; each
// trap by TrapRepress, so that the agent does not repeat it (IBA 13.4.5, 13.4.9), if
// the engine may change the fabric and there is an address to send it to. There is one
// listener for a class and method at a time.
//
// Requests for which counts returns false are forged: they are neither delivered nor
// answered, but counted. It is called with the engine's lock held, must not block, and
// keeps nothing of d. Nil: all count.
func (e *Engine) Listen(c mad.Class, m mad.Method, counts func(d *Datagram) bool) (*Listener, error) {
	if e.options.OnlyReads {
		return nil, ErrOnlyReads
	}
	l := &Listener{
		all:    &e.listeners,
		key:    listenKey{c.Family(), m},
		counts: counts,
		ready:  make(chan struct{}, 1),
		seed:   maphash.MakeSeed(),
		events: make([]incoming, listenQueue),
	}
	err := e.listeners.add(l)
	if err != nil {
		return nil, err
	}
	if l.stop, err = e.transport.Accept(c, m); err != nil {
		e.listeners.remove(l)
		return nil, err
	}
	return l, nil
}

func (ls *listeners) add(l *Listener) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	c, m := l.key.class, l.key.method
	switch {
	case ls.err != nil:
		return ls.err
	case ls.byKey[l.key] != nil:
		return fmt.Errorf("%s of class %v already has a listener in this program", m.Name(c, c.Version()), c)
	}
	ls.byKey[l.key] = l
	return nil
}

func (ls *listeners) remove(l *Listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.closed = true
	if ls.byKey[l.key] == l {
		delete(ls.byKey, l.key)
	}
	l.notify()
}

// Listener receives the requests of one class and method. Requests that arrive faster
// than they are read are dropped, the newest first, and counted. It is safe for
// concurrent use, except for Next.
type Listener struct {
	all    *listeners
	key    listenKey
	counts func(d *Datagram) bool
	stop   func()
	seed   maphash.Seed
	ready  chan struct{} // something has changed

	// all.mu guards all below.
	closed     bool
	events     []incoming // a ring
	head, tail uint64
	dropped    uint64 // since the last request that was queued
	seen       [repeats]repeat
}

// incoming is a request of others.
type incoming struct {
	from    Address
	mad     [mad.Size]byte
	dropped uint64 // before it
}

// listenQueue is the number of MADs that may wait to be read. A subnet administrator
// reports each event once for each subscription; a switch that fails may cause
// hundreds.
const listenQueue = 1024

// Next waits for a MAD and puts it in d. If some were dropped before it, it first
// returns their number, and leaves d unchanged. One goroutine may call it at a time.
func (l *Listener) Next(ctx context.Context, d *Datagram) (dropped uint64, err error) {
	for {
		took, dropped, err := l.take(d)
		if took || dropped > 0 || err != nil {
			return dropped, err
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (l *Listener) take(d *Datagram) (took bool, dropped uint64, err error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.head == l.tail {
		dropped, l.dropped = l.dropped, 0
		if l.closed {
			err = ErrClosed
		}
		return false, dropped, cmp.Or(l.all.err, err)
	}
	ev := &l.events[l.head%listenQueue]
	if dropped, ev.dropped = ev.dropped, 0; dropped > 0 {
		return false, dropped, nil
	}
	l.head++
	*d = Datagram{Address: ev.from, MAD: append(d.MAD[:0], ev.mad[:]...)}
	return true, 0, nil
}

// Foreign counts a MAD of Next that is from a foreign sender, in Stats.
func (l *Listener) Foreign() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.counts.Foreign++
}

// Close ends the listening: queued MADs can still be read.
func (l *Listener) Close() {
	l.all.remove(l)
	l.stop()
}

// notify wakes Next.
func (l *Listener) notify() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// deliver passes a request of others, with header h, to its listener, and reports
// whether there is one.
func (ls *listeners) deliver(d *Datagram, h *mad.Header, now time.Duration) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.counts.Unsolicited++
	l := ls.byKey[listenKey{h.Class.Family(), h.Method}]
	switch {
	case l == nil || h.ClassVersion != h.Class.Version():
		return false
	case checkLength(d.MAD) != nil, l.counts != nil && !l.counts(d):
		ls.counts.Foreign++
		return false
	case h.Method == mad.MethodReport && l.repeated(d, now):
	case l.tail-l.head == listenQueue:
		l.dropped++
		ls.counts.Dropped++
	default:
		ev := &l.events[l.tail%listenQueue]
		ev.from, ev.dropped = d.Address, l.dropped
		clear(ev.mad[copy(ev.mad[:], d.MAD):])
		l.dropped = 0
		l.tail++
	}
	l.notify()
	return true
}

// unsolicited handles a request of others, with header h.
func (r *receiver) unsolicited(d *Datagram, h *mad.Header, now time.Duration) {
	switch {
	case !r.listeners.deliver(d, h, now):
	case h.Method == mad.MethodReport:
		r.calls.outbox.reply(d, mad.MethodReportResp)
	case h.Method == mad.MethodTrap && r.represses && h.Class != mad.ClassSubnDirected:
		// A directed route has no path back: it was for one hop.
		r.calls.outbox.reply(d, mad.MethodTrapRepress)
	}
}

// A Report is resent if its ReportResp does not come: OpenSM does so after 0.2 s,
// three times (osm_subnet.c, transaction_timeout and transaction_retries). It is then
// identical. A restarted sender may begin with the transaction IDs that it had before,
// but not so soon.
const (
	repeats      = 1024
	repeatWithin = 3 * time.Second
)

type repeat struct {
	sum uint64
	at  time.Duration
}

// repeated reports whether d has come before.
func (l *Listener) repeated(d *Datagram, now time.Duration) bool {
	sum := maphash.Bytes(l.seed, d.MAD) ^ uint64(d.LID)
	r := &l.seen[sum%repeats]
	again := r.sum == sum && now-r.at < repeatWithin
	*r = repeat{sum, now}
	return again
}
