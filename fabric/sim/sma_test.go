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

func TestPortInfo(t *testing.T) {
	r := newRig(t, small)
	common := mad.PortInfo{
		LocalPortNum: 1, LinkWidthEnabled: 3, LinkWidthSupported: 3, LinkWidthActive: mad.LinkWidth4x,
		LinkSpeedSupported: 7, LinkSpeedEnabled: 7, LinkSpeedActive: mad.LinkSpeedQDR,
		LinkSpeedExtSupported: 7, LinkSpeedExtEnabled: 7, LinkSpeedExtActive: mad.LinkSpeedExtHDR,
		PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp,
		LinkDownDefaultState: mad.LinkDownDefaultStatePolling,
		MTUCap:               mad.MTU4096, NeighborMTU: mad.MTU4096, VLCap: mad.VLs0To7, OperationalVLs: mad.OperationalVLs0To7,
		VLArbitrationHighCap: 8, VLArbitrationLowCap: 8, HOQLife: 18, SubnetTimeOut: 18, RespTimeValue: 18,
		LocalPhyErrors: 8, OverrunErrors: 8, LinkRoundTripLatency: 0xffffff,
		CapabilityMask:  1<<3 | 1<<6 | 1<<11 | 1<<14 | 1<<15,
		CapabilityMask2: 1<<0 | 1<<5,
	}
	if diff := cmp.Diff(common, r.portInfo(3, leaf1)); diff != "" {
		t.Errorf("external port of a switch (-want +got)\n%s", diff)
	}
	home := common
	home.GIDPrefix, home.LID, home.MasterSMLID, home.GUIDCap = 0xfe80<<48, 1, 7, 8
	home.CapabilityMask |= mad.CapabilityMaskIsLEDInfoSupported | mad.CapabilityMaskIsNoticeSupported | mad.CapabilityMaskIsDRNoticeSupported | 1<<30
	if diff := cmp.Diff(home, r.portInfo(0, leaf1)); diff != "" {
		t.Errorf("port 0 of a switch (-want +got)\n%s", diff)
	}
	ca := home
	ca.LID = 7
	ca.CapabilityMask ^= 1<<1 | 1<<5 | 1<<16 | 1<<25 | 1<<30
	if diff := cmp.Diff(ca, r.portInfo(1, here)); diff != "" {
		t.Errorf("the subnet manager's port (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(ca, r.portInfo(0, here)); diff != "" {
		t.Errorf("port 0 of a CA (-want +got)\n%s", diff)
	}
	r = newRig(t, "ring:n=1") // whose ports 2 and 3 have no cable
	down := common
	down.PortState, down.PortPhysicalState = mad.PortStateDown, mad.PortPhysicalStatePolling
	down.LinkSpeedActive, down.LinkSpeedExtActive = mad.LinkSpeedSDR, 0
	if diff := cmp.Diff(down, r.portInfo(2, leaf1)); diff != "" {
		t.Errorf("port without a cable (-want +got)\n%s", diff)
	}
}

// TestSetPortInfo tries each field alone on a fresh subnet.
func TestSetPortInfo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(i *mad.PortInfo)
		status mad.Status
		want   func(i *mad.PortInfo) // nil: nothing changes
	}{
		"nothing": {func(i *mad.PortInfo) {}, 0, nil},
		"zeros mean no change": {func(i *mad.PortInfo) {
			i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled, i.OperationalVLs, i.LinkDownDefaultState = 0, 0, 0, 0, 0
		}, 0, nil},
		"read-only":             {func(i *mad.PortInfo) { i.CapabilityMask, i.LinkWidthSupported, i.MTUCap, i.LocalPortNum = 0, 0, 0, 9 }, 0, nil},
		"LID":                   {func(i *mad.PortInfo) { i.LID = 77 }, 0, func(i *mad.PortInfo) { i.LID = 77 }},
		"LID 0":                 {func(i *mad.PortInfo) { i.LID = 0 }, mad.StatusBadValue, nil},
		"multicast LID":         {func(i *mad.PortInfo) { i.LID = 0xc000 }, mad.StatusBadValue, nil},
		"SM LID":                {func(i *mad.PortInfo) { i.MasterSMLID, i.MasterSMSL = 3, 1 }, 0, func(i *mad.PortInfo) { i.MasterSMLID, i.MasterSMSL = 3, 1 }},
		"multicast SM LID":      {func(i *mad.PortInfo) { i.MasterSMLID = 0xffff }, mad.StatusBadValue, nil},
		"prefix":                {func(i *mad.PortInfo) { i.GIDPrefix = 5 }, 0, func(i *mad.PortInfo) { i.GIDPrefix = 5 }},
		"MTU":                   {func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU2048 }, 0, func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU2048 }},
		"MTU 0":                 {func(i *mad.PortInfo) { i.NeighborMTU = 0 }, mad.StatusBadValue, nil},
		"MTU too large":         {func(i *mad.PortInfo) { i.NeighborMTU = 6 }, mad.StatusBadValue, nil},
		"VLs":                   {func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs0 }, 0, func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs0 }},
		"too many VLs":          {func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs0To14 }, mad.StatusBadValue, nil},
		"width":                 {func(i *mad.PortInfo) { i.LinkWidthEnabled = 1 }, 0, func(i *mad.PortInfo) { i.LinkWidthEnabled = 1 }},
		"all widths":            {func(i *mad.PortInfo) { i.LinkWidthEnabled = 255 }, 0, nil},
		"width not supported":   {func(i *mad.PortInfo) { i.LinkWidthEnabled = 4 }, mad.StatusBadValue, nil},
		"speed":                 {func(i *mad.PortInfo) { i.LinkSpeedEnabled = 1 }, 0, func(i *mad.PortInfo) { i.LinkSpeedEnabled = 1 }},
		"all speeds":            {func(i *mad.PortInfo) { i.LinkSpeedEnabled, i.LinkSpeedExtEnabled = 15, 31 }, 0, nil},
		"speed not supported":   {func(i *mad.PortInfo) { i.LinkSpeedEnabled = 8 }, mad.StatusBadValue, nil},
		"ext speeds off":        {func(i *mad.PortInfo) { i.LinkSpeedExtEnabled = 30 }, 0, func(i *mad.PortInfo) { i.LinkSpeedExtEnabled = 30 }},
		"ext not supported":     {func(i *mad.PortInfo) { i.LinkSpeedExtEnabled = 8 }, mad.StatusBadValue, nil},
		"XDR not supported":     {func(i *mad.PortInfo) { i.LinkSpeedExtEnabled2 = 1 }, mad.StatusBadValue, nil},
		"default state":         {func(i *mad.PortInfo) { i.LinkDownDefaultState = 1 }, 0, func(i *mad.PortInfo) { i.LinkDownDefaultState = 1 }},
		"unknown default state": {func(i *mad.PortInfo) { i.LinkDownDefaultState = 3 }, mad.StatusBadValue, nil},
		"violations":            {func(i *mad.PortInfo) { i.MKeyViolations, i.PKeyViolations = 3, 4 }, 0, func(i *mad.PortInfo) { i.MKeyViolations, i.PKeyViolations = 3, 4 }},
		"reregister":            {func(i *mad.PortInfo) { i.ClientReregister = true }, 0, nil},
		"state initialize":      {func(i *mad.PortInfo) { i.PortState = mad.PortStateInitialize }, mad.StatusBadValue, nil},
		"active to armed":       {func(i *mad.PortInfo) { i.PortState = mad.PortStateArmed }, mad.StatusBadValue, nil},
		"active again":          {func(i *mad.PortInfo) { i.PortState = mad.PortStateActive }, 0, nil},
		"unknown state":         {func(i *mad.PortInfo) { i.PortState = 9 }, mad.StatusBadValue, nil},
		"physical state 5":      {func(i *mad.PortInfo) { i.PortPhysicalState = 5 }, mad.StatusBadValue, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, small)
			asked := r.portInfo(1, node2)
			want := asked
			asked.PortState, asked.PortPhysicalState = 0, 0
			test.change(&asked)
			if test.want != nil {
				test.want(&want)
			}
			status, data := r.set(mad.AttrPortInfo, 1, node2, encode(&asked))
			var got mad.PortInfo
			got.Decode(data)
			if diff := cmp.Diff(want, got); status != test.status || diff != "" {
				t.Errorf("%v, want %v; (-want +got)\n%s", status, test.status, diff)
			}
			if diff := cmp.Diff(want, r.portInfo(1, node2)); diff != "" {
				t.Errorf("afterwards (-want +got)\n%s", diff)
			}
		})
	}
}

