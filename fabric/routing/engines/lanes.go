package engines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// DefaultLanes is how many virtual lanes an engine uses at most by default: as many as most
// devices have.
const DefaultLanes = 8

// TooFewLanes reports that no solution was found with so many lanes.
type TooFewLanes struct {
	Max    int
	GaveUp time.Duration // after which searches ended early; 0: they did not
}

func (e *TooFewLanes) Error() string {
	more := ""
	if e.GaveUp > 0 {
		more = gaveUpText(e.GaveUp) + "; "
	}
	if e.Max < lanes.Max {
		more += fmt.Sprintf("allow more with max_vls, up to %d, if the links have them; ", lanes.Max)
	}
	return fmt.Sprintf("no solution found with %s; %supdn, ftree and nue find paths on one lane", plural.Count(e.Max, "virtual lane", "virtual lanes"), more)
}

// gaveUpText reports that searches ended early.
func gaveUpText(after time.Duration) string {
	return fmt.Sprintf("gave up after %.0f s; --effort raises it", max(1, after.Seconds()))
}

// laneSearch is about all searches for lanes of a run.
type laneSearch struct {
	work  int // of each, with Effort 1
	took  time.Duration
	early bool // one ended early
}

// gaveUp is the time after which they ended early; 0: they did not.
func (s *laneSearch) gaveUp() time.Duration {
	if !s.early {
		return 0
	}
	return s.took
}

// note adds to r, their result, that fewer lanes may be possible.
func (s *laneSearch) note(r *routes.Routes) {
	if s.early && r.Lanes() > 2 { // on one, paths have credit loops
		r.Notes = append(r.Notes, "search for fewer virtual lanes: "+gaveUpText(s.took))
	}
}

// Layer gives the paths between CAs and routers service levels, each with a virtual
// lane of its own, so that there is no credit loop. The tables do not change: paths
// are put on the first lane, and from each cycle of dependencies the paths of the edge
// with the fewest are moved to the next (Domke, Hoefler, Nagel, "Deadlock-free
// oblivious routing for arbitrary topologies", 2011). All paths from the ports of one
// switch to one LID are on one lane. Where one lane is enough, no path gets a
// service level. The error is a *TooFewLanes where max lanes are not enough; 0:
// DefaultLanes. effort is as Options.Effort, at least 1.
//
// Time: the time of lanes.Layering, O(S*L*D) and what has to be moved.
func Layer(ctx context.Context, r *routes.Routes, max, effort int) error {
	return layer(ctx, r, &lanes.Layering{Work: lanes.DefaultWork * effort}, max)
}

// checkLanes returns an error if a link cannot have max lanes; 0: DefaultLanes.
func checkLanes(max int) error {
	if max < 0 || max > lanes.Max {
		return fmt.Errorf("layer: %d virtual lanes: a link has from 1 to %d for data", max, lanes.Max)
	}
	return nil
}

// layer is Layer for paths that l describes in part.
func layer(ctx context.Context, r *routes.Routes, l *lanes.Layering, max int) error {
	if err := checkLanes(max); err != nil {
		return err
	}
	if max == 0 {
		max = DefaultLanes
	}
	describe(r, l)
	shifts := 1
	if l.Shift != nil {
		shifts = 2
	}
	begin := time.Now()
	layer, layers, err := l.Run(ctx, max/shifts)
	switch {
	case err != nil:
		return err
	case layers == 0:
		few := &TooFewLanes{Max: max}
		if l.GaveUp {
			few.GaveUp = time.Since(begin)
		}
		return few
	}
	r.SL, r.SL2VL = nil, nil
	if layers == 1 && shifts == 1 {
		return nil
	}
	if r.SL2VL, err = shiftedLanes(r.Graph(), l.Shift); err != nil || layers == 1 {
		return err
	}
	r.SL = serviceLevels(r, l, layer)
	return nil
}

// describe completes l by the paths of r.
func describe(r *routes.Routes, l *lanes.Layering) {
	g := r.Graph()
	l.Net, l.Rows = laneNetwork(g), make([][]uint8, len(g.Switches()))
	for s := range g.Switches() {
		l.Rows[s] = r.Row(s)
		of := slices.DeleteFunc(slices.Clone(g.DestsOf(s)), func(d graph.Dest) bool { return d.Out == 0 })
		if len(of) == 0 {
			continue // ports without a LID send no packets
		}
		l.Sources = append(l.Sources, int32(s))
		if l.Both {
			of = of[:1] // the first stands for all
		}
		for _, d := range of {
			l.Dests = append(l.Dests, lanes.Dest{Index: int(d.LID), Home: int32(s), End: int32(graph.ToTerminal(d.Terminal))})
		}
	}
}

