package traffic_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// pathsOf are the channels of all paths that packets may take; ok: all of them arrive.
func pathsOf(r *routes.Routes, from, to mad.LID) (paths [][]int32, ok bool) {
	g := r.Graph()
	t := &g.Terminals()[g.TerminalByLID(from)]
	ok = true
	var follow func(s int32, in uint8, so []int32)
	follow = func(s int32, in uint8, so []int32) {
		if len(so) > len(g.Channels()) || !ok {
			ok = false // a loop
			return
		}
		p := adaptive.Packet{In: in, LID: to, Transport: adaptive.RC}
		if r.SL != nil {
			p.SL = r.SL.Of(g.TerminalByLID(from), to)
		}
		ports := r.Choice(int(s), p).Ports
		ok = ok && !ports.Empty()
		for out := range ports.All() {
			switch target := g.Target(s, out); {
			case target.IsChannel():
				c := target.Channel()
				follow(g.ChannelTo(c), g.Channels()[c].PeerPort, append(slices.Clone(so), c))
			case target == graph.ToTerminal(int32(g.TerminalByLID(to))):
				paths = append(paths, so)
			default:
				ok = false
			}
		}
	}
	follow(int32(t.Switch), t.Out, nil)
	return paths, ok
}

// oracle is the load of flows by linear programming over all paths, and by counting them.
type oracle struct {
	ideal float64
	worst []float64
	lost  int64
	parts []float64 // by channel: what traffic 1 is of the capacity; nil: 1
}

// part is what traffic 1 is of the capacity of a channel.
func (o *oracle) part(c int) float64 {
	if o.parts == nil {
		return 1
	}
	return o.parts[c]
}

func (o *oracle) solve(t *testing.T, r *routes.Routes, flows []traffic.Flow) {
	t.Helper()
	channels := len(r.Graph().Channels())
	o.worst = make([]float64, channels)
	type variable struct {
		flow int
		path []int32
	}
	var vars []variable
	var amounts []float64
	for _, f := range flows {
		paths, ok := pathsOf(r, f.From, f.To)
		switch {
		case f.From == f.To || f.Traffic == 0:
			continue
		case !ok:
			o.lost++
			continue
		}
		may := make([]bool, channels)
		for _, p := range paths {
			vars = append(vars, variable{len(amounts), p})
			for _, c := range p {
				may[c] = true
			}
		}
		for c := range may {
			if may[c] {
				o.worst[c] += f.Traffic * o.part(c)
			}
		}
		amounts = append(amounts, f.Traffic)
	}
	var used []int // channels
	for c, w := range o.worst {
		if w > 0 {
			used = append(used, c)
		}
	}
	if len(used) == 0 {
		return
	}
	// The parts of paths, the largest load, and for each channel what is left below it.
	n := len(vars) + 1 + len(used)
	a := mat.NewDense(len(amounts)+len(used), n, nil)
	b, cost := make([]float64, len(amounts)+len(used)), make([]float64, n)
	cost[len(vars)] = 1
	for i, v := range vars {
		a.Set(v.flow, i, 1)
		for _, c := range v.path {
			row := len(amounts) + slices.Index(used, int(c))
			a.Set(row, i, a.At(row, i)+amounts[v.flow]*o.part(int(c)))
		}
	}
	for f := range amounts {
		b[f] = 1
	}
	for k := range used {
		a.Set(len(amounts)+k, len(vars), -1)
		a.Set(len(amounts)+k, len(vars)+1+k, 1)
	}
	best, _, err := lp.Simplex(cost, a, b, 1e-9, nil)
	if err != nil {
		o.ideal = math.NaN()
		if !errors.Is(err, lp.ErrBland) && !errors.Is(err, lp.ErrLinSolve) {
			t.Fatal(err)
		}
		return
	}
	o.ideal = best
}

