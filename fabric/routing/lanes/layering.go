// Package lanes puts paths on virtual lanes so that no lane has a credit loop, and
// recognises the networks in which few lanes are enough: tori and dragonflies. It knows
// only the numbers of switches and channels, as a Network; package engines knows fabrics.
//
// Layering assigns all paths to layers, Placing adds paths to layers that stay as they
// are, and Turns is a set of turns that needs one lane. Torus has coordinates, and
// TorusRoutes the paths by them; Groups are the groups of a dragonfly.
//
// A Network, a Torus and TorusRoutes are safe for concurrent reading. A Layering, a
// Placing and Turns belong to one goroutine.
package lanes

import (
	"context"
	"slices"
)

// Network is a network by numbers. Slices by port have the ports of switch s from
// PortBase[s] on; slices by channel are in the order of switches.
type Network struct {
	From, To []int32 // by channel: the switches it joins
	Reverse  []int32 // by channel: the channel of the other direction
	Base     []int32 // by switch: its first channel; and the end
	Target   []int32 // by port: the channel, or the value of Dest.End; others are negative too
	PortBase []int32 // by switch: its port 0; and the end
}

// Switches is the number of switches.
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
// this way does well with dimension order. The other is firstFit, which does better
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
	// GaveUp reports, after Run, that it reached Work: more work may find fewer layers.
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
// by LID. Paths that do not arrive are on layer 0. No layers: most are not enough, or it
// gave up.
//
// Time: O(P*H) for P paths of H channels, if they have no cycle; otherwise a search for
// each dependency that closes one, or O(L) for each that is removed, L destinations,
// and O(H) for each path that is moved. Work bounds both.
func (l *Layering) Run(ctx context.Context, most int) (layer [][]uint8, layers int, err error) {
	l.prepare()
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
	layers, err = l.breakCycles(ctx, most)
	l.GaveUp = l.GaveUp || l.work < 0
	if err != nil || layers == 0 {
		return fitting, fewest, err
	}
	return l.layer, layers, nil
}