// link is what both ends of node-0002's cable say.
type link struct {
	leafState, nodeState mad.PortState
	leafPhys, nodePhys   mad.PortPhysicalState
	speed                string
}

func (r *rig) link() link {
	var leaf, node mad.PortInfo
	leaf.Decode(r.at("leaf-1", 2).Info[:])
	node.Decode(r.at("node-0002 HCA-1", 1).Info[:])
	return link{leaf.PortState, node.PortState, leaf.PortPhysicalState, node.PortPhysicalState,
		mad.ActiveWidth(&leaf) + mad.ActiveSpeed(&leaf) + mad.ActiveWidth(&node) + mad.ActiveSpeed(&node)}
}

// TestLinkStates takes node-0002's link down and up from the switch's side.
func TestLinkStates(t *testing.T) {
	const (
		down, initial, armed, active = mad.PortStateDown, mad.PortStateInitialize, mad.PortStateArmed, mad.PortStateActive
		sleep, polling, disabled, up = mad.PortPhysicalStateSleep, mad.PortPhysicalStatePolling, mad.PortPhysicalStateDisabled, mad.PortPhysicalStateLinkUp
		hdr                          = "4xhdr4xhdr"
	)
	r := newRig(t, small)
	r.state.SM.Node.Off = true // so that it does not sweep
	sw := r.at("leaf-1", 0).Node
	for i, step := range []struct {
		change func(i *mad.PortInfo)
		status mad.Status
		want   link
	}{
		{func(i *mad.PortInfo) { i.PortPhysicalState = disabled }, 0, link{down, down, disabled, polling, hdr}},
		{func(i *mad.PortInfo) { i.PortState = armed }, mad.StatusBadValue, link{down, down, disabled, polling, hdr}},
		{func(i *mad.PortInfo) { i.PortState = active }, mad.StatusBadValue, link{down, down, disabled, polling, hdr}},
		{func(i *mad.PortInfo) { i.PortPhysicalState = polling }, 0, link{initial, initial, up, up, hdr}},
		{func(i *mad.PortInfo) { i.PortState = active }, mad.StatusBadValue, link{initial, initial, up, up, hdr}},
		{func(i *mad.PortInfo) { i.PortState = armed }, 0, link{armed, initial, up, up, hdr}},
		{func(i *mad.PortInfo) { i.PortState = active }, 0, link{active, initial, up, up, hdr}},
		{func(i *mad.PortInfo) { i.PortPhysicalState = polling; i.LinkSpeedExtEnabled = 2 }, 0, link{initial, initial, up, up, "4xedr4xedr"}},
		{func(i *mad.PortInfo) { i.PortState = down; i.LinkSpeedExtEnabled = 30; i.LinkWidthEnabled = 1 }, 0, link{initial, initial, up, up, "1xqdr1xqdr"}},
		{func(i *mad.PortInfo) { i.PortState = down; i.LinkDownDefaultState = 1 }, 0, link{down, down, sleep, polling, "1xqdr1xqdr"}},
		{func(i *mad.PortInfo) { i.PortState = down; i.PortPhysicalState = disabled }, 0, link{down, down, disabled, polling, "1xqdr1xqdr"}},
		{func(i *mad.PortInfo) {
			i.PortPhysicalState = polling
			i.LinkWidthEnabled, i.LinkSpeedExtEnabled = 255, 31
		}, 0, link{initial, initial, up, up, hdr}},
	} {
		switchInfoStateChangeField.SetUint(sw.SwitchInfo[:], 0)
		before := r.link()
		asked := r.portInfo(2, leaf1)
		asked.PortState, asked.PortPhysicalState = 0, 0
		step.change(&asked)
		status, _ := r.set(mad.AttrPortInfo, 2, leaf1, encode(&asked))
		if diff := cmp.Diff(step.want, r.link(), cmp.AllowUnexported(link{})); status != step.status || diff != "" {
			t.Fatalf("step %d: %v, want %v; (-want +got)\n%s", i, status, step.status, diff)
		}
		trained := (asked.PortPhysicalState != 0 || asked.PortState == down) && (before.leafState != down || step.want.leafState != down)
		if changed := switchInfoStateChangeField.Uint(sw.SwitchInfo[:]) == 1; changed != trained {
			t.Errorf("step %d, from %v: PortStateChange %v", i, before, changed)
		}
	}
	// Without a common speed or width nothing trains.
	for name, enable := range map[string]func(i *mad.PortInfo){
		"speed": func(i *mad.PortInfo) { i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled = 2, 1, 30 },
		"width": func(i *mad.PortInfo) { i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled = 1, 15, 31 },
	} {
		var far mad.PortInfo
		far.Decode(r.at("node-0002 HCA-1", 1).Info[:])
		far.LinkSpeedEnabled, far.LinkWidthEnabled = 4, 2
		r.at("node-0002 HCA-1", 1).SetInfo(&far)
		asked := r.portInfo(2, leaf1)
		asked.PortState, asked.PortPhysicalState = 0, polling
		enable(&asked)
		if status, _ := r.set(mad.AttrPortInfo, 2, leaf1, encode(&asked)); status != 0 {
			t.Fatal(status)
		}
		if got := r.link(); got.leafState != down || got.leafPhys != polling {
			t.Errorf("without a common %s: %+v", name, got)
		}
	}
}

