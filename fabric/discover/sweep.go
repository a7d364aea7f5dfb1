// Package discover finds out what a subnet consists of.
//
//	sweep.go      Sweep, by directed-route SMPs: its requests
//	explore.go    what each answer gives rise to
//	identity.go   which node is behind a link; recheck.go and loop.go, where
//	              answers disagree
//	limit.go      ends a sweep that finds more than a subnet can have
//	mkeyprobe.go  spares a fabric whose nodes do not answer for want of M_Keys
//	result.go     the Fabric of a sweep; problem.go, what is missing from it
//	viasa.go      ViaSA, by the records of the subnet administrator; records.go,
//	              the Fabric of these
package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Options say how much of the subnet to look at.
type Options struct {
	// Around is where the sweep begins; nil: the local port.
	Around mad.DirectedRoute
	// Hops is how far it goes from there. 0: as far as it can.
	Hops int
	// Known is what is known of the subnet already, or nil: of nodes that want
	// their own M_Keys even for NodeInfo, it says who they are.
	Known *fabric.Fabric
	// Names are what nodes are called, whatever they say themselves.
	Names map[mad.GUID]string
	// PlainSpeeds: no vendor's own speeds are asked for.
	PlainSpeeds bool
	// Progress is told, each time a node is found, how many there are. It is
	// called on the engine's goroutines and must not block. It may be nil.
	Progress func(nodes int)
}

// Sweep sweeps the subnet with directed-route SMPs. A fabric comes back
// even where something did not answer: its Problems say what. The error is for
// a sweep whose first node did not answer, and for one that was ended by ctx
// or by a broken transport; the fabric is then what was found before.
//
// It asks what ibnetdiscover asks, and as often: NodeInfo through each end of
// each link but the one a node was found through, NodeDescription, SwitchInfo,
// and PortInfo of all ports of switches and of the ports of other nodes that
// links lead to. It is a breadth-first search that waits for no level to be
// complete: what follows from an answer is asked when it comes.
//
// A fabric whose nodes all want an M_Key is sent few requests (mkeyprobe.go).
func Sweep(ctx context.Context, e *engine.Engine, o Options) (*fabric.Fabric, error) {
	if len(o.Around) == 0 {
		o.Around = mad.DirectedRoute{0}
	}
	if o.Around[0] != 0 || o.Around.Hops() > mad.MaxHops {
		return nil, fmt.Errorf("%s is no directed route: it must begin with 0 and have at most %d hops", o.Around, mad.MaxHops)
	}
	s := &sweep{engine: e, opt: o, groups: map[mad.GUID]*guidGroup{}, done: make(chan struct{})}
	if e.Options().Keys != nil && o.Around.Hops() == 0 {
		port, err := e.Port()
		if err != nil {
			return nil, err
		}
		s.local = engine.Guard{Port: port.PortGUID, Node: port.NodeGUID}
	}
	s.mu.Lock()
	s.askNode((*sweep).gotStart, nil, 0, o.Around)
	s.startSome()
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.stop(context.Cause(ctx))
		<-s.done
	}
	if len(s.nodes) == 0 {
		return nil, fmt.Errorf("the node at route %s does not answer: %w", o.Around, s.ended)
	}
	f := s.fabric()
	e.KnowLMCs(f.LMCs())
	if s.ended != nil && s.ended != errTooMany {
		return f, fmt.Errorf("the sweep ended after %s: %w", fabric.Plural(len(s.nodes), "node", "nodes"), s.ended)
	}
	return f, nil
}

// sweep is a discovery under way. The engine's goroutines drive it: each
// answer is handled, and the requests that follow from it are started, under mu.
type sweep struct {
	engine *engine.Engine
	opt    Options
	local  engine.Guard  // of the local port, where there are keys
	done   chan struct{} // closed when nothing is open any more

	mu       sync.Mutex // guards all that follows
	nodes    []*found
	ports    int // of all nodes
	groups   map[mad.GUID]*guidGroup
	waiting  []question // to be asked, in this order, from asked on
	asked    int
	open     []*request // at the engine
	free     []*request // to be used again
	ended    error      // why no more requests are sent
	failures []failure
	notes    []note
	probe    keyProbe
}

