package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"time"

	"fabsh/mad"
)

// listeners are who takes what comes unasked: one of a class and method at a
// time. Engine.mu guards them.
type listeners map[listenKey]*Listener

// listenKey tells listeners apart.
type listenKey struct {
	class  mad.Class
	method mad.Method
}

// of is who takes requests with header h; nil: nobody.
func (ls listeners) of(h *mad.Header) *Listener {
	if h.ClassVersion != h.Class.Version() {
		return nil
	}
	return ls[listenKey{h.Class.Family(), h.Method}]
}

// tell wakes all.
func (ls listeners) tell() {
	for _, l := range ls {
		l.tell()
	}
}

// Listen begins to take MADs of a class and method that nobody asked for, and
// answers them: each Report by ReportResp, so that its sender does not send it
// again; each trap by TrapRepress, so that the agent does not repeat it (IBA
// 13.4.5, 13.4.9), if the engine may change the fabric and there is an address
// to send it to. There is one listener for a class and method at a time.
//
// What counts says is forged is neither told nor answered, but counted. It is
// called with the engine's lock held, must not block, and keeps nothing of d.
// Nil: all counts.
func (e *Engine) Listen(c mad.Class, m mad.Method, counts func(d *Datagram) bool) (*Listener, error) {
	l := &Listener{
		e:      e,
		key:    listenKey{c.Family(), m},
		counts: counts,
		ready:  make(chan struct{}, 1),
		seed:   maphash.MakeSeed(),
		events: make([]incoming, listenQueue),
	}
	e.mu.Lock()
	err := e.life.err
	if err == nil && e.listeners[l.key] != nil {
		err = fmt.Errorf("somebody in this program listens to %s of class %v already", m.Name(c, c.Version()), c)
	}
	if err == nil {
		e.listeners[l.key] = l
	}
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if l.stop, err = e.transport.Accept(c, m); err != nil {
		e.unlisten(l)
		return nil, err
	}
	return l, nil
}

// Listener takes what comes of one class and method. What comes faster than it
// is taken is dropped, the newest first, and counted.
type Listener struct {
	e      *Engine
	key    listenKey
	counts func(d *Datagram) bool
	stop   func()
	seed   maphash.Seed
	ready  chan struct{} // something has changed

	// The engine's lock guards all below.
	closed     bool
	events     []incoming // a ring
	head, tail uint64
	dropped    uint64 // since the last that was queued
	seen       [repeats]repeat
}

// incoming is a MAD that nobody asked for.
type incoming struct {
	from    Address
	mad     [mad.Size]byte
	dropped uint64 // before it
}

// listenQueue is how many MADs wait to be taken. A subnet administrator reports
// each event once for each subscription; a switch that fails may be some
// hundreds.
const listenQueue = 1024

// Next waits for a MAD and puts it in d. Where some were dropped before it, it
// first says how many instead, and leaves d alone. One goroutine may call it
// at a time.
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
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	if l.head == l.tail {
		dropped, l.dropped = l.dropped, 0
		if l.closed {
			err = ErrClosed
		}
		return false, dropped, cmp.Or(l.e.life.err, err)
	}
	ev := &l.events[l.head%listenQueue]
	if dropped, ev.dropped = ev.dropped, 0; dropped > 0 {
		return false, dropped, nil
	}
	l.head++
	*d = Datagram{Address: ev.from, MAD: append(d.MAD[:0], ev.mad[:]...)}
	return true, 0, nil
}

// Foreign counts what Next gave and nobody had asked for.
func (l *Listener) Foreign() {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.e.stats.Foreign++
}

// Close ends the listening: what is queued can still be taken.
func (l *Listener) Close() {
	l.e.unlisten(l)
	l.stop()
}

func (e *Engine) unlisten(l *Listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.closed = true
	if e.listeners[l.key] == l {
		delete(e.listeners, l.key)
	}
	l.tell()
}

// tell wakes Next.
func (l *Listener) tell() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// unsolicited takes in a request of others.
func (e *Engine) unsolicited(d *Datagram, now time.Duration) {
	e.stats.Unsolicited++
	h := mad.ParseHeader(d.MAD)
	l := e.listeners.of(&h)
	if l == nil {
		return
	}
	if l.counts != nil && !l.counts(d) {
		e.stats.Foreign++
		return
	}
	e.queueReply(d, &h)
	switch {
	case h.Method == mad.MethodReport && l.repeated(d, now):
	case l.tail-l.head == listenQueue:
		l.dropped++
		e.stats.Dropped++
	default:
		ev := &l.events[l.tail%listenQueue]
		ev.from, ev.dropped = d.Address, l.dropped
		clear(ev.mad[copy(ev.mad[:], d.MAD):])
		l.dropped = 0
		l.tail++
	}
	l.tell()
}

// A Report is resent when its ReportResp does not come: OpenSM does so
// after 0.2 s, three times (osm_subnet.c, transaction_timeout and
// transaction_retries). It is the same then to the last bit. A sender that
// was restarted may begin with the same transaction IDs, but not so soon.
const (
	repeats      = 1024
	repeatWithin = 3 * time.Second
)

type repeat struct {
	sum uint64
	at  time.Duration
}

// repeated: d has come before.
func (l *Listener) repeated(d *Datagram, now time.Duration) bool {
	sum := maphash.Bytes(l.seed, d.MAD) ^ uint64(d.LID)
	r := &l.seen[sum%repeats]
	again := r.sum == sum && now-r.at < repeatWithin
	*r = repeat{sum, now}
	return again
}

// reply answers a request of others: to a Report or a trap.
type reply struct {
	to  Address
	mad [mad.Size]byte
}

// queueReply queues the answer to d, whose header is h, if there is to be one. It is d with another method (opensm, osm_resp.c, resp_make_resp_smp;
// Linux's ib_mad.c keeps its transaction ID).
func (e *Engine) queueReply(d *Datagram, h *mad.Header) {
	var m mad.Method
	switch h.Method {
	case mad.MethodReport:
		m = mad.MethodReportResp
	case mad.MethodTrap:
		// Of a directed route there is no way back: it was for one hop.
		if m = mad.MethodTrapRepress; !e.options.Write || h.Class == mad.ClassSubnDirected {
			return
		}
	default:
		return
	}
	if len(e.writer.replies) >= maxReplies || d.LID == 0 || d.LID == mad.PermissiveLID {
		return
	}
	r := reply{to: d.Address}
	copy(r.mad[:], d.MAD)
	r.mad[mad.MethodOffset] = byte(m)
	binary.BigEndian.PutUint16(r.mad[mad.StatusOffset:], 0)
	e.writer.replies = append(e.writer.replies, r)
}
