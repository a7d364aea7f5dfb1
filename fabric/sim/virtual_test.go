package sim

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestVirtualPorts: virtual ports have GUIDs and states, those with an odd index a LID of
// their own, by which packets reach the port.
func TestVirtualPorts(t *testing.T) {
	r := newRig(t, "ring:n=3,vports=3,ar=updn")
	lid := r.lid("node-0002 HCA-1")
	var info mad.VirtualizationInfo
	_, data := r.get(mad.AttrVirtualizationInfo, 1, lid)
	if info.Decode(data); info.VPortCap != 255 || info.VPortIndexTop != 3 || !info.VirtualizationEnable {
		t.Errorf("%+v", info)
	}
	guid := r.at("node-0002 HCA-1", 1).GUID
	var got []string
	for index := range uint32(4) {
		var p mad.VPortInfo
		var n mad.VNodeInfo
		for _, a := range []struct {
			attr *mad.Attribute
			to   interface{ Decode([]byte) }
		}{{mad.AttrVPortInfo, &p}, {mad.AttrVNodeInfo, &n}} {
			status, data := r.get(a.attr, index, lid)
			_, same := r.get(a.attr, 1<<16|index, lid)
			if a.to.Decode(data); status != mad.StatusOK || !cmp.Equal(data, same) {
				t.Errorf("%s %d: %v", a.attr.Name, index, status)
			}
		}
		got = append(got, fmt.Sprintf("%v own %v LID %d of %d, GUID +%#x, %d ports", p.State, p.LIDRequired, p.LID, p.LIDByVPortIndex, uint64(p.PortGUID-guid), n.NumPorts))
		if p.LID != 0 {
			if in := state.ForwardLID(r.at("node-0003 HCA-1", 1), p.LID, false); in == nil || in.Node.Name() != "node-0002 HCA-1" {
				t.Errorf("a packet to LID %d arrives at %v", p.LID, in)
			}
		}
	}
	want := []string{
		"active own true LID 5 of 0, GUID +0x0, 1 ports",
		"active own true LID 9 of 0, GUID +0x10000000000, 1 ports",
		"active own false LID 0 of 0, GUID +0x20000000000, 1 ports",
		"active own true LID 10 of 0, GUID +0x30000000000, 1 ports",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var states mad.VPortState
	_, data = r.get(mad.AttrVPortState, 0, lid)
	if states.Decode(data); states.State[3] != mad.PortStateActive || states.State[4] != 0 {
		t.Errorf("states %v", states.State[:5])
	}
	for _, c := range []struct {
		attr     *mad.Attribute
		modifier uint32
		name     string
		want     mad.Status
	}{
		{mad.AttrVPortInfo, 4, "node-0002 HCA-1", mad.StatusBadValue}, {mad.AttrVPortInfo, 2 << 16, "node-0002 HCA-1", mad.StatusBadValue},
		{mad.AttrVPortState, 1, "node-0002 HCA-1", mad.StatusBadValue}, {mad.AttrVNodeInfo, 4, "node-0002 HCA-1", mad.StatusBadValue},
		{mad.AttrVirtualizationInfo, 2, "node-0002 HCA-1", mad.StatusBadValue}, {mad.AttrVirtualizationInfo, 0, "switch-1", mad.StatusBadMethodAttribute},
		{mad.AttrVPortInfo, 0, "switch-1", mad.StatusBadMethodAttribute},
	} {
		if got, _ := r.get(c.attr, c.modifier, r.lid(c.name)); got != c.want {
			t.Errorf("%s %#x of %s: %v, want %v", c.attr.Name, c.modifier, c.name, got, c.want)
		}
	}
	if status, _ := newRig(t, "ring").get(mad.AttrVirtualizationInfo, 0, r.lid("node-0001 HCA-1")); status != mad.StatusBadMethodAttribute {
		t.Errorf("without vports=: %v", status)
	}
}

// TestPlanesAnnounced: devices announce their planes, and FNM ports.
func TestPlanesAnnounced(t *testing.T) {
	r := newRig(t, "fattree:k=4,planes=4,generation=xdr,aggregation=yes")
	for name, want := range map[string]string{"node-0002 HCA-1": "multi_plane_ca, 4 planes", "leaf-1 plane-2": "standard, 4 planes"} {
		var info mad.ExtendedNodeInfo
		status, data := r.get(mad.AttrExtendedNodeInfo, 0, r.lid(name))
		info.Decode(data)
		if got := fmt.Sprintf("%v, %d planes", info.NodeTypeExtended, info.AsicMaxPlanes); status != mad.StatusOK || got != want {
			t.Errorf("%s: %v, %s, want %s", name, status, got, want)
		}
	}
	for num, want := range map[uint32]string{1: "false 0", 4: "false 0", 5: "false 1", 6: "true 0", 8: "true 0"} { // the aggregation node at 5
		var info mad.ExtendedPortInfo
		_, data := r.get(mad.AttrExtendedPortInfo, num, r.lid("leaf-1 plane-2"))
		info.Decode(data)
		if got := fmt.Sprint(info.IsFNMPort, info.SpecialPortType); got != want {
			t.Errorf("port %d: %s, want %s", num, got, want)
		}
	}
}
