package sa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Subscriber subscribes to events at the subnet administrator, renews what was
// lost, and hands the reports to its subscriptions. Without subscriptions it
// does nothing, and takes nothing from other programs of the host.
type Subscriber struct {
	e      *engine.Engine
	client *Client // nil: no events are requested from the subnet administrator
	poll   *Client // nil: it does not poll; else it has whom to poll

	// op is a lock, to be waited for with a context: held while subscriptions
	// are made, ended or verified.
	op      chan struct{}
	manager manager // op guards it

	// source is the LID of the subnet administrator, redirected where it has its
	// subscriptions made: their reports count.
	source, redirected atomic.Uint32

	mu       sync.Mutex // guards all below
	informs  []*inform
	copies   map[mad.Notice]int // reports of one event that came so far, where more are due
	listener *engine.Listener   // nil: there is no subscription
	cancel   context.CancelFunc // of the goroutines
	running  *sync.WaitGroup
	closed   bool
}

// inform is a subscription at the subnet administrator, and the Subscriptions that share it.
type inform struct {
	info mad.InformInfo
	subs []*Subscription
}

// NewSubscriber makes a Subscriber of reports.
func NewSubscriber(c *Client) *Subscriber { return newSubscriber(c.Engine, c) }

// NewTrapSubscriber makes a Subscriber of the traps that agents send to this
// port, because they take it for the subnet manager's. It sends no requests.
func NewTrapSubscriber(e *engine.Engine) *Subscriber { return newSubscriber(e, nil) }

// NewPollSubscriber makes a Subscriber of the notices of devices that send no traps. It reads
// them every few seconds, and leaves them where they are.
func NewPollSubscriber(c *Client) *Subscriber {
	s := newSubscriber(c.Engine, nil)
	s.poll = c
	return s
}

func newSubscriber(e *engine.Engine, c *Client) *Subscriber {
	return &Subscriber{e: e, client: c, op: make(chan struct{}, 1), copies: map[mad.Notice]int{}}
}

// Subscribe subscribes to what each of infos describes; QPN, Subscribe and RespTimeValue
// are filled in. On an error nothing is subscribed to.
func (s *Subscriber) Subscribe(ctx context.Context, infos ...mad.InformInfo) (*Subscription, error) {
	release, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	sub := newSubscription(s)
	fresh := s.add(sub, infos)
	if s.client == nil {
		return sub, nil
	}
	if _, _, err = s.administrator(); err == nil {
		err = s.set(ctx, fresh, true)
	}
	if err == nil {
		err = s.manager.begin(ctx, s)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		s.drop(ctx, sub)
		return nil, err
	}
	return sub, nil
}

// closeTimeout is how long the end of a subscription takes at most: the subnet
// manager may be dead.
const closeTimeout = time.Second

// drop takes sub out of all that it shares, and ends what no subscription shares.
func (s *Subscriber) drop(ctx context.Context, sub *Subscription) {
	unwanted, last := s.remove(sub)
	if s.client != nil {
		s.set(ctx, unwanted, false) // if it fails, its reports are dropped
	}
	if last {
		s.stop()
	}
}

// Close ends all subscriptions. It takes no longer than a second.
func (s *Subscriber) Close() {
	s.mu.Lock()
	s.closed = true
	cancel := s.cancel
	s.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel() // a check that waits for an answer
	ctx, end := context.WithTimeout(context.Background(), closeTimeout)
	defer end()
	release, err := s.acquire(ctx)
	if err == nil {
		defer release()
	}
	for _, sub := range s.subscriptions() {
		sub.end(engine.ErrClosed)
	}
	s.mu.Lock()
	all := s.informs
	s.informs = nil
	s.mu.Unlock()
	if s.client != nil {
		s.set(ctx, all, false)
	}
	s.stop()
}

// acquire locks op.
func (s *Subscriber) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s.op <- struct{}{}:
		return func() { <-s.op }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start begins to listen, and to watch the subnet manager; or to poll.
func (s *Subscriber) start(ctx context.Context) error {
	if s.poll != nil {
		return s.startPolling(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return engine.ErrClosed
	case s.cancel != nil:
		return nil
	}
	class, method := mad.ClassSubnAdm, mad.MethodReport
	if s.client == nil {
		class, method = mad.ClassSubn, mad.MethodTrap
	}
	l, err := s.e.Listen(class, method, s.isGenuine)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.listener, s.cancel, s.running = l, cancel, new(sync.WaitGroup)
	s.manager = manager{}
	s.running.Go(func() { s.receive(ctx, l) })
	if s.client != nil {
		s.running.Go(func() { s.watch(ctx) })
	}
	return nil
}

// stop ends what start began.
func (s *Subscriber) stop() {
	s.mu.Lock()
	l, cancel, running := s.listener, s.cancel, s.running
	s.listener, s.cancel, s.running = nil, nil, nil
	s.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	running.Wait()
	if l != nil {
		l.Close()
	}
}

// add has sub share infos, and returns the new ones, to be subscribed to.
func (s *Subscriber) add(sub *Subscription, infos []mad.InformInfo) (fresh []*inform) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, info := range infos {
		info.Subscribe, info.QPN, info.RespTimeValue = 1, 0, respTimeValue
		i := slices.IndexFunc(s.informs, func(in *inform) bool { return in.info == info })
		if i < 0 {
			i = len(s.informs)
			s.informs = append(s.informs, &inform{info: info})
			fresh = append(fresh, s.informs[i])
		}
		if in := s.informs[i]; !slices.Contains(in.subs, sub) {
			in.subs = append(in.subs, sub)
		}
	}
	clear(s.copies)
	return fresh
}

