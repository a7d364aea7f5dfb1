package sim

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Places in the small tree, as seen from node-0001.
var (
	here  = mad.DirectedRoute{0}
	leaf1 = mad.DirectedRoute{0, 1}
	node2 = mad.DirectedRoute{0, 1, 2}
)

func TestStatuses(t *testing.T) {
	r := newRig(t, small)
	for _, test := range []struct {
		name     string
		method   mad.Method
		attr     *mad.Attribute
		modifier uint32
		to       mad.DirectedRoute
		want     mad.Status
	}{
		{"Set of what cannot be set", mad.MethodSet, mad.AttrNodeInfo, 0, here, mad.StatusBadMethodAttribute},
		{"unknown attribute", mad.MethodGet, &mad.Attribute{ID: 0x7777}, 0, here, mad.StatusBadMethodAttribute},
		{"vendor's", mad.MethodGet, mad.AttrExtendedPortInfo, 1, leaf1, mad.StatusOK},
		{"vendor's, no such port", mad.MethodGet, mad.AttrExtendedPortInfo, 200, leaf1, mad.StatusBadValue},
		{"NodeInfo 1", mad.MethodGet, mad.AttrNodeInfo, 1, here, mad.StatusBadValue},
		{"NodeDescription 1", mad.MethodGet, mad.AttrNodeDescription, 1, here, mad.StatusBadValue},
		{"SwitchInfo of a CA", mad.MethodGet, mad.AttrSwitchInfo, 0, here, mad.StatusBadMethodAttribute},
		{"SwitchInfo 1", mad.MethodGet, mad.AttrSwitchInfo, 1, leaf1, mad.StatusBadValue},
		{"LFT of a CA", mad.MethodGet, mad.AttrLinearForwardingTable, 0, here, mad.StatusBadMethodAttribute},
		{"last LFT block", mad.MethodGet, mad.AttrLinearForwardingTable, 767, leaf1, 0},
		{"LFT block 768", mad.MethodGet, mad.AttrLinearForwardingTable, 768, leaf1, mad.StatusBadValue},
		{"MFT of a CA", mad.MethodGet, mad.AttrMulticastForwardingTable, 0, here, mad.StatusBadMethodAttribute},
		{"last MFT block", mad.MethodGet, mad.AttrMulticastForwardingTable, 127, leaf1, 0},
		{"MFT block 128", mad.MethodGet, mad.AttrMulticastForwardingTable, 128, leaf1, mad.StatusBadValue},
		{"MFT position 1 of 4 ports", mad.MethodGet, mad.AttrMulticastForwardingTable, 1 << 28, leaf1, mad.StatusBadValue},
		{"port 0 of a switch", mad.MethodGet, mad.AttrPortInfo, 0, leaf1, 0},
		{"port 4 of 4", mad.MethodGet, mad.AttrPortInfo, 4, leaf1, 0},
		{"with extended speeds", mad.MethodGet, mad.AttrPortInfo, 1<<31 | 4, leaf1, 0},
		{"port 5 of 4", mad.MethodGet, mad.AttrPortInfo, 5, leaf1, mad.StatusBadValue},
		{"port 256", mad.MethodGet, mad.AttrPortInfo, 256, leaf1, mad.StatusBadValue},
		{"port 0 of a CA", mad.MethodGet, mad.AttrPortInfo, 0, here, 0},
		{"port 2 of 1", mad.MethodGet, mad.AttrPortInfo, 2, here, mad.StatusBadValue},
		{"GUIDInfo block 1", mad.MethodGet, mad.AttrGUIDInfo, 1, here, mad.StatusBadValue},
		{"last P_Keys of a CA", mad.MethodGet, mad.AttrPKeyTable, 3, here, 0},
		{"P_Keys past a CA's", mad.MethodGet, mad.AttrPKeyTable, 4, here, mad.StatusBadValue},
		{"P_Keys of a CA, port left out of account", mad.MethodGet, mad.AttrPKeyTable, 9 << 16, here, 0},
		{"P_Keys of port 4 of 4", mad.MethodGet, mad.AttrPKeyTable, 4 << 16, leaf1, 0},
		{"P_Keys of port 5 of 4", mad.MethodGet, mad.AttrPKeyTable, 5 << 16, leaf1, mad.StatusBadValue},
		{"P_Keys past a switch port's", mad.MethodGet, mad.AttrPKeyTable, 4<<16 | 1, leaf1, mad.StatusBadValue},
		{"SL2VL of a CA", mad.MethodGet, mad.AttrSLtoVLMappingTable, 0, here, 0},
		{"SL2VL 4 to 4", mad.MethodGet, mad.AttrSLtoVLMappingTable, 4<<8 | 4, leaf1, 0},
		{"SL2VL from 5", mad.MethodGet, mad.AttrSLtoVLMappingTable, 5<<8 | 4, leaf1, mad.StatusBadValue},
		{"SL2VL to 5", mad.MethodGet, mad.AttrSLtoVLMappingTable, 4<<8 | 5, leaf1, mad.StatusBadValue},
		{"SL2VL of all ports", mad.MethodGet, mad.AttrSLtoVLMappingTable, 3 << 16, leaf1, mad.StatusBadValue},
		{"VLArb low", mad.MethodGet, mad.AttrVLArbitrationTable, 1<<16 | 1, leaf1, 0},
		{"VLArb high", mad.MethodGet, mad.AttrVLArbitrationTable, 3<<16 | 1, here, 0},
		{"VLArb block 0", mad.MethodGet, mad.AttrVLArbitrationTable, 1, leaf1, mad.StatusBadValue},
		{"VLArb second half", mad.MethodGet, mad.AttrVLArbitrationTable, 2<<16 | 1, leaf1, mad.StatusBadValue},
		{"VLArb port 5", mad.MethodGet, mad.AttrVLArbitrationTable, 1<<16 | 5, leaf1, mad.StatusBadValue},
		{"SMInfo", mad.MethodGet, mad.AttrSMInfo, 0, here, 0},
		{"SMInfo handover", mad.MethodSet, mad.AttrSMInfo, 1, here, mad.StatusBadValue},
		{"SMInfo elsewhere", mad.MethodGet, mad.AttrSMInfo, 0, node2, mad.StatusBadMethodAttribute},
		{"SMInfo of a switch", mad.MethodGet, mad.AttrSMInfo, 0, leaf1, mad.StatusBadMethodAttribute},
	} {
		if status, _ := r.smp(smp(test.method, test.attr, test.modifier, test.to, nil)); status != test.want {
			t.Errorf("%s: %v, want %v", test.name, status, test.want)
		}
	}
	c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, here, nil)
	c.MAD[2] = 2
	if status, _ := r.smp(c); status != mad.StatusBadVersion {
		t.Errorf("class version 2: %v", status)
	}
	c = &engine.Call{}
	c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
	c.SetLID(r.state.SM.LID)
	c.MAD[1] = byte(mad.ClassSNMP)
	if status, _ := r.smp(c); status != mad.StatusBadMethodAttribute {
		t.Errorf("class without an agent: %v", status)
	}
}