// prepare makes the memory of a run.
func (l *Layering) prepare() {
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

// block is the number of destinations that are followed together, whose entries
// share cache lines.
const block = 64

// countAll counts the paths of the first layer.
func (l *Layering) countAll(ctx context.Context) error {
	t := newTree(l.Net.Switches())
	for first := 0; first < len(l.Dests); first += block {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		dests := l.Dests[first:min(first+block, len(l.Dests))]
		if l.Shift == nil {
			for i := range dests {
				t.follow(l, &dests[i])
				t.count(l)
			}
			continue
		}
		for _, s := range l.Sources {
			for i := range dests {
				if l.follow(s, &dests[i]) {
					l.addTrail(1)
				}
			}
		}
	}
	return nil
}

// tree has the paths from all sources to a destination, each switch once: for a table sends all
// packets of a LID to one port.
type tree struct {
	state []uint8 // by switch
	via   []int32 // by switch: the channel of its path; negative at the end
	flow  []int32 // by switch: paths that pass through
	order []int32 // switches, each after the next on its path
	stack []int32
}

// States of a switch in a tree.
const (
	unmet    = iota
	onPath   // on the path that is followed now
	astray   // paths do not arrive
	arriving // paths arrive
)

func newTree(switches int) *tree {
	return &tree{state: make([]uint8, switches), via: make([]int32, switches), flow: make([]int32, switches)}
}

// follow finds the paths to d.
func (t *tree) follow(l *Layering, d *Dest) {
	clear(t.state)
	clear(t.flow)
	t.order = t.order[:0]
	for _, s := range l.Sources {
		t.flow[s] = 1
		for t.state[s] == unmet {
			t.state[s] = onPath
			t.stack = append(t.stack, s)
			if t.via[s] = l.next(s, d); t.via[s] < 0 {
				if t.state[s] = astray; t.via[s] == d.End {
					t.state[s] = arriving
				}
				break
			}
			s = l.Net.To[t.via[s]]
		}
		end := t.state[s]
		if end == onPath { // a loop
			end = astray
		}
		for _, s := range slices.Backward(t.stack) {
			t.state[s] = end
			t.order = append(t.order, s)
		}
		t.stack = t.stack[:0]
	}
}

// count adds the paths that arrive to the counts of their edges.
//
// Time: O(S) for S switches, whatever the length of paths.
func (t *tree) count(l *Layering) {
	for _, s := range slices.Backward(t.order) {
		c := t.via[s]
		if c < 0 || t.state[s] != arriving {
			continue
		}
		to := l.Net.To[c]
		t.flow[to] += t.flow[s]
		if next := t.via[to]; next >= 0 {
			l.count[l.edge(c, 0, next)] += t.flow[s]
		}
	}
}

// frame is a vertex on the stack of the search: a channel and its lane within the
// layer.
type frame struct {
	channel, shift int32
	at             int32 // the next edge to check
	edge           int32 // the edge to the next frame
}

// breakCycles breaks the cycles of the first layer, which has all paths, by moving paths to the
// next, and so on. It returns the number of layers; 0: it takes more than most.
func (l *Layering) breakCycles(ctx context.Context, most int) (layers int, err error) {
	for layers = 1; ; layers++ {
		if _, err := l.search(ctx, l.breakCycle); err != nil {
			return 0, err
		}
		if len(l.moved) == 0 {
			return layers, nil
		}
		if layers == most || l.work < 0 {
			return 0, nil
		}
		l.now++
		clear(l.count)
		paths := l.moved
		l.moved = nil
		for i, p := range paths {
			if i%4096 == 0 && ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			l.follow(p.source, &l.Dests[p.dest])
			l.addTrail(1)
		}
	}
}

// search looks for cycles of the present layer. A depth-first search meets a vertex on
// its own stack where there is one. Then broken is called, which takes all paths away
// from an edge of the cycle; and the search goes on from the first vertex of the stack
// that has lost an edge: what it was done with has no cycle, and gets none by losing
// edges. Without broken, it reports whether there is a cycle.
func (l *Layering) search(ctx context.Context, broken func(cycle []frame)) (cyclic bool, err error) {
	const (
		fresh = iota
		open
		done
	)
	n := l.Net
	colour := make([]uint8, len(n.To)*int(l.shifts))
	var stack []frame
	for root := range colour {
		if colour[root] != fresh {
			continue
		}
		colour[root] = open
		stack = append(stack[:0], frame{channel: int32(root) / l.shifts, shift: int32(root) % l.shifts})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			c := top.channel
			degree := l.edges[c+1] - l.edges[c]
			first := l.edges[c]*l.shifts + top.shift*degree
			for top.at < degree && l.count[first+top.at] == 0 {
				top.at++
			}
			if top.at == degree {
				colour[c*l.shifts+top.shift] = done
				stack = stack[:len(stack)-1]
				continue
			}
			next := frame{channel: n.Base[n.To[c]] + top.at}
			if l.Shift != nil {
				next.shift = int32(l.Shift[c])
			}
			top.edge = first + top.at
			top.at++
			switch v := next.channel*l.shifts + next.shift; colour[v] {
			case fresh:
				colour[v] = open
				stack = append(stack, next)
			case open:
				if broken == nil || l.work < 0 {
					return true, nil
				}
				if ctx.Err() != nil {
					return false, context.Cause(ctx)
				}
				begin := len(stack) - 1
				for stack[begin].channel != next.channel || stack[begin].shift != next.shift {
					begin--
				}
				broken(stack[begin:])
				kept := slices.IndexFunc(stack, func(f frame) bool { return l.count[f.edge] == 0 }) + 1
				for _, f := range stack[kept:] {
					colour[f.channel*l.shifts+f.shift] = fresh
				}
				stack = stack[:kept]
			}
		}
	}
	return false, context.Cause(ctx)
}

// breakCycle moves the paths of the edge that has the fewest. The last frame has the
// edge to the first.
func (l *Layering) breakCycle(cycle []frame) {
	weakest := 0
	for i := range cycle {
		if l.count[cycle[i].edge] < l.count[cycle[weakest].edge] {
			weakest = i
		}
	}
	a, b := cycle[weakest], cycle[(weakest+1)%len(cycle)]
	l.work -= len(l.Dests)
	l.eachThrough(a.channel, b.channel, func(i int32) bool {
		l.moveThrough(l.Net.From[a.channel], i, a.edge)
		return l.count[a.edge] > 0
	})
}

// eachThrough calls found for the destinations, by place, to which packets pass from channel a to
// channel b, or from the class of a to the class of b, until it returns false.
func (l *Layering) eachThrough(a, b int32, found func(dest int32) bool) {
	from, to := l.Net.From[a], l.Net.To[a]
	ofA, ofB := l.portsOf(from, a), l.portsOf(to, b)
	rowA, rowB := l.Rows[from], l.Rows[to]
	for i := range l.Dests {
		if d := &l.Dests[i]; ofA[rowA[d.Index]] && ofB[rowB[d.Index]] && !found(int32(i)) {
			return
		}
	}
}