// maxOpen requests are at the engine at most: as many as it can have out, silent
// ones too. The others wait in a form that takes a tenth of the memory.
const maxOpen = 4096

// question is what a request is to ask, and what it is about.
type question struct {
	then     func(*sweep, *request) // handles the end
	node     *found                 // NodeInfo: whose port it leaves; else: who is asked
	port     int
	route    mad.DirectedRoute
	attr     *mad.Attribute
	modifier uint32
	farEnd   *farEnd // of those that recheck one
}

// request is one SMP of a sweep.
type request struct {
	engine.Call
	question
	sweep *sweep
	index int // in sweep.open
}

// askNode asks for the NodeInfo of what is at route, behind port of n.
func (s *sweep) askNode(then func(*sweep, *request), n *found, port int, route mad.DirectedRoute) *question {
	return s.ask(then, n, port, route, mad.AttrNodeInfo, 0)
}

// ask puts a Get in the queue. The question may be changed until another is asked.
func (s *sweep) ask(then func(*sweep, *request), n *found, port int, route mad.DirectedRoute, a *mad.Attribute, modifier uint32) *question {
	s.waiting = append(s.waiting, question{then, n, port, route, a, modifier, nil})
	return &s.waiting[len(s.waiting)-1]
}

// startSome starts what waits, as far as there is room.
func (s *sweep) startSome() {
	for s.asked < len(s.waiting) && len(s.open) < maxOpen && s.ended == nil {
		s.start(&s.waiting[s.asked])
		s.asked++
	}
	if s.asked > len(s.waiting)/2 {
		n := copy(s.waiting, s.waiting[s.asked:])
		clear(s.waiting[n:])
		s.waiting, s.asked = s.waiting[:n], 0
	}
}

func (s *sweep) start(q *question) {
	var r *request
	if i := len(s.free); i > 0 {
		r, s.free = s.free[i-1], s.free[:i-1]
	} else {
		r = &request{sweep: s}
		r.Notify = r
	}
	r.question = *q
	r.index = len(s.open)
	s.open = append(s.open, r)
	fabric.Dest{Route: q.route, Guard: s.guard(q.node, q.port, q.attr)}.Put(&r.Call, mad.MethodGet, q.attr, q.modifier, nil)
	if r.Retries = 0; q.attr == mad.AttrNodeInfo {
		r.Retries = s.probe.retries
	}
	s.engine.Start(&r.Call)
}

// Complete handles the end of a request.
func (r *request) Complete(*engine.Call) {
	s := r.sweep
	s.mu.Lock()
	last := s.open[len(s.open)-1]
	s.open[r.index], last.index = last, r.index
	s.open = s.open[:len(s.open)-1]
	var broken error
	before := s.ended
	switch {
	case s.ended != nil:
	case isBroken(r.Err):
		broken = r.Err
	default:
		r.then(s, r)
	}
	s.free = append(s.free, r)
	if broken == nil {
		s.startSome()
	}
	idle := len(s.open) == 0
	switch {
	case idle && broken != nil:
		s.ended = broken
	case before == nil && s.ended == errTooMany:
		broken = s.ended // the others are open still
	}
	s.mu.Unlock()
	switch {
	case idle:
		close(s.done)
	case broken != nil:
		s.stop(broken)
	}
}

// stop ends all that is open. It must not be called with mu held, for the
// engine tells of each end before Cancel returns.
func (s *sweep) stop(cause error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = cause
	}
	open := slices.Clone(s.open)
	s.mu.Unlock()
	for _, r := range slices.Backward(open) { // the last have not been sent yet
		s.engine.Cancel(&r.Call, cause)
	}
}

// isBroken: err is not about one request, but ends them all.
func isBroken(err error) bool {
	if err == nil || errors.Is(err, engine.ErrTimeout) {
		return false
	}
	if _, ok := errors.AsType[*engine.SendError](err); ok {
		return false
	}
	e, ok := errors.AsType[*engine.Error](err)
	return ok && e.Status == 0
}
