package routing

import (
	"testing"

	"fabsh/fabric"
)

// TestRepair: after a failure, only entries change whose packets came over the
// link; and those of switches without CAs that now have to hand on others'.
func TestRepair(t *testing.T) {
	f := topology(t, "fattree:k=8,levels=3")
	g, err := NewGraph(f, GraphOptions{})
	if err != nil {
		t.Fatal(err)
	}
	endpoints := g.endpointsOn()
	for _, engine := range []string{"minhop", "updn", "dnup", "ftree"} {
		old := compute(t, g, engine, Options{})
		for _, c := range []int{3, 40, 200} {
			cut := g.ChannelPort(c)
			less, err := NewGraph(f, GraphOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
			if err != nil {
				t.Fatal(err)
			}
			kept := compute(t, less, engine, Options{Keep: old})
			if v := verify(t, kept, VerifyOptions{}); !v.OK() || len(v.Detours) > 1 {
				t.Errorf("%s without %s: %+v", engine, cut.Label(), v)
			}
			changes := 0
			for s := range g.switches {
				for _, d := range g.dests {
					if old.Row(s)[d.lid] == kept.Row(s)[d.lid] {
						continue
					}
					changes++
					if !comesOver(old, s, d, c) && (endpoints[s] > 0 || !handsOn(kept, s, d)) {
						t.Errorf("%s without %s: %s need not change LID %d", engine, cut.Label(), g.switches[s].Label(), d.lid)
					}
				}
			}
			if d := kept.Diff(old); d.Entries != changes || changes == 0 || d.Blocks > 60 {
				t.Errorf("%s without %s: %d entries in %d blocks change, counted %d", engine, cut.Label(), d.Entries, d.Blocks, changes)
			}
		}
	}
}

// handsOn says whether the path to d of another switch with CAs passes through s.
func handsOn(r *Routes, s int, d dest) bool {
	g := r.graph
	for from, on := range g.endpointsOn() {
		for at := from; on > 0 && at != g.terminals[d.terminal].Switch; {
			if at == s {
				return true
			}
			at = int(g.channels[g.target(int32(at), r.Row(at)[d.lid])].To)
		}
	}
	return false
}

// comesOver says whether the path from switch s to d takes channel c or its reverse.
func comesOver(r *Routes, s int, d dest, c int) bool {
	g := r.graph
	for at := int32(s); at != int32(g.terminals[d.terminal].Switch); {
		next := g.target(at, r.Row(int(at))[d.lid])
		if next == int32(c) || next == g.channels[c].Reverse {
			return true
		}
		at = g.channels[next].To
	}
	return false
}
