package spec

import (
	"testing"

	"fabsh/fabric"
)

// TestRemove: what is left is as it was.
func TestRemove(t *testing.T) {
	whole := must(t)(lattice{Dims: []int{4, 4}, Hosts: 2, Links: 1, Shape: torus}.Build())
	left := func(seed int64) *fabric.Fabric {
		return removeParts(whole, seed, func(int) int { return 2 }, func(int) int { return 5 })
	}
	f := left(1)
	if got, want := f.String(), "fabric: 42 nodes (14 switches, 28 CAs), 47 links, complete"; got != want {
		// 16 switches of 4 cables; 2 switches take 8 or, as neighbours, 7 with them.
		t.Errorf("got %s\nwant %s", got, want)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		was := whole.NodeByGUID(p.Node().GUID())[0].Port(p.Num())
		if p.Name() != was.Name() || p.GUID() != was.GUID() || p.Peer() != nil && p.Peer().Name() != was.Peer().Name() {
			t.Errorf("%s was %s", p.Label(), was.Label())
		}
	}
	again := left(2)
	same := true
	for i := range f.Nodes() {
		same = same && f.Nodes()[i].GUID() == again.Nodes()[i].GUID()
	}
	if same {
		t.Error("the seed does not matter")
	}
}