// serviceLevels are the service levels of layers, by switch and LID.
func serviceLevels(r *routes.Routes, l *lanes.Layering, layer [][]uint8) *routes.SL {
	g := r.Graph()
	if l.Both {
		for _, s := range l.Sources {
			row := make([]uint8, int(r.Top())+1)
			for _, to := range l.Sources {
				first := -1
				for _, d := range g.DestsOf(int(to)) {
					if d.Out > 0 && first < 0 {
						first = int(d.LID)
					}
					if d.Out > 0 {
						row[d.LID] = layer[s][first]
					}
				}
			}
			layer[s] = row
		}
	}
	sl := &routes.SL{Pair: make([][]uint8, len(g.Terminals())), Shared: true}
	for i, t := range g.Terminals() {
		if t.Switch >= 0 && t.Out > 0 {
			sl.Pair[i] = layer[t.Switch]
		}
	}
	return sl
}

// LayeringOf describes the paths of r, tables of an engine whose Repair is KeepLanes.
func LayeringOf(r *routes.Routes) *lanes.Layering {
	e, _ := Named(BasisOf(r).Engine)
	l := e.layering(r.Graph())
	describe(r, l)
	return l
}

// SetLayers gives the paths of r, which l describes, the lanes of layers, by switch and LID.
func SetLayers(r *routes.Routes, l *lanes.Layering, layer [][]uint8) {
	r.SL, r.SL2VL = serviceLevels(r, l, layer), routes.NewSL2VL(r.Graph())
	if !r.SL.Any() {
		r.SL, r.SL2VL = nil, nil
	}
}

// withLanes is r with the lanes of a layering. It is a Precondition that the lanes are enough.
func withLanes(ctx context.Context, r *routes.Routes, l *lanes.Layering, o *Options) (*routes.Routes, error) {
	l.Work = o.search.work * max(1, o.Effort)
	begin := time.Now()
	err := layer(ctx, r, l, o.MaxVLs)
	o.search.took += time.Since(begin)
	o.search.early = o.search.early || l.GaveUp
	if few := new(TooFewLanes); errors.As(err, &few) {
		return nil, &Precondition{Reason: err}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// laneNetwork is g as a network of package lanes.
func laneNetwork(g *graph.Graph) *lanes.Network {
	n := &lanes.Network{}
	for _, c := range g.Channels() {
		n.From, n.To, n.Reverse = append(n.From, c.From), append(n.To, c.To), append(n.Reverse, c.Reverse)
	}
	for s := range len(g.Switches()) + 1 {
		n.Base, n.PortBase = append(n.Base, g.FirstChannel(s)), append(n.PortBase, g.FirstPort(s))
	}
	for s, sw := range g.Switches() {
		for p := range sw.NumPorts() + 1 {
			n.Target = append(n.Target, int32(g.Target(int32(s), uint8(p))))
		}
	}
	return n
}

// shiftedLanes are the lanes of layers, each of which is a service level: the lane of its number
// or, if there are shifts, one of two, by the link that packets came over.
func shiftedLanes(g *graph.Graph, shift []uint8) (*routes.SL2VL, error) {
	v := routes.NewSL2VL(g)
	if shift == nil {
		return v, nil
	}
	var vls [2][16]uint8
	for sl := range 16 {
		vls[0][sl], vls[1][sl] = uint8(min(2*sl, 14)), uint8(min(2*sl+1, 14))
	}
	for s, n := range g.Switches() {
		for in := range n.NumPorts() + 1 {
			of := &vls[0]
			if c := g.Target(int32(s), uint8(in)); c >= 0 && shift[g.Channels()[c].Reverse] > 0 {
				of = &vls[1]
			}
			for out := 1; out <= n.NumPorts(); out++ {
				if err := v.Set(s, uint8(in), uint8(out), *of); err != nil {
					return nil, err
				}
			}
		}
	}
	return v, nil
}
