package routes_test

import (
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestChangesLanes: where paths change their lane, a verdict says that OpenSM's engine
// file would not let them.
func TestChangesLanes(t *testing.T) {
	for name, want := range map[string]bool{"dragonfly": true, "minhop": false, "dfsssp": false} {
		r := compute(t, routingtest.Graph(t, "dragonfly:a=4,p=2,h=1", graph.BuildOptions{}), name, engines.Options{})
		v := routingtest.Verified(t, r, verify.Options{})
		told := slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "change to virtual lanes") })
		if r.ChangesLanes() != want || told != want {
			t.Errorf("%s: %v, in the verdict %v", name, r.ChangesLanes(), told)
		}
	}
}
