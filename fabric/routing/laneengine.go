package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric/routing/lanes"
)

// dfsssp is deadlock-free single-source shortest-path routing (Domke, Hoefler, Nagel,
// "Deadlock-free oblivious routing for arbitrary topologies", 2011), as OpenSM's
// dfsssp: the tables of sssp, and virtual lanes by Layer.
//
// Time: those of sssp and Layer.
var dfsssp = Engine{
	Name:    "dfsssp",
	Doc:     "Shortest paths, balanced over the whole network, on virtual lanes without credit loops.",
	Options: []string{"max_vls"},
	Minimal: true,
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := NewRoutes(g, 0)
		if err := r.balance(ctx, h); err != nil {
			return nil, err
		}
		return r.inLanes(ctx, &lanes.Layering{}, o)
	},
}

// lash is layered shortest-path routing (Skeie, Lysne, Theiss, "Layered shortest path
// (LASH) routing in irregular system area networks", 2002), as OpenSM's lash: one
// shortest path from switch to switch, by the lowest port, so that it is dimension
// order where ports have that order; and the path there and that back on the same
// lane, so that an answer can have the service level of its question. LIDs are spread
// over parallel links, which count as one.
//
// Time: those of Hops, Assign and Layer.
var lash = Engine{
	Name:    "lash",
	Doc:     "One shortest path from switch to switch, on virtual lanes without credit loops.",
	Options: []string{"max_vls"},
	Minimal: true,
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := NewRoutes(g, 0)
		if err := r.Assign(ctx, h, AssignOptions{Policy: First}); err != nil {
			return nil, err
		}
		return r.inLanes(ctx, &lanes.Layering{Both: true, Class: g.parallel()}, o)
	},
}

