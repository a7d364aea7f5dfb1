package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// setPort sets the physical state of a port, as ibportstate does, and its state.
func (r *rig) setPort(name string, num int, phys mad.PortPhysicalState, logical mad.PortState) error {
	info := r.at(name, num).PortInfo()
	info.PortPhysicalState, info.PortState = phys, logical
	var data [state.SMPSize]byte
	info.Encode(data[:])
	if status, _ := r.set(mad.AttrPortInfo, uint32(num), r.lid(name), data[:]); status != mad.StatusOK {
		return fmt.Errorf("PortInfo: %v", status)
	}
	return nil
}

// TestLinkDowned: whatever takes a link down, both ends count it, once; nothing else counts.
func TestLinkDowned(t *testing.T) {
	const near, far = "leaf-1", "spine-1" // ports 3 and 1 are linked
	down := func(phys mad.PortPhysicalState) func(r *rig) error {
		return func(r *rig) error { return r.setPort(near, 3, phys, mad.PortStateNoChange) }
	}
	for name, test := range map[string]struct {
		change    func(r *rig) error
		near, far uint64
	}{
		"a cable":        {func(r *rig) error { return r.Cables.Unlink(r.named(near).GUID(), 3) }, 1, 1},
		"at the console": {func(r *rig) error { return r.Cables.Pull(state.End{Node: r.named(far).ID(), Num: 1}) }, 1, 1},
		"twice, and in again between": {func(r *rig) error {
			at := r.named(far).GUID()
			return errors.Join(r.Cables.Unlink(at, 1), r.Cables.Unlink(at, 1), r.Cables.Link(at, 1), r.Cables.Unlink(at, 1))
		}, 2, 2},
		"another cable": {func(r *rig) error {
			return r.Cables.Recable([2]Cable{r.cable(near, 3), r.cable("leaf-2", 3)})
		}, 1, 1},
		"swapped":    {func(r *rig) error { return r.Cables.Swap(r.cable(near, 3), r.cable(near, 4)) }, 1, 1},
		"a speed":    {func(r *rig) error { return r.Cables.SetLink(r.named(near).GUID(), 3, state.Limit{Speed: "edr"}) }, 1, 1},
		"disabled":   {down(mad.PortPhysicalStateDisabled), 1, 1},
		"reset":      {down(mad.PortPhysicalStatePolling), 1, 1},
		"asleep":     {down(mad.PortPhysicalStateSleep), 1, 1},
		"down":       {func(r *rig) error { return r.setPort(near, 3, 0, mad.PortStateDown) }, 1, 1},
		"no change":  {func(r *rig) error { return r.setPort(near, 3, 0, mad.PortStateNoChange) }, 0, 0},
		"armed":      {func(r *rig) error { return r.setPort(near, 3, 0, mad.PortStateActive) }, 0, 0},
		"power":      {func(r *rig) error { return r.Cables.Kill(r.named(far).GUID()) }, 1, 1},
		"a reboot":   {func(r *rig) error { return r.Cables.Reboot(r.named(far).GUID()) }, 1, 0}, // which forgets
		"not a link": {func(r *rig) error { return r.Cables.Silence(r.named(near).GUID(), 3, true) }, 0, 0},
		"disabled, enabled, disabled": {func(r *rig) error {
			return errors.Join(down(mad.PortPhysicalStateDisabled)(r), down(mad.PortPhysicalStatePolling)(r), down(mad.PortPhysicalStateDisabled)(r), down(mad.PortPhysicalStateDisabled)(r))
		}, 2, 2},
	} {
		r := newRig(t, small)
		if p := r.at(near, 3); p.Peer != r.at(far, 1) {
			t.Fatalf("%s/3 leads to %s", near, p.Peer.Node.Label)
		}
		if err := test.change(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		key := state.CounterKey{Name: "LinkDownedCounter"}
		if a, b := r.at(near, 3).Counters.Value(key, r.state.Now()), r.at(far, 1).Counters.Value(key, r.state.Now()); a != test.near || b != test.far {
			t.Errorf("%s: the ends counted %d and %d, want %d and %d", name, a, b, test.near, test.far)
		}
	}
}

// TestRecover: a link that recovers counts LinkErrorRecovery at both ends, and stays up; one that is
// down cannot.
func TestRecover(t *testing.T) {
	r := newRig(t, small)
	guid := r.named("leaf-1").GUID()
	if err := errors.Join(r.Cables.Recover(guid, 3), r.Cables.Recover(r.named("spine-1").GUID(), 1)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*state.Port{r.at("leaf-1", 3), r.at("spine-1", 1)} {
		for name, want := range map[string]uint64{"LinkErrorRecoveryCounter": 2, "LinkDownedCounter": 0} {
			if n := p.Counters.Value(state.CounterKey{Name: name}, r.state.Now()); n != want || !p.Up {
				t.Errorf("%s of %s/%d is %d, up %v; want %d, up", name, p.Node.Label, p.Num, n, p.Up, want)
			}
		}
	}
	err := errors.Join(r.Cables.Unlink(guid, 3), r.Cables.Recover(guid, 3))
	if err == nil || !strings.Contains(err.Error(), `the link at port 3 of "leaf-1" (0x0002c90300100000) is down`) {
		t.Error(err)
	}
	if err := r.Cables.Recover(guid, 99); err == nil {
		t.Error("no error of a port that does not exist")
	}
}

// TestLinkDownedAgents: agents show the counter, which goes on from what was set.
func TestLinkDownedAgents(t *testing.T) {
	r := newRig(t, small)
	if err := r.Counters.Set(r.named("leaf-1").GUID(), 3, map[string]uint64{"link_downed_counter": 254}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.setPort("leaf-1", 3, mad.PortPhysicalStatePolling, mad.PortStateNoChange); err != nil {
			t.Fatal(err)
		}
	}
	small, large := r.counters(mad.AttrPortCounters, "leaf-1", 3)["link_downed_counter"], r.counters(mad.AttrPortCountersExtended, "leaf-1", 3)["link_downed_counter"]
	if far := r.counters(mad.AttrPortCounters, "spine-1", 1)["link_downed_counter"]; small != 255 || large != 257 || far != 3 {
		t.Errorf("%d of 8 bits, %d of 64 bits, %d at the other end", small, large, far)
	}
}

// TestLimit: a cable carries less than both ends have enabled, until it is replaced; or once.
func TestLimit(t *testing.T) {
	r := newRig(t, small)
	leaf := r.named("leaf-1").GUID()
	ends := []*state.Port{r.at("leaf-1", 3), r.at("spine-1", 1)}
	check := func(when, speed, width string) {
		t.Helper()
		for _, p := range ends {
			i := p.PortInfo()
			if s, w := mad.ActiveSpeed(&i), mad.ActiveWidth(&i); s != speed || w != width || i.PortState != mad.PortStateActive {
				t.Errorf("%s: %s: %v at %s %s, want %s %s", when, p.Node.Label, i.PortState, s, w, speed, width)
			}
			if i.LinkSpeedExtEnabled&mad.LinkSpeedExtHDR == 0 || i.LinkWidthEnabled&mad.LinkWidth4x == 0 {
				t.Errorf("%s: %s: %v %v are enabled", when, p.Node.Label, i.LinkSpeedExtEnabled, i.LinkWidthEnabled)
			}
		}
	}
	limit := func(l state.Limit) {
		t.Helper()
		if err := r.Cables.SetLink(leaf, 3, l); err != nil {
			t.Fatal(err)
		}
	}
	reset := func() {
		t.Helper()
		if err := r.setPort("spine-1", 1, mad.PortPhysicalStatePolling, mad.PortStateNoChange); err != nil {
			t.Fatal(err)
		}
	}
	check("at first", "hdr", "4x")
	limit(state.Limit{Speed: "edr"})
	check("speed", "edr", "4x")
	limit(state.Limit{Width: "2x"})
	check("and width", "edr", "2x")
	reset()
	check("after a reset", "edr", "2x")
	if err := errors.Join(r.Cables.Unlink(leaf, 3), r.Cables.Link(leaf, 3)); err != nil {
		t.Fatal(err)
	}
	check("pulled, and in again", "edr", "2x")
	limit(state.Limit{Speed: "hdr", Width: "4x"})
	check("a better one", "hdr", "4x")
	limit(state.Limit{Width: "1x", Once: true})
	check("once", "hdr", "1x")
	reset()
	check("not twice", "hdr", "4x")
	limit(state.Limit{Speed: "sdr"})
	check("slowest", "sdr", "4x")
	if err := r.Cables.Recable([2]Cable{r.cable("leaf-1", 3), r.cable("spine-1", 1)}); err != nil {
		t.Fatal(err)
	}
	check("another cable", "hdr", "4x")
}

// TestEthernet: a port of an Ethernet network has no link to one of InfiniBand, until it is
// moved back.
func TestEthernet(t *testing.T) {
	r := newRig(t, small)
	node, p := r.named("node-0003 HCA-1").GUID(), r.at("node-0003 HCA-1", 1)
	for range 2 {
		if err := r.Cables.SetEthernet(node, 1, true); err != nil {
			t.Fatal(err)
		}
		if i, far := p.PortInfo(), p.Peer.PortInfo(); p.Up || i.PortPhysicalState != mad.PortPhysicalStateDisabled || far.PortState != mad.PortStateDown || far.PortPhysicalState != mad.PortPhysicalStatePolling {
			t.Errorf("up %v, %v, %v and %v", p.Up, i.PortPhysicalState, far.PortState, far.PortPhysicalState)
		}
		if err := r.Cables.Recable([2]Cable{{Node: node, Num: 1}, r.cable("leaf-2", 1)}); err != nil || p.Up {
			t.Errorf("another cable: %v, up %v", err, p.Up)
		}
	}
	for range 2 {
		if err := r.Cables.SetEthernet(node, 1, false); err != nil {
			t.Fatal(err)
		}
		if p.State != mad.PortStateActive || p.Peer.State != mad.PortStateActive {
			t.Errorf("back: %v and %v", p.State, p.Peer.State)
		}
	}
	for _, bad := range []Cable{r.cable("leaf-1", 1), r.cable("leaf-1", 0), r.cable("node-0003 HCA-1", 0), r.cable("node-0003 HCA-1", 9)} {
		if r.Cables.SetEthernet(bad.Node, bad.Num, true) == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// TestOneGUID: of two nodes with one GUID, each is found by the name that it has.
func TestOneGUID(t *testing.T) {
	r := newRig(t, small)
	one, two := r.named("node-0003 HCA-1").GUID(), r.named("node-0004 HCA-1").GUID()
	if err := errors.Join(r.Edit.NodeGUID(two, 0, one), r.Edit.NodeGUID(two, 1, one+1)); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]*state.Port{"node-0003": r.at("node-0003 HCA-1", 1), "node-0004": r.at("node-0004 HCA-1", 1)} {
		if at.Node.GUID() != one || at.GUID != one+1 {
			t.Errorf("%s: GUIDs %v and %v", name, at.Node.GUID(), at.GUID)
		}
		for _, name := range []string{name, name + " HCA-1"} {
			guids := r.NodeGUIDs(name)
			if len(guids) != 1 || r.state.NodeByGUID(guids[0]) != at.Node || len(r.NodesByName()[name]) != 1 || r.NodesByName()[name][0] != guids[0] {
				t.Errorf("%s: %v", name, guids)
			}
			if got := r.NodeNames()[guids[0]]; got != at.Node.Name() {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	if err := r.Cables.Unlink(r.NodeGUIDs("node-0004")[0], 1); err != nil || r.at("node-0004 HCA-1", 1).Up || !r.at("node-0003 HCA-1", 1).Up {
		t.Errorf("another node was unlinked: %v", err)
	}
	if err := r.Edit.NodeGUID(two, 0, 0xabc); err != nil || r.state.NodeByGUID(0xabc) != r.at("node-0004 HCA-1", 1).Node || r.state.NodeByGUID(one) != r.at("node-0003 HCA-1", 1).Node {
		t.Errorf("by new GUIDs: %v", err)
	}
}

// TestOtherSM: a node answers as a second subnet manager, and its port shows it, until it ends.
func TestOtherSM(t *testing.T) {
	r := newRig(t, small)
	node := r.named("node-0003 HCA-1").GUID()
	shown := func() bool { return r.at("node-0003 HCA-1", 1).PortInfo().CapabilityMask&mad.CapabilityMaskIsSM != 0 }
	if err := r.SM.RunOther(node, mad.SMStateMaster, 3); err != nil {
		t.Fatal(err)
	}
	if got := r.sminfo(r.lid("node-0003 HCA-1")); got.SMState != mad.SMStateMaster || got.Priority != 3 || got.GUID != r.at("node-0003 HCA-1", 1).GUID || !shown() {
		t.Errorf("%+v, shown %v", got, shown())
	}
	if err := r.SM.StopOther(node); err != nil || shown() {
		t.Errorf("it ended: %v, shown %v", err, shown())
	}
	if r.SM.StopOther(node) == nil || r.SM.RunOther(r.named("node-0001 HCA-1").GUID(), mad.SMStateMaster, 3) == nil || r.SM.RunOther(0xabc, mad.SMStateMaster, 3) == nil {
		t.Error("no error")
	}
	if err := errors.Join(r.SM.RunOther(node, mad.SMStateMaster, 3), r.SM.Restart(node)); err != nil {
		t.Fatal(err)
	}
	if got := r.sminfo(r.lid("node-0003 HCA-1")); got.Priority != 14 {
		t.Errorf("the fabric's own one is there: %+v", got)
	}
}

// TestVirtualPort: a virtual port has the state and the GUIDs that it is given.
func TestVirtualPort(t *testing.T) {
	r := newRig(t, small)
	node := r.named("node-0003 HCA-1").GUID()
	if err := r.Edit.VirtualPort(node, 1, 3, func(v *state.VirtualPort) { v.State, v.GUID, v.Node = mad.PortStateDown, 7, 8 }); err != nil {
		t.Fatal(err)
	}
	var port mad.VPortInfo
	var virtual mad.VNodeInfo
	var states mad.VPortState
	for a, into := range map[*mad.Attribute]interface{ Decode([]byte) }{mad.AttrVPortInfo: &port, mad.AttrVNodeInfo: &virtual, mad.AttrVPortState: &states} {
		modifier := uint32(3)
		if a == mad.AttrVPortState {
			modifier = 0
		}
		status, data := r.get(a, modifier, r.lid("node-0003 HCA-1"))
		if status != mad.StatusOK {
			t.Fatalf("%s: %v", a.Name, status)
		}
		into.Decode(data)
	}
	if port.State != mad.PortStateDown || port.PortGUID != 7 || virtual.VNodeGUID != 8 || states.State[3] != mad.PortStateDown || states.State[2] != mad.PortStateActive || states.State[4] != 0 {
		t.Errorf("%+v %+v %v", port, virtual, states.State[:5])
	}
	top := r.at("node-0003 HCA-1", 1).Virtual[2].LID
	if at, ok := r.Find(top); port.LID != top || top == 0 || ok { // virtual ports are behind the LIDs of their ports
		t.Errorf("LID %d, of %+v %v", top, at, ok)
	}
	for _, bad := range []struct {
		Cable
		index int
	}{{r.cable("leaf-1", 1), 1}, {r.cable("node-0003 HCA-1", 0), 1}, {r.cable("node-0003 HCA-1", 1), 0}, {r.cable("node-0003 HCA-1", 1), 256}, {r.cable("node-0003 HCA-1", 2), 1}} {
		if r.Edit.VirtualPort(bad.Node, bad.Num, bad.index, func(*state.VirtualPort) {}) == nil {
			t.Errorf("%+v", bad)
		}
	}
}
