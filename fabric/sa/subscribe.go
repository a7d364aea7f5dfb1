package sa

import (
	"context"
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

// inform is a subscription at the subnet administrator, and who shares it.
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
	l, err := s.e.Listen(class, method, s.counts)
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

// add has sub share infos, and returns those that are not subscribed to yet.
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