// randomFlows are of random pairs, with random traffic.
func randomFlows(random *rand.Rand, g *graph.Graph) (flows []traffic.Flow) {
	lids := g.LIDs(^graph.ClassSwitch)
	for range 2 + random.IntN(2*len(lids)) {
		flows = append(flows, traffic.Flow{From: lids[random.IntN(len(lids))], To: lids[random.IntN(len(lids))], Traffic: float64(random.IntN(5))})
	}
	return flows
}

// vary gives switches other choices for some LIDs: fewer, or wild ones, and private LFTs.
func vary(random *rand.Rand, r *routes.Routes) {
	g := r.Graph()
	for range random.IntN(12) {
		s := random.IntN(len(g.Switches()))
		dest := g.Dests()[random.IntN(len(g.Dests()))]
		if dest.Out == 0 || g.Terminals()[dest.Terminal].Switch == s {
			continue
		}
		var ports adaptive.Ports
		for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
			if random.IntN(3) == 0 {
				ports.Add(g.Channels()[c].Port)
			}
		}
		if !ports.Empty() {
			r.SetChoices(s, []mad.LID{dest.LID}, ports)
		}
	}
	if random.IntN(2) == 0 {
		return
	}
	s := random.IntN(len(g.Switches()))
	if a := r.Adaptive(s); a != nil && len(a.Tables) == 1 {
		c := a.Clone()
		second := c.Tables[0].Clone()
		for _, d := range g.Dests() {
			if e := second.Entry(d.LID); e.State.Adaptive() && random.IntN(2) == 0 {
				second.Set(d.LID, adaptive.Entry{State: adaptive.Static, Port: e.Port})
			}
		}
		c.Tables = append(c.Tables, second)
		for range g.Switches()[s].NumPorts() + 1 {
			var row [16]uint8
			row[0] = uint8(random.IntN(2))
			c.Private = append(c.Private, row)
		}
		r.SetAdaptive(s, c)
	}
}

// TestAdaptiveOracle: on small nets, the loads agree with a linear program over all paths.
func TestAdaptiveOracle(t *testing.T) {
	t.Parallel()
	nets := []string{
		"ring:n=4,hosts=1", "ring:n=5,hosts=1", "mesh:dims=2/3,hosts=1", "pgft:m=2/2,w=1/2,p=1/2", "pgft:m=2/3,w=1/2,p=1/1", "hyperx:dims=3,hosts=2",
		"torus:dims=3,hosts=1,links=2", "pgft:m=2/3,w=1/2,p=1/1,remove_links=1,seed=2", "random:n=6,degree=3,hosts=1,seed=3", "pgft:m=2/4,w=1/3,p=1/1,remove_links=2,seed=1",
		"dragonfly:a=2,p=1,h=1", "hyperx:dims=2/3,hosts=1,remove_links=1",
	}
	tables := 300
	if testing.Short() {
		tables = 60
	}
	random := rand.New(rand.NewPCG(5, 1))
	solved, better, worse, lost := 0, 0, 0, int64(0)
	for i := range tables {
		net := nets[i%len(nets)]
		g := routingtest.Graph(t, net, graph.BuildOptions{Workers: 1 + i%3})
		r, err := engines.Compute(t.Context(), g, "minhop", engines.Options{Adaptive: true})
		if p := new(engines.Precondition); errors.As(err, &p) {
			r = compute(t, g, "updn", engines.Options{Adaptive: true})
		}
		vary(random, r)
		if !r.HasChoices() {
			continue
		}
		flows := randomFlows(random, g)
		got, err := traffic.MeasureAdaptiveFlows(t.Context(), r, flows, 0)
		if err != nil {
			t.Fatal(err)
		}
		var want oracle
		want.solve(t, r, flows)
		where := fmt.Sprintf("table %d on %s", i, net)
		if got.Lost != want.lost || !slices.Equal(got.WorstLoads, want.worst) {
			t.Fatalf("%s: %d lost, worst loads\n%v, want %d,\n%v", where, got.Lost, got.WorstLoads, want.lost, want.worst)
		}
		most := slices.Max(got.IdealLoads)
		if got.Ideal.Max != most || got.Ideal.Mean != most || got.Worst.Max != slices.Max(got.WorstLoads) || got.Samples != 1 {
			t.Fatalf("%s: %+v", where, got)
		}
		if math.IsNaN(want.ideal) {
			continue
		}
		solved++
		const rounding = 1e-6
		if got.Bound.Max > want.ideal+rounding || most < want.ideal-rounding || most > want.ideal*1.02+rounding {
			t.Errorf("%s: ideal %v, at least %v; linear program: %v", where, most, got.Bound.Max, want.ideal)
		}
		if most < got.Static.Max-0.1 {
			better++
		}
		if got.Worst.Max > got.Static.Max {
			worse++
		}
		lost += got.Lost
	}
	t.Logf("%d of %d solved, %d better and %d worse than static ports, %d flows lost", solved, tables, better, worse, lost)
	if solved < tables*8/10 || better < tables/10 || worse < tables/10 || lost == 0 {
		t.Errorf("%d of %d solved, %d better and %d worse than static ports, %d flows lost: that proves little", solved, tables, better, worse, lost)
	}
}

