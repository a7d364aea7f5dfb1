package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

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