// portsOf reports which ports of switch s lead to channel c, or to one of its class.
func (l *Layering) portsOf(s, c int32) (ports [256]bool) {
	for i := l.Net.PortBase[s]; i < l.Net.PortBase[s+1]; i++ {
		t := l.Net.Target[i]
		ports[i-l.Net.PortBase[s]] = t == c || t >= 0 && l.Class != nil && l.Class[t] == c
	}
	return ports
}

// moveThrough moves the paths of the present layer to a destination that come by
// switch s and take edge e.
func (l *Layering) moveThrough(s int32, dest int32, e int32) {
	d := &l.Dests[dest]
	l.upstream(s, dest, func(s int32) {
		if l.source[s] < 0 || l.layer[s][d.Index] != l.now || !l.follow(s, d) || !slices.Contains(l.trail, e) {
			return
		}
		l.move(s, dest)
		if back := l.source[s]; l.Both && l.layer[d.Home][l.Dests[back].Index] == l.now && l.follow(d.Home, &l.Dests[back]) {
			l.move(d.Home, back)
		}
	})
}

// upstream calls found for s, and for the switches whose packets to a destination pass through s.
func (l *Layering) upstream(s int32, dest int32, found func(s int32)) {
	n, d := l.Net, &l.Dests[dest]
	l.searches++
	l.seen[s] = l.searches
	l.todo = append(l.todo[:0], s)
	for len(l.todo) > 0 {
		s := l.todo[len(l.todo)-1]
		l.todo = l.todo[:len(l.todo)-1]
		l.work -= int(n.Base[s+1] - n.Base[s])
		found(s)
		for c := n.Base[s]; c < n.Base[s+1]; c++ {
			if to := n.To[c]; l.seen[to] != l.searches && l.leads(to, n.Reverse[c], d) {
				l.seen[to] = l.searches
				l.todo = append(l.todo, to)
			}
		}
	}
}

// leads reports whether packets to d leave switch s by channel c or one of its class.
func (l *Layering) leads(s, c int32, d *Dest) bool {
	t := l.next(s, d)
	return t >= 0 && (t == c || l.Class != nil && t == l.Class[c])
}

// move moves the path that was followed last to the next layer.
func (l *Layering) move(s int32, dest int32) {
	l.addTrail(-1)
	l.work -= len(l.trail)
	l.layer[s][l.Dests[dest].Index]++
	l.moved = append(l.moved, path{dest, s})
}

// firstFit puts path after path on the first layer where it closes no cycle (Skeie,
// Lysne, Theiss, "Layered shortest path (LASH) routing in irregular system area
// networks", 2002). It returns the layers and their number; 0: it takes more than most. The
// order of paths makes a difference: backward is one more to try.
func (l *Layering) firstFit(ctx context.Context, most int, backward bool) (layer [][]uint8, layers int, err error) {
	layer = make([][]uint8, len(l.layer))
	for s := range layer {
		layer[s] = make([]uint8, len(l.layer[s]))
	}
	var orders []*order
	var trail []int32
	for i := range l.Dests {
		if backward {
			i = len(l.Dests) - 1 - i
		}
		d := &l.Dests[i]
		for _, s := range l.Sources {
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			if l.Both && s < d.Home || !l.follow(s, d) {
				continue // with the path back, or never
			}
			trail = append(trail[:0], l.trail...)
			var back *Dest
			if l.Both {
				if back = &l.Dests[l.source[s]]; l.follow(d.Home, back) {
					trail = append(trail, l.trail...)
				}
			}
			if len(trail) == 0 {
				continue
			}
			if l.work < 0 {
				return nil, 0, nil
			}
			to := slices.IndexFunc(orders, func(o *order) bool { return o.add(trail) })
			if to < 0 {
				to = len(orders)
				orders = append(orders, l.newOrder())
				if to == most || !orders[to].add(trail) {
					return nil, 0, nil
				}
			}
			layer[s][d.Index] = uint8(to)
			if l.Both {
				layer[d.Home][back.Index] = uint8(to)
			}
		}
	}
	return layer, max(1, len(orders)), nil
}
