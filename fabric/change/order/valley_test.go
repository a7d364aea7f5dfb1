package order

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
)

// sharedFabric is a snapshot of the folder beside the repository, which has files that the
// project does not ship. Where CI is set it must be there.
func sharedFabric(t *testing.T, name string) *fabric.Fabric {
	t.Helper()
	in, err := os.Open(filepath.Join("../../../../shared/fabrics", name))
	if os.IsNotExist(err) && os.Getenv("CI") == "" {
		t.Skipf("%s is not in ../shared/fabrics", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := format.ReadSnapshot(in, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestValleyPaths: tables of OpenSM's updn have entries that no packet of a host meets, and
// by which packets would go back to where they came from. They are no reason to refuse any
// engine's tables.
func TestValleyPaths(t *testing.T) {
	old, err := routes.OfFabric(sharedFabric(t, "updn-valley-paths.fab"))
	if err != nil {
		t.Fatal(err)
	}
	g := old.Graph()
	random := rand.New(rand.NewPCG(7, 0))
	for _, name := range []string{"minhop", "updn", "dnup", "ftree", "dor", "sssp", "nue"} {
		in := Input{Old: old, New: compute(t, g, name, engines.Options{}), Drain: Drains(g)}
		s, err := Plan(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if testing.Short() || name != "minhop" && name != "nue" {
			continue // the checker takes seconds
		}
		if err := newModel(g, nil).check(tablesOf(in.Old), tablesOf(in.New), s, random, 4); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