func TestNodeAttributes(t *testing.T) {
	r := newRig(t, small)
	_, data := r.get(mad.AttrNodeInfo, 0, node2)
	var info mad.NodeInfo
	info.Decode(data)
	want := *r.named("node-0002 HCA-1").Info()
	if diff := cmp.Diff(want, info); diff != "" {
		t.Errorf("NodeInfo (-want +got)\n%s", diff)
	}

	_, data = r.get(mad.AttrSMInfo, 0, here)
	var sm mad.SMInfo
	sm.Decode(data)
	wantSM := mad.SMInfo{GUID: r.named("node-0001 HCA-1").Port(1).GUID(), SMKey: 1, ActCount: 1, Priority: 14, SMState: mad.SMStateMaster}
	if diff := cmp.Diff(wantSM, sm); diff != "" {
		t.Errorf("SMInfo (-want +got)\n%s", diff)
	}

	desc := make([]byte, state.SMPSize)
	copy(desc, `rack 7 "left" ü`)
	if status, got := r.set(mad.AttrNodeDescription, 0, node2, desc); status != 0 || !bytes.Equal(got, desc) {
		t.Errorf("Set(NodeDescription): %v %q", status, got)
	}
	if _, got := r.get(mad.AttrNodeDescription, 0, node2); !bytes.Equal(got, desc) {
		t.Errorf("NodeDescription: %q", got)
	}
	if _, got := r.get(mad.AttrNodeDescription, 0, here); mad.AttrNodeDescription.Field("node_string").Text(got) != "node-0001 HCA-1" {
		t.Errorf("NodeDescription of another node: %q", got)
	}

	var sw, got mad.SwitchInfo
	_, data = r.get(mad.AttrSwitchInfo, 0, leaf1)
	sw.Decode(data)
	wantSW := mad.SwitchInfo{
		LinearFDBCap: 49152, MulticastFDBCap: 4096, MulticastFDBTop: 0xbfff, LinearFDBTop: 14, LifeTimeValue: 18,
		DefaultMulticastPrimaryPort: 255, DefaultMulticastNotPrimaryPort: 255,
		PartitionEnforcementCap: 32, InboundEnforcementCap: true, OutboundEnforcementCap: true,
	}
	if diff := cmp.Diff(wantSW, sw); diff != "" {
		t.Errorf("SwitchInfo (-want +got)\n%s", diff)
	}
	// Read-only fields stay, whatever a Set says; the change bit is cleared by 1.
	switchInfoStateChangeField.SetUint(r.at("leaf-1", 0).Node.SwitchInfo[:], 1)
	asked := sw
	asked.LinearFDBCap, asked.LinearFDBTop, asked.LifeTimeValue = 1, 99, 17
	_, data = r.set(mad.AttrSwitchInfo, 0, leaf1, encode(&asked))
	got.Decode(data)
	wantSW.LinearFDBTop, wantSW.LifeTimeValue, wantSW.PortStateChange = 99, 17, true
	if diff := cmp.Diff(wantSW, got); diff != "" {
		t.Errorf("Set(SwitchInfo) (-want +got)\n%s", diff)
	}
	asked.PortStateChange = true
	_, data = r.set(mad.AttrSwitchInfo, 0, leaf1, encode(&asked))
	got.Decode(data)
	wantSW.PortStateChange = false
	if diff := cmp.Diff(wantSW, got); diff != "" {
		t.Errorf("Set(SwitchInfo) again (-want +got)\n%s", diff)
	}
	asked.LinearFDBTop = 49152
	if status, data := r.set(mad.AttrSwitchInfo, 0, leaf1, encode(&asked)); status != mad.StatusBadValue {
		t.Errorf("LinearFDBTop above the capacity: %v", status)
	} else if got.Decode(data); !cmp.Equal(wantSW, got) {
		t.Error("the refused Set changed something")
	}
}

