package repair

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestRepair: after a failure, only entries change whose packets came over the link, and entries
// of switches without CAs that now have to forward packets of others.
func TestRepair(t *testing.T) {
	f := routingtest.Topology(t, "fattree:k=8,levels=3")
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	endpoints := g.Endpoints()
	for _, name := range []string{"minhop", "updn", "dnup", "ftree"} {
		old := compute(t, g, name, engines.Options{})
		for _, c := range []int{3, 40, 200} {
			cut := g.ChannelPort(c)
			less, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
			if err != nil {
				t.Fatal(err)
			}
			kept := compute(t, less, name, engines.Options{Keep: old})
			if v := verified(t, kept, verify.Options{}); !v.OK() || len(v.Detours) > 1 {
				t.Errorf("%s without %s: %+v", name, cut.Label(), v)
			}
			changes := 0
			for s := range g.Switches() {
				for _, d := range g.Dests() {
					if old.Row(s)[d.LID] == kept.Row(s)[d.LID] {
						continue
					}
					changes++
					if !comesOver(old, s, d, c) && (endpoints[s] > 0 || !handsOn(kept, s, d)) {
						t.Errorf("%s without %s: %s need not change LID %d", name, cut.Label(), g.Switches()[s].Label(), d.LID)
					}
				}
			}
			if d := kept.Diff(old); d.Entries != changes || changes == 0 || d.Blocks > 60 {
				t.Errorf("%s without %s: %d entries in %d blocks change, counted %d", name, cut.Label(), d.Entries, d.Blocks, changes)
			}
		}
	}
}

// handsOn says whether the path to d of another switch with CAs passes through s.
func handsOn(r *routes.Routes, s int, d graph.Dest) bool {
	g := r.Graph()
	for from, on := range g.Endpoints() {
		for at := from; on > 0 && at != g.Terminals()[d.Terminal].Switch; {
			if at == s {
				return true
			}
			at = int(g.Channels()[g.Target(int32(at), r.Row(at)[d.LID])].To)
		}
	}
	return false
}

// comesOver says whether the path from switch s to d takes channel c or its reverse.
func comesOver(r *routes.Routes, s int, d graph.Dest, c int) bool {
	g := r.Graph()
	for at := int32(s); at != int32(g.Terminals()[d.Terminal].Switch); {
		next := g.Target(at, r.Row(int(at))[d.LID]).Channel()
		if next == int32(c) || next == g.Channels()[c].Reverse {
			return true
		}
		at = g.Channels()[next].To
	}
	return false
}

// TestNear: entries in force stay where the engine's rule allows it, and balance and verdict are
// as after a full run.
func TestNear(t *testing.T) {
	g, err := graph.New(routingtest.Topology(t, "fattree:k=8,levels=3"), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cut := g.ChannelPort(40)
	less, err := graph.New(g.Fabric(), graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		engine string
		o      engines.Options
		g      *graph.Graph
		old    engines.Options
		keeps  bool
	}{
		{"ftree", engines.Options{}, less, engines.Options{}, true},
		{"ftree", engines.Options{}, g, engines.Options{Policy: engines.Hash}, false}, // d-mod-k is the rule
		{"updn", engines.Options{Policy: engines.LeastLoaded}, g, engines.Options{Policy: engines.RoundRobin, Scope: engines.PerSwitch}, true},
		{"updn", engines.Options{Policy: engines.Hash, Seed: 2}, g, engines.Options{Policy: engines.Hash}, false},
	} {
		old := compute(t, g, "minhop", c.old)
		full := compute(t, c.g, c.engine, c.o)
		near, _, err := ComputeKeeping(t.Context(), c.g, c.engine, c.o, old)
		if err != nil {
			t.Fatal(err)
		}
		few, many := near.Diff(old).Entries, full.Diff(old).Entries
		if kept := few < many; kept != c.keeps || !kept && near.Diff(full).Entries > 0 {
			t.Errorf("%s %+v from %+v: %d entries change, by itself %d; %v", c.engine, c.o, c.old, few, many, near.Notes)
		}
		if !verified(t, near, verify.Options{}).OK() {
			t.Errorf("%s %+v: the verdict is not ok", c.engine, c.o)
		}
		if got, want := balanceOf(t, near), balanceOf(t, full); got > want+want/maxWorse {
			t.Errorf("%s %+v: %d routes on a link, by itself %d", c.engine, c.o, got, want)
		}
	}
}

func balanceOf(t *testing.T, r *routes.Routes) int64 {
	load, err := verify.CountAllRoutes(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return traffic.DistributionOf(load).Max
}

// TestComplete: what a file does not name stays.
func TestComplete(t *testing.T) {
	g, err := graph.New(routingtest.Topology(t, "fattree:k=4"), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := compute(t, g, "minhop", engines.Options{}).UpTo(g.Top() + 1)
	old.WritableRow(0)[g.Top()+1] = 3 // no port has this LID
	given := compute(t, g, "updn", engines.Options{Policy: engines.Hash}).UpTo(old.Top())
	for lid := range given.WritableRow(1) {
		given.WritableRow(1)[lid] = routes.NoPort
	}
	given.WritableRow(2)[1] = routes.NoPort // a hole
	want := given.Clone()
	want.WritableRow(0)[g.Top()+1] = 3
	copy(want.WritableRow(1), old.Row(1))
	given.FillFrom(old)
	if given.Diff(want).Entries > 0 || len(given.ReadNotes) != 1 {
		t.Error(given.Diff(want), given.ReadNotes)
	}
}

// TestRepairChoices: choices that an engine made are made for the network that is left, and those
// set by hand are left out.
func TestRepairChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=8,levels=2", graph.BuildOptions{})
	lost := g.ChannelPort(0)
	less, err := g.Part(func(p *fabric.Port) bool { return p != lost && p != lost.Peer() })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"updn", "ftree", "minhop"} {
		r := compute(t, g, name, engines.Options{Adaptive: true})
		repaired, err := Tables(t.Context(), r, less)
		if err != nil {
			t.Fatal(err)
		}
		if d := repaired.Diff(compute(t, less, name, engines.Options{Adaptive: true, Keep: r.StaticPart()})); d.Choices > 0 || !repaired.HasChoices() {
			t.Errorf("%s: %d entries have other choices than those of the engine", name, d.Choices)
		}
		r.SetChoices(0, []mad.LID{g.DestsOf(1)[0].LID}, adaptive.PortSet(g.Neighbours(0)[0].Ports...))
		repaired, err = Tables(t.Context(), r, less)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(repaired.Notes); repaired.HasChoices() || n == 0 || repaired.Notes[n-1] != "the choices of adaptive routing, which no engine made, were left out" {
			t.Errorf("%s, with choices by hand: %t, notes %q", name, repaired.HasChoices(), repaired.Notes)
		}
	}
}
