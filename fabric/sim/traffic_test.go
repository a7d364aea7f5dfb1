package sim

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// clocked is a rig with a time that the test moves.
func clocked(t *testing.T, spec string) (*rig, *time.Time) {
	now := time.Unix(0, 0)
	r := newRig(t, spec)
	r.SetClock(func() time.Time { return now })
	return r, &now
}

// cable is the end of a cable, by names.
func (r *rig) cable(name string, num int) Cable {
	return Cable{Node: r.named(name).GUID(), Num: num}
}

// counters reads the counters of an attribute that are not 0, by script name.
func (r *rig) counters(a *mad.Attribute, name string, num uint8) map[string]uint64 {
	r.t.Helper()
	c := &engine.Call{}
	c.PutPerf(mad.MethodGet, a.ID, 0, []byte{0, num})
	c.SetLID(r.lid(name))
	if !r.conn.ask(r.t, c) || c.Header().Status != 0 {
		r.t.Fatalf("%s: %v", name, c.Header().Status)
	}
	got := map[string]uint64{}
	for _, k := range a.Counters() {
		if v := k.Uint(c.Data()); v != 0 {
			got[k.Script] = v
		}
	}
	return got
}

// clearCounters clears counters by select bits.
func (r *rig) clearCounters(a *mad.Attribute, name string, num uint8, bits uint16) {
	r.t.Helper()
	c := &engine.Call{}
	c.PutPerf(mad.MethodSet, a.ID, 0, []byte{0, num, byte(bits >> 8), byte(bits)})
	c.SetLID(r.lid(name))
	if !r.conn.ask(r.t, c) || c.Header().Status != 0 {
		r.t.Fatalf("%s: %v", name, c.Header().Status)
	}
}