// TestTables: each table has its default, keeps what is Set, and keeps it to
// the block and port it was Set on.
func TestTables(t *testing.T) {
	r := newRig(t, small)
	first := func(words ...uint16) []byte {
		data := make([]byte, state.SMPSize)
		for i, w := range words {
			binary.BigEndian.PutUint16(data[2*i:], w)
		}
		return data
	}
	unset := bytes.Repeat([]byte{255}, state.SMPSize)
	blank := make([]byte, state.SMPSize)
	guid := encode(&mad.GUIDInfo{GUIDBlock: [8]mad.GUID{r.state.SM.GUID}})[:state.SMPSize]
	vlarb := first(0x0020, 0x0120, 0x0220, 0x0320, 0x0420, 0x0520, 0x0620, 0x0720)
	lanes := append([]byte{0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67}, make([]byte, state.SMPSize-8)...)
	routes := bytes.Clone(unset)
	copy(routes, []byte{255, 0, 4, 3, 4, 3, 4, 1, 2, 3, 4, 3, 4, 3, 4}) // leaf-1's, LIDs 1 to 14
	for _, test := range []struct {
		name     string
		attr     *mad.Attribute
		modifier uint32
		to       mad.DirectedRoute
		fresh    []byte
		other    uint32 // a block that must not change with it
		keep     int    // bytes of a Set that count
	}{
		{"GUIDs", mad.AttrGUIDInfo, 0, here, guid, 0, 64},
		{"P_Keys", mad.AttrPKeyTable, 0, here, first(0xffff), 1, 64},
		{"P_Keys, block 2", mad.AttrPKeyTable, 2, here, blank, 0, 64},
		{"P_Keys of a switch port", mad.AttrPKeyTable, 3 << 16, leaf1, first(0xffff), 4 << 16, 64},
		{"SL to VL", mad.AttrSLtoVLMappingTable, 1<<8 | 2, leaf1, lanes, 2<<8 | 1, 8},
		{"SL to VL of a CA", mad.AttrSLtoVLMappingTable, 0, here, lanes, 0, 8},
		{"VL arbitration", mad.AttrVLArbitrationTable, 1<<16 | 2, leaf1, vlarb, 3<<16 | 2, 64},
		{"VL arbitration of a CA", mad.AttrVLArbitrationTable, 3<<16 | 1, here, vlarb, 1<<16 | 1, 64},
		{"unicast", mad.AttrLinearForwardingTable, 0, leaf1, routes, 1, 64},
		{"unicast, far up", mad.AttrLinearForwardingTable, 700, leaf1, unset, 699, 64},
		{"multicast", mad.AttrMulticastForwardingTable, 5, leaf1, blank, 6, 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			if status, got := r.get(test.attr, test.modifier, test.to); status != 0 || !bytes.Equal(got, test.fresh) {
				t.Fatalf("%v\n got % x\nwant % x", status, got, test.fresh)
			}
			_, other := r.get(test.attr, test.other, test.to)
			other = bytes.Clone(other)
			data := bytes.Repeat([]byte{3}, state.SMPSize)
			want := append(bytes.Clone(data[:test.keep]), make([]byte, state.SMPSize-test.keep)...)
			if test.attr == mad.AttrGUIDInfo { // the first entry is the port's
				copy(want, test.fresh[:8])
			}
			if status, got := r.set(test.attr, test.modifier, test.to, data); status != 0 || !bytes.Equal(got, want) {
				t.Fatalf("Set: %v\n got % x\nwant % x", status, got, want)
			}
			if _, got := r.get(test.attr, test.modifier, test.to); !bytes.Equal(got, want) {
				t.Errorf("after Set:\n got % x\nwant % x", got, want)
			}
			if _, got := r.get(test.attr, test.other, test.to); test.other != test.modifier && !bytes.Equal(got, other) {
				t.Errorf("another block changed:\n got % x\nwant % x", got, other)
			}
			r.set(test.attr, test.modifier, test.to, test.fresh)
		})
	}
}

