package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestMaxMin: at a single switch, where an input port has at most one flow to each output,
// the rates are max-min fair.
func TestMaxMin(t *testing.T) {
	r := newRig(t, "fattree:k=16,levels=1")
	hosts := r.Traffic.HostPairs(1)
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var flows []Flow
		used := map[[2]int]bool{}
		for range 1 + random.IntN(40) {
			pair := [2]int{random.IntN(len(hosts)), random.IntN(len(hosts))}
			if pair[0] == pair[1] || used[pair] {
				continue
			}
			used[pair] = true
			flows = append(flows, Flow{From: hosts[pair[0]].From, To: hosts[pair[1]].From, Rate: 25e9 * random.Float64()})
		}
		if err := r.Traffic.Set(flows); err != nil {
			t.Fatal(err)
		}
		want := maxMin(flows, 25e9)
		for i, f := range r.Traffic.Flows() {
			if math.Abs(f.Carried-want[i]) > 1e3 {
				t.Errorf("seed %d, flow %d of %d: %.0f bytes a second, want %.0f", seed, i, len(flows), f.Carried, want[i])
			}
		}
	}
}

// maxMin returns the max-min fair rates of flows through a switch whose links carry capacity
// in each direction: the least share of any link is settled first.
func maxMin(flows []Flow, capacity float64) []float64 {
	rates, settled := make([]float64, len(flows)), make([]bool, len(flows))
	links := func(i int) [2]string {
		return [2]string{fmt.Sprint("from ", flows[i].From), fmt.Sprint("to ", flows[i].To)}
	}
	for range flows {
		left, open := map[string]float64{}, map[string]float64{}
		for i := range flows {
			for _, l := range links(i) {
				if left[l] += -rates[i]; !settled[i] {
					open[l]++
				}
			}
		}
		best, least := -1, math.Inf(1)
		for i := range flows {
			if settled[i] {
				continue
			}
			share := flows[i].Rate
			for _, l := range links(i) {
				share = min(share, (capacity+left[l])/open[l])
			}
			if share < least {
				best, least = i, share
			}
		}
		if best < 0 {
			break
		}
		rates[best], settled[best] = least, true
	}
	return rates
}

// TestParkingLot: on a row of switches, each sender nearer to the receiver gets as much as
// all that are farther away.
func TestParkingLot(t *testing.T) {
	r := newRig(t, "mesh:dims=4,speed=edr")
	to := r.cable("node-0001 HCA-1", 1)
	var flows []Flow
	for _, name := range []string{"node-0005 HCA-1", "node-0009 HCA-1", "node-0013 HCA-1"} {
		flows = append(flows, Flow{From: r.cable(name, 1), To: to, Rate: 12.5e9})
	}
	if err := r.Traffic.Set(flows); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{6.25e9, 3.125e9, 3.125e9} {
		if got := r.Traffic.Flows()[i].Carried; math.Abs(got-want) > 1e3 {
			t.Errorf("%s: %.0f bytes a second, want %.0f", flows[i].From.Node, got, want)
		}
	}
}

