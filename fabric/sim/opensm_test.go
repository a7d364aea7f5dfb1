package sim

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestManagerOpenSM: the subnet manager keeps the entries that OpenSM keeps after a loss, and makes
// all tables again when a link comes up or when it is restarted.
func TestManagerOpenSM(t *testing.T) {
	for _, engine := range []string{"minhop", "updn", "lash"} {
		t.Run(engine, func(t *testing.T) {
			f, o := mustParse(t, "fattree:k=8,sm=opensm/"+engine)
			s := New(f, o)
			var switches []*state.Node
			for i := range s.state.Nodes {
				if n := &s.state.Nodes[i]; n.IsSwitch {
					switches = append(switches, n)
				}
			}
			model := &openSM{engines: []string{engine}}
			want := func(old [][]uint8) [][]uint8 {
				r, err := opensm.Compute(t.Context(), model.network(s.state, switches), old, opensm.Settings{Engines: model.engines})
				if err != nil {
					t.Fatal(err)
				}
				return r.Tables
			}
			check := func(what string, want [][]uint8) {
				t.Helper()
				s.state.EnsureTables()
				for i, n := range switches {
					for lid, port := range want[i] {
						if n.LFT[lid] != port {
							t.Fatalf("%s: %s, LID %d: port %d, want %d", what, n.Label, lid, n.LFT[lid], port)
						}
					}
				}
			}
			start := want(nil)
			check("start", start)
			leaf := switches[slices.IndexFunc(switches, func(n *state.Node) bool { return n.Ports[5].Peer != nil && n.Ports[5].Peer.Node.IsSwitch })]
			lose := func(num int) {
				t.Helper()
				if err := s.Cables.Unlink(leaf.GUID(), num); err != nil {
					t.Fatal(err)
				}
			}
			lose(5)
			one := want(start)
			check("one loss", one)
			lose(6)
			two := want(one)
			check("two losses", two)
			if err := s.SM.Restart(mad.GUID(0)); err != nil {
				t.Fatal(err)
			}
			check("restart", want(nil))
			for _, num := range []int{5, 6} {
				if err := s.Cables.Link(leaf.GUID(), num); err != nil {
					t.Fatal(err)
				}
			}
			check("restored", start)
			if again := want(nil); engine == "minhop" && slices.EqualFunc(two, again, slices.Equal[[]uint8]) {
				t.Error("the losses show no memory")
			}
		})
	}
}
