package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
	"fabsh/mad/engine"
)

func (r *rig) perf(m mad.Method, a *mad.Attribute, modifier uint32, name string, e agent.Encoder) (mad.Status, []byte) {
	r.t.Helper()
	c := &engine.Call{}
	c.PutPerf(m, a.ID, modifier, encode(e)[:192])
	c.SetLID(r.lid(name))
	if !r.conn.ask(r.t, c) {
		r.t.Fatalf("no answer to %s", a.Name)
	}
	return c.Header().Status, c.Data()
}

func TestPerfClassPortInfo(t *testing.T) {
	r := newRig(t, small)
	status, data := r.perf(mad.MethodGet, mad.AttrPerfClassPortInfo, 0, "leaf-1", &mad.ClassPortInfo{})
	var got mad.ClassPortInfo
	got.Decode(data)
	want := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, CapabilityMask: 1<<8 | 1<<9 | 1<<12 | 1<<15, CapabilityMask2: 2, RespTimeValue: 18}
	if diff := cmp.Diff(want, got); status != 0 || diff != "" {
		t.Errorf("%v (-want +got)\n%s", status, diff)
	}
}

// A client with a queue pair of its own, or who takes all requests of its node, has
// whole MADs; others are taken for libumad2sim.
func TestPerfClassPortInfoCut(t *testing.T) {
	r := newRig(t, small)
	for want, o := range map[uint32][]ClientOptions{0: {{}, {QP: 1}}, 2: {{QP: 7}, {General: true}}} {
		for _, o := range o {
			var got mad.ClassPortInfo
			o.Receive = func(m *Message) { got.Decode(m.MAD[mad.ClassPerf.DataOffset():]) }
			c, err := r.Programs.AttachClient(o)
			if err != nil {
				t.Fatal(err)
			}
			var call engine.Call
			call.PutPerf(mad.MethodGet, mad.AttrPerfClassPortInfo.ID, 0, nil)
			c.Send(&Message{DLID: r.lid("leaf-1"), DQP: 1, MAD: call.MAD})
			if got.ClassVersion != 1 || got.CapabilityMask2 != want {
				t.Errorf("%+v is told CapabilityMask2 %#x, want %#x", o, got.CapabilityMask2, want)
			}
			c.Detach()
		}
	}
}

func TestPerfStatuses(t *testing.T) {
	r := newRig(t, small)
	for name, test := range map[string]struct {
		method   mad.Method
		attr     *mad.Attribute
		modifier uint32
		node     string
		port     uint8
		want     mad.Status
	}{
		"port 1 of a CA":     {mad.MethodGet, mad.AttrPortCounters, 0, "node-0002 HCA-1", 1, 0},
		"port 0 of a CA":     {mad.MethodGet, mad.AttrPortCounters, 0, "node-0002 HCA-1", 0, mad.StatusBadValue},
		"port 2 of a CA":     {mad.MethodGet, mad.AttrPortCounters, 0, "node-0002 HCA-1", 2, mad.StatusBadValue},
		"port 0 of a switch": {mad.MethodGet, mad.AttrPortCounters, 0, "spine-1", 0, 0},
		"port 5 of 4":        {mad.MethodGet, mad.AttrPortCountersExtended, 0, "spine-1", 5, mad.StatusBadValue},
		"all ports":          {mad.MethodGet, mad.AttrPortCounters, 0, "spine-1", 255, 0},
		"modifier 1":         {mad.MethodGet, mad.AttrPortCounters, 1, "spine-1", 1, mad.StatusBadValue},
		"unknown attribute":  {mad.MethodGet, &mad.Attribute{ID: 0x99}, 0, "spine-1", 1, mad.StatusBadMethodAttribute},
		"Set(ClassPortInfo)": {mad.MethodSet, mad.AttrPerfClassPortInfo, 0, "spine-1", 1, mad.StatusBadMethodAttribute},
		"GetTable":           {mad.MethodGetTable, mad.AttrPortCounters, 0, "spine-1", 1, mad.StatusBadMethod},
		"ClassPortInfo 1":    {mad.MethodGet, mad.AttrPerfClassPortInfo, 1, "spine-1", 0, mad.StatusBadValue},
	} {
		if status, _ := r.perf(test.method, test.attr, test.modifier, test.node, &mad.PortCounters{PortSelect: test.port}); status != test.want {
			t.Errorf("%s: %v, want %v", name, status, test.want)
		}
	}
}

