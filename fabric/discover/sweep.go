// Package discover finds out what a subnet consists of.
//
// Sweep reads the nodes by directed-route SMPs; ViaSA reads the records of the subnet
// administrator. Both return a fabric.Fabric whose Problems have what is missing, and may be
// called by several goroutines at a time, also with one engine.
//
// In a sweep a queue sends requests; its mutex guards all state of the sweep. The explorer reads
// the answers and goes through links, the joiner decides which node is behind a link, and the
// rechecker repeats requests where answers disagree. Findings are the nodes and failures so far.
package discover

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Options choose how much of the subnet to read. A sweep only reads them; several sweeps may
// share Known and Names.
type Options struct {
	// Around is where the sweep begins; nil: the local port.
	Around mad.DirectedRoute
	// Hops is how far it goes from there. 0: as far as it can.
	Hops int
	// Known is what is known of the subnet already, or nil: of nodes that want
	// their own M_Keys even for NodeInfo, it has their GUIDs.
	Known *fabric.Fabric
	// Names replace the names that nodes report.
	Names map[mad.GUID]string
	// PlainSpeeds leaves out vendors' own speeds.
	PlainSpeeds bool
	// Progress gets the number of nodes each time one is found. It is
	// called on the engine's goroutines and must not block. It may be nil.
	Progress func(nodes int)
}

// Sweep sweeps the subnet with directed-route SMPs. Sweeps of one engine may run at the
// same time; the fabric is the caller's and never changes. It is returned
// even where something did not answer: see its Problems. The error is for
// a sweep whose first node did not answer, and for one that was ended by ctx
// or by a broken transport; the fabric is then what was found before.
//
// It sends the requests of ibnetdiscover, as many of each: NodeInfo through each end of
// each link but the one a node was found through, NodeDescription, SwitchInfo,
// and PortInfo of all ports of switches and of the ports of other nodes that
// links lead to. It is a breadth-first search that waits for no level to be
// complete: what follows from an answer is asked when it comes.
//
// A fabric whose nodes all want an M_Key is sent few requests (keyProbe).
func Sweep(ctx context.Context, e *engine.Engine, o Options) (*fabric.Fabric, error) {
	if len(o.Around) == 0 {
		o.Around = mad.DirectedRoute{0}
	}
	if o.Around[0] != 0 || o.Around.Hops() > mad.MaxHops {
		return nil, fmt.Errorf("invalid directed route %s; it must begin with 0 and have at most %d hops", o.Around, mad.MaxHops)
	}
	q := &queue{engine: e, done: make(chan struct{}), guards: guards{known: o.Known, around: o.Around}}
	if e.Options().Keys != nil && o.Around.Hops() == 0 {
		port, err := e.Port()
		if err != nil {
			return nil, err
		}
		q.guards.local = engine.Guard{Port: port.PortGUID, Node: port.NodeGUID}
	}
	all := &findings{groups: map[mad.GUID]*guidGroup{}, names: o.Names, progress: o.Progress}
	x := &explorer{queue: q, findings: all, hops: o.Hops, plainSpeeds: o.PlainSpeeds}
	s := &sweep{explorer: x, joiner: joiner{x, rechecker{q}}}
	q.handle = s.handle
	q.askNode(readStart, nil, 0, o.Around)
	ended := q.run(ctx)
	if len(all.nodes) == 0 {
		return nil, fmt.Errorf("the node at route %s did not answer: %w", o.Around, ended)
	}
	if ended == nil {
		ended = x.readFDR10(ctx)
	}
	f := all.fabric(&o, ended, x.keyAdvice(e.Options().Keys))
	e.KnowLMCs(f.LMCs())
	e.KnowNodes(f.NodeInfos())
	if ended != nil && ended != errTooMany {
		return f, fmt.Errorf("the sweep ended after %s: %w", plural.Count(len(all.nodes), "node", "nodes"), ended)
	}
	return f, nil
}

// sweep handles answers: the explorer or the rechecker reads each. From what answers show of
// links, the linkUpdates, the joiner makes nodes.
type sweep struct {
	explorer *explorer
	joiner   joiner
}

// purpose is what a request is for.
type purpose uint8

const (
	readStart  purpose = iota // NodeInfo of the node that the sweep begins at
	readName                  // NodeDescription
	readSwitch                // SwitchInfo
	readPort0                 // PortInfo of a switch's port 0
	readPort                  // PortInfo of another port
	readFar                   // NodeInfo of what is behind a port

	// Requests of rechecks have a farEnd.
	recheckNear          // NodeInfo through its near end
	recheckOtherEnd      // NodeInfo from behind the port that the candidate's port is known to be connected to
	recheckCandidatePort // PortInfo of the candidate's port, which was down
	recheckCandidateFar  // NodeInfo from behind the candidate's port
	recheckNeighbourPort // PortInfo that the node at the far end gives of the port to a candidate's neighbour
	recheckNeighbour     // NodeInfo from behind that port
	recheckLoop          // NodeInfo of the near end's neighbour, through the link
	recheckLoopPort      // PortInfo of the port to that neighbour, through the link
)

