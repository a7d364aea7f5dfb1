// Package graph makes of a fabric what routing needs: switches, links and LIDs with dense
// numbers, side by side in memory; and it finds distances, levels and orders in it.
//
// New makes a Graph, and most of the package reads one: AllHops and UpDown find the
// distances between all switches, NextHops the next hops that these distances allow,
// ShortestPaths and Dijkstra single paths, FindLevels, FindTree and FindRoots the
// structure of a fat tree.
//
// Switches are numbered as in the fabric: by GUID. A channel is one direction of a link
// between two switches. A terminal is where paths begin and end: a port of a CA or router,
// or port 0 of a switch.
//
// A Graph is immutable and safe for concurrent use. What its methods return is its own
// memory, which callers must not change. Hops, Levels and Ranks are safe for concurrent
// reading; NextHops, Toward, Cheapest and TopologicalSort belong to one goroutine.
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
	"fabsh/fabric/plural"
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
	// LIDs are the first LID of an end port and its LMC; nil: as the fabric has them.
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
	byGUID   []*fabric.Node // switches by GUID
	index    []int32        // switch by node id, or -1
	notes    []string
	leftOut  []string // endpoints that have no LID, or not all of theirs, and why
	workers  int

	terminals []Terminal
	byLID     []int32 // terminal by LID, or -1; up to the highest LID
	dests     []Dest  // dests[destBase[s]:destBase[s+1]] are on switch s
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

	capacity *Capacity
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
	g.addTerminals(usable, lids, prepareRules(o.Rules))
	g.findCapacity()
	if !f.Complete() {
		g.note("the fabric is incomplete (%s); the missing parts are unknown", f.Missing())
	}
	return g, nil
}

// For is the graph of f, a later snapshot of g's subnet, with the options of g. An option
// for a port of g's fabric applies to the port of f with that node GUID and number.
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

// Part is g with only the links for both of whose ports use is true.
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
	i, ok := slices.BinarySearchFunc(g.byGUID, guid, func(n *fabric.Node, guid mad.GUID) int { return cmp.Compare(n.GUID(), guid) })
	if !ok {
		return -1
	}
	return g.SwitchOf(g.byGUID[i])
}

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

// FirstNeighbour is the place of the first neighbour of switch s among the neighbours of
// all switches. The others follow, up to FirstNeighbour(s+1).
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

// Target is what a port of a switch leads to: a channel to another switch, a terminal,
// or nothing.
type Target int32

// NoTarget is the target of a port that leads nowhere: a free port, or a port whose link
// is down or left out.
const NoTarget Target = -1

// NoChannel stands for a missing channel.
const NoChannel = -1

// ToTerminal is the target of a port that leads to terminal t.
func ToTerminal(t int32) Target { return Target(-2 - t) }

// IsChannel reports whether t is a channel.
func (t Target) IsChannel() bool { return t >= 0 }

// Channel is the number of the channel, or less than 0 if t is not a channel.
func (t Target) Channel() int32 { return int32(t) }

// IsTerminal reports whether t is a terminal.
func (t Target) IsTerminal() bool { return t < NoTarget }

// Terminal is the number of the terminal that t is.
func (t Target) Terminal() int32 { return int32(-2 - t) }

// Heavier is a copy of g with more(c) added to the weight of each channel c.
func (g *Graph) Heavier(more func(c int) uint8) *Graph {
	h := *g
	h.weighted = true
	h.channels = slices.Clone(g.channels)
	for c := range h.channels {
		h.channels[c].Weight = min(h.channels[c].Weight+more(c), MaxDistance)
	}
	h.neighbours, h.nbrTo, h.nbrBase, h.nbrBack = nil, nil, nil, nil
	h.addNeighbours()
	return &h
}

// FirstParallel has for each channel the first channel between its two switches.
func FirstParallel(g *Graph) []int32 {
	first := make([]int32, len(g.channels))
	to := make([]int32, len(g.switches))
	for s := range g.switches {
		for c := g.chanBase[s+1] - 1; c >= g.chanBase[s]; c-- {
			to[g.chanTo[c]] = c
		}
		for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
			first[c] = to[g.chanTo[c]]
		}
	}
	return first
}

// addSwitches numbers the switches as in the fabric, which has them by GUID.
func (g *Graph) addSwitches() {
	nodes := g.fabric.Nodes()
	g.index = slices.Repeat([]int32{-1}, len(nodes))
	base := int32(0)
	for i := range nodes {
		if n := &nodes[i]; n.IsSwitch() {
			g.index[i] = int32(len(g.switches))
			g.switches = append(g.switches, n)
			g.portBase = append(g.portBase, base)
			base += int32(n.NumPorts()) + 1
		}
	}
	g.byGUID, g.portBase = g.switches, append(g.portBase, base)
	g.targets = slices.Repeat([]Target{NoTarget}, int(base))
}

// manyPorts is the most ports with links that a CA has.
const manyPorts = 8

