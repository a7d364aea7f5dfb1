package opensm_test

import (
	"fmt"
	"testing"

	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// TestRecorded compares the model with recorded runs of OpenSM 3.3.23, entry by entry: from
// its start, after losses that it handled with the tables in force, and after it computed all
// again.
func TestRecorded(t *testing.T) {
	runs, entries := 0, 0
	for _, r := range routingtest.Recordings(t) {
		if !opensm.IsEngine(r.Engine) {
			continue
		}
		runs++
		t.Run(r.Name, func(t *testing.T) {
			o, cache := r.Settings(t)
			var last *routingtest.RecordedState
			for i := range r.States {
				s := &r.States[i]
				if cache && s.Restored {
					break // the cache has the tables of what returns
				}
				n := r.Network(s)
				var old [][]uint8
				if last != nil && s.Name != "rerouted" && !s.Restored {
					for _, sw := range n.Switches {
						old = append(old, last.Tables[sw.GUID])
					}
				}
				if last == nil && o.TooFewLanes { // in its first sweep, OpenSM had not set the lanes yet
					old = compute(t, n, nil, opensm.Settings{Engines: o.Engines}).Tables
				}
				made := compute(t, n, old, o)
				if cache && last != nil && old != nil && opensm.CacheHolds(r.Network(last), n) {
					made.Tables = old
				}
				wrong, example := 0, ""
				for k, sw := range n.Switches {
					for lid, want := range s.Tables[sw.GUID] {
						entries++
						got := uint8(mad.NoPort)
						if lid < len(made.Tables[k]) {
							got = made.Tables[k][lid]
						}
						if got != want && lid > 0 {
							wrong++
							example = fmt.Sprintf("switch %v LID %d: port %d, OpenSM's %d", sw.GUID, lid, got, want)
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%s: %s (%q): %d entries differ, such as %s", s.Name, made.Engine, made.Failed, wrong, example)
				}
				if s.Name != "rerouted" {
					last = s
				}
			}
		})
	}
	if runs != 28 || entries < 80000 {
		t.Errorf("%d runs, %d entries", runs, entries)
	}
}

// compute returns the tables that OpenSM makes.
func compute(t testing.TB, n *opensm.Network, old [][]uint8, o opensm.Settings) *opensm.Result {
	t.Helper()
	r, err := opensm.Compute(t.Context(), n, old, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
