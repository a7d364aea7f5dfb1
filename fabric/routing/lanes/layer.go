// Package lanes puts paths on virtual lanes so that no lane has a credit loop, and
// finds the shapes of networks in which few lanes do. It knows numbers only, those of
// switches and channels: package engine knows fabrics.
//
//	layer.go     Layering: cycles are broken by moving paths to the next lane
//	count.go     the paths over each dependency
//	break.go     the search for cycles, and what is moved
//	firstfit.go  path after path, each on the first layer that takes it
//	order.go     a layer that takes paths; turns.go, one that takes turns; bitrows.go: its edges
//	placing.go   Placing: paths beside others that keep their layers
//	dragonfly.go the groups of a dragonfly
//	torus.go     the directions of the links of a torus, and torusplace.go its coordinates
//	torusroute.go paths in a torus, and around what is missing
package lanes

import (
	"context"
	"slices"
)

// Network is a network by numbers. Slices by port have those of switch s at
// PortBase[s] and up; slices by channel are in the order of switches.
type Network struct {
	From, To []int32 // by channel: the switches it joins
	Reverse  []int32 // by channel: that of the other direction
	Base     []int32 // by switch: its first channel; and the end
	Target   []int32 // by port: the channel, or the value of Dest.End; others are negative too
	PortBase []int32 // by switch: its port 0; and the end
}

// Switches is their number.
func (n *Network) Switches() int { return len(n.Base) - 1 }

// Dest is where paths end.
type Dest struct {
	Index int   // in the rows: the LID
	Home  int32 // the switch it is on
	End   int32 // the Target of the port to it
}

// Max is the number of data lanes of a link, VL 0 to 14; VL 15 is for management
// (IBA 3.5.7).
const Max = 15

// Layering assigns paths to layers, the dependencies of each of which have no cycle, in
// two ways, and takes the one with fewer layers. In the one all paths begin in the first
// layer, and a cycle is broken where the fewest paths have to move to the next (Domke,
// Hoefler, Nagel, "Deadlock-free oblivious routing for arbitrary topologies", 2011);
// that does well with dimension order. The other is firstFit, which does better
// elsewhere.
type Layering struct {
	Net     *Network
	Rows    [][]uint8 // by switch: its table, ports by LID
	Dests   []Dest
	Sources []int32 // switches at which paths begin, in rising order
	// Shift, if not nil, has for each channel the lane, 0 or 1, of packets that came
	// over it, within their layer. Lanes of packets from a source are 0.
	Shift []uint8
	// Class, if not nil, has for each channel another that stands for it, as for all
	// its parallel channels.
	Class []int32
	// Both requires that paths there and back are on one layer. There is one Dest for each
	// of Sources then, in their order.
	Both bool
	// Work is how many vertices searches go through, and edges of paths that are moved, in
	// each of the two ways before it gives up; 0: DefaultWork.
	Work int
	// GaveUp reports, after Run, that it did so, and that more work may find fewer layers.
	GaveUp bool

	shifts   int32     // lanes of a layer
	layer    [][]uint8 // by switch, nil where no path begins; by LID
	count    []int32   // by edge: the paths of the layer
	edges    []int32   // by channel: its first edge, if shifts is 1
	now      uint8     // the layer
	moved    []path    // to the next
	source   []int32   // by switch: its place among Sources, or -1
	seen     []int32   // by switch: the last search that met it
	searches int32
	todo     []int32
	trail    []int32 // edges of the path that was followed last
	work     int     // what is left of Work; less than 0: it gave up
}

// path is from a switch to a destination.
type path struct {
	dest   int32 // place in Dests
	source int32 // switch
}

// DefaultWork takes some seconds at most.
const DefaultWork = 50_000_000

// Run finds the layers, most of them at most: by switch, nil where no path begins, then
// by LID. Paths that do not arrive are on layer 0. No layers: that many are not enough,
// or it gave up.
//
// Time: O(P*H) for P paths of H channels, if they have no cycle; otherwise a search for
// each dependency that closes one, or O(L) for each that is removed, L destinations,
// and O(H) for each path that is moved. That is bounded by Work.
func (l *Layering) Run(ctx context.Context, most int) (layer [][]uint8, layers int, err error) {
	l.begin()
	if err := l.countAll(ctx); err != nil {
		return nil, 0, err
	}
	if cyclic, err := l.search(ctx, nil); err != nil || !cyclic {
		return l.layer, 1, err
	}
	if most == 1 {
		return nil, 0, nil
	}
	if l.Work == 0 {
		l.Work = DefaultWork
	}
	var fitting [][]uint8
	fewest := 0
	for _, backward := range []bool{false, true} {
		l.work = l.Work
		found, n, err := l.firstFit(ctx, most, backward)
		l.GaveUp = l.GaveUp || l.work < 0
		if err != nil {
			return nil, 0, err
		}
		if n > 0 {
			fitting, fewest, most = found, n, n-1
		}
		if n == 2 {
			return fitting, fewest, nil
		}
	}
	l.work = l.Work
	layers, err = l.moving(ctx, most)
	l.GaveUp = l.GaveUp || l.work < 0
	if err != nil || layers == 0 {
		return fitting, fewest, err
	}
	return l.layer, layers, nil
}

// begin makes the memory of a run.
func (l *Layering) begin() {
	n := l.Net
	l.shifts = 1
	if l.Shift != nil {
		l.shifts = 2
	}
	l.edges = make([]int32, 0, len(n.To)+1)
	at := int32(0)
	for _, to := range n.To {
		l.edges = append(l.edges, at)
		at += n.Base[to+1] - n.Base[to]
	}
	l.edges = append(l.edges, at)
	l.count = make([]int32, at*l.shifts)
	l.layer = make([][]uint8, n.Switches())
	l.seen = make([]int32, n.Switches())
	l.source = slices.Repeat([]int32{-1}, n.Switches())
	all := 0
	for _, d := range l.Dests {
		all = max(all, d.Index)
	}
	for i, s := range l.Sources {
		l.source[s] = int32(i)
		l.layer[s] = make([]uint8, all+1)
	}
}

// follow follows the path from a switch, and leaves its edges in trail. False: it does
// not arrive.
func (l *Layering) follow(s int32, d *Dest) bool {
	n := l.Net
	l.trail = l.trail[:0]
	before, shift := int32(-1), int32(0) // the vertex before
	for range n.Switches() {
		c := l.next(s, d)
		if c < 0 {
			return c == d.End
		}
		if before >= 0 {
			l.trail = append(l.trail, l.edge(before, shift, c))
			if l.Shift != nil {
				shift = int32(l.Shift[before])
			}
		}
		before, s = c, n.To[c]
	}
	l.trail = l.trail[:0]
	return false
}

// next is the channel, or its class, that packets to d leave switch s by; or the
// target, which is negative, if it is not a channel.
func (l *Layering) next(s int32, d *Dest) int32 {
	i := l.Net.PortBase[s] + int32(l.Rows[s][d.Index])
	if i >= l.Net.PortBase[s+1] {
		return -1
	}
	c := l.Net.Target[i]
	if c >= 0 && l.Class != nil {
		c = l.Class[c]
	}
	return c
}

// edge is the dependency of channel d on channel c and its lane.
func (l *Layering) edge(c, shift, d int32) int32 {
	return l.edges[c]*l.shifts + shift*(l.edges[c+1]-l.edges[c]) + d - l.Net.Base[l.Net.To[c]]
}

// addTrail adds n to the count of each edge of the trail.
func (l *Layering) addTrail(n int32) {
	for _, e := range l.trail {
		l.count[e] += n
	}
}
