package sa

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// PutSA makes c a request to the subnet administrator that port p knows.
type PutSA func(c *engine.Call, p *engine.Port, m mad.Method, a *mad.Attribute, mask uint64, data []byte) error

// Subscriber gets told of events. It asks the subnet administrator for reports,
// sees that they keep coming, and hands them to its subscriptions. Without
// subscriptions it does nothing, and takes nothing from other programs of the
// host.
type Subscriber struct {
	e   *engine.Engine
	put PutSA // nil: traps that come to this port, nothing is asked for

	// op is held by who changes or checks what is asked for.
	op      chan struct{}
	manager manager // op guards it

	mu       sync.Mutex // guards all below
	informs  []*inform
	copies   map[mad.Notice]int // reports that came of an event, if more are to come
	listener *engine.Listener   // nil: there is no subscription
	cancel   context.CancelFunc // of the goroutines
	running  *sync.WaitGroup
	closed   bool
}

// inform is what the subnet administrator is asked for, once, and who wants it.
type inform struct {
	info mad.InformInfo
	subs []*Subscription
}

// NewSubscriber makes a Subscriber of reports.
func NewSubscriber(e *engine.Engine, put PutSA) *Subscriber {
	return &Subscriber{e: e, put: put, op: make(chan struct{}, 1), copies: map[mad.Notice]int{}}
}

// NewTrapSubscriber makes one of the traps that agents send to this port, for
// they take it for the subnet manager's. Nobody is asked for anything.
func NewTrapSubscriber(e *engine.Engine) *Subscriber { return NewSubscriber(e, nil) }

// Subscribe asks for what each of infos says; QPN, Subscribe and RespTimeValue
// are filled in. On an error nothing is subscribed to.
func (s *Subscriber) Subscribe(ctx context.Context, infos ...mad.InformInfo) (*Subscription, error) {
	release, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.start(); err != nil {
		return nil, err
	}
	sub := newSubscription(s)
	fresh := s.add(sub, infos)
	if s.put == nil {
		return sub, nil
	}
	if err = s.set(ctx, fresh, true); err == nil {
		err = s.manager.meet(ctx, s)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		s.drop(ctx, sub)
		return nil, err
	}
	return sub, nil
}

// farewell is how long the end of a subscription may take: the subnet manager
// may be dead.
const farewell = time.Second

// drop takes sub from all that it is told of.
func (s *Subscriber) drop(ctx context.Context, sub *Subscription) {
	unwanted, last := s.remove(sub)
	if s.put != nil {
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
	cancel() // of what a check waits for
	ctx, end := context.WithTimeout(context.Background(), farewell)
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
	if s.put != nil {
		s.set(ctx, all, false)
	}
	s.stop()
}

// acquire waits until nobody else changes what is asked for.
func (s *Subscriber) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s.op <- struct{}{}:
		return func() { <-s.op }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start listens, and sees to the subscriptions, from the first of them on.
func (s *Subscriber) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return engine.ErrClosed
	case s.listener != nil:
		return nil
	}
	class, method := mad.ClassSubnAdm, mad.MethodReport
	if s.put == nil {
		class, method = mad.ClassSubn, mad.MethodTrap
	}
	l, err := s.e.Listen(class, method)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.listener, s.cancel, s.running = l, cancel, new(sync.WaitGroup)
	s.manager = manager{}
	s.running.Go(func() { s.receive(ctx, l) })
	if s.put != nil {
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
	if l == nil {
		return
	}
	cancel()
	running.Wait()
	l.Close()
}

// add puts sub among those who are told, and returns what nobody has asked for.
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

// remove undoes add, and returns what nobody wants any more.
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
func (s *Subscriber) subscriptions() (list []*Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.informs {
		for _, sub := range in.subs {
			if !slices.Contains(list, sub) {
				list = append(list, sub)
			}
		}
	}
	return list
}

// set subscribes to each of list, or ends the subscriptions.
func (s *Subscriber) set(ctx context.Context, list []*inform, subscribe bool) error {
	if len(list) == 0 {
		return nil
	}
	port, err := s.e.Port()
	if err != nil {
		return err
	}
	calls := make([]*engine.Call, len(list))
	for i, in := range list {
		info, mask := in.info, uint64(0)
		for _, f := range mad.AttrInformInfo.Fields {
			mask |= f.Mask()
		}
		if calls[i] = new(engine.Call); subscribe {
			mask &^= mad.AttrInformInfo.Field("qpn").Mask()
		} else {
			// OpenSM compares all fields with what it was asked for, and the
			// queue pair with that which asked (osm_inform.c, match_inf_rec).
			info.Subscribe, info.QPN = 0, max(1, s.e.Traits().QP)
			calls[i].Timeout, calls[i].Retries = farewell/3, 2
		}
		data := make([]byte, mad.AttrInformInfo.Size)
		info.Encode(data)
		if err := s.put(calls[i], &port, mad.MethodSet, mad.AttrInformInfo, mask, data); err != nil {
			return err
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
	return nil
}

// receive hands out what comes.
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
			s.lost(dropped, fmt.Sprintf("%d came faster than they could be taken", dropped))
		default:
			s.handOut(&d)
		}
	}
}

// handOut gives a report to who asked for it. Where an event fits several of
// the things asked for, the subnet administrator reports it once for each and
// does not say for which; the reports are the same, so that they can be dealt
// out one by one. One that fits nothing is for all: the subnet administrator
// must know why it came.
func (s *Subscriber) handOut(d *engine.Datagram) {
	h := mad.ParseHeader(d.MAD)
	if h.Attribute != mad.AttrSubnAdmNotice.ID {
		return
	}
	var data [noticeSize]byte // of a trap, without the issuer's GID
	copy(data[:], d.MAD[h.Class.DataOffset():][:h.Class.DataSize()])
	var n mad.Notice
	n.Decode(data[:])
	s.mu.Lock()
	var fitting []*inform
	for _, in := range s.informs {
		if in.info.Matches(&n) {
			fitting = append(fitting, in)
		}
	}
	switch {
	case len(fitting) == 0 && s.put != nil:
		fitting = s.informs
	case len(fitting) > 1 && s.put != nil:
		i := s.copies[n]
		if s.copies[n]++; i+1 == len(fitting) {
			delete(s.copies, n)
		}
		fitting = fitting[i : i+1]
	}
	var subs []*Subscription
	for _, in := range fitting {
		for _, sub := range in.subs {
			if !slices.Contains(subs, sub) {
				subs = append(subs, sub)
			}
		}
	}
	s.mu.Unlock()
	for _, sub := range subs {
		sub.push(Event{Class: h.Class.Family(), Notice: data})
	}
}

// noticeSize is the length of a Notice with the issuer's GID.
const noticeSize = 80

// lost tells all that events were not told.
func (s *Subscriber) lost(count uint64, reason string) {
	s.mu.Lock()
	clear(s.copies)
	s.mu.Unlock()
	for _, sub := range s.subscriptions() {
		sub.push(Event{Lost: reason, Count: count})
	}
}
