package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestKeepUnused: what stays of the old tables reroutes no packets between hosts, and lets no
// switch lose its path; where no packets are rerouted, everything stays.
func TestKeepUnused(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	self := func(p *fabric.Port) *fabric.Port { return p }
	whole, part := 0, 0
	for range 120 {
		n := 4 + 2*random.IntN(4)
		f := routingtest.Topology(t, fmt.Sprintf("random:n=%d,degree=3,hosts=%d,remove_links=%d,seed=%d", n, 1+random.IntN(2), random.IntN(3), random.IntN(1<<20)))
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"minhop", "updn", "dnup", "dfsssp"}
		old, r := compute(t, g, names[random.IntN(len(names))], engines.Options{}), compute(t, g, names[random.IntN(len(names))], engines.Options{})
		if random.IntN(3) == 0 { // without the paths of a switch to another
			old.EditRow(random.IntN(n))[g.Terminals()[g.TerminalOf(g.Switches()[random.IntN(n)].Port(0))].LID] = mad.NoPort
		}
		want := r.Clone()
		stay, err := traffic.KeepUnused(t.Context(), r, old)
		if err != nil {
			t.Fatal(err)
		}
		if r.SL2VL != nil {
			if stay > 0 {
				t.Errorf("%d entries of tables with lanes stay", stay)
			}
			continue
		}
		if d, err := traffic.CountRerouted(t.Context(), r, want, self); err != nil || d.Pairs > 0 {
			t.Errorf("entries that stay reroute %d pairs, %v", d.Pairs, err)
		}
		if now, then := unreachable(t, r), unreachable(t, want); now > then {
			t.Errorf("switches without a path: %d, and %d by the new tables", now, then)
		}
		if differ := want.Diff(old).Entries - r.Diff(old).Entries; differ != stay {
			t.Errorf("%d entries stay, want %d", differ, stay)
		}
		d, err := traffic.CountRerouted(t.Context(), want, old, self)
		if err != nil {
			t.Fatal(err)
		}
		if left := r.Diff(old).Entries; d.Pairs == 0 && unreachable(t, old) == 0 {
			if whole++; left > 0 {
				t.Errorf("no packets are rerouted, and %d entries change", left)
			}
		} else if stay > 0 {
			part++
		}
	}
	if whole < 3 || part < 10 {
		t.Errorf("all entries stay in %d cases, some in %d", whole, part)
	}
}

func unreachable(t *testing.T, r *routes.Routes) int64 {
	t.Helper()
	v, err := verify.Tables(t.Context(), r, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return int64(v.UnreachableSwitches())
}