// TestLinkComesBack: the subnet manager makes a link that has trained again
// active, after the answer that says that it has trained.
func TestLinkComesBack(t *testing.T) {
	r := newRig(t, small)
	asked := r.portInfo(2, leaf1)
	for _, step := range []struct {
		phys   mad.PortPhysicalState
		answer mad.PortState
		after  link
	}{
		{mad.PortPhysicalStateDisabled, mad.PortStateDown, link{mad.PortStateDown, mad.PortStateDown, mad.PortPhysicalStateDisabled, mad.PortPhysicalStatePolling, "4xhdr4xhdr"}},
		{mad.PortPhysicalStatePolling, mad.PortStateInitialize, link{mad.PortStateActive, mad.PortStateActive, mad.PortPhysicalStateLinkUp, mad.PortPhysicalStateLinkUp, "4xhdr4xhdr"}},
	} {
		asked.PortState, asked.PortPhysicalState = 0, step.phys
		_, data := r.set(mad.AttrPortInfo, 2, leaf1, encode(&asked))
		var got mad.PortInfo
		got.Decode(data)
		if diff := cmp.Diff(step.after, r.link(), cmp.AllowUnexported(link{})); got.PortState != step.answer || diff != "" {
			t.Errorf("the answer says %v, want %v; afterwards (-want +got)\n%s", got.PortState, step.answer, diff)
		}
		if got := r.at("leaf-1", 2).PortInfo().PortState; got != step.after.leafState {
			t.Errorf("PortInfo says %v, want %v", got, step.after.leafState)
		}
	}
}

