package verify_test

import (
	"math/rand/v2"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestFailEachLink: each link taken out, tables as they are; and whether any
// tables would help.
func TestFailEachLink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	cuts := 0
	for i, spec := range routingtest.SmallNets() {
		if i%3 != 0 {
			continue
		}
		f := routingtest.Topology(t, spec)
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := compute(t, g, "sssp", engines.Options{})
		before := routingtest.Verified(t, r, verify.Options{})
		list, _, err := verify.FailEachLink(t.Context(), r, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(g.Channels())/2 {
			t.Errorf("%s: %d links, want %d", spec, len(list), len(g.Channels())/2)
		}
		for _, l := range list {
			less, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == l.Port }})
			if err != nil {
				t.Fatal(err)
			}
			after := routingtest.Verified(t, r.On(less), verify.Options{})
			best := routingtest.Verified(t, compute(t, less, "sssp", engines.Options{}), verify.Options{})
			if after.Unreachable-before.Unreachable != l.Pairs || best.Unreachable-before.Unreachable != l.Lost || l.Cuts && l.Lost == 0 != (best.Unreachable == before.Unreachable) {
				t.Errorf("%s without %s: %+v; %d pairs are lost, %d for good", spec, l.Port.Label(), l, after.Unreachable-before.Unreachable, best.Unreachable-before.Unreachable)
			}
			if l.Cuts {
				cuts++
			}
		}
	}
	if cuts == 0 {
		t.Error("no link cuts anything: that proves little")
	}
}

// lostBy is how many pairs lose packets without a link, by following each pair for itself.
func lostBy(r *routes.Routes, port *graph.Channel) (lost int64) {
	g := r.Graph()
	e := verify.SelectEndpoints(g, 0)
	failed := func(s int32, p uint8) bool {
		return s == port.From && p == port.Port || s == port.To && p == port.PeerPort
	}
	for lid := range mad.LID(len(e.Wanted)) {
		if !e.Wanted[lid] {
			continue
		}
		home := int32(g.Terminals()[g.TerminalByLID(lid)].Switch)
		var loses func(s int32) bool
		loses = func(s int32) bool {
			if s == home {
				return false
			}
			choice := adaptive.Single(r.Entry(s, lid))
			before := choice
			if a := r.Adaptive(int(s)); a.Active() {
				before = a.Choose(adaptive.Packet{LID: lid, Transport: adaptive.RC}, routes.Down(g, int(s)))
				choice = a.Choose(adaptive.Packet{LID: lid, Transport: adaptive.RC}, func(p uint8) bool { return failed(s, p) || routes.Down(g, int(s))(p) })
				if before.Ports.Union(choice.Ports) != before.Ports {
					return true // by fast recovery, of a static entry
				}
			}
			for p := range choice.Ports.All() {
				if failed(s, p) {
					return true
				}
				if target := g.Target(s, p); target.IsChannel() && loses(g.ChannelTo(target.Channel())) {
					return true
				}
			}
			return choice.Ports.Empty() && !before.Ports.Empty()
		}
		for _, s := range e.Sources {
			if s != home && loses(s) {
				lost += int64(e.On[s])
			}
		}
	}
	return lost
}

// TestFailEachLinkChoices: the pairs that lose packets agree with a search pair by pair, with
// groups of several ports and of one, static entries and static switches.
func TestFailEachLinkChoices(t *testing.T) {
	fewer, judged := 0, 0
	for i, x := range [][2]string{{"fattree:k=4", "updn"}, {"fattree:k=4,levels=3", "ftree"}, {"pgft:m=4/4,w=1/2,p=1/3", "updn"}, {"fattree:k=8,levels=2,remove_links=10%,seed=1", "updn"}, {"dragonfly:a=4,p=2,h=1", "updn"}, {"torus:dims=5,hosts=1,links=2", "updn"}} {
		g := routingtest.Graph(t, x[0], graph.BuildOptions{})
		whole := compute(t, g, x[1], engines.Options{Adaptive: true})
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		some := whole.Clone()
		for s := range g.Switches() {
			switch a := some.Adaptive(s); {
			case a == nil:
			case rng.IntN(4) == 0:
				some.SetAdaptive(s, nil)
			case rng.IntN(3) == 0:
				a = a.Clone()
				a.Tables[0] = a.Tables[0].WithPorts(append([]uint8(nil), some.Row(s)...)).Clone()
				a.FastRecovery = rng.IntN(2) == 0
				for lid := range a.Tables[0].Top() + 1 {
					if rng.IntN(3) == 0 {
						a.Tables[0].SetChoice(lid, adaptive.State(rng.IntN(4)), a.Tables[0].Entry(lid).Group)
					}
				}
				some.SetAdaptive(s, a)
			}
		}
		single := whole.Clone() // groups of one port instead of static entries
		for s := range g.Switches() {
			if a := single.Adaptive(s); a.Active() {
				a = a.Clone()
				a.Tables[0] = a.Tables[0].WithPorts(append([]uint8(nil), single.Row(s)...)).Clone()
				for lid := range a.Tables[0].Top() + 1 {
					if e := a.Tables[0].Entry(lid); e.State == adaptive.Static && g.Target(int32(s), e.Port).IsChannel() {
						group, err := a.Tables[0].Groups.Place(adaptive.PortSet(e.Port))
						if err != nil {
							t.Fatal(err)
						}
						a.Tables[0].SetChoice(lid, adaptive.Bounded, uint16(group))
					}
				}
				single.SetAdaptive(s, a)
			}
		}
		for _, r := range []*routes.Routes{whole, some, single} {
			list, byChoice, err := verify.FailEachLink(t.Context(), r, 0)
			if err == nil && !byChoice && r == some {
				continue // entries of random states make loops
			}
			judged++
			if err != nil || !byChoice {
				t.Fatalf("%s: %v, by choice: %v", x[0], err, byChoice)
			}
			n := 0
			for c := range g.Channels() {
				if int(g.Channels()[c].Reverse) < c {
					continue
				}
				got, want := list[n].Pairs, lostBy(r, &g.Channels()[c])
				if got != want {
					t.Errorf("%s without %s: %d pairs lose packets, want %d", x[0], list[n].Port.Label(), got, want)
				}
				if got == 0 {
					fewer++
				}
				n++
			}
		}
	}
	if fewer == 0 || judged < 10 {
		t.Errorf("%d links lose no packets, %d tables judged: that proves little", fewer, judged)
	}
	// Where choices are unknown, static ports are judged.
	g := routingtest.Graph(t, "fattree:k=4", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	a := r.Adaptive(0).Clone()
	a.Unknown = "no answer"
	r.SetAdaptive(0, a)
	if _, byChoice, err := verify.FailEachLink(t.Context(), r, 0); err != nil || byChoice {
		t.Errorf("unknown choices: %v, by choice: %v", err, byChoice)
	}
}
