package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fabsh/mad"
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
		flows = append(flows, Flow{From: r.cable(name, 1), To: to, Rate: 25e9})
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
	if got := marks(); got[0] < 610_340 || got[0] > 610_352 || got[1] != got[0]/2 || got[2] != math.MaxUint32 {
		t.Errorf("with congestion control: %v", got)
	}
}
