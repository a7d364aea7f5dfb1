// Package graph makes of a fabric what routing needs: switches, links and LIDs with dense
// numbers, side by side in memory; and it finds distances, levels and orders in it.
//
//	graph.go    Graph: the network as a value; build.go makes it
//	target.go   Target: what a port of a switch leads to
//	variant.go  graphs with other weights, and parallel channels
//	class.go    what terminals are for: cn io an gateway sm; endpoint.go: which are endpoints
//	hops.go     Hops: the distances between all switches, found by breadth-first search,
//	            with weights by buckets
//	update.go   distances after a small change
//	updown.go   ranks, and the distances of up*/down*; turn.go: with turns allowed beside
//	nexthop.go  NextHops: the next hops that distances allow; toward.go: those to one switch
//	dijkstra.go cheapest paths
//	roots.go    the switches at the top
//	levels.go   Levels: the levels of what may be a fat tree; tops.go: its top; tree.go: its shape
//	numbering.go the numbers and the order of LIDs for d-mod-k
//
// Switches are numbered as in the fabric: by GUID. A channel is one direction of a link
// between two switches. A terminal is where paths begin and end: a port of a CA or router,
// or port 0 of a switch.
//
// A Graph is immutable and safe for concurrent use. What its methods return is its own
// memory, which callers must not change. Hops, Levels and Ranks are safe for concurrent
// reading; NextHops, Toward and Cheapest belong to one goroutine.
//
// Times are given in S switches, N pairs of switches with links, C channels, L LIDs, and D,
// the longest distance between two switches. Results depend on the arguments alone, never
// on the number of workers.
package graph

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"fabsh/fabric"
	"fabsh/mad"
)

// BuildOptions choose the links of a fabric that a graph has, and their properties.
type BuildOptions struct {
	// Exclude leaves a link out if it is true for either of its ports.
	Exclude func(*fabric.Port) bool
	// Weight is the weight of the link out of a switch's port, at least 1; nil: 1.
	Weight func(*fabric.Port) int
	// PortOrder lists the preferred ports of a switch, best first; ports that
	// it leaves out come after them.
	PortOrder func(*fabric.Node) []int
	// LIDs are the first LID of an end port and its LMC; nil: those that it has.
	LIDs func(*fabric.Port) (mad.LID, int)
	// Rules give terminals their classes; nil: DefaultRules.
	Rules []Rule
	// Workers is how many cores are used; 0: all. No result depends on it.
	Workers int
}

// Graph is a fabric as routing algorithms need it: switches, channels and
// destinations have dense numbers, and lie side by side in memory. It is immutable.
type Graph struct {
	fabric   *fabric.Fabric
	options  BuildOptions
	switches []*fabric.Node
	index    []int32 // switch by node id, or -1
	notes    []string
	leftOut  []string // endpoints that have no LID, or not all of theirs, and why
	workers  int

	terminals []Terminal
	byLID     []int32 // terminal by LID, or -1; up to the highest LID
	dests     []Dest  // those of switch s are dests[destBase[s]:destBase[s+1]]
	destBase  []int32

	channels   []Channel // by switch, then port
	chanTo     []int32   // Channel.To of each, for fast access
	chanBase   []int32   // first channel of a switch, and the end
	neighbours []Neighbour
	nbrTo      []int32 // Neighbour.To of each, for fast access
	nbrBack    []uint8 // weight of the lightest link back, or 0 without one; nil where all weights are 1
	nbrBase    []int32 // first neighbour of a switch, and the end
	weighted   bool
	order      [][]int16 // of switches that have a PortOrder: rank by port

	targets  []Target // what port p of switch s leads to is targets[portBase[s]+p]
	portBase []int32
}

// Terminal is where paths begin and end: port 0 of a switch, or a port of a CA or router with a cable.
type Terminal struct {
	Port   *fabric.Port
	LID    mad.LID // the first; 0: none yet
	Count  int     // of LIDs, 1<<LMC; 0: not an endpoint
	Switch int     // the switch it is on, or -1 if its cable leads to none
	Out    uint8   // that switch's port to it; 0: it is port 0 of the switch itself
	Class  Class
}

// Channel is one direction of a link between two different switches.
type Channel struct {
	From, To       int32
	Reverse        int32 // the channel of the other direction
	Port, PeerPort uint8
	Weight         uint8
}

// Neighbour is a switch that a switch has links to.
type Neighbour struct {
	To     int32
	Weight uint8   // of the lightest link
	Ports  []uint8 // of the lightest links, in order of preference
}

