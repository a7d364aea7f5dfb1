package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

func (r *rig) perf(m mad.Method, a *mad.Attribute, modifier uint32, name string, e state.Encoder) (mad.Status, []byte) {
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
		bits []string // the counters of the select bits, of the second field last
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

// TestSamples: a measurement counts what grows between its begin and its end, whatever
// happens to the counters before and after, and only one runs at a time.
func TestSamples(t *testing.T) {
	r := newRig(t, small)
	now := time.Unix(1000, 0)
	r.SetClock(func() time.Time { return now })
	leaf := r.named("leaf-1").GUID()
	const tick = 1024 * time.Nanosecond
	second := uint32(time.Second / tick)
	grow := func(rate float64) {
		if err := r.Counters.SetRates(leaf, 2, map[string]float64{"port_xmit_pkts": rate, "port_rcv_data": 1e10}); err != nil {
			t.Fatal(err)
		}
	}
	control := func(m mad.Method, port uint8, tag uint16) (c mad.PortSamplesControl) {
		asked := mad.PortSamplesControl{PortSelect: port, SampleStart: 2 * second, SampleInterval: 4 * second, Tag: tag}
		copy(asked.CounterSelect[:], []mad.SampleSelect{mad.SampleSelectPortXmitPkts, 77, mad.SampleSelectPortRcvData, mad.SampleSelectPortXmitWait})
		status, data := r.perf(m, mad.AttrPortSamplesControl, 0, "leaf-1", &asked)
		if status != 0 {
			t.Fatal(status)
		}
		c.Decode(data)
		return c
	}
	result := func() (s mad.PortSamplesResult) {
		status, data := r.perf(mad.MethodGet, mad.AttrPortSamplesResult, 0, "leaf-1", &s)
		if status != 0 {
			t.Fatal(status)
		}
		s.Decode(data)
		return s
	}
	idle := control(mad.MethodGet, 2, 0)
	if want := (mad.PortSamplesControl{PortSelect: 2, Tick: 8, CounterWidth: 4, CounterMask0: 1, CounterMasks1to9: 0o111100000}); idle != want {
		t.Errorf("before: (-want +got)\n%s", cmp.Diff(want, idle))
	}
	grow(1000)
	c := control(mad.MethodSet, 2, 0xbeef)
	if c.SampleStatus != mad.SampleStatusNotBegun || c.Tag != 0xbeef || c.CounterSelect[0] != mad.SampleSelectPortXmitPkts {
		t.Errorf("set: %+v", c)
	}
	now = now.Add(3 * time.Second)
	if c := control(mad.MethodSet, 1, 1); c.PortSelect != 2 || c.SampleStatus != mad.SampleStatusRunning {
		t.Errorf("another, while it runs: %+v", c)
	}
	if s := result(); s != (mad.PortSamplesResult{Tag: 0xbeef, SampleStatus: mad.SampleStatusRunning}) {
		t.Errorf("while it runs: %+v", s)
	}
	grow(500) // for the last 3 seconds of 4
	now = now.Add(10 * time.Second)
	want := mad.PortSamplesResult{Tag: 0xbeef}
	want.Counter[0], want.Counter[2] = 2500, 0xffffffff
	got := result()
	if got.Counter[0] == 2499 { // ticks are no whole part of a second
		got.Counter[0]++
	}
	if got != want {
		t.Errorf("afterwards: (-want +got)\n%s", cmp.Diff(want, got))
	}
	r.Counters.Set(leaf, 2, map[string]uint64{"port_xmit_pkts": 0})
	if again := result(); again.Counter[0]/10 != want.Counter[0]/10 && again.Counter[0] != 2499 {
		t.Errorf("after the counter was set: %d", again.Counter[0])
	}
	if c := control(mad.MethodSet, 1, 2); c.PortSelect != 1 || c.Tag != 2 {
		t.Errorf("the next one: %+v", c)
	}
	for name, bad := range map[string]struct {
		attr     *mad.Attribute
		modifier uint32
		port     uint8
	}{"all ports": {mad.AttrPortSamplesControl, 0, 255}, "no port": {mad.AttrPortSamplesControl, 0, 9}, "mechanism 1": {mad.AttrPortSamplesControl, 1, 1}, "result of mechanism 1": {mad.AttrPortSamplesResult, 1, 0}} {
		if status, _ := r.perf(mad.MethodGet, bad.attr, bad.modifier, "leaf-1", &mad.PortSamplesControl{PortSelect: bad.port}); status != mad.StatusBadValue {
			t.Errorf("%s: %v", name, status)
		}
	}
}

// TestRedirect: a requester that uses the whole address of the redirection gets
// the counters of the node that it asked.
func TestRedirect(t *testing.T) {
	r := newRig(t, small+",redirect=leaf-1@spine-1+node-0002 HCA-1@node-0002 HCA-1")
	counters := func(name string) (*engine.Call, error) {
		e := engine.New(r.attach("node-0001 HCA-1"), engine.Options{Write: true})
		defer e.Close()
		c := new(engine.Call)
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, encode(&mad.PortCounters{PortSelect: 1})[:192])
		c.SetLID(r.lid(name))
		if err := e.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c, c.Err
	}
	r.at("leaf-1", 1).Counters.Set(state.CounterKey{Name: "SymbolErrorCounter", Element: 0}, 7)
	r.at("spine-1", 1).Counters.Set(state.CounterKey{Name: "SymbolErrorCounter", Element: 0}, 8)
	for name, want := range map[string]uint16{"leaf-1": 7, "spine-1": 8} {
		c, err := counters(name)
		if err != nil {
			t.Fatal(err)
		}
		var got mad.PortCounters
		if got.Decode(c.Data()); got.SymbolErrorCounter != want {
			t.Errorf("%s: %d, want %d", name, got.SymbolErrorCounter, want)
		}
	}
	lid := r.lid("node-0002 HCA-1")
	guid := r.at("node-0002 HCA-1", 1).GUID
	want := fmt.Sprintf("PerfGet(PortCounters) to LID %d: redirection required (status 0x0002): the redirections go round in a circle: LID %d, GID %v, GID %v; the agents there are set up wrongly",
		lid, lid, mad.MakeGID(state.GIDPrefix, guid), mad.MakeGID(state.GIDPrefix, guid))
	if _, err := counters("node-0002 HCA-1"); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for name, c := range map[string]engine.Address{
		"wrong Q_Key":      {LID: r.lid("spine-1"), QP: agent.RedirectQP, QKey: 0x12},
		"no Q_Key":         {LID: r.lid("spine-1"), QP: agent.RedirectQP},
		"wrong queue pair": {LID: r.lid("spine-1"), QP: 0x43, QKey: agent.RedirectQKey},
		"another node":     {LID: lid, QP: agent.RedirectQP + 1, QKey: agent.RedirectQKey},
	} {
		call := &engine.Call{To: c}
		call.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, encode(&mad.PortCounters{PortSelect: 1})[:192])
		if r.conn.ask(t, call) {
			t.Errorf("%s: answered", name)
		}
	}
}
