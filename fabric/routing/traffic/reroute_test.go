package traffic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// reroutedByHand is the result of CountRerouted, found by following each packet.
func reroutedByHand(t *testing.T, r, old *routes.Routes, before func(*fabric.Port) *fabric.Port) traffic.Rerouted {
	t.Helper()
	var sum traffic.Rerouted
	g, o := r.Graph(), old.Graph()
	for i := range g.Terminals() {
		dst := &g.Terminals()[i]
		f := before(dst.Port)
		if dst.Out == 0 || f == nil || o.TerminalOf(f) < 0 {
			continue
		}
		was := &o.Terminals()[o.TerminalOf(f)]
		for j := range g.Terminals() {
			src := &g.Terminals()[j]
			if i == j || src.Out == 0 || before(src.Port) == nil {
				continue
			}
			at, changed, hops := int32(src.Switch), false, 0
			for ; hops <= len(g.Switches()); hops++ {
				from := before(g.Switches()[at].Port(0))
				p := r.Entry(at, dst.LID)
				changed = changed || from == nil || old.Entry(int32(o.SwitchOf(from.Node())), was.LID) != p
				if out := g.Switches()[at].Port(int(p)); out != nil && out.Peer() != nil && !changed {
					x := before(out)
					changed = x == nil || x.Peer() != before(out.Peer())
				}
				next := g.Target(at, p)
				if next < 0 {
					if next != graph.ToTerminal(int32(i)) {
						hops = len(g.Switches()) + 1
					}
					break
				}
				at = g.ChannelTo(next.Channel())
			}
			if changed {
				sum.Pairs++
				if hops > len(g.Switches()) {
					sum.Broken++
				}
			}
		}
	}
	if sum.Pairs > 0 {
		for of, most := range map[*routes.Routes]*int64{old: &sum.Before, r: &sum.After} {
			loads, err := verify.CountAllRoutes(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			*most = traffic.DistributionOf(loads).Max
		}
	}
	return sum
}

// TestRerouted: pairs and loads agree with following each packet, where few
// switches differ, many, or the fabric does; where packets loop or are dropped; before,
// after, or both.
func TestRerouted(t *testing.T) {
	const spec = "fattree:k=6,levels=3"
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 1))
		of := func(spec string) *routes.Routes {
			return compute(t, routingtest.Graph(t, spec, graph.BuildOptions{}), "minhop", engines.Options{})
		}
		scramble := func(r *routes.Routes, switches, entries int) {
			for range switches {
				row := r.Row(random.IntN(len(r.Graph().Switches())))
				for range entries {
					row[random.IntN(len(row))] = uint8(random.IntN(8)) // 7: it does not have
				}
			}
		}
		now := spec
		switch seed % 6 {
		case 3:
			now = fmt.Sprintf("%s,remove_links=2,seed=%d", spec, seed)
		case 4:
			now = fmt.Sprintf("%s,remove_switches=1,seed=%d", spec, seed)
		}
		old, r := of(spec), of(now)
		switch seed % 6 {
		case 0:
			scramble(r, 2+int(seed/6), 200) // one behind the other
		case 1: // some loop before, and after
			scramble(old, 4, 12)
			scramble(r, 4, 12)
		case 2:
			scramble(r, 30, 5)
		case 5:
			old, r = of(now), of(spec)
			scramble(old, 2, 20)
		}
		before := func(p *fabric.Port) *fabric.Port {
			for _, n := range old.Graph().Fabric().NodeByGUID(p.Node().GUID()) {
				return n.Port(p.Num())
			}
			return nil
		}
		for _, workers := range []int{1, 3} {
			old, r := withWorkers(t, old, workers), withWorkers(t, r, workers)
			got, err := traffic.CountRerouted(context.Background(), r, old, before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(reroutedByHand(t, r, old, before), got); diff != "" {
				t.Errorf("seed %d, %d workers: -want +got\n%s", seed, workers, diff)
			}
		}
	}
}

// withWorkers is a copy of r for so many workers.
func withWorkers(t *testing.T, r *routes.Routes, workers int) *routes.Routes {
	t.Helper()
	g, err := graph.New(r.Graph().Fabric(), graph.BuildOptions{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return r.On(g)
}

// TestReroutedChoices: pairs count if a switch that their packets may pass chooses otherwise.
func TestReroutedChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	old := compute(t, g, "updn", engines.Options{Adaptive: true})
	at := func(name string) int { return routingtest.SwitchNamed(t, g, name) }
	same := func(p *fabric.Port) *fabric.Port { return p }
	for _, x := range []struct {
		name string
		do   func(r *routes.Routes)
		want string
	}{
		{"same", func(*routes.Routes) {}, "0 pairs, 0 broken"},
		// From the four hosts of leaf-1 to one.
		{"a choice less", func(r *routes.Routes) { r.SetChoices(at("leaf-1"), []mad.LID{20}, adaptive.PortSet(5, 6, 8)) }, "4 pairs, 0 broken"},
		// Packets of the 28 hosts elsewhere may pass spine-2.
		{"loops", func(r *routes.Routes) { r.SetChoices(at("spine-2"), []mad.LID{20}, adaptive.PortSet(1, 2)) }, "28 pairs, 28 broken"},
		{"off at a leaf", func(r *routes.Routes) { r.SetAdaptive(at("leaf-1"), nil) }, "112 pairs, 0 broken"},
	} {
		r := old.Clone()
		x.do(r)
		d, err := traffic.CountRerouted(t.Context(), r, old, same)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d pairs, %d broken", d.Pairs, d.Broken); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}
