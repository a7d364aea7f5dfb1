package engines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// paperFigure is a network of a paper, the engine of ours that has its paths, and what the paper
// says of them.
type paperFigure struct {
	paper     string // short, as the name of a benchmark
	net       string
	engine    string
	maxVLs    int
	published figure // 0: no such figure
}

// paperFigures is the only list of them. The place of a figure stands beside it; networks without one
// are the paper's, for comparison. These abstracts give no figure of a named network: Domke, Hoefler,
// Nagel, "Deadlock-free oblivious routing for arbitrary topologies" (2011), and Ahn et al., "HyperX:
// topology, routing, and packaging of efficient large-scale networks" (2009). benchNets has our figures
// beside the figures of OpenSM's dfsssp and nue, which are by the authors.
func paperFigures() []paperFigure {
	return []paperFigure{
		// Gliksberg et al., "High-quality fault-resiliency in fat-tree networks", 2022 (arXiv 2211.11817),
		// abstract: Dmodc routes PGFTs of tens of thousands of nodes again in less than a second, and its
		// shifts meet nearly as little congestion as can be up to 1 % of random degradation.
		{"Dmodc2022", "wide", "ftree", 0, figure{CPU: 1000}},
		{"Dmodc2022", "pgft:m=18/18/36,w=1/18/18,p=1/1/1,remove_links=1%", "ftree", 0, figure{CPU: 1000}},
		{"Dmodc2022", "pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=1%", "ftree", 0, figure{CPU: 1000}},
		// Zahavi, Johnson, Kerbyson, Lang, "Optimized InfiniBand fat-tree routing for shift all-to-all
		// communication patterns", 2010, abstract: shifts meet no contention on a whole tree.
		{"Zahavi2010", "pgft:m=18/36,w=1/18,p=1/1", "ftree", 0, figure{Shift: 1}},
		{"Zahavi2010", "pgft:m=12/12/12,w=1/12/12,p=1/1/1", "ftree", 0, figure{Shift: 1}},
		// Geoffray, Hoefler, "Adaptive routing strategies for modern high performance networks", 2008,
		// abstract: statically routed, a Clos network of 512 nodes without blocking has down to 38 % of its
		// bisection bandwidth. It is of crossbars of 32 ports.
		{"Geoffray2008", "pgft:m=16/32,w=1/16,p=1/1", "minhop", 0, figure{Bisection: 0.38}},
		{"Geoffray2008", "pgft:m=16/32,w=1/16,p=1/1", "sssp", 0, figure{Bisection: 0.38}},
		// Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", 2008. Of BookSim
		// 2, the simulator of the same group, examples/dragonflyconfig has p=4 (so a=8, h=4, 33 groups) and
		// minimal paths on 2 virtual channels.
		{"Dragonfly2008", "dragonfly:a=8,p=4,h=4", "dragonfly", 0, figure{Lanes: 2}},
		{"Dragonfly2008", "dragonfly:a=8,p=4,h=4", "dfsssp", 2, figure{Lanes: 2}},
		{"Dragonfly2008", "dragonfly:a=8,p=4,h=4", "nue", 2, figure{Lanes: 2}},
		// Domke, Hoefler, Matsuoka, "Routing on the dependency graph: a new approach to deadlock-free
		// high-performance routing", 2016, abstract: Nue never exceeds the number of virtual channels that it
		// is given. The abstract names no network. These are of its evaluation, by parameters that could not
		// be checked with the text of the paper; its dragonfly has 525 cables between groups, this one 540.
		{"Nue2016", "random:n=125,degree=16,hosts=8", "nue", 1, figure{Lanes: 1}},
		{"Nue2016", "random:n=125,degree=16,hosts=8", "nue", 8, figure{Lanes: 8}},
		{"Nue2016", "torus:dims=6/5/5,hosts=7,links=4", "nue", 1, figure{Lanes: 1}},
		{"Nue2016", "torus:dims=6/5/5,hosts=7,links=4", "nue", 8, figure{Lanes: 8}},
		{"Nue2016", "pgft:m=11/10/10,w=1/10/10,p=1/1/1", "nue", 1, figure{Lanes: 1}},
		{"Nue2016", "pgft:m=11/10/10,w=1/10/10,p=1/1/1", "nue", 8, figure{Lanes: 8}},
		{"Nue2016", "dragonfly:a=12,p=6,h=6,groups=15", "nue", 1, figure{Lanes: 1}},
		{"Nue2016", "dragonfly:a=12,p=6,h=6,groups=15", "nue", 8, figure{Lanes: 8}},
		// Domke et al., "HyperX topology: first at-scale implementation and comparison to the fat-tree",
		// 2019, abstract and figure 1: a HyperX of 12x8 switches with 672 nodes, routed by dfsssp.
		{"HyperX2019", "hyperx:dims=12/8,hosts=7", "dfsssp", 0, figure{}},
		{"HyperX2019", "hyperx:dims=12/8,hosts=7", "nue", 8, figure{}},
	}
}

