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

// BenchmarkRepair measures the graph and the tables after a link failed, in CPU time. Blocks is
// the number of blocks that change, for the median link and for the link that changes most; least
// is the number that must change, by the median, because an entry in them is no longer a next hop.
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

// unavoidable reports that no shortest paths of the pairs that must change fit on the lanes of r beside
// the paths that stay: some pair has none, after those were placed that have one way only, on one lane
// only. False proves nothing.
func unavoidable(t *testing.T, r *routes.Routes, g *graph.Graph) bool {
	t.Helper()
	x, err := newLayered(t.Context(), r, g)
	if err != nil || !x.readLayers(r) {
		t.Fatal("no lanes of an engine", err)
	}
	if err := x.findBroken(t.Context(), r.Graph()); err != nil {
		t.Fatal(err)
	}
	if x.p, err = x.l.Place(t.Context(), x.layer, x.more, x.used); err != nil {
		t.Fatal(err)
	}
	x.load = make([]int64, len(g.Channels()))
	units, seen := map[int]*unit{}, map[pair]bool{}
	var change []pair
	for i := range x.units {
		u := &x.units[i]
		if u.at < 0 {
			continue
		}
		units[u.at], u.affected = u, make([]bool, len(g.Switches()))
		for _, s := range u.broken {
			u.affected[s] = true
		}
		x.nearest(u.home)
		for _, s := range x.order {
			if int(s) != u.home && !u.affected[s] {
				u.affected[s] = u.affected[x.leadsTo(int(s), x.portOf(u, s))]
			}
			if k := x.pairOf(s, u.at); u.affected[s] && x.place[s] >= 0 && !seen[k] {
				seen[k] = true
				change = append(change, k)
			}
		}
	}
	affected := func(s int32, to int) bool { return units[to] != nil && units[to].affected[s] }
	for _, k := range change { // nothing of them stays
		for _, k := range x.both(k) {
			if !affected(k.from, k.to) {
				trail, _ := x.p.Trail(nil, k.from, k.to)
				x.p.Remove(int(x.layer[k.from][x.l.Dests[k.to].Index]), trail)
			}
		}
	}
	// each calls found with each choice of entries on the ways of pairs, until it returns false.
	var each func(ways []pair, found func() bool) bool
	each = func(ways []pair, found func() bool) bool {
		if len(ways) == 0 {
			return found()
		}
		k, rest := ways[0], ways[1:]
		for k.from != x.l.Dests[k.to].Home && !affected(k.from, k.to) {
			k.from = x.leadsTo(int(k.from), x.t.Row(int(k.from))[x.l.Dests[k.to].Index])
		}
		if k.from == x.l.Dests[k.to].Home {
			return each(rest, found)
		}
		u := units[k.to]
		before := entries{u.dests, k.from, x.column(u, k.from)}
		defer x.putBack(before)
		for _, ports := range x.candidates(u, k.from) {
			x.clear(u, k.from)
			x.set(int(k.from), u, ports)
			if !each(append([]pair{{from: x.leadsTo(int(k.from), ports[0]), to: k.to}}, rest...), found) {
				return false
			}
		}
		return true
	}
	for placed := true; placed; {
		placed = false
		var rest []pair
		for _, k := range change {
			var fits []path
			each(x.both(k), func() bool {
				trail := x.trailOf(k)
				for layer := range x.p.Layers() {
					if len(fits) < 2 && x.p.Add(layer, trail) {
						x.p.Remove(layer, trail)
						fits = append(fits, path{layer: layer, trail: trail})
					}
				}
				return len(fits) < 2
			})
			switch len(fits) {
			case 0:
				return true
			case 1:
				placed = x.p.Add(fits[0].layer, fits[0].trail)
			default:
				rest = append(rest, k)
			}
		}
		change = rest
	}
	return false
}