// inLanes is r with the lanes of a layering. That they do not suffice is a condition
// that does not hold.
func (r *Routes) inLanes(ctx context.Context, l *lanes.Layering, o *Options) (*Routes, error) {
	err := r.layer(ctx, l, o.MaxVLs)
	if few := new(TooFewLanes); errors.As(err, &few) {
		return nil, &Precondition{Reason: err}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// parallel has for each channel the first of those to the same switch.
func (g *Graph) parallel() []int32 {
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

// dragonfly routes dragonflies by the way with the fewest links between groups, one
// where there is a direct one, balanced over the whole network (Kim, Dally, Scott, Abts,
// "Technology-driven, highly-scalable dragonfly topology", 2008; Shpiner et al.,
// "Dragonfly+: low cost topology for scaling datacenters", 2017). Packets that came over
// such a link go on by the next virtual lane, which the SL2VL tables know by the port,
// so paths need no service levels. Where links are missing, and paths cross more groups,
// they may: see Layer.
//
// Time: those of Hops, with weights, sssp and Layer.
var dragonfly = Engine{
	Name:    "dragonfly",
	Doc:     "Dragonfly and dragonfly+: over one link between groups where there is one, and then by the next virtual lane.",
	Options: []string{"max_vls"},
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		groups, err := g.network().Dragonfly(g.endpointsOn())
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		shift := make([]uint8, len(g.channels))
		for c, global := range groups.Global {
			shift[c] = btou(global)
		}
		// Two links between groups cost more than one, and one within each.
		const between = 3
		far := g.heavier(func(c int) uint8 { return shift[c] * between })
		h, err := far.Hops(ctx)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := NewRoutes(far, 0)
		if err := r.balance(ctx, h); err != nil {
			return nil, err
		}
		r.graph = g
		if err := r.layer(ctx, &lanes.Layering{}, 1); err == nil || ctx.Err() != nil {
			return r, err // one lane is enough, as in a dragonfly+
		}
		return r.inLanes(ctx, &lanes.Layering{Shift: shift}, o)
	},
}

// heavier is g with more weight on channels.
func (g *Graph) heavier(more func(c int) uint8) *Graph {
	h := *g
	h.weighted = true
	h.channels = slices.Clone(g.channels)
	for c := range h.channels {
		h.channels[c].Weight = min(h.channels[c].Weight+more(c), maxDistance)
	}
	h.neighbours, h.nbrTo, h.nbrBase, h.nbrBack = nil, nil, nil, nil
	h.addNeighbours()
	return &h
}

func btou(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// torus2QoS is dimension-order routing in a torus or mesh, with datelines and around
// missing parts, as OpenSM's torus-2QoS (torus-2QoS(8)), whose seeds and radices it does
// not need: see lanes.Torus and lanes.TorusRoutes. Bits 0 to 2 of a service level say
// which datelines a path crosses, and bit 3 is for quality of service: of the lanes, bit 0
// is that of the dimension of the link, bit 1, or 0 without rings, is set after a turn that
// dimension order does not have, and bit 2 is the quality of service, where there are as many lanes.
// Where parts are missing, the tables are verified; if they have a credit loop, or a
// ring is open in two places, another order of dimensions is tried.
//
// Time: O(S*L) and that of Verify.
var torus2QoS = Engine{
	Name:    "torus-2qos",
	Doc:     "Dimension order on a torus or mesh, with datelines, and around missing links and switches.",
	Options: []string{"max_vls"},
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		t, err := g.network().Torus(ctx)
		if no := new(lanes.NoTorus); errors.As(err, &no) {
			err = errors.New(no.Name(func(s int32) string { return g.switches[s].Label() }))
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, &Precondition{Reason: fmt.Errorf("no torus: %w", err)}
		}
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		var first error
		for _, order := range t.Orders() {
			r, err := g.inDimensionOrder(ctx, t, t.Routes(order), h, o.MaxVLs)
			if err == nil || !errors.As(err, new(*Precondition)) {
				return r, err
			}
			if first == nil {
				first = err
			}
		}
		return nil, first
	},
}

// inDimensionOrder are the tables, levels and lanes of paths in a torus.
func (g *Graph) inDimensionOrder(ctx context.Context, t *lanes.Torus, paths *lanes.TorusRoutes, h *Hops, max int) (*Routes, error) {
	switches, links := t.Missing()
	shape := fmt.Sprintf("%s, with %s and %s between others missing", t, count(switches, "switch", "switches"), count(links, "link", "links"))
	r := NewRoutes(g, 0)
	if switches+links > 0 {
		r.Notes = []string{"torus-2qos: " + shape}
	}
	endpoints := g.endpointsOn()
	stuck := make([]int, g.workers) // 1 more than a switch with CAs that has no path to another, or 0
	stuckTo := make([]int, g.workers)
	err := g.each(ctx, len(g.switches), func(worker, s int) {
		row := r.Row(s)
		var ports [2 * lanes.MaxDims][]uint8
		for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
			ports[t.Way[c]] = append(ports[t.Way[c]], g.channels[c].Port)
		}
		var next [2][2 * lanes.MaxDims]int // of parallel links, for LIDs of switches and others
		for d := range g.switches {
			if s == d {
				for _, dest := range g.destsOf(d) {
					row[dest.lid] = dest.out
				}
				continue
			}
			way := paths.Next(int32(s), int32(d))
			if way < 0 {
				if endpoints[s] > 0 && endpoints[d] > 0 && (stuck[worker] == 0 || s < stuck[worker]-1) {
					stuck[worker], stuckTo[worker] = s+1, d
				}
				continue
			}
			for _, dest := range g.destsOf(d) {
				n := &next[min(dest.out, 1)][way]
				row[dest.lid] = ports[way][*n%len(ports[way])]
				*n++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if i := firstStuck(stuck); i >= 0 {
		from, to := stuck[i]-1, stuckTo[i]
		why := "no path in dimension order leads from %s to %s"
		if t.OnRing(int32(from), int32(to)) {
			why = "the ring of %s and %s is open in two places"
		}
		return nil, &Precondition{Reason: fmt.Errorf("%s: "+why+"; dfsssp, lash and nue find other paths", shape, g.switches[from].Label(), g.switches[to].Label())}
	}
	if err := r.dateline(t, paths, switches > 0, max); err != nil {
		return nil, err
	}
	if err := r.fillIn(ctx, nil, h, nil); err != nil || switches+links == 0 {
		return r, err
	}
	v, err := r.Verify(ctx, VerifyOptions{})
	switch {
	case err != nil:
		return nil, err
	case v.Unreachable > 0 || v.Loops > 0:
		return nil, &Precondition{Reason: fmt.Errorf("%s: dimension order leads %d pairs nowhere; dfsssp, lash and nue find other paths", shape, v.Unreachable)}
	case !v.Acyclic:
		return nil, &Precondition{Reason: fmt.Errorf("%s: the turns around them close a credit loop; dfsssp, lash and nue find other paths", shape)}
	}
	return r, nil
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// firstStuck is the worker whose switch is the first, or -1.
func firstStuck(stuck []int) int {
	first := -1
	for i, s := range stuck {
		if s > 0 && (first < 0 || s < stuck[first]) {
			first = i
		}
	}
	return first
}

// dateline sets the levels and lanes of paths in a torus, which need lanes for turns
// where a switch is missing.
func (r *Routes) dateline(t *lanes.Torus, paths *lanes.TorusRoutes, turns bool, max int) error {
	g := r.graph
	if max == 0 {
		max = DefaultLanes
	}
	rings := false
	for d := range t.Dims {
		rings = rings || t.Dateline(d)
	}
	need := 1 << btou(rings) << btou(turns)
	if max < need {
		return &Precondition{Reason: fmt.Errorf("%s needs %d virtual lanes, of which %d may be used (max_vls)", t, need, max)}
	}
	if need == 1 {
		return nil
	}
	r.SL2VL = NewSL2VL(g)
	for s, n := range g.switches {
		way := func(port int) int {
			if c := g.target(int32(s), uint8(port)); c >= 0 {
				return int(t.Way[c] / 2)
			}
			return -1
		}
		for in := range n.NumPorts() + 1 {
			from := way(in)
			for out := 1; out <= n.NumPorts(); out++ {
				var vls [16]uint8
				to := way(out)
				for sl := range vls {
					quality := uint8(sl) >> lanes.MaxDims
					switch {
					case to < 0 && max >= 2*4:
						vls[sl] = quality
					case to < 0:
					default:
						if rings {
							vls[sl] = uint8(sl) >> to & 1
						}
						if turns && from >= 0 && paths.Illegal(from, to) {
							vls[sl] |= 1 << btou(rings)
						}
						if max >= 2*4 {
							vls[sl] |= quality << 2
						}
					}
				}
				if err := r.SL2VL.Set(s, uint8(in), uint8(out), vls); err != nil {
					return err
				}
			}
		}
	}
	if !rings {
		return nil
	}
	r.SL = &SL{Pair: make([][]uint8, len(g.terminals)), shared: true}
	rows := make([][]uint8, len(g.switches))
	for i, from := range g.terminals {
		s := from.Switch
		if s < 0 || from.Out == 0 {
			continue
		}
		if rows[s] == nil {
			rows[s] = make([]uint8, int(r.top)+1)
			for d := range g.switches {
				level := t.Level(int32(s), int32(d))
				for _, dest := range g.destsOf(d) {
					rows[s][dest.lid] = level
				}
			}
		}
		r.SL.Pair[i] = rows[s]
	}
	return nil
}