// Disguised names CAs that are obviously switches, as in files of some old programs; "": none.
func (g *Graph) Disguised() string {
	var first *fabric.Node
	n := 0
	for i := range g.fabric.Nodes() {
		node := &g.fabric.Nodes()[i]
		if node.Type() != mad.NodeTypeCA || node.NumPorts() <= manyPorts {
			continue
		}
		linked := 0
		for p := range node.Ports() {
			if p.Peer() != nil {
				linked++
			}
		}
		if linked <= manyPorts {
			continue
		}
		if n++; first == nil {
			first = node
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("%s with links at more than %d ports, as %s: these must be switches, but the source of the fabric calls them CAs (in a .lst file, replace CA by SW)", plural.Count(n, "CA", "CAs"), manyPorts, first.Label())
}

// addChannels numbers the channels by switch and port.
func (g *Graph) addChannels(usable func(*fabric.Port) bool, weight func(*fabric.Port) int) error {
	g.channels, g.chanTo = make([]Channel, 0, len(g.targets)), make([]int32, 0, len(g.targets))
	for s, n := range g.switches {
		g.chanBase = append(g.chanBase, int32(len(g.channels)))
		for p := range n.Ports() {
			if !usable(p) {
				continue
			}
			to := g.SwitchOf(p.Peer().Node())
			if to < 0 || to == s {
				continue
			}
			c := Channel{From: int32(s), To: int32(to), Port: uint8(p.Num()), PeerPort: uint8(p.Peer().Num()), Weight: 1}
			if weight != nil {
				w := weight(p)
				if w < 1 || w > MaxDistance {
					return fmt.Errorf("weight %d of %s: it must be from 1 to %d", w, p.Label(), MaxDistance)
				}
				c.Weight = uint8(w)
				g.weighted = g.weighted || w != 1
			}
			g.targets[int(g.portBase[s])+p.Num()] = Target(len(g.channels))
			g.channels = append(g.channels, c)
			g.chanTo = append(g.chanTo, c.To)
		}
	}
	g.chanBase = append(g.chanBase, int32(len(g.channels)))
	for i := range g.channels {
		c := &g.channels[i]
		c.Reverse = g.targets[g.portBase[c.To]+int32(c.PeerPort)].Channel()
	}
	return nil
}

// setOrder makes ranks of the PortOrder of switch s.
func (g *Graph) setOrder(s int, ports []int) error {
	if len(ports) == 0 {
		return nil
	}
	n := g.switches[s]
	rank := slices.Repeat([]int16{256}, n.NumPorts()+1)
	for i, num := range ports {
		if num < 1 || num > n.NumPorts() {
			return fmt.Errorf("port order of %s: no port %d", n.Label(), num)
		}
		if rank[num] == 256 {
			rank[num] = int16(i)
		}
	}
	g.order[s] = rank
	return nil
}

// addNeighbours groups the channels of each switch by the switch they lead to.
func (g *Graph) addNeighbours() {
	ports := make([]uint8, 0, len(g.channels))
	g.neighbours, g.nbrTo = make([]Neighbour, 0, len(g.channels)), make([]int32, 0, len(g.channels))
	sorted := make([]uint64, 0, 255) // channels of a switch, by neighbour, weight, rank and number
	for s := range g.switches {
		g.nbrBase = append(g.nbrBase, int32(len(g.neighbours)))
		sorted = sorted[:0]
		for i, c := range g.channels[g.chanBase[s]:g.chanBase[s+1]] {
			sorted = append(sorted, uint64(c.To)<<32|uint64(c.Weight)<<24|uint64(g.rank(s, c.Port))<<8|uint64(i))
		}
		slices.Sort(sorted)
		for i := 0; i < len(sorted); {
			first := sorted[i]
			from := len(ports)
			for ; i < len(sorted) && sorted[i]>>32 == first>>32; i++ {
				if sorted[i]>>24 == first>>24 {
					ports = append(ports, g.channels[int(g.chanBase[s])+int(uint8(sorted[i]))].Port)
				}
			}
			g.nbrTo = append(g.nbrTo, int32(first>>32))
			g.neighbours = append(g.neighbours, Neighbour{To: int32(first >> 32), Weight: uint8(first >> 24), Ports: ports[from:len(ports):len(ports)]})
		}
	}
	g.nbrBase = append(g.nbrBase, int32(len(g.neighbours)))
	if !g.weighted {
		return
	}
	g.nbrBack = make([]uint8, len(g.neighbours))
	for s := range g.switches {
		for i := g.nbrBase[s]; i < g.nbrBase[s+1]; i++ {
			back := g.Neighbours(int(g.nbrTo[i]))
			if j, ok := slices.BinarySearchFunc(back, int32(s), func(n Neighbour, s int32) int { return cmp.Compare(n.To, s) }); ok {
				g.nbrBack[i] = back[j].Weight
			}
		}
	}
}

// rank is the position of port p of switch s in the PortOrder; 0 without one.
func (g *Graph) rank(s int, p uint8) int16 {
	if g.order == nil || g.order[s] == nil {
		return 0
	}
	return g.order[s][p]
}
