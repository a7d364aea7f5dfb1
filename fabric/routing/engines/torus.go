package engines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// torus2QoS is dimension-order routing in a torus or mesh, with datelines and around
// missing parts, as OpenSM's torus-2QoS (torus-2QoS(8)), whose seeds and radices it does
// not need: see lanes.Torus and lanes.TorusRoutes. Bits 0 to 2 of a service level show
// which datelines a path crosses, and bit 3 is for quality of service: of the lanes, bit 0
// is the dateline bit of the link's dimension, bit 1, or 0 without rings, is set after a turn that
// dimension order does not have, and bit 2 is the quality of service, where there are enough lanes.
// Where parts are missing, the tables are verified; if they have a credit loop, or a
// ring is open in two places, another order of dimensions is tried.
//
// Time: O(S*L) and the time of verify.Tables.
var torus2QoS = Engine{
	Name:        "torus-2qos",
	Doc:         "Dimension order on a torus or mesh, with datelines, and around missing links and switches.",
	OpenSM:      "torus-2QoS",
	Lanes:       true,
	OpenSMNeeds: "the directions of the torus in --torus_config",
	Options:     []Option{maxVLsOption, torusConfigOption},
	Acyclic:     true,
	Repair:      KeepPlaces,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		t, err := findTorus(ctx, g, o.TorusConfig)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, &Precondition{Reason: err}
		}
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		var first error
		for _, order := range t.Orders() {
			switches, _ := t.Missing()
			r, err := inDimensionOrder(ctx, g, t, t.Routes(order), h, o.MaxVLs, switches > 0, nil)
			if err == nil {
				r.SetOrigin(&Basis{torus: &torusPlan{g, t, order, switches > 0}})
				return r, nil
			}
			if !errors.As(err, new(*Precondition)) {
				return nil, err
			}
			if first == nil {
				first = err
			}
		}
		return nil, first
	},
}

// torusPlan is the input from which tables of a torus were made.
type torusPlan struct {
	graph *graph.Graph
	torus *lanes.Torus // its places
	order []int        // of dimensions
	turns bool         // turns that dimension order does not have are on lanes of their own
}

// InPlaces are tables for g with the places, datelines and order of dimensions of r, tables of
// torus-2qos, so that paths change only where they used lost parts. Entries stay on their link
// among parallel ones. Nil: g has parts that were not there before, or such paths are not possible.
func InPlaces(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	b := BasisOf(r)
	was, _ := graph.OlderNumbers(g, b.torus.graph)
	t := b.torus.torus.On(laneNetwork(g), was)
	if t == nil {
		return nil, nil
	}
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, err
	}
	switches, _ := t.Missing()
	plan := *b.torus
	o := b.On(g)
	// With the lanes in force first.
	for _, plan.turns = range slices.Compact([]bool{plan.turns, plan.turns || switches > 0}) {
		n, err := inDimensionOrder(ctx, g, t, t.Routes(plan.order), h, o.MaxVLs, plan.turns, r.SeenOn(g))
		if errors.As(err, new(*Precondition)) {
			continue
		} else if err != nil {
			return nil, err
		}
		e, _ := Named(b.Engine)
		n.Engine, n.RunInOpenSM = r.Engine, r.RunInOpenSM
		n.SetOrigin(&Basis{torus: &plan})
		recordBasis(n, g, &e, &o)
		return n, nil
	}
	return nil, nil
}

// findTorus finds the coordinates: by the first seed of a file that will do, or without one.
func findTorus(ctx context.Context, g *graph.Graph, config *format.TorusConfig) (*lanes.Torus, error) {
	named := func(err error) error {
		if no := new(lanes.NoTorus); errors.As(err, &no) {
			return errors.New(no.Name(func(s int32) string { return g.Switches()[s].Label() }))
		}
		return err
	}
	if config == nil {
		t, err := laneNetwork(g).Torus(ctx)
		if err != nil {
			err = fmt.Errorf("no torus: %w", named(err))
		}
		return t, err
	}
	var reasons []string
	for i := range config.Seeds {
		s := &config.Seeds[i]
		seed, err := torusSeed(g, config, s)
		if err == nil {
			var t *lanes.Torus
			if t, err = laneNetwork(g).TorusFrom(seed); err == nil {
				return t, nil
			}
		}
		reasons = append(reasons, fmt.Sprintf("the seed in line %d of the torus_config: %v", s.Line, named(err)))
	}
	return nil, errors.New(strings.Join(reasons, "; "))
}

// torusSeed is a seed of a file, by numbers of switches.
func torusSeed(g *graph.Graph, config *format.TorusConfig, s *format.TorusSeed) (*lanes.Seed, error) {
	var unknown error
	number := func(guid mad.GUID) int32 {
		n := g.SwitchByGUID(guid)
		if n < 0 && guid != 0 && unknown == nil {
			unknown = fmt.Errorf("unknown switch %v", guid)
		}
		return int32(n)
	}
	seed := &lanes.Seed{Switch: number(s.From)}
	for d, size := range config.Size {
		if size == 1 {
			continue
		}
		name := "xyz"[d : d+1]
		to := s.To[d]
		switch {
		case to == [2]mad.GUID{}:
			return nil, fmt.Errorf("no link along %s, such as %sp_link", name, name)
		case size == 4 && !config.Mesh[d] && (to[0] == 0 || to[1] == 0):
			return nil, fmt.Errorf("along %s is a ring of 4, whose direction needs both %sp_link and %sm_link", name, name, name)
		}
		seed.Dims = append(seed.Dims, lanes.SeedDim{Name: name, Size: size, Open: config.Mesh[d], Next: [2]int32{number(to[0]), number(to[1])}, Dateline: s.Dateline[d]})
	}
	return seed, unknown
}