// BenchmarkPapers prints our figures of paperFigures beside the published ones.
func BenchmarkPapers(b *testing.B) {
	graphs := map[string]*graph.Graph{}
	for _, x := range paperFigures() {
		b.Run(fmt.Sprintf("%s/%s/%d/", x.paper, x.engine, x.maxVLs)+strings.ReplaceAll(x.net, "/", "x"), func(b *testing.B) {
			if graphs[x.net] == nil {
				graphs[x.net] = routingtest.Graph(b, x.net, graph.BuildOptions{})
			}
			before := routingtest.UsedTime(b)
			for b.Loop() {
				compute(b, graphs[x.net], x.engine, Options{MaxVLs: x.maxVLs})
			}
			used := (routingtest.UsedTime(b) - before) / time.Duration(b.N)
			ours := x.ours(b, graphs[x.net])
			for _, m := range []struct {
				name            string
				ours, published float64
			}{
				{"load", float64(ours.Largest), float64(x.published.Largest)},
				{"shift", ours.Shift, x.published.Shift},
				{"bisection", ours.Bisection, x.published.Bisection},
				{"lanes", float64(ours.Lanes), float64(x.published.Lanes)},
				{"cpu-ms", used.Seconds() * 1e3, float64(x.published.CPU)},
			} {
				b.ReportMetric(m.ours, m.name)
				if m.published > 0 {
					b.ReportMetric(m.published, "published-"+m.name)
				}
			}
		})
	}
}

// ours are our figures.
func (x *paperFigure) ours(t testing.TB, g *graph.Graph) figure {
	t.Helper()
	r := compute(t, g, x.engine, Options{MaxVLs: x.maxVLs})
	f := figure{Net: x.net, Engine: x.engine}
	f.measure(t, r)
	f.Lanes = r.Lanes()
	return f
}

// TestPapers: where it takes little time, as on trees, bandwidths are at least the published ones, and no
// more lanes are used.
func TestPapers(t *testing.T) {
	routingtest.ResultsOnly(t)
	compared := 0
	for _, x := range paperFigures() {
		want := x.published
		searches := (x.engine == "nue" || x.engine == "dfsssp") && !strings.HasPrefix(x.net, "pgft:")
		if want.CPU > 0 || searches || want == (figure{}) {
			continue
		}
		got := x.ours(t, routingtest.Graph(t, x.net, graph.BuildOptions{}))
		if got.Result != "ok" || got.Shift < want.Shift || got.Bisection < want.Bisection || want.Lanes > 0 && got.Lanes > want.Lanes {
			t.Errorf("%s: %s on %s: %+v, published %+v", x.paper, x.engine, x.net, got, want)
		}
		compared++
	}
	if compared < 7 {
		t.Errorf("%d rows compared", compared)
	}
}
