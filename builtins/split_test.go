package builtins

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/fabric"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// TestSplitNetwork: what a split network cuts off is reported by part, the largest first, with the ports
// that the tables still lead to, and pairs of one part by pair.
func TestSplitNetwork(t *testing.T) {
	cables := [][4]any{{"A", 1, "a", 1}, {"A", 2, "b", 1}, {"B", 1, "c", 1}, {"A", 3, "C", 1}, {"C", 2, "d", 1}}
	f := routingtest.Draw(t, 0, cables...)
	tables := make([][]byte, len(f.Nodes()))
	for name, ports := range map[string]map[string]uint8{
		"A": {"A": 0, "a": 1, "b": 2, "c": 4, "d": 3, "B": 4, "C": 3},
		"B": {"B": 0, "a": 4, "b": 4, "c": 1, "d": 4, "A": 4, "C": 4},
		"C": {"C": 0, "a": 1, "b": mad.NoPort, "c": 1, "d": 2, "A": 1, "B": 1},
	} {
		lft := make([]byte, 64)
		for i := range lft {
			lft[i] = mad.NoPort
		}
		for to, port := range ports {
			for i := range f.Nodes() {
				if n := &f.Nodes()[i]; n.Name() == to {
					for p := range n.Ports() {
						lft[max(p.LID(), n.LID())] = port
					}
				}
			}
		}
		tables[f.NodeByName(name)[0].ID()] = lft
	}
	x := ofFile(t, f.With(fabric.Reading{LFTs: tables}))
	defer x.Close()
	want := `rt.unreachable  fabric: pairs in different parts of a split network: 6 of 12; parts: 5 nodes with A; 2 nodes with B, cut off at B/4, A/4; pairs without a path: 1 of 12, such as d/1 to LID 3
not judged: rt.deadport, not read: PortInfo of ports without a link
not judged: rt.top, not read: SwitchInfo`
	r := audited(t, x, audits.RunOptions{}, "routing")
	if diff := cmp.Diff(want, textOf(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out, explained, _ := x.run(`v = get_routes().verify(); print(v.unreachable, v.apart, v.parts, len(v.broken))`)
	if diff := cmp.Diff(`7 6 [{"nodes": 5, "name": "A", "cut": []}, {"nodes": 2, "name": "B", "cut": ["B/4", "A/4"]}] 1`, strings.TrimSpace(out)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", explained, diff)
	}
	out, _, _ = x.run(`get_routes().verify()`)
	if want := "the network is split; 6 pairs in different parts:\n  5 nodes with \"A\"\n  2 nodes with \"B\", cut off at B/4, A/4\npairs that do not reach each other, such as:\n  port 1 of \"d\" "; !strings.Contains(out, want) {
		t.Error(out)
	}
}