// TestPort0: port 0 of a switch has no link to take down.
func TestPort0(t *testing.T) {
	r := newRig(t, small)
	want := r.portInfo(0, leaf1)
	for _, test := range []struct {
		state  mad.PortState
		phys   mad.PortPhysicalState
		status mad.Status
	}{{mad.PortStateDown, 0, 0}, {0, mad.PortPhysicalStateDisabled, mad.StatusBadValue}} {
		asked := want
		asked.PortState, asked.PortPhysicalState = test.state, test.phys
		status, _ := r.set(mad.AttrPortInfo, 0, leaf1, encode(&asked))
		if diff := cmp.Diff(want, r.portInfo(0, leaf1)); status != test.status || diff != "" {
			t.Errorf("%v; (-want +got)\n%s", status, diff)
		}
	}
}

// TestDisableOwnPort disables the port that the request came in through: no answer.
func TestDisableOwnPort(t *testing.T) {
	r := newRig(t, small)
	asked := r.portInfo(1, leaf1)
	asked.PortState, asked.PortPhysicalState = 0, mad.PortPhysicalStateDisabled
	if r.conn.ask(t, smp(mad.MethodSet, mad.AttrPortInfo, 1, leaf1, encode(&asked))) {
		t.Error("the answer came back over the link that went down")
	}
	if r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, leaf1, nil)) {
		t.Error("the leaf is reached still")
	}
	if p, err := r.conn.Port(); err != nil || p.State != mad.PortStateDown {
		t.Errorf("own port: %+v, %v", p, err)
	}
}

// TestSetLID: a port that gets another LID answers to that one.
func TestSetLID(t *testing.T) {
	r := newRig(t, small)
	asked := r.portInfo(1, node2)
	old := asked.LID
	asked.PortState, asked.PortPhysicalState = 0, 0
	asked.LID, asked.LMC = 32, 2
	if status, _ := r.set(mad.AttrPortInfo, 1, node2, encode(&asked)); status != 0 {
		t.Fatal(status)
	}
	_, lft := r.get(mad.AttrLinearForwardingTable, 0, leaf1)
	lft[32], lft[33], lft[34], lft[35], lft[36] = 2, 2, 2, 2, 2
	r.set(mad.AttrLinearForwardingTable, 0, leaf1, lft)
	r.set(mad.AttrSwitchInfo, 0, leaf1, encode(&mad.SwitchInfo{LinearFDBTop: 40}))
	for lid, want := range map[mad.LID]bool{old: false, 31: false, 32: true, 35: true, 36: false} {
		if got := r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, lid, nil)); got != want {
			t.Errorf("LID %d: answered: %v", lid, got)
		}
		if got := r.state.LIDs[lid] == r.at("node-0002 HCA-1", 1); got != want {
			t.Errorf("LID %d: known to the subnet administration: %v", lid, got)
		}
	}
}
