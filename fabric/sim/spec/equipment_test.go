package spec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestEquip: which port leads where, at which width and speed, and the cages of ports.
func TestEquip(t *testing.T) {
	tree := tree{M: []int{4, 2}, W: []int{1, 2}, P: []int{1, 1}}
	for _, c := range []struct {
		name string
		e    equipment
		want map[string]string
	}{
		{"nothing", equipment{}, map[string]string{
			"leaf-1/1": "node-0001 HCA-1/1   ", "leaf-1/5": "spine-1/1   ",
		}},
		{"NDR", equipment{Generation: generationNDR}, map[string]string{
			"leaf-1/1": "node-0001 HCA-1/1 4x ndr cage 1/1", "leaf-1/4": "node-0004 HCA-1/1 4x ndr cage 2/2", "spine-2/2": "leaf-2/6 4x ndr cage 1/2",
		}},
		{"split ports", equipment{Generation: generationNDR, Split: true}, map[string]string{
			"leaf-2/1": "node-0005 HCA-1/1 2x ndr cage 1/1", "leaf-2/2": "node-0006 HCA-1/1 2x ndr cage 1/2",
			"leaf-2/5": "spine-1/3 4x ndr cage 3/1", "leaf-2/7": "spine-2/3 4x ndr cage 4/1", "leaf-2/8": "   cage 4/2",
		}},
		{"aggregation nodes", equipment{Aggregation: true}, map[string]string{
			"leaf-1/7": aggregationName + "/1 4x hdr ", "spine-1/3": aggregationName + "/1 4x hdr ", "leaf-1/6": "spine-2/1 4x hdr ",
		}},
		{"planes", equipment{Generation: generationXDR, Planes: 4, Aggregation: true}, map[string]string{
			"node-0005 HCA-1/1": "leaf-2 plane-1/1 1x xdr ", "node-0005 HCA-1/4": "leaf-2 plane-4/1 1x xdr ",
			"leaf-2 plane-3/6": "spine-2 plane-3/2 1x xdr ", "leaf-2 plane-3/7": aggregationName + "/1 4x xdr ",
			"leaf-2 plane-1/8": "leaf-2 plane-2/8 4x xdr ", "leaf-2 plane-1/10": "leaf-2 plane-4/8 4x xdr ",
			"leaf-2 plane-3/8": "leaf-2 plane-1/9 4x xdr ", "leaf-2 plane-3/10": "leaf-2 plane-4/10 4x xdr ",
		}},
	} {
		f := must(t)(equip(must(t)(tree.Build()), c.e))
		got := map[string]string{}
		for i := range f.Ports() {
			p := &f.Ports()[i]
			if _, ok := c.want[p.Name()]; !ok {
				continue
			}
			peer, rate := "", " "
			if p.Peer() != nil {
				peer = p.Peer().Name()
			}
			if p.Info() != nil {
				rate = mad.ActiveWidth(p.Info()) + " " + mad.ActiveSpeed(p.Info())
			}
			got[p.Name()] = fmt.Sprintf("%s %s %s", peer, rate, p.Panel())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

// TestEquipDevices: devices have the identifiers of their generation, GUIDs are unique, an
// aggregation node has the SystemImageGUID of its switch, and FNM ports are known as such,
// also when switches were removed.
func TestEquipDevices(t *testing.T) {
	f := must(t)(equip(must(t)(fatTree(4, 2).Build()), equipment{Generation: generationXDR, Planes: 2, Aggregation: true}))
	seen := map[mad.GUID]bool{}
	kinds := map[fabric.NodeKind]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		kinds[n.Kind()]++
		want := map[fabric.NodeKind]uint16{fabric.KindSwitch: 0xd2f4, fabric.KindHost: 0x1023, fabric.KindAggregation: 0xcf09}[n.Kind()]
		if n.Info().DeviceID != want || seen[n.GUID()] {
			t.Errorf("%s: device %#x, want %#x", n.Label(), n.Info().DeviceID, want)
		}
		seen[n.GUID()] = true
		if n.Kind() == fabric.KindAggregation && n.Info().SystemImageGUID != n.Port(1).Peer().Node().Info().SystemImageGUID {
			t.Errorf("%s is not of %s", n.Label(), n.Port(1).Peer().Node().Label())
		}
	}
	if diff := cmp.Diff(map[fabric.NodeKind]int{fabric.KindSwitch: 12, fabric.KindHost: 8, fabric.KindAggregation: 12}, kinds); diff != "" {
		t.Error(diff)
	}
	removed := removeParts(f, 1, func(int) int { return 2 }, func(int) int { return 0 })
	for _, f := range []*fabric.Fabric{f, removed} {
		var fnm, want []string
		for _, a := range f.Answers() {
			fnm = append(fnm, f.Nodes()[a.Node].Port(int(a.Port)).Name())
		}
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Node().IsSwitch() && p.Num() == p.Node().NumPorts() {
				want = append(want, p.Name())
			}
		}
		slices.Sort(fnm)
		slices.Sort(want)
		if diff := cmp.Diff(want, fnm); diff != "" {
			t.Error(diff)
		}
	}
}

// TestEquipLimits: equipment that a topology has no room for is an error.
func TestEquipLimits(t *testing.T) {
	for _, c := range []struct {
		build func() (*fabric.Fabric, error)
		e     equipment
		want  string
	}{
		{fatTree(4, 2).Build, equipment{Split: true, Planes: 4}, "ports have one lane in each of 4 planes, and cannot be split"},
		{tree{M: []int{254}, W: []int{1}, P: []int{1}}.Build, equipment{Aggregation: true}, "switches with 255 ports, more than 254"},
		{tree{M: []int{252}, W: []int{1}, P: []int{1}}.Build, equipment{Planes: 4}, "switches with 255 ports, more than 254"},
		{fatTree(48, 3).Build, equipment{Planes: 2}, "more than the 49151 LIDs of a subnet"},
	} {
		f := must(t)(c.build())
		if _, err := equip(f, c.e); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

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