// handle handles the end of a request; the error ends the sweep.
func (s *sweep) handle(r *request) error {
	x, recheck := s.explorer, &s.joiner.rechecker
	var o outcome
	switch r.purpose {
	case readStart:
		if err := x.gotStart(r); err != nil {
			return err
		}
	case readName:
		x.gotName(r)
	case readSwitch:
		x.gotSwitch(r)
	case readPort0:
		x.gotPort0(r)
	case readPort:
		x.gotPort(r)
	case readFar:
		x.gotFar(r)
	case recheckNear:
		o = recheck.gotNear(r)
	case recheckOtherEnd:
		o = recheck.gotOtherEnd(r)
	case recheckCandidatePort:
		o = recheck.gotCandidatePort(r)
	case recheckCandidateFar:
		o = recheck.gotCandidateFar(r)
	case recheckNeighbourPort:
		o = recheck.gotNeighbourPort(r)
	case recheckNeighbour:
		o = recheck.gotNeighbour(r)
	case recheckLoop:
		o = recheck.gotLoopNeighbour(r)
	case recheckLoopPort:
		o = recheck.gotLoopPort(r)
	}
	s.joiner.conclude(r, o)
	s.joiner.settleUpdates()
	if r.purpose == readFar {
		x.endProbe(r)
		s.joiner.settleUpdates()
	}
	if x.findings.full {
		return errTooMany
	}
	return nil
}

// fabric makes a Fabric of what was found, which does not depend on the order of the answers.
// ended is why the sweep was not done.
func (f *findings) fabric(o *Options, ended error, keyAdvice string) *fabric.Fabric {
	f.shortenRoutes()
	b := fabric.NewBuilder()
	for _, n := range f.nodes {
		h := b.AddNode(fabric.NodeSpec{Info: n.info, Name: n.name, Switch: n.sw, Route: n.route})
		n.handle = h
		for i := range n.ports {
			p := &n.ports[i]
			if p.known {
				b.SetPort(h, i, &p.info)
			}
			if p.guid != 0 && !n.isSwitch() {
				b.SetPortGUID(h, i, p.guid)
			}
			b.SetFDR10(h, i, p.fdr10)
		}
	}
	for _, n := range f.nodes {
		for i := range n.ports {
			p := &n.ports[i]
			if p.peer == nil {
				continue
			}
			if err := b.Link(n.handle, i, p.peer.handle, p.peerPort); err != nil {
				b.AddProblem(fabric.Problem{Kind: fabric.ProblemChanged, Text: err.Error() + "; discover again"})
			}
		}
	}
	b.SetFrom(f.nodes[0].handle, f.nodes[0].via())
	if o.Hops > 0 {
		b.SetScope(fmt.Sprintf("within %s of route %s", plural.Count(o.Hops, "hop", "hops"), o.Around))
	}
	f.report(b, ended, keyAdvice)
	return b.Build()
}

// shortenRoutes gives each node its shortest route, among routes of equal length the
// one with the lowest ports, by a breadth-first search: the route that it was
// found on depends on the order of the answers.
func (f *findings) shortenRoutes() {
	var levels [mad.MaxHops + 1][]*sweepNode // by hops of the route
	for _, n := range f.nodes {
		if n.onStartRoute {
			levels[n.route.Hops()] = append(levels[n.route.Hops()], n)
			n.rerouted = true
		}
	}
	for hops := range levels {
		level := levels[hops]
		slices.SortFunc(level, func(n, m *sweepNode) int { return n.route.Compare(m.route) })
		for _, n := range level {
			for port := range n.ports {
				p := &n.ports[port]
				if p.peer == nil || p.peer.rerouted {
					continue
				}
				route := n.behind(port)
				if route.Hops() <= hops {
					continue
				}
				p.peer.rerouted = true
				p.peer.reroute(route, p.peerPort)
				levels[hops+1] = append(levels[hops+1], p.peer)
			}
		}
	}
}

// reroute makes what was answered on another route what would have been
// answered on this one.
func (n *sweepNode) reroute(route mad.DirectedRoute, via int) {
	n.route = route
	n.info.LocalPortNum = uint8(via)
	if !n.isSwitch() {
		n.info.PortGUID = n.ports[via].guid
	}
	for i := range n.ports {
		n.ports[i].info.LocalPortNum = uint8(via)
		if !n.isSwitch() {
			n.ports[i].info.LocalPortNum = uint8(i)
		}
	}
}
