package routing

import (
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// run measures do on a net, and prints allocations.
func run(b *testing.B, net string, do func(b *testing.B, g *graph.Graph) error) {
	b.Run(net, func(b *testing.B) {
		g := newGraph(b, net, graph.Options{})
		b.ReportAllocs()
		for b.Loop() {
			if err := do(b, g); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkGraph(b *testing.B) {
	for _, net := range []string{"ft11664", "wide"} {
		b.Run(net, func(b *testing.B) {
			f := topology(b, net)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := graph.New(f, graph.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHops(b *testing.B) {
	run(b, "ft11664", func(b *testing.B, g *graph.Graph) error {
		_, err := graph.AllHops(b.Context(), g)
		return err
	})
}

func BenchmarkUpDown(b *testing.B) {
	run(b, "ft11664", func(b *testing.B, g *graph.Graph) error {
		_, err := graph.UpDown(b.Context(), g, graph.FindLevels(g).Ranks())
		return err
	})
}

func BenchmarkEngine(b *testing.B) {
	for _, x := range []struct {
		engine, policy string
		nets           []string
	}{
		{"minhop", "", []string{"ft11664", "ft11664-400"}},
		{"minhop", LeastLoaded, []string{"ft11664"}},
		{"updn", "", []string{"ft11664", "ft11664-400"}},
		{"dnup", "", []string{"ft11664", "ft11664-400"}},
		{"ftree", "", []string{"ft11664", "ft11664-400", "wide"}},
		{"sssp", "", []string{"ft11664"}},
		{"nue", "", []string{"ft5832", "ft11664", "dragonfly:a=8,p=4,h=4"}},
		{"dfsssp", "", []string{"ft5832", "ft11664", "dragonfly:a=8,p=4,h=4"}},
		{"lash", "", []string{"ft5832", "dragonfly:a=8,p=4,h=4", "torus:dims=16/16/16,hosts=1"}},
		{"torus-2qos", "", []string{"torus:dims=8/8/8,hosts=1", "torus:dims=16/16/16,hosts=1"}},
	} {
		name := x.engine
		if x.policy != "" {
			name += "-" + x.policy
		}
		b.Run(name, func(b *testing.B) {
			for _, net := range x.nets {
				run(b, net, func(b *testing.B, g *graph.Graph) error {
					_, err := Compute(b.Context(), g, x.engine, Options{Policy: x.policy})
					return err
				})
			}
		})
	}
}

func benchmarkRoutes(b *testing.B, do func(b *testing.B, r *routes.Routes) error) {
	for _, net := range []string{"ft1728", "ft11664"} {
		b.Run(net, func(b *testing.B) {
			r := compute(b, newGraph(b, net, graph.Options{}), "ftree", Options{})
			b.ReportAllocs()
			for b.Loop() {
				if err := do(b, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerify: reachability, hops, detours and credit loops.
func BenchmarkVerify(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		_, err := VerifyTables(b.Context(), r, VerifyOptions{})
		return err
	})
}

// BenchmarkVerifyLanes: the same, where paths are on eight virtual lanes.
func BenchmarkVerifyLanes(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		if r.SL == nil {
			r.SL, r.SL2VL = &routes.SL{Pair: make([][]uint8, len(r.Graph().Terminals()))}, routes.NewSL2VL(r.Graph())
			for i, t := range r.Graph().Terminals() {
				r.SL.Pair[i] = make([]uint8, int(r.Top())+1)
				for lid := range r.SL.Pair[i] {
					r.SL.Pair[i][lid] = uint8(lid*7+max(0, t.Switch)) % 8
				}
			}
			b.ResetTimer()
		}
		_, err := VerifyTables(b.Context(), r, VerifyOptions{})
		return err
	})
}

// BenchmarkVerifyAdaptive: under any choice among minimal ports.
func BenchmarkVerifyAdaptive(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		_, err := VerifyTables(b.Context(), r, VerifyOptions{Adaptive: AdaptiveMinimal})
		return err
	})
}

// BenchmarkDisjointness: of the paths to the two LIDs of each port, alone; and ftree with
// two LIDs for each port.
func BenchmarkDisjointness(b *testing.B) {
	g, err := graph.New(withLMC(b, topology(b, "ft11664"), 1), graph.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := compute(b, g, "ftree", Options{})
	b.Run("ft11664", func(b *testing.B) {
		e := SelectEndpoints(g, 0)
		for b.Loop() {
			if _, err := measureDisjointness(b.Context(), r, e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ftree/ft11664", func(b *testing.B) {
		for b.Loop() {
			compute(b, g, "ftree", Options{})
		}
	})
}

// BenchmarkCreditLoops: these alone.
func BenchmarkCreditLoops(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		d, err := dependencies(b.Context(), r, SelectEndpoints(r.Graph(), 0))
		if err == nil {
			d.Cycle()
		}
		return err
	})
}

func BenchmarkBalance(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		_, err := MeasureBalance(b.Context(), r, 0, nil)
		return err
	})
}

// BenchmarkPermutations: a hundred.
func BenchmarkPermutations(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		_, err := MeasureCongestion(b.Context(), r, CongestionOptions{Pattern: Permutation, Samples: 100})
		return err
	})
}

func BenchmarkDiff(b *testing.B) {
	benchmarkRoutes(b, func(b *testing.B, r *routes.Routes) error {
		r.Diff(r)
		return nil
	})
}

// BenchmarkRepair: the graph and the tables after a link failed, in CPU time. Blocks are
// those that change, of the median link and of the one that changes most; least is the
// number that must, by the median, for an entry in them is no next hop any more.
func BenchmarkRepair(b *testing.B) {
	f := topology(b, "ft11664")
	whole, err := graph.New(f, graph.Options{})
	if err != nil {
		b.Fatal(err)
	}
	repair := func(b *testing.B, old *routes.Routes, c int) *routes.Routes {
		cut := whole.ChannelPort(c)
		g, err := graph.New(f, graph.Options{Exclude: func(p *fabric.Port) bool { return p == cut }})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Repair(b.Context(), old, g)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	for _, engine := range []string{"minhop", "ftree", "updn"} {
		b.Run(engine, func(b *testing.B) {
			old := compute(b, whole, engine, Options{})
			var blocks, least []int
			for c := 0; c < len(whole.Channels()); c += 11801 {
				r := repair(b, old, c)
				blocks, least = append(blocks, r.Diff(old).Blocks), append(least, leastBlocks(old, r))
			}
			slices.Sort(blocks)
			slices.Sort(least)
			before := usedTime(b)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				repair(b, old, 1811)
			}
			b.ReportMetric(float64(usedTime(b)-before)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(blocks[len(blocks)/2]), "blocks")
			b.ReportMetric(float64(blocks[len(blocks)-1]), "blocks-most")
			b.ReportMetric(float64(least[len(least)/2]), "blocks-least")
		})
	}
}

// leastBlocks counts the blocks of old in which some entry is no next hop in the graph
// of r, by its distances, or leads nowhere where there is none.
func leastBlocks(old, r *routes.Routes) int {
	g, n := r.Graph(), 0
	var x graph.NextHops
	for s := range g.Switches() {
		blocks := map[int]bool{}
		x.Load(basisOf(r).hops, s)
		for d := range g.Switches() {
			next, _ := x.Ports(d)
			for _, dest := range g.DestsOf(d) {
				port := old.Row(s).Port(dest.LID)
				if s != d && (len(next) > 0 && !slices.Contains(next, port) || len(next) == 0 && g.Target(int32(s), port) < 0) {
					blocks[int(dest.LID)/mad.LFTBlock] = true
				}
			}
		}
		n += len(blocks)
	}
	return n
}