// TestLaneWeights: lanes share a link by their weights, whatever the number of flows.
func TestLaneWeights(t *testing.T) {
	r := newRig(t, "fattree:k=16,levels=1")
	to := r.cable("node-0001 HCA-1", 1)
	var flows []Flow
	for i, name := range []string{"node-0003 HCA-1", "node-0005 HCA-1", "node-0007 HCA-1"} {
		flows = append(flows, Flow{From: r.cable(name, 1), To: to, Rate: 25e9, SL: uint8(min(i, 1))})
	}
	var table mad.VLArbitrationTable
	table.VL[1], table.Weight[0], table.Weight[1] = 1, 192, 64
	low := make([]byte, mad.AttrVLArbitrationTable.Size)
	table.Encode(low)
	for _, block := range []uint32{1, 3} {
		if err := r.Edit.Table(mad.AttrVLArbitrationTable, r.named("leaf-1").GUID(), 0, block<<16|1, func(data []byte) { copy(data, low) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Traffic.Set(flows); err != nil {
		t.Fatal(err)
	}
	sums := map[uint8]float64{}
	for _, f := range r.Traffic.Flows() {
		sums[f.SL] += f.Carried
	}
	if math.Abs(sums[0]-18.75e9) > 1e3 || math.Abs(sums[1]-6.25e9) > 1e3 {
		t.Errorf("lanes with the weights 3 and 1 carry %v", sums)
	}
}

// TestPriority: the high-priority table sends up to VLHighLimit for each packet of the
// low-priority one, and what one does not use the other gets.
func TestPriority(t *testing.T) {
	for _, test := range []struct {
		limit     uint8
		rate      float64 // of the high-priority flow
		high, low float64
	}{
		{0, 25e9, 12.5e9, 12.5e9},
		{1, 25e9, 12.5e9, 12.5e9},
		{3, 25e9, 18.75e9, 6.25e9},
		{254, 25e9, 25e9 * 254 / 255, 25e9 / 255},
		{255, 25e9, 25e9, 0},
		{255, 5e9, 5e9, 20e9},
		{3, 5e9, 5e9, 20e9},
	} {
		r := newRig(t, "fattree:k=16,levels=1")
		to := r.cable("node-0001 HCA-1", 1)
		p := r.at("leaf-1", 1)
		info := p.PortInfo()
		info.VLHighLimit = test.limit
		info.Encode(p.Info[:])
		for block, lane := range map[uint32]uint8{1: 0, 3: 1} {
			var table mad.VLArbitrationTable
			table.VL[0], table.Weight[0] = lane, 64
			data := make([]byte, mad.AttrVLArbitrationTable.Size)
			table.Encode(data)
			if err := r.Edit.Table(mad.AttrVLArbitrationTable, r.named("leaf-1").GUID(), 0, block<<16|1, func(b []byte) { copy(b, data) }); err != nil {
				t.Fatal(err)
			}
		}
		err := r.Traffic.Set([]Flow{{From: r.cable("node-0002 HCA-1", 1), To: to, Rate: test.rate, SL: 1}, {From: r.cable("node-0003 HCA-1", 1), To: to, Rate: 25e9}})
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Traffic.Flows(); math.Abs(f[0].Carried-test.high) > 1e3 || math.Abs(f[1].Carried-test.low) > 1e3 {
			t.Errorf("limit %d: %.0f and %.0f bytes a second, want %.0f and %.0f", test.limit, f[0].Carried, f[1].Carried, test.high, test.low)
		}
	}
}

// TestHeadOfLine: flows behind packets for a receiver that is gone wait with them, and so do
// the flows behind these; flows on another lane or another way do not.
func TestHeadOfLine(t *testing.T) {
	r, now := clocked(t, small)
	gone := r.cable("node-0008 HCA-1", 1)
	if err := r.Cables.Silence(gone.Node, 1, true); err != nil {
		t.Fatal(err)
	}
	host := func(n int) Cable { return r.cable(fmt.Sprintf("node-%04d HCA-1", n), 1) }
	flow := func(from, to int, sl uint8) Flow { return Flow{From: host(from), To: host(to), Rate: 5e9, SL: sl} }
	flows := []Flow{
		flow(1, 8, 0), // discarded at leaf-4
		flow(1, 7, 0), // same sender, same lane
		flow(1, 7, 1), // another lane
		flow(2, 8, 0), // discarded too
		flow(2, 1, 0), // behind these in the buffer of leaf-1
		flow(3, 1, 0), // from another leaf
		flow(7, 3, 0), // from the leaf of the receiver
	}
	if err := r.Traffic.Set(flows); err != nil {
		t.Fatal(err)
	}
	discard := 4096 / (4.096e-6 * (1 << 18)) // bytes per second, at HOQLife 18
	for i, want := range []float64{0, discard / 2, 5e9, 0, discard / 2, 5e9, 5e9} {
		if f := r.Traffic.Flows()[i]; math.Abs(f.Carried-want) > 1 || f.Lost != (want == 0) {
			t.Errorf("flow %d: %+v, want %.0f bytes a second", i, f, want)
		}
	}
	if f := r.Traffic.Flows()[1]; f.Limit != host(1) {
		t.Errorf("the flow from the same sender waits at %+v", f.Limit)
	}
	defer func() { // other senders: leaf-1 sends to LIDs of even hosts through port 4
		if err := r.Traffic.Set([]Flow{flow(1, 8, 0), flow(2, 6, 0), flow(2, 5, 0)}); err != nil {
			t.Fatal(err)
		}
		got := r.Traffic.Flows()
		if math.Abs(got[1].Carried-discard) > 1 || got[1].Limit != r.cable("leaf-1", 4) || math.Abs(got[2].Carried-discard) > 1 || got[2].Limit != host(2) {
			t.Errorf("behind another sender: %+v", got)
		}
	}()
	*now = now.Add(time.Second)
	const second = 25_000_000_000 / 4 // ticks
	lanes := r.lanes("node-0001 HCA-1", 1, mad.AttrPortVLXmitWaitCounters)
	first := r.counters(mad.AttrPortCountersExtended, "node-0001 HCA-1", 1)["port_xmit_wait"]
	if first < second*8/10-1e6 || first > second*8/10+1e6 || lanes[0] == 0 || lanes[1] != 0 {
		t.Errorf("the sender waits %d ticks of %d, while it sends a fifth of the time; by lane: %v", first, second, lanes)
	}
}

// lanes reads a counter of lanes or service levels.
func (r *rig) lanes(name string, num uint8, a *mad.Attribute) (list []uint64) {
	r.t.Helper()
	c := &engine.Call{}
	c.PutPerf(mad.MethodGet, a.ID, 0, []byte{0, num})
	c.SetLID(r.lid(name))
	if !r.conn.ask(r.t, c) || c.Header().Status != 0 {
		r.t.Fatalf("%s: %v", name, c.Header().Status)
	}
	for e := range a.Counters()[0].Count {
		list = append(list, a.Counters()[0].UintAt(c.Data(), e))
	}
	return list
}

// TestReceiverGone: a receiver that takes no packets, while its link is up, makes the port
// before it wait and discard each packet after HOQLife, and the ports before that wait.
func TestReceiverGone(t *testing.T) {
	r, now := clocked(t, small)
	to := r.cable("node-0008 HCA-1", 1)
	if err := r.Cables.Silence(to.Node, 1, true); err != nil {
		t.Fatal(err)
	}
	if err := r.Traffic.Set([]Flow{{From: r.cable("node-0003 HCA-1", 1), To: to, Rate: 5e9}}); err != nil {
		t.Fatal(err)
	}
	if f := r.Traffic.Flows()[0]; f.Carried != 0 || !f.Lost || f.Limit != (Cable{Node: r.named("leaf-4").GUID(), Num: 2}) {
		t.Errorf("the flow: %+v", f)
	}
	*now = now.Add(107 * time.Second) // 100 times HOQLife, which is 1.07 s
	last := r.counters(mad.AttrPortCountersExtended, "leaf-4", 2)
	discards := r.counters(mad.AttrPortCounters, "leaf-4", 2)["port_xmit_discards"]
	late := r.counters(mad.AttrPortXmitDiscardDetails, "leaf-4", 2)["port_sw_hoq_lifetime_limit_discards"]
	if last["port_xmit_data"] != 0 || last["port_xmit_wait"] == 0 || discards != 99 || late != 99 {
		t.Errorf("the last port: %d discards, %d of them late, %v", discards, late, last)
	}
	if first := r.counters(mad.AttrPortCountersExtended, "node-0003 HCA-1", 1); first["port_xmit_wait"] == 0 || first["port_xmit_pkts"] != 99 {
		t.Errorf("the sender: %v", first)
	}
}

// TestMarks: with congestion control on, the switch before a bottleneck marks packets, which
// the receiver and the sender count; without it, and elsewhere, none.
func TestMarks(t *testing.T) {
	r, now := clocked(t, small)
	to := r.cable("node-0001 HCA-1", 1)
	leaf := r.named("leaf-1").GUID()
	var flows []Flow
	for _, name := range []string{"node-0002 HCA-1", "node-0003 HCA-1"} {
		flows = append(flows, Flow{From: r.cable(name, 1), To: to, Rate: 25e9, SL: 2})
	}
	marks := func() (n [3]uint64) {
		*now = now.Add(time.Second)
		n[0] = r.counters(mad.AttrPortRcvConCtrl, "node-0001 HCA-1", 1)["port_pkt_rcv_fecn"]
		n[1] = r.counters(mad.AttrPortRcvConCtrl, "node-0003 HCA-1", 1)["port_pkt_rcv_becn"]
		n[2] = r.counters(mad.AttrPortXmitConCtrl, "leaf-1", 1)["port_xmit_time_cong"]
		return n
	}
	if err := r.Traffic.Set(flows); err != nil {
		t.Fatal(err)
	}
	if got := marks(); got != [3]uint64{} {
		t.Errorf("without congestion control: %v", got)
	}
	set := &mad.SwitchCongestionSetting{Threshold: 15, MarkingRate: 9}
	if err := r.Edit.Congestion(mad.AttrSwitchCongestionSetting, leaf, 0, 0, func(data []byte) { set.Encode(data) }); err != nil {
		t.Fatal(err)
	}
	// 25 GB/s in packets of 4096 bytes, of which every tenth is marked.
	got := marks()
	if got[0] < 610_340 || got[0] > 610_352 || got[1] != got[0]/2 || got[2] != math.MaxUint32 {
		t.Errorf("with congestion control: %v", got)
	}
	only := func(n uint64, at int) []uint64 {
		list := make([]uint64, 16)
		list[at] = n
		return list
	}
	for _, test := range []struct {
		name string
		a    *mad.Attribute
		want []uint64
	}{
		{"node-0001 HCA-1", mad.AttrPortSLRcvFECN, only(got[0], 2)},
		{"node-0003 HCA-1", mad.AttrPortSLRcvBECN, only(got[1], 2)},
		{"leaf-1", mad.AttrPortVLXmitTimeCong, only(math.MaxUint32, 2)[:15]},
		{"node-0001 HCA-1", mad.AttrPortRcvDataSL, only(math.MaxUint32, 2)},
	} {
		if diff := cmp.Diff(test.want, r.lanes(test.name, 1, test.a)); diff != "" {
			t.Errorf("%s of %s: -want +got\n%s", test.a.Name, test.name, diff)
		}
	}
}