// TestErrors: counters are set, grow with time, stop at their largest value, and are
// cleared, while they go on growing.
func TestErrors(t *testing.T) {
	r, now := clocked(t, small)
	leaf := r.named("leaf-1").GUID()
	check := func(what string, a *mad.Attribute, want map[string]uint64) {
		t.Helper()
		if diff := cmp.Diff(want, r.counters(a, "leaf-1", 2)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	if err := r.Counters.Set(leaf, 2, map[string]uint64{"symbol_error_counter": 9, "local_link_integrity_errors": 99, "port_xmit_data": 1 << 40, "port_xmit_data_sl3": 7}); err != nil {
		t.Fatal(err)
	}
	check("set", mad.AttrPortCounters, map[string]uint64{"symbol_error_counter": 9, "local_link_integrity_errors": 15, "port_xmit_data": 1<<32 - 1})
	check("extended", mad.AttrPortCountersExtended, map[string]uint64{"symbol_error_counter": 9, "local_link_integrity_errors": 99, "port_xmit_data": 1 << 40})
	if got := r.at("leaf-1", 2).Counters.Value(state.CounterKey{Name: "PortXmitDataSL", Element: 3}, time.Time{}); got != 7 {
		t.Errorf("port_xmit_data_sl3: %d", got)
	}
	if err := r.Counters.SetRates(leaf, 2, map[string]float64{"symbol_error_counter": 2, "link_downed_counter": 0.4}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(4 * time.Second)
	check("after 4 s", mad.AttrPortCounters, map[string]uint64{"symbol_error_counter": 17, "link_downed_counter": 1, "local_link_integrity_errors": 15, "port_xmit_data": 1<<32 - 1})
	r.clearCounters(mad.AttrPortCounters, "leaf-1", 2, 1)
	*now = now.Add(time.Second)
	check("cleared, and a second later", mad.AttrPortCounters, map[string]uint64{"symbol_error_counter": 2, "link_downed_counter": 2, "local_link_integrity_errors": 15, "port_xmit_data": 1<<32 - 1})
	*now = now.Add(24 * time.Hour)
	check("a day later", mad.AttrPortCounters, map[string]uint64{"symbol_error_counter": 1<<16 - 1, "link_downed_counter": 255, "local_link_integrity_errors": 15, "port_xmit_data": 1<<32 - 1})
	if err := r.Counters.SetRates(leaf, 2, map[string]float64{"symbol_error_counter": 0, "link_downed_counter": 0}); err != nil {
		t.Fatal(err)
	}
	r.clearCounters(mad.AttrPortCounters, "leaf-1", 2, 0xffff)
	*now = now.Add(24 * time.Hour)
	check("ended", mad.AttrPortCounters, map[string]uint64{})
	for _, name := range []string{"symbol_errors", "", "port_xmit_data_sl99", "lid"} {
		if err := r.Counters.Set(leaf, 2, map[string]uint64{name: 1, "symbol_error_counter": 1}); err == nil {
			t.Errorf("counter %q", name)
		}
	}
	check("after names that are no counters", mad.AttrPortCounters, map[string]uint64{})
	if err := r.Counters.SetRates(leaf, 9, map[string]float64{"symbol_error_counter": 1}); err == nil {
		t.Error("port 9 of 4")
	}
}

// TestTraffic: traffic moves the counters of the ports on its way, which follows the
// tables; what has no way is counted where it is lost.
func TestTraffic(t *testing.T) {
	r, now := clocked(t, small)
	from, to := r.cable("node-0001 HCA-1", 0), r.cable("node-0008 HCA-1", 1)
	if err := r.Traffic.Set([]Flow{{From: from, To: to, Rate: 4096e3}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(2 * time.Second)
	moved := func(name string, num uint8, dir string) uint64 {
		t.Helper()
		return r.counters(mad.AttrPortCountersExtended, name, num)["port_"+dir+"_data"]
	}
	const two = 2 * 4096e3 / 4
	for _, at := range []struct {
		name string
		num  uint8
		dir  string
		want uint64
	}{
		{"node-0001 HCA-1", 1, "xmit", two}, {"leaf-1", 1, "rcv", two}, {"leaf-1", 4, "xmit", two}, {"spine-2", 1, "rcv", two},
		{"spine-2", 4, "xmit", two}, {"leaf-4", 2, "xmit", two}, {"node-0008 HCA-1", 1, "rcv", two},
		{"node-0008 HCA-1", 1, "xmit", 0}, {"leaf-1", 3, "xmit", 0}, {"leaf-1", 2, "xmit", 0},
	} {
		if got := moved(at.name, at.num, at.dir); got != at.want {
			t.Errorf("%s/%d %s: %d, want %d", at.name, at.num, at.dir, got, at.want)
		}
	}
	want := map[string]uint64{"port_xmit_data": two, "port_xmit_pkts": 2000, "port_unicast_xmit_pkts": 2000}
	if diff := cmp.Diff(want, r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := r.counters(mad.AttrPortXmitDataSL, "leaf-1", 4); got["port_xmit_data_sl"] != two {
		t.Errorf("by service level: %v", got)
	}
	// Another way from now on.
	r.Cables.Unlink(r.named("leaf-1").GUID(), 4)
	*now = now.Add(time.Second)
	if a, b := moved("leaf-1", 4, "xmit"), moved("leaf-1", 3, "xmit"); a != two || b != two/2 {
		t.Errorf("after the cable was pulled: %d, %d", a, b)
	}
	// No way, by a wrong entry: leaf-1 drops it.
	r.route(mad.NoPort)
	*now = now.Add(time.Second)
	if got := r.counters(mad.AttrPortCounters, "leaf-1", 1)["port_rcv_switch_relay_errors"]; got != 1000 {
		t.Errorf("relay errors %d", got)
	}
	r.route(4) // whose cable was pulled
	*now = now.Add(time.Second)
	if got := r.counters(mad.AttrPortCounters, "leaf-1", 4)["port_xmit_discards"]; got != 1000 {
		t.Errorf("discards %d", got)
	}
	before := r.counters(mad.AttrPortCountersExtended, "leaf-1", 1)
	if err := r.Traffic.Set(nil); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Hour)
	if diff := cmp.Diff(before, r.counters(mad.AttrPortCountersExtended, "leaf-1", 1)); diff != "" {
		t.Errorf("traffic that was ended went on (-before +after)\n%s", diff)
	}
	if err := r.Traffic.Set([]Flow{{From: from, To: Cable{Node: 1}, Rate: 1}}); err == nil {
		t.Error("traffic to nobody")
	}
}

// TestCongestion: a link carries no more than its rate, and the ports before it wait.
func TestCongestion(t *testing.T) {
	r, now := clocked(t, small)
	var flows []Flow
	for _, name := range []string{"node-0003 HCA-1", "node-0005 HCA-1", "node-0007 HCA-1"} {
		flows = append(flows, Flow{From: r.cable(name, 1), To: r.cable("node-0001 HCA-1", 1), Rate: 20e9})
	}
	if err := r.Traffic.Set(flows); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	last := r.counters(mad.AttrPortCountersExtended, "leaf-1", 1)
	if got := last["port_xmit_data"] * 4; got < 24_999_999_000 || got > 25_000_000_000 || last["port_xmit_wait"] != 0 {
		t.Errorf("the last link carries %d bytes a second, of %v", got, last)
	}
	first := r.counters(mad.AttrPortCountersExtended, "node-0003 HCA-1", 1)
	if first["port_xmit_wait"] == 0 || first["port_xmit_data"]*4 > 8_400_000_000 {
		t.Errorf("a host: %v", first)
	}
	if flows := r.Traffic.HostPairs(1); len(flows) != 8 || flows[0].To.Node != r.named("node-0005 HCA-1").GUID() {
		t.Errorf("pairs %v", flows)
	}
}

// TestPower: a node without power is silent, and has forgotten what it knew when it
// has some again; the subnet manager notices both.
func TestPower(t *testing.T) {
	r := newRig(t, small)
	host, leaf := r.named("node-0002 HCA-1").GUID(), r.named("leaf-4").GUID()
	lid := r.lid("node-0002 HCA-1")
	reports := r.attach("node-0003 HCA-1")
	r.accept(reports, mad.ClassSubnAdm, mad.MethodReport)
	if s := r.inform(reports, everything(), 0); s != 0 {
		t.Fatal(s)
	}
	r.Counters.Set(host, 1, map[string]uint64{"symbol_error_counter": 3})
	answers := func(lid mad.LID) bool { return r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, lid, nil)) }
	if err := r.Cables.Kill(host); err != nil {
		t.Fatal(err)
	}
	if answers(lid) {
		t.Error("a dead node answers")
	}
	want := []string{"Report 1 7: trap 128 of LID 1 leaf-1, switch 1", "Report 2 7: trap 65 of LID 7 node-0001 HCA-1, node-0002 HCA-1"}
	if diff := cmp.Diff(want, r.events(reports)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := r.Cables.Link(host, 1); err != nil || r.at("leaf-1", 2).Up {
		t.Errorf("a cable to a dead node came up: %v", err)
	}
	if err := r.Cables.Reboot(host); err != nil {
		t.Fatal(err)
	}
	if !answers(lid) || len(r.counters(mad.AttrPortCounters, "node-0002 HCA-1", 1)) != 0 {
		t.Error("after the reboot")
	}
	if got := r.events(reports); len(got) != 2 {
		t.Errorf("reports of the reboot: %q", got)
	}
	if err := r.Cables.Kill(leaf); err != nil || answers(r.lid("leaf-4")) || answers(r.lid("node-0008 HCA-1")) {
		t.Errorf("a switch is dead: %v", err)
	}
	if err := r.Cables.Reboot(leaf); err != nil || !answers(r.lid("leaf-4")) || !answers(r.lid("node-0008 HCA-1")) {
		t.Errorf("a switch was rebooted: %v", err)
	}
	if r.Cables.Kill(1) == nil || r.Cables.Reboot(1) == nil {
		t.Error("nobody was killed")
	}
	if err := r.Cables.Kill(r.named("node-0001 HCA-1").GUID()); err != nil || r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, here, nil)) {
		t.Errorf("the subnet manager's own node: %v", err)
	}
	if err := r.Cables.Unlink(r.named("leaf-2").GUID(), 1); err != nil || r.at("leaf-2", 0).LID == 0 {
		t.Error(err)
	}
}

// TestSetLink: a link trains to a speed and a width, and cables are exchanged.
func TestSetLink(t *testing.T) {
	r := newRig(t, small)
	leaf := r.named("leaf-1").GUID()
	for _, test := range []struct{ speed, width, wantSpeed, wantWidth string }{
		{"edr", "", "edr", "4x"}, {"", "1x", "edr", "1x"}, {"hdr", "2x", "hdr", "2x"}, {"ndr", "4x", "ndr", "4x"}, {"qdr", "12x", "qdr", "12x"}, {"xdr", "4x", "xdr", "4x"}, {"sdr", "1x", "sdr", "1x"},
	} {
		if err := r.Cables.SetLink(leaf, 2, state.Limit{Speed: test.speed, Width: test.width}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []*state.Port{r.at("leaf-1", 2), r.at("node-0002 HCA-1", 1)} {
			var i mad.PortInfo
			i.Decode(at.Info[:])
			if s, w := mad.ActiveSpeed(&i), mad.ActiveWidth(&i); s != test.wantSpeed || w != test.wantWidth || i.PortState != mad.PortStateActive {
				t.Errorf("%+v: %s %s %v", test, s, w, i.PortState)
			}
		}
	}
	for _, bad := range [][2]string{{"fast", ""}, {"", "3x"}, {"fdr10", ""}} {
		if r.Cables.SetLink(leaf, 2, state.Limit{Speed: bad[0], Width: bad[1]}) == nil {
			t.Errorf("%q", bad)
		}
	}
	if err := r.Cables.Swap(r.cable("leaf-1", 1), r.cable("leaf-4", 2)); err != nil {
		t.Fatal(err)
	}
	if p := r.at("leaf-1", 1).Peer; p != r.at("node-0008 HCA-1", 1) || r.at("leaf-4", 2).Peer != r.at("node-0001 HCA-1", 1) || !p.Up {
		t.Errorf("swapped: %v", p.Node.Label)
	}
	if r.Cables.Swap(r.cable("leaf-1", 1), r.cable("leaf-1", 1)) == nil || r.Cables.Swap(r.cable("leaf-1", 1), r.cable("node-0008 HCA-1", 1)) == nil || r.Cables.Swap(r.cable("leaf-1", 1), r.cable("leaf-1", 0)) == nil {
		t.Error("a swap that is none")
	}
}

// TestLocalLoss: MADs are lost where they cross a port, and nowhere else; BUSY comes
// as often as it was asked for.
func TestLocalLoss(t *testing.T) {
	r := newRig(t, small)
	ask := func(to any) (answers int) {
		for i := range 100 {
			c := smp(mad.MethodGet, mad.AttrPortInfo, uint32(i%5), to, nil)
			if r.conn.ask(t, c) {
				answers++
			}
		}
		return answers
	}
	far := mad.DirectedRoute{0, 1, 4, 4}
	got := map[string]int{}
	count := func(when string) {
		got[when+", leaf-1"], got[when+", leaf-4"], got[when+", leaf-4 by LID"] = ask(leaf1), ask(far), ask(r.lid("leaf-4"))
	}
	count("before")
	spine := r.named("spine-2").GUID()
	if err := r.Faults.SetLoss(0.5, spine, 4); err != nil {
		t.Fatal(err)
	}
	count("half")
	r.Faults.SetLoss(1, spine, -1)
	count("all")
	r.Faults.SetLoss(0, spine, -1)
	count("after")
	want := map[string]int{}
	for _, when := range []string{"before", "half", "all", "after"} {
		want[when+", leaf-1"], want[when+", leaf-4"], want[when+", leaf-4 by LID"] = 100, 100, 100
	}
	want["all, leaf-4"] = 0
	lost := got["half, leaf-4"]
	if lost < 10 || lost > 40 { // a quarter comes through both ways
		t.Errorf("half: %d", lost)
	}
	want["half, leaf-4"] = lost
	maps.DeleteFunc(got, func(k string, _ int) bool { return k == "all, leaf-4 by LID" || k == "half, leaf-4 by LID" })
	maps.DeleteFunc(want, func(k string, _ int) bool { return k == "all, leaf-4 by LID" || k == "half, leaf-4 by LID" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// What comes in through the spine's port 1, or ends there: requests to leaf-1, which
	// is on the near side, do not.
	at := state.End{Node: r.named("spine-2").ID(), Num: 1}
	r.Faults.LosePackets(at, 100, 0)
	if n := ask(far); n != 0 {
		t.Errorf("all that comes in is lost, and %d answers came", n)
	}
	r.Faults.LosePackets(at, 100, mad.AttrNodeDescription.ID)
	if n := ask(far); n != 100 {
		t.Errorf("of requests for another attribute, %d are answered", n)
	}
	r.Faults.LosePackets(at, 100, mad.AttrPortInfo.ID)
	if n, m := ask(mad.DirectedRoute{0, 1, 4}), ask(far); n != 0 || m != 100 {
		t.Errorf("requests that end there: %d are answered, and %d of those that pass", n, m)
	}
	r.Faults.LosePackets(at, 0, 0)
	r.Faults.SetLoss(1, 0, 0)
	if ask(leaf1) != 0 {
		t.Error("all is lost, and something came")
	}
	r.Faults.SetLoss(0, 0, 0)
	for _, p := range []float64{-1, 2} {
		if r.Faults.SetLoss(p, 0, 0) == nil {
			t.Errorf("probability %v", p)
		}
	}
	if err := r.Faults.SetBusy(r.named("leaf-1").GUID(), 3); err != nil {
		t.Fatal(err)
	}
	busy := 0
	for range 5 {
		if status, _ := r.get(mad.AttrNodeInfo, 0, leaf1); status == mad.StatusBusy {
			busy++
		}
	}
	if busy != 3 {
		t.Errorf("BUSY %d times", busy)
	}
}

// TestSendTrap: each trap reaches the subscribers.
func TestSendTrap(t *testing.T) {
	r := newRig(t, small)
	r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
	r.inform(r.conn, everything(), 1)
	for _, number := range state.Traps {
		if err := r.Notices.SendTrap(number, r.named("leaf-1").GUID(), 2, nil); err != nil {
			t.Error(err)
		}
		if got := r.events(r.conn); len(got) != 1 {
			t.Errorf("trap %d: %q", number, got)
		}
	}
	if r.Notices.SendTrap(1, r.named("leaf-1").GUID(), 2, nil) == nil || r.Notices.SendTrap(128, r.named("node-0001 HCA-1").GUID(), 1, nil) == nil || r.Notices.SendTrap(129, 1, 1, nil) == nil {
		t.Error("traps that there are not")
	}
}

// TestVL15: of answers to SMPs, a few may wait.
func TestVL15(t *testing.T) {
	f, o := mustParse(t, small)
	o.VL15 = 4
	r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
	r.conn = r.attach("node-0001 HCA-1")
	for range 9 {
		c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, leaf1, nil)
		r.conn.Send(&engine.Datagram{Address: c.To, MAD: c.MAD[:]})
	}
	if got := r.conn.Waiting(); got != 4 {
		t.Errorf("%d answers wait", got)
	}
}

// TestTrafficBefore: what went before a change is counted where it went, although
// no counter was read in between.
func TestTrafficBefore(t *testing.T) {
	const second = 4096e3 / 4
	for name, test := range map[string]struct {
		change func(r *rig) error
		want   uint64 // that leaf-1/4 has sent
	}{
		"a cable":            {func(r *rig) error { return r.Cables.Unlink(r.named("leaf-1").GUID(), 4) }, 2 * second},
		"a hand":             {func(r *rig) error { return r.Cables.Pull(state.End{Node: r.named("leaf-1").ID(), Num: 4}) }, 2 * second},
		"power":              {func(r *rig) error { return r.Cables.Kill(r.named("spine-2").GUID()) }, 2 * second},
		"a set":              {func(r *rig) error { return r.route(mad.NoPort) }, 2 * second},
		"a reboot":           {func(r *rig) error { return r.Cables.Reboot(r.named("leaf-1").GUID()) }, 0},
		"all that was there": {func(r *rig) error { return r.Counters.Reset(r.named("leaf-1").GUID(), 4) }, 0},
	} {
		r, now := clocked(t, small)
		if err := r.Traffic.Set([]Flow{{From: r.cable("node-0001 HCA-1", 0), To: r.cable("node-0008 HCA-1", 1), Rate: 4096e3}}); err != nil {
			t.Fatal(err)
		}
		*now = now.Add(2 * time.Second)
		if err := test.change(r); err != nil {
			t.Fatal(err)
		}
		if got := r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)["port_xmit_data"]; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestTrafficBare: also where another program is the subnet manager, a cable that a
// hand pulls carries nothing.
func TestTrafficBare(t *testing.T) {
	r, now := clocked(t, small)
	r.state.SM = nil
	if err := r.Traffic.Set([]Flow{{From: r.cable("node-0001 HCA-1", 0), To: r.cable("node-0008 HCA-1", 1), Rate: 4096e3}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	want := r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)
	want["port_xmit_discards"], want["link_downed_counter"] = 1000, 1 // it has no other way
	if err := r.Cables.Pull(state.End{Node: r.named("leaf-1").ID(), Num: 4}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	if diff := cmp.Diff(want, r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// route sets where leaf-1 sends what is for node-0008.
func (r *rig) route(port byte) error {
	r.t.Helper()
	_, block := r.get(mad.AttrLinearForwardingTable, 0, leaf1)
	data := append([]byte(nil), block...)
	data[r.lid("node-0008 HCA-1")] = port
	r.set(mad.AttrLinearForwardingTable, 0, leaf1, data)
	return nil
}

// TestManyFlows: traffic of all hosts of a large subnet is begun at once; it took 5 s
// while each flow looked for its nodes among all.
func TestManyFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("a large subnet")
	}
	r := newRig(t, "fattree:k=254,levels=2")
	begun := time.Now()
	flows := r.Traffic.HostPairs(1e9)
	if err := r.Traffic.Set(flows); err != nil || len(flows) != 32258 {
		t.Fatal(len(flows), err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("%d flows took %v", len(flows), took)
	}
}
