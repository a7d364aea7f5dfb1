package hosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
)

// TestMisplacedOfRack: on a published dump, the management hosts at spines are named, and with
// SkipMisplaced the other hosts are a tree without them.
func TestMisplacedOfRack(t *testing.T) {
	const name = "rack-lab.topo.gz"
	in, err := os.Open(filepath.Join("../../../shared/fabrics", name))
	if os.IsNotExist(err) && os.Getenv("CI") == "" {
		t.Skipf("%s is not in ../shared/fabrics", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := format.Load(in, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := slices.Concat(ServiceRules(), graph.DefaultRules())
	const named = "hosts attached to spines: tank1, tank2; leave them out with --skip-misplaced, or --class 'tank1 *=io' --class 'tank2 *=io'"
	without, err := Find(f, GroupOptions{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(without.NoTree, named) {
		t.Errorf("NoTree %q, want the end %q", without.NoTree, named)
	}
	g, err := Find(f, GroupOptions{Rules: rules, SkipMisplaced: true})
	if err != nil {
		t.Fatal(err)
	}
	const want = `root
 MF0-ib1-SX6036-U1 stage[1-24]
 MF0-ib2-SX6036-U1 stage[25-48]
 MF0-ib3-SX6036-U1 stage[49-72]
 MF0-ib4-SX6036-U1 stage[73-96]
 MF0-ib5-SX6036-U1 stage[97-120]
 MF0-ib6-SX6036-U1 atlas,booster[1-4],rocket,sputnik1,stage[121-135]
! attached to a spine; left out: "tank1", "tank2"
`
	if d := cmp.Diff(want, text(g)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
