package engines

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
)

// mixedNets are networks whose links get random rates, each with ten seeds.
func mixedNets() []string {
	return []string{
		"pgft:m=4/4,w=1/2,p=1/3", "pgft:m=6/6,w=1/3,p=1/1", "pgft:m=8/4,w=1/4,p=1/1", "pgft:m=4/4/2,w=1/2/2,p=1/1/2", "fattree:k=4,levels=3",
		"torus:dims=3/3,hosts=2", "mesh:dims=3/3,hosts=2", "hyperx:dims=3/3,hosts=2", "dragonfly:a=3,p=1,h=1", "random:n=12,degree=4,hosts=2",
	}
}

const mixedSeeds = 10

// mixedEngines are the engines that place paths by load, or by digits of destinations.
func mixedEngines() []string {
	return []string{"minhop", "updn", "dnup", "ftree", "sssp", "nue", "dfsssp", "lash"}
}

// randomTables is how many random tables stand for what luck would find.
const randomTables = 10000

// mixedFigure are the largest loads per capacity of an engine's tables on mixed nets, as ratios: to the least
// load that shortest paths can have, to the best of random tables of shortest paths, and to those of the
// same engine where all links are taken as equal.
type mixedFigure struct {
	bound, random, equal means
	worst                float64 // of bound
}

// largestWeighed is the largest load per capacity of the entries of r on g.
func largestWeighed(t testing.TB, g *graph.Graph, r *routes.Routes) float64 {
	t.Helper()
	b, err := traffic.MeasureBalance(t.Context(), r.On(g), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.Weighed == nil {
		return float64(b.Routes.Max)
	}
	return b.Weighed.Max
}

// bestRandom is the smallest largest load of so many random tables of shortest paths.
func bestRandom(g *graph.Graph, h *graph.Hops, n int, random *rand.Rand) float64 {
	costs, endpoints := g.Capacity().Costs(), g.Endpoints()
	load, flow := make([]int64, len(g.Channels())), make([]int64, len(g.Switches()))
	toward := make([]graph.Toward, len(g.Switches()))
	for d := range toward {
		toward[d].Load(h, d, nil)
	}
	best := int64(math.MaxInt64)
	for range n {
		clear(load)
		for d := range toward {
			for _, dest := range g.DestsOf(d) {
				if dest.Out == 0 {
					continue
				}
				copy(flow, endpoints)
				for _, st := range slices.Backward(toward[d].Steps) {
					c := toward[d].Next[int(st.First)+random.IntN(int(st.Last-st.First))]
					load[c] += flow[st.Switch]
					flow[g.ChannelTo(c)] += flow[st.Switch]
				}
			}
		}
		most := int64(0)
		for c, n := range load {
			if costs != nil {
				n *= costs[c]
			}
			most = max(most, n)
		}
		best = min(best, most)
	}
	return g.Capacity().Routes(best)
}

// mixedFigures are the figures of all engines.
func mixedFigures(t testing.TB) map[string]*mixedFigure {
	figures := map[string]*mixedFigure{}
	for _, net := range mixedNets() {
		plain := routingtest.Graph(t, net, graph.BuildOptions{})
		for seed := range uint64(mixedSeeds) {
			g, err := graph.New(routingtest.MixedRates(t, plain.Fabric(), seed), graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := graph.AllHops(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			all := compute(t, g, "sssp", Options{})
			if err := addChoices(t.Context(), all, h); err != nil {
				t.Fatal(err)
			}
			least, err := traffic.MeasureAdaptiveBalance(t.Context(), all, 0, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			luck := bestRandom(g, h, randomTables, rand.New(rand.NewPCG(seed, 1)))
			for _, engine := range mixedEngines() {
				r, err := Compute(t.Context(), g, engine, Options{})
				if p := new(Precondition); errors.As(err, &p) {
					continue
				} else if err != nil {
					t.Fatal(net, err)
				}
				f := figures[engine]
				if f == nil {
					f = &mixedFigure{}
					figures[engine] = f
				}
				load := largestWeighed(t, g, r)
				f.random.add(load / luck)
				f.equal.add(load / largestWeighed(t, g, compute(t, plain, engine, Options{})))
				if least != nil && least.Bound.Max > 0 {
					f.worst = max(f.worst, load/least.Bound.Max)
					f.bound.add(load / least.Bound.Max)
				}
			}
		}
	}
	return figures
}

// TestMixedRates: on 100 nets whose links have random rates, the largest loads per capacity are below those of tables
// that take links as equal, and at most so many times what shortest paths can have if each flow may be divided.
func TestMixedRates(t *testing.T) {
	routingtest.ResultsOnly(t)
	most := map[string]float64{"minhop": 1.23, "updn": 1.48, "dnup": 1.51, "ftree": 1.3, "sssp": 1.25, "nue": 1.2, "dfsssp": 1.24, "lash": 1.34}
	figures := mixedFigures(t)
	for _, engine := range mixedEngines() {
		f := figures[engine]
		t.Logf("%s, %d nets: %.3f times the least load, at most %.3f; %.3f times the best of %d random tables; %.3f times the load of tables for equal links", engine, f.bound.n, f.bound.mean(), f.worst, f.random.mean(), randomTables, f.equal.mean())
		if f.bound.mean() > most[engine] || f.equal.mean() > 0.75 {
			t.Errorf("%s: %.3f times the least load, more than %.2f, or not much less than for equal links", engine, f.bound.mean(), most[engine])
		}
	}
}

// BenchmarkMixedRates reports the figures of TestMixedRates.
func BenchmarkMixedRates(b *testing.B) {
	figures := mixedFigures(b)
	for _, engine := range mixedEngines() {
		f := figures[engine]
		b.Run(engine, func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(f.bound.mean(), "load-mean/least")
			b.ReportMetric(f.worst, "load-worst/least")
			b.ReportMetric(f.random.mean(), "load-mean/random")
			b.ReportMetric(f.equal.mean(), "load-mean/equal")
		})
	}
}

// TestProportion: destinations and parallel links are shared in proportion to rates.
func TestProportion(t *testing.T) {
	for _, x := range []struct {
		rates []float64
		want  string
	}{{[]float64{1}, "[1]"}, {[]float64{2, 1}, "[2 1]"}, {[]float64{100, 50, 100}, "[2 1 2]"}, {[]float64{25, 150. / 11}, "[11 6]"}, {[]float64{400, 8}, "[16 1]"}, {[]float64{3, 3}, "[1 1]"}} {
		if got := fmt.Sprint(graph.Shares(x.rates)); got != x.want {
			t.Errorf("%v: %s, want %s", x.rates, got, x.want)
		}
	}
}