// TestAdaptivePatterns: each pattern has the loads of its flows as a matrix, by any number of
// workers.
func TestAdaptivePatterns(t *testing.T) {
	t.Parallel()
	for _, net := range []string{"fattree:k=4,levels=3,remove_links=3,seed=4", "dragonfly:a=4,p=2,h=2,remove_links=10%,seed=1"} {
		var first []*traffic.AdaptiveLoad
		for _, workers := range []int{1, 2, 7} {
			g := routingtest.Graph(t, net, graph.BuildOptions{Workers: workers})
			r := compute(t, g, "updn", engines.Options{Adaptive: true})
			order := graph.Order(g)
			var loads []*traffic.AdaptiveLoad
			for _, pattern := range traffic.Patterns() {
				l, err := traffic.MeasureAdaptive(t.Context(), r, traffic.CongestionOptions{Pattern: pattern, Seed: 3, Samples: 25}, 0)
				if err != nil {
					t.Fatal(err)
				}
				loads = append(loads, l)
				var flows []traffic.Flow
				switch pattern {
				case traffic.Ring:
					for i, lid := range order {
						flows = append(flows, traffic.Flow{From: lid, To: order[(i+1)%len(order)], Traffic: 1})
					}
				case traffic.AllToAll:
					for _, from := range order {
						for _, to := range order {
							flows = append(flows, traffic.Flow{From: from, To: to, Traffic: 1})
						}
					}
				default:
					if l.Samples != 5 || l.Static.Max < l.Static.Mean || l.Ideal.Mean > l.Static.Mean*1.02 || l.Worst.Mean < l.Ideal.Mean || l.Bound.Mean > l.Ideal.Mean {
						t.Errorf("%s, %s: %+v", net, pattern, l)
					}
					continue
				}
				m, err := traffic.MeasureAdaptiveFlows(t.Context(), r, flows, 0)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(l, m) {
					t.Errorf("%s, %s: %+v, as a matrix %+v", net, pattern, l, m)
				}
			}
			b, err := traffic.MeasureAdaptiveBalance(t.Context(), r, 0, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			static, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b.Static.Max != float64(static.Routes.Max) || b.Static.At != static.Routes.Busiest {
				t.Errorf("%s: %+v, static %+v", net, b.Static, static.Routes)
			}
			loads = append(loads, b)
			if first == nil {
				first = loads
			}
			if !reflect.DeepEqual(first, loads) {
				t.Errorf("%s: %d workers have other loads", net, workers)
			}
		}
	}
	g := routingtest.Graph(t, "ring:n=4,hosts=1", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{})
	for _, o := range []traffic.CongestionOptions{{Pattern: traffic.Shift}, {Pattern: traffic.AllToAll}} {
		if l, err := traffic.MeasureAdaptive(t.Context(), r, o, 0); l != nil || err != nil {
			t.Errorf("static tables: %+v, %v", l, err)
		}
	}
}