// respTimeValue is how long a ReportResp takes at most: 4.096 us << 18, 1.07 s.
const respTimeValue = 18

// remove undoes add, and returns what no subscription shares now.
func (s *Subscriber) remove(sub *Subscription) (unwanted []*inform, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.informs = slices.DeleteFunc(s.informs, func(in *inform) bool {
		i := slices.Index(in.subs, sub)
		if i < 0 {
			return false
		}
		if in.subs = slices.Delete(in.subs, i, i+1); len(in.subs) > 0 {
			return false
		}
		unwanted = append(unwanted, in)
		return true
	})
	clear(s.copies)
	return unwanted, len(s.informs) == 0
}

// subscriptions are all that are open, in the order of their opening.
func (s *Subscriber) subscriptions() []*Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sharing(s.informs)
}

// sharing are the subscriptions that share one of informs, each once.
func sharing(informs []*inform) (list []*Subscription) {
	for _, in := range informs {
		for _, sub := range in.subs {
			if !slices.Contains(list, sub) {
				list = append(list, sub)
			}
		}
	}
	return list
}

// matching are the informs that n fits. s.mu must be held.
func (s *Subscriber) matching(n *mad.Notice) (list []*inform) {
	for _, in := range s.informs {
		if in.info.Matches(n) {
			list = append(list, in)
		}
	}
	return list
}

// set subscribes to each of list, or ends these subscriptions.
func (s *Subscriber) set(ctx context.Context, list []*inform, subscribe bool) error {
	if len(list) == 0 {
		return nil
	}
	var components []string
	for _, f := range mad.AttrInformInfo.Fields {
		if f.Mask() != 0 && !(subscribe && f.Script == "qpn") {
			components = append(components, f.Script)
		}
	}
	requests := make([]Request, len(list))
	for i, in := range list {
		info := in.info
		if !subscribe {
			// OpenSM compares all fields with what it was asked for, and the
			// queue pair with that which asked (osm_inform.c, match_inf_rec).
			info.Subscribe, info.QPN = 0, max(1, s.e.Traits().QP)
		}
		requests[i] = NewRequest(mad.MethodSet, mad.AttrInformInfo, &info, components...)
	}
	port, err := s.e.Port()
	if err != nil {
		return err
	}
	calls, err := s.client.calls(&port, requests...)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Subscribes = true; !subscribe {
			c.Timeout, c.Retries = closeTimeout/3, 2
		}
	}
	if err := s.e.Do(ctx, calls...); err != nil {
		return err
	}
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	to := s.e.Destination(calls[0])
	s.redirected.Store(uint32(to.LID))
	return nil
}

// Event is one item of a subscription: a notice, or, where Lost has the reason, that
// notices may be missing.
type Event struct {
	// Class that the notice came in: SubnAdm of a report, Subn of a trap.
	Class mad.Class
	// Source is the LID that it came from.
	Source mad.LID
	Notice [noticeSize]byte
	Lost   string
	Count  uint64 // of the missing notices; 0: unknown
}

// Subscription is a queue of events.
type Subscription struct {
	s     *Subscriber
	ready chan struct{}

	mu      sync.Mutex // guards all below
	queue   []Event
	dropped uint64 // since the last that was queued
	err     error  // why no more will come
}

// ErrUnsubscribed ends the waiting for events of a subscription that was closed.
var ErrUnsubscribed = errors.New("the subscription is closed")

// maxEvents is the length of the queue. What arrives when it is full is dropped
// and counted.
const maxEvents = 1024

func newSubscription(s *Subscriber) *Subscription {
	return &Subscription{s: s, ready: make(chan struct{}, 1)}
}

// Next waits for the next event. The error is the end of ctx, why the engine
// was halted, or why no more events will come.
func (sub *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		ev, ok, err := sub.pop()
		if ok || err != nil {
			return ev, err
		}
		halted, cause := sub.s.e.Halted()
		if cause != nil {
			return ev, cause
		}
		select {
		case <-sub.ready:
		case <-halted:
		case <-ctx.Done():
			return ev, context.Cause(ctx)
		}
	}
}