// TestMKey walks the levels of protection (IBA 14.2.4.1).
func TestMKey(t *testing.T) {
	r := newRig(t, small+",mkey=0x1234")
	for level := range uint8(4) {
		for _, key := range []uint64{0, 0x1234, 0x1235} {
			info := r.at("node-0002 HCA-1", 1)
			info.KeyLevel = level
			violations := portInfoViolationsField.Uint(info.Info[:])
			right := key == 0x1234

			get := smp(mad.MethodGet, mad.AttrPortInfo, 1, node2, nil)
			binary.BigEndian.PutUint64(get.MAD[mad.SMPKeyOffset:], key)
			if answered := r.conn.ask(t, get); answered != (right || level < 2) {
				t.Errorf("level %d, key %#x: Get answered: %v", level, key, answered)
			} else if shown := portInfoKeyField.Uint(get.Data()); answered && (shown == 0x1234) != (right || level == 0) {
				t.Errorf("level %d, key %#x: Get shows %#x", level, key, shown)
			}
			set := smp(mad.MethodSet, mad.AttrNodeDescription, 0, node2, nil)
			binary.BigEndian.PutUint64(set.MAD[mad.SMPKeyOffset:], key)
			if answered := r.conn.ask(t, set); answered != right {
				t.Errorf("level %d, key %#x: Set answered: %v", level, key, answered)
			}
			want := violations
			if !right {
				want++
				if level >= 2 {
					want++
				}
			}
			if got := portInfoViolationsField.Uint(info.Info[:]); got != want {
				t.Errorf("level %d, key %#x: M_KeyViolations %d, want %d", level, key, got, want)
			}
		}
	}
}
