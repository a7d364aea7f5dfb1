package repair

import (
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// BenchmarkRepair: the graph and the tables after a link failed, in CPU time. Blocks are
// those that change, of the median link and of the one that changes most; least is the
// number that must, by the median, for an entry in them is no next hop any more.
func BenchmarkRepair(b *testing.B) {
	f := routingtest.Topology(b, "ft11664")
	whole, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		b.Fatal(err)
	}
	repair := func(b *testing.B, old *routes.Routes, c int) *routes.Routes {
		cut := whole.ChannelPort(c)
		g, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Tables(b.Context(), old, g)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	for _, name := range []string{"minhop", "ftree", "updn"} {
		b.Run(name, func(b *testing.B) {
			old := compute(b, whole, name, engines.Options{})
			var blocks, least []int
			for c := 0; c < len(whole.Channels()); c += 11801 {
				r := repair(b, old, c)
				blocks, least = append(blocks, r.Diff(old).Blocks), append(least, leastBlocks(old, r))
			}
			slices.Sort(blocks)
			slices.Sort(least)
			before := routingtest.UsedTime(b)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				repair(b, old, 1811)
			}
			b.ReportMetric(float64(routingtest.UsedTime(b)-before)/1e6/float64(b.N), "cpu-ms/op")
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
		x.Load(engines.BasisOf(r).Hops, s)
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