// Close ends the subscription. It takes no longer than a second, or than ctx.
func (sub *Subscription) Close(ctx context.Context) error {
	sub.end(ErrUnsubscribed)
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	release, err := sub.s.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	sub.s.drop(ctx, sub)
	return nil
}

func (sub *Subscription) pop() (ev Event, ok bool, err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.queue) == 0 && sub.dropped > 0 {
		sub.queue = append(sub.queue, sub.droppedEvent())
	}
	if len(sub.queue) == 0 {
		if sub.err != nil {
			sub.wake() // others who wait
		}
		return ev, false, sub.err
	}
	ev = sub.queue[0]
	if sub.queue = sub.queue[1:]; len(sub.queue) > 0 {
		sub.wake() // two may wait, and ready holds one signal
	}
	return ev, true, nil
}

// droppedEvent is the event that reports how many were dropped.
func (sub *Subscription) droppedEvent() Event {
	ev := Event{Lost: fmt.Sprintf("%d arrived while %d waited to be read", sub.dropped, maxEvents), Count: sub.dropped}
	sub.dropped = 0
	return ev
}

func (sub *Subscription) push(ev Event) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.queue) >= maxEvents {
		sub.dropped++
		return
	}
	if sub.dropped > 0 {
		sub.queue = append(sub.queue, sub.droppedEvent())
	}
	sub.queue = append(sub.queue, ev)
	sub.wake()
}

// end makes Next return err once the queue is empty. The first end counts.
func (sub *Subscription) end(err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.err == nil {
		sub.err = err
	}
	sub.wake()
}

func (sub *Subscription) wake() {
	select {
	case sub.ready <- struct{}{}:
	default:
	}
}

// receive delivers what arrives.
func (s *Subscriber) receive(ctx context.Context, l *engine.Listener) {
	var d engine.Datagram
	for {
		dropped, err := l.Next(ctx, &d)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			for _, sub := range s.subscriptions() {
				sub.end(err)
			}
			return
		case dropped > 0:
			s.lost(dropped, fmt.Sprintf("%d arrived faster than they could be read", dropped))
		default:
			if !s.deliver(&d) {
				l.Foreign()
			}
		}
	}
}

// isGenuine reports whether d, a Report, comes from the subnet administrator; a trap comes from the
// port that it says has issued it. The engine calls it, with its lock held.
func (s *Subscriber) isGenuine(d *engine.Datagram) bool {
	is := func(lid mad.LID) bool {
		a := engine.Address{LID: lid}
		return lid != 0 && lid != mad.PermissiveLID && a.SamePort(&d.Address, s.e.LMC(lid))
	}
	if s.client == nil {
		n := noticeOf(d)
		return is(n.IssuerLID)
	}
	return is(mad.LID(s.source.Load())) || is(mad.LID(s.redirected.Load()))
}

// noticeOf is the notice in a Report or a trap.
func noticeOf(d *engine.Datagram) (n mad.Notice) {
	data := noticeData(d)
	n.Decode(data[:])
	return n
}

// noticeData are the bytes of the notice in a Report or a trap, of a trap without the issuer's
// GID.
func noticeData(d *engine.Datagram) (data [noticeSize]byte) {
	class := mad.Class(d.MAD[mad.ClassOffset])
	if at := class.DataOffset(); at < len(d.MAD) {
		copy(data[:min(noticeSize, class.DataSize())], d.MAD[at:])
	}
	return data
}

// maxCopies limits the events for which more reports are expected: more than are under way at
// a time.
const maxCopies = 1024

// deliver gives a report to its subscriptions, and reports whether it has any. An
// event that fits several subscriptions is reported once for each, in equal
// reports that do not show for which: the first is for the first subscription, and
// so on.
func (s *Subscriber) deliver(d *engine.Datagram) (asked bool) {
	h := mad.ParseHeader(d.MAD)
	if h.Attribute != mad.AttrSubnAdmNotice.ID {
		return false
	}
	n := noticeOf(d)
	s.mu.Lock()
	fitting := s.matching(&n)
	if len(fitting) > 1 && s.client != nil {
		i, open := s.copies[n]
		if !open && len(s.copies) >= maxCopies {
			clear(s.copies)
		}
		if s.copies[n]++; i+1 == len(fitting) {
			delete(s.copies, n)
		}
		fitting = fitting[i : i+1]
	}
	subs := sharing(fitting)
	s.mu.Unlock()
	for _, sub := range subs {
		sub.push(Event{Class: h.Class.Family(), Source: d.LID, Notice: noticeData(d)})
	}
	return len(subs) > 0
}

// noticeSize is the length of a Notice with the issuer's GID.
const noticeSize = 80

// lost notifies all subscriptions that events may be missing.
func (s *Subscriber) lost(count uint64, reason string) {
	s.mu.Lock()
	clear(s.copies)
	s.mu.Unlock()
	for _, sub := range s.subscriptions() {
		sub.push(Event{Lost: reason, Count: count})
	}
}
