package repair

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestRepairLateLIDs: CAs get LIDs after the tables were made, on switches without others too. Entries for
// others, of a known engine, and the levels of their paths stay, and there is no credit loop.
func TestRepairLateLIDs(t *testing.T) {
	for seed := range uint64(6) {
		f := damaged(t, "torus:dims=5/5,hosts=1").f
		random := rand.New(rand.NewPCG(seed, 1))
		late, few := lateCAs(f, random, 0.3), lateCAs(f, random, 0.1)
		for _, x := range []struct {
			engine  string
			maxVLs  int
			unknown bool
		}{{"dfsssp", 0, false}, {"nue", 1, true}, {"nue", 3, true}} {
			r := compute(t, withoutLIDs(t, f, late), x.engine, engines.Options{MaxVLs: x.maxVLs})
			if x.unknown {
				r = bySource(r)
			}
			still := maps.Clone(late)
			for i := range late {
				still[i] = x.unknown && few[i] || !x.unknown && i != slices.Min(slices.Collect(maps.Keys(late)))
			}
			got, err := Tables(t.Context(), r, withoutLIDs(t, f, still))
			if err != nil {
				t.Fatal(err)
			}
			if v := verified(t, got, verify.Options{}); !v.Acyclic || !x.unknown && v.Unreachable > 0 {
				t.Errorf("seed %d, %s: unreachable %d, acyclic %v, %q", seed, x.engine, v.Unreachable, v.Acyclic, got.Notes)
			}
			for _, d := range r.Graph().Dests() {
				for s := range r.Graph().Switches() {
					if !x.unknown && got.Row(s)[d.LID] != r.Row(s)[d.LID] {
						t.Fatalf("seed %d, %s: switch %d has another entry for LID %d", seed, x.engine, s, d.LID)
					}
				}
				for i, src := range r.Graph().Terminals() {
					if now := got.Graph().TerminalByLID(src.LID); src.Count > 0 && got.SL.Of(now, d.LID) != r.SL.Of(i, d.LID) {
						t.Fatalf("seed %d, %s: another level from LID %d to %d", seed, x.engine, src.LID, d.LID)
					}
				}
			}
		}
	}
}

// TestRepairStale: on a ring of four, packets go clockwise to three hosts and to one that is lost, or over
// a link that is. When it is back, its entries close a credit loop with the others, and get replaced.
func TestRepairStale(t *testing.T) {
	for _, lost := range []string{"host", "link"} {
		whole := damaged(t, "ring:n=4,hosts=2")
		g := whole.graph(t)
		at := func(i int) int { return routingtest.SwitchNamed(t, g, "switch-"+string(rune('1'+i%4))) }
		r := routes.New(g, 0)
		for i := range 4 {
			for _, d := range g.DestsOf(at(i)) {
				r.Row(at(i))[d.LID] = d.Out
				for back := 1; back < 4; back++ {
					r.Row(at(i + 4 - back))[d.LID] = portTo(g, at(i+4-back), at(i+5-back))
				}
				r.Row(at(i + 1))[d.LID] = portTo(g, at(i+1), at(i)) // which is one link the other way
			}
		}
		dests := g.DestsOf(at(0))
		r.Row(at(2))[dests[2].LID] = portTo(g, at(2), at(1)) // so only packets to the first host close the loop
		if v := verified(t, r, verify.Options{}); v.Acyclic {
			t.Fatal("no credit loop")
		}
		d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
		for i := range whole.f.Ports() {
			p := &whole.f.Ports()[i]
			if p.Node().GUID() == g.Switches()[at(3)].GUID() && p.Peer() != nil && p.Peer().Node().GUID() == g.Switches()[at(0)].GUID() {
				d.ports[p] = lost == "link"
			}
			if p.LID() == dests[1].LID {
				d.nodes[p.Node()] = lost == "host"
			}
		}
		before := r.On(d.graph(t))
		if v := verified(t, before, verify.Options{}); !v.Acyclic {
			t.Fatal(lost, ": a credit loop at once")
		}
		got, err := Tables(t.Context(), before, g)
		if err != nil {
			t.Fatal(err)
		}
		isWhole(t, lost, got)
	}
}

// portTo is the port from a switch to another.
func portTo(g *graph.Graph, from, to int) uint8 {
	for c := g.FirstChannel(from); c < g.FirstChannel(from+1); c++ {
		if int(g.ChannelTo(c)) == to {
			return g.Channels()[c].Port
		}
	}
	return routes.NoPort
}
