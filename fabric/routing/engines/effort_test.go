package engines

import (
	"fmt"
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routingtest"
)

// TestGaveUp: where searches for lanes end early, the error says so, and a note if there are lanes
// for all paths.
func TestGaveUp(t *testing.T) {
	const early = "gave up after 1 s; --effort raises it"
	none := func(engine string) string {
		return engine + " does not apply: no solution found with 8 virtual lanes; " + early + "; allow more with max_vls, up to 15, if the links have them; updn, ftree and nue find paths on one lane"
	}
	note := " [search for fewer virtual lanes: " + early + "]"
	for _, tt := range []struct {
		net, engine  string
		work, effort int
		want         string
	}{
		{"random:n=50,degree=5,hosts=2", "dfsssp", 1, 0, none("dfsssp")},
		{"random:n=50,degree=5,hosts=2", "dfsssp", 30_000, 0, "4 lanes" + note},
		{"random:n=50,degree=5,hosts=2", "dfsssp", 30_000, 100, "4 lanes []"},
		{"random:n=50,degree=5,hosts=2", "lash", 1, 1, none("lash")},
		{"torus:dims=5/5,hosts=1", "lash", 1, 1, "4 lanes" + note}, // by datelines
		{"torus:dims=5/5,hosts=1", "lash", lanes.DefaultWork, 0, "3 lanes []"},
		{"dragonfly:a=4,p=2,h=2,remove_links=10%,seed=1", "dfsssp", 30_000, 1, "3 lanes []"}, // the search ends: with fewer, loads are larger
	} {
		r, err := Compute(t.Context(), routingtest.Graph(t, tt.net, graph.BuildOptions{}), tt.engine, Options{search: &laneSearch{work: tt.work}, Effort: tt.effort})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%d lanes %v", r.Lanes(), r.Notes)
		}
		if got != tt.want {
			t.Errorf("%s on %s, %d work: %s, want %s", tt.engine, tt.net, tt.work, got, tt.want)
		}
	}
	for _, e := range All() {
		if searches := slices.Contains([]string{"dfsssp", "lash", "dragonfly"}, e.Name); e.Takes("effort") != searches {
			t.Errorf("%s: --effort, which messages name: %v", e.Name, e.Takes("effort"))
		}
	}
}