// Dest is a destination LID on a switch.
type Dest struct {
	LID      mad.LID
	Out      uint8 // as of its Terminal
	Terminal int32
}

// New makes the graph of f with the links that are not down. Oddities that do
// not stop it are in Notes.
//
// Time: O(P*log P) for P ports.
func New(f *fabric.Fabric, o BuildOptions) (*Graph, error) {
	g := &Graph{fabric: f, options: o, workers: o.Workers}
	if g.workers <= 0 {
		g.workers = runtime.GOMAXPROCS(0)
	}
	if o.Rules == nil {
		o.Rules = DefaultRules()
	}
	g.addSwitches()
	if d := g.Disguised(); d != "" {
		g.note("%s", d)
	}
	usable := func(p *fabric.Port) bool {
		q := p.Peer()
		return q != nil && p.State() != mad.PortStateDown && q.State() != mad.PortStateDown &&
			(o.Exclude == nil || !o.Exclude(p) && !o.Exclude(q))
	}
	if err := g.addChannels(usable, o.Weight); err != nil {
		return nil, err
	}
	if o.PortOrder != nil {
		g.order = make([][]int16, len(g.switches))
		for s, n := range g.switches {
			if err := g.setOrder(s, o.PortOrder(n)); err != nil {
				return nil, err
			}
		}
	}
	g.addNeighbours()
	lids := o.LIDs
	if lids == nil {
		lids = func(p *fabric.Port) (mad.LID, int) { return p.LID(), p.LMC() }
	}
	g.addTerminals(usable, lids, quick(o.Rules))
	if !f.Complete() {
		g.note("the fabric is incomplete (%s); the missing parts are unknown", f.Missing())
	}
	return g, nil
}

// For is the graph of f, another snapshot of the same subnet, with the options of g.
// What these have for a port of g's fabric goes for the port of f with the same node GUID
// and number.
func (g *Graph) For(f *fabric.Fabric) (*Graph, error) {
	o := g.options
	before := func(p *fabric.Port) *fabric.Port {
		for _, n := range g.fabric.NodeByGUID(p.Node().GUID()) {
			return n.Port(p.Num())
		}
		return nil
	}
	if g.options.Exclude != nil {
		o.Exclude = func(p *fabric.Port) bool {
			was := before(p)
			return was != nil && g.options.Exclude(was)
		}
	}
	if g.options.Weight != nil {
		o.Weight = func(p *fabric.Port) int {
			if was := before(p); was != nil {
				return g.options.Weight(was)
			}
			return 1
		}
	}
	if g.options.PortOrder != nil {
		o.PortOrder = func(n *fabric.Node) []int {
			for _, was := range g.fabric.NodeByGUID(n.GUID()) {
				return g.options.PortOrder(was)
			}
			return nil
		}
	}
	return New(f, o)
}

// Part is g with those links alone for both of whose ports use is true.
func (g *Graph) Part(use func(*fabric.Port) bool) (*Graph, error) {
	o := g.options
	o.Exclude = func(p *fabric.Port) bool {
		return !use(p) || g.options.Exclude != nil && g.options.Exclude(p)
	}
	return New(g.fabric, o)
}

// Fabric is what g was made of.
func (g *Graph) Fabric() *fabric.Fabric { return g.fabric }

// Notes list what g lacks of the fabric and what differs from it, except LeftOut.
func (g *Graph) Notes() []string { return g.notes }

// LeftOut are the ports that have no LID, or share one, each with the reason: nothing, or
// not all, is routed to them.
func (g *Graph) LeftOut() []string { return g.leftOut }

// Workers is the number of cores used.
func (g *Graph) Workers() int { return g.workers }

// Switches are all switches, by number.
func (g *Graph) Switches() []*fabric.Node { return g.switches }

// SwitchOf is the number of a switch, or -1.
func (g *Graph) SwitchOf(n *fabric.Node) int { return int(g.index[n.ID()]) }

// SwitchByGUID is the number of the switch with that node GUID, or -1.
func (g *Graph) SwitchByGUID(guid mad.GUID) int {
	s, ok := slices.BinarySearchFunc(g.switches, guid, func(n *fabric.Node, guid mad.GUID) int { return cmp.Compare(n.GUID(), guid) })
	if !ok {
		return -1
	}
	return s
}

// Terminals are all terminals, in the order of the fabric's ports.
func (g *Graph) Terminals() []Terminal { return g.terminals }