// inDimensionOrder are the tables, levels and lanes of paths in a torus, near the tables keep, if not
// nil. With turns, turns that dimension order does not have are on lanes of their own.
func inDimensionOrder(ctx context.Context, g *graph.Graph, t *lanes.Torus, paths *lanes.TorusRoutes, h *graph.Hops, max int, turns bool, keep *routes.Routes) (*routes.Routes, error) {
	switches, links := t.Missing()
	shape := fmt.Sprintf("%s, with %s and %s between others missing", t, plural.Count(switches, "switch", "switches"), plural.Count(links, "link", "links"))
	r, from, to, err := alongDimensions(ctx, g, t, paths, keep)
	if err != nil {
		return nil, err
	}
	if from >= 0 {
		why := "no path in dimension order leads from %s to %s"
		if t.OnRing(int32(from), int32(to)) {
			why = "the ring of %s and %s is open in two places"
		}
		return nil, &Precondition{Reason: fmt.Errorf("%s: "+why+"; dfsssp, lash and nue find other paths", shape, g.Switches()[from].Label(), g.Switches()[to].Label())}
	}
	if switches+links > 0 {
		r.Notes = []string{"torus-2qos: " + shape}
	}
	if err := setDatelines(ctx, r, t, paths, turns, max); err != nil {
		return nil, err
	}
	if err := search.FillIn(ctx, r, nil, h, keep); err != nil || switches+links == 0 {
		return r, err
	}
	v, err := verify.Tables(ctx, r, verify.Options{})
	switch {
	case err != nil:
		return nil, err
	case v.Unreachable > 0 || v.Loops > 0:
		return nil, &Precondition{Reason: fmt.Errorf("%s: dimension order has no path for %d pairs; dfsssp, lash and nue find other paths", shape, v.Unreachable)}
	case !v.Acyclic:
		return nil, &Precondition{Reason: fmt.Errorf("%s: the turns around them close a credit loop; dfsssp, lash and nue find other paths", shape)}
	}
	return r, nil
}

// alongDimensions are the tables of paths in a torus, without lanes; or the first switch
// with CAs that has no path to another with some, else -1. Among parallel links LIDs stay on the
// link that they have in keep, if it is not nil.
func alongDimensions(ctx context.Context, g *graph.Graph, t *lanes.Torus, paths *lanes.TorusRoutes, keep *routes.Routes) (r *routes.Routes, from, to int, err error) {
	r = routes.New(g, 0)
	endpoints := g.Endpoints()
	stuck := make([]int, g.Workers()) // 1 more than a switch with CAs that has no path to another, or 0
	stuckTo := make([]int, g.Workers())
	err = graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		row := r.Row(s)
		var ports [2 * lanes.MaxDims][]uint8
		for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
			ports[t.Way[c]] = append(ports[t.Way[c]], g.Channels()[c].Port)
		}
		var next [2][2 * lanes.MaxDims]int // of parallel links, for LIDs of switches and others
		for d := range g.Switches() {
			if s == d {
				for _, dest := range g.DestsOf(d) {
					row[dest.LID] = dest.Out
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
			for _, dest := range g.DestsOf(d) {
				if keep != nil {
					if port := keep.Row(s).Port(dest.LID); slices.Contains(ports[way], port) {
						row[dest.LID] = port
						continue
					}
				}
				n := &next[min(dest.Out, 1)][way]
				row[dest.LID] = ports[way][*n%len(ports[way])]
				*n++
			}
		}
	})
	if err != nil {
		return nil, -1, -1, err
	}
	if i := firstStuck(stuck); i >= 0 {
		return nil, stuck[i] - 1, stuckTo[i], nil
	}
	return r, -1, -1, nil
}

// setLevels sets the service levels of paths by the switches where they begin and end.
func setLevels(ctx context.Context, r *routes.Routes, of func(s, d int) uint8) error {
	g := r.Graph()
	r.SL = &routes.SL{Pair: make([][]uint8, len(g.Terminals())), Shared: true}
	rows := make([][]uint8, len(g.Switches()))
	for i, from := range g.Terminals() {
		s := from.Switch
		if s < 0 || from.Out == 0 {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if rows[s] == nil {
			rows[s] = make([]uint8, int(r.Top())+1)
			for d := range g.Switches() {
				level := of(int(s), d)
				for _, dest := range g.DestsOf(d) {
					rows[s][dest.LID] = level
				}
			}
		}
		r.SL.Pair[i] = rows[s]
	}
	return nil
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

// setDatelines sets the levels and lanes of paths in a torus, which need lanes for turns
// where a switch is missing.
func setDatelines(ctx context.Context, r *routes.Routes, t *lanes.Torus, paths *lanes.TorusRoutes, turns bool, max int) error {
	g := r.Graph()
	if max == 0 {
		max = DefaultLanes
	}
	rings := false
	for d := range t.Dims {
		rings = rings || t.Dateline(d)
	}
	need := 1 << btou(rings) << btou(turns)
	if max < need {
		return &Precondition{Reason: fmt.Errorf("%s needs %d virtual lanes; allowed: %d (max_vls)", t, need, max)}
	}
	if need == 1 {
		return nil
	}
	r.SL2VL = routes.NewSL2VL(g)
	for s, n := range g.Switches() {
		way := func(port int) int {
			if c := g.Target(int32(s), uint8(port)); c >= 0 {
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
	return setLevels(ctx, r, func(s, d int) uint8 { return t.Level(int32(s), int32(d)) })
}