// TestCounters sets each counter by its own bit, and no other changes.
func TestCounters(t *testing.T) {
	for _, test := range []struct {
		attr *mad.Attribute
		bits []string // the counters of the select bits, those of the second field last
	}{
		{mad.AttrPortCounters, []string{
			"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors",
			"PortRcvRemotePhysicalErrors", "PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors",
			"PortRcvConstraintErrors", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped",
			"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortXmitWait", "QP1Dropped"}},
		{mad.AttrPortCountersExtended, []string{
			"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortUnicastXmitPkts", "PortUnicastRcvPkts",
			"PortMulticastXmitPkts", "PortMulticastRcvPkts",
			"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors",
			"PortRcvRemotePhysicalErrors", "PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors",
			"PortRcvConstraintErrors", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped",
			"PortXmitWait", "QP1Dropped"}},
	} {
		r := newRig(t, small)
		firstBits := 16
		if test.attr == mad.AttrPortCountersExtended {
			firstBits = 8
		}
		want := map[string]uint64{}
		for i, name := range test.bits {
			data := raw(make([]byte, 192))
			for _, c := range test.attr.Counters() {
				c.SetUint(data, uint64(i%15)+1)
			}
			test.attr.Field("port_select").SetUint(data, 2)
			if i < firstBits {
				test.attr.Field("counter_select").SetUint(data, 1<<i)
			} else {
				test.attr.Field("counter_select2").SetUint(data, 1<<(i-firstBits))
			}
			want[name] = uint64(i%15) + 1
			if status, _ := r.perf(mad.MethodSet, test.attr, 0, "leaf-1", data); status != 0 {
				t.Fatal(status)
			}
			got := map[string]uint64{}
			_, answer := r.perf(mad.MethodGet, test.attr, 0, "leaf-1", &mad.PortCounters{PortSelect: 2})
			for _, c := range test.attr.Counters() {
				if v := c.Uint(answer); v != 0 {
					got[c.Name] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s after Set of %s: (-want +got)\n%s", test.attr.Name, name, diff)
			}
		}
	}
}

// raw is an attribute's bytes.
type raw []byte

func (r raw) Encode(data []byte) { copy(data, r) }

// TestCountersViews: both attributes show the same counters, the smaller fields
// stop at their largest value, and AllPortSelect gives the sums.
func TestCountersViews(t *testing.T) {
	r := newRig(t, small)
	for port, set := range []mad.PortCountersExtended{
		{}, {PortXmitData: 1 << 33, SymbolErrorCounter: 0xfff0, LinkDownedCounter: 3, LocalLinkIntegrityErrors: 20},
		{PortXmitData: ^uint64(0) - 5, SymbolErrorCounter: 0xf, LinkDownedCounter: 4},
	} {
		set.PortSelect, set.CounterSelect, set.CounterSelect2 = uint8(port), 0xff, 1<<14-1
		if status, _ := r.perf(mad.MethodSet, mad.AttrPortCountersExtended, 0, "leaf-1", &set); status != 0 {
			t.Fatal(status)
		}
	}
	for port, want := range map[uint8]mad.PortCounters{
		1:   {PortSelect: 1, PortXmitData: 1<<32 - 1, SymbolErrorCounter: 0xfff0, LinkDownedCounter: 3, LocalLinkIntegrityErrors: 15},
		2:   {PortSelect: 2, PortXmitData: 1<<32 - 1, SymbolErrorCounter: 0xf, LinkDownedCounter: 4},
		255: {PortSelect: 255, PortXmitData: 1<<32 - 1, SymbolErrorCounter: 0xffff, LinkDownedCounter: 7, LocalLinkIntegrityErrors: 15},
	} {
		_, data := r.perf(mad.MethodGet, mad.AttrPortCounters, 0, "leaf-1", &mad.PortCounters{PortSelect: port})
		var got mad.PortCounters
		got.Decode(data)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("port %d (-want +got)\n%s", port, diff)
		}
	}
	_, data := r.perf(mad.MethodGet, mad.AttrPortCountersExtended, 0, "leaf-1", &mad.PortCountersExtended{PortSelect: 255})
	var got mad.PortCountersExtended
	got.Decode(data)
	want := mad.PortCountersExtended{PortSelect: 255, PortXmitData: ^uint64(0), SymbolErrorCounter: 0xffff, LinkDownedCounter: 7, LocalLinkIntegrityErrors: 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all ports, extended (-want +got)\n%s", diff)
	}
	// Clearing all ports at once.
	r.perf(mad.MethodSet, mad.AttrPortCounters, 0, "leaf-1", &mad.PortCounters{PortSelect: 255, CounterSelect: 0xffff, CounterSelect2: 3})
	_, data = r.perf(mad.MethodGet, mad.AttrPortCountersExtended, 0, "leaf-1", &mad.PortCountersExtended{PortSelect: 255})
	got.Decode(data)
	if diff := cmp.Diff(mad.PortCountersExtended{PortSelect: 255}, got); diff != "" {
		t.Errorf("after clearing (-want +got)\n%s", diff)
	}
}