// TerminalByLID is the number of the terminal with that LID, or -1.
func (g *Graph) TerminalByLID(lid mad.LID) int {
	if int(lid) >= len(g.byLID) {
		return -1
	}
	return int(g.byLID[lid])
}

// TerminalOf is the number of the terminal of port p, or -1. All ports of a switch
// have that of its port 0.
func (g *Graph) TerminalOf(p *fabric.Port) int {
	if p.Node().IsSwitch() {
		p = p.Node().Port(0)
	}
	t, ok := slices.BinarySearchFunc(g.terminals, p.ID(), func(t Terminal, id int) int { return cmp.Compare(t.Port.ID(), id) })
	if !ok {
		return -1
	}
	return t
}

// Top is the highest LID.
func (g *Graph) Top() mad.LID { return mad.LID(len(g.byLID) - 1) }

// Channels are all channels, by switch and port.
func (g *Graph) Channels() []Channel { return g.channels }

// ChannelOf is the number of the channel out of port p of a switch, or -1.
func (g *Graph) ChannelOf(p *fabric.Port) int {
	if s := g.SwitchOf(p.Node()); s >= 0 {
		if t := g.targets[int(g.portBase[s])+p.Num()]; t >= 0 {
			return int(t)
		}
	}
	return -1
}

// FirstChannel is the first channel out of switch s. The others follow, up to
// FirstChannel(s+1).
func (g *Graph) FirstChannel(s int) int32 { return g.chanBase[s] }

// ChannelTo is the switch that channel c leads to.
func (g *Graph) ChannelTo(c int32) int32 { return g.chanTo[c] }

// ChannelPort is the port that channel c begins at.
func (g *Graph) ChannelPort(c int) *fabric.Port {
	return g.switches[g.channels[c].From].Port(int(g.channels[c].Port))
}

// Neighbours are the switches that s has links to, by number.
func (g *Graph) Neighbours(s int) []Neighbour { return g.neighbours[g.nbrBase[s]:g.nbrBase[s+1]] }

// FirstNeighbour is the place of the first neighbour of switch s among those of all
// switches. The others follow, up to FirstNeighbour(s+1).
func (g *Graph) FirstNeighbour(s int) int32 { return g.nbrBase[s] }

// NeighbourTo is the switch that the neighbour at place i is.
func (g *Graph) NeighbourTo(i int32) int32 { return g.nbrTo[i] }

// FirstPort is the place of port 0 of switch s among the ports of all switches. The
// others follow, up to FirstPort(s+1).
func (g *Graph) FirstPort(s int) int32 { return g.portBase[s] }

// Weighted reports whether some link has another weight than 1.
func (g *Graph) Weighted() bool { return g.weighted }

// HasPortOrder reports whether switch s has preferred ports; s < 0: whether any has.
func (g *Graph) HasPortOrder(s int) bool {
	return g.order != nil && (s < 0 || g.order[s] != nil)
}

// Dests are all destinations, by switch, then port, then LID.
func (g *Graph) Dests() []Dest { return g.dests }

// FirstDest is the place in Dests of the first destination on switch s. The others
// follow, up to FirstDest(s+1).
func (g *Graph) FirstDest(s int) int32 { return g.destBase[s] }

// LIDs are all LIDs of terminals of class c that are on switches, in the order
// of switches and their ports; of class 0, all.
func (g *Graph) LIDs(c Class) []mad.LID {
	var lids []mad.LID
	for _, d := range g.dests {
		if c == 0 || g.terminals[d.Terminal].Class&c != 0 {
			lids = append(lids, d.LID)
		}
	}
	return lids
}

// DestsOf are the LIDs on switch s, by port, then LID.
func (g *Graph) DestsOf(s int) []Dest { return g.dests[g.destBase[s]:g.destBase[s+1]] }

func (g *Graph) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// leaveOut notes a port that packets do not reach by all its LIDs: a finding of every
// verdict.
func (g *Graph) leaveOut(format string, args ...any) {
	g.leftOut = append(g.leftOut, fmt.Sprintf(format, args...))
}

// Each calls do for 0..n-1 on so many goroutines. Each worker has a number, for memory
// of its own; one worker goes in order, on the caller's goroutine. When ctx ends, Each
// returns early, with the cause.
func Each(ctx context.Context, workers, n int, do func(worker, i int)) error {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			do(0, i)
		}
		return context.Cause(ctx)
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(worker, i)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// Target is what port p of switch s leads to.
func (g *Graph) Target(s int32, p uint8) Target {
	if at := g.portBase[s] + int32(p); at < g.portBase[s+1] {
		return g.targets[at]
	}
	return NoTarget
}
