package sim

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// choice is what packets of RC from a host may take at a switch.
func (r *rig) choice(sw, to string) adaptive.Choice {
	r.state.EnsureTables()
	n := &r.state.Nodes[r.named(sw).ID()]
	return n.Choose(adaptive.Packet{In: 1, LID: r.lid(to), Transport: adaptive.RC}, (*state.Port).Active)
}

// TestAdaptiveLFTWrite: a write of the linear forwarding table ends adaptive routing there:
// packets follow the table, and the others keep theirs.
func TestAdaptiveLFTWrite(t *testing.T) {
	r := newRig(t, "fattree:k=4,ar=updn")
	to := r.lid("node-0008 HCA-1")
	_, before := r.get(mad.AttrAdaptiveRoutingLFT, uint32(to)/16, r.lid("leaf-1"))
	_, block := r.get(mad.AttrLinearForwardingTable, 0, r.lid("leaf-1"))
	block[to] = 1 // back to node-0001
	if status, _ := r.set(mad.AttrLinearForwardingTable, 0, r.lid("leaf-1"), block); status != mad.StatusOK {
		t.Fatal(status)
	}
	for name, want := range map[string]bool{"leaf-1": false, "leaf-2": true} {
		var info mad.AdaptiveRoutingInfo
		_, data := r.get(mad.AttrAdaptiveRoutingInfo, 0, r.lid(name))
		if info.Decode(data); info.E != want {
			t.Errorf("%s: enabled is %v", name, info.E)
		}
	}
	if _, after := r.get(mad.AttrAdaptiveRoutingLFT, uint32(to)/16, r.lid("leaf-1")); !cmp.Equal(before, after) {
		t.Error("the table of adaptive routing has changed")
	}
	if in := state.ForwardLID(r.at("node-0002 HCA-1", 1), to, false); in != nil {
		t.Errorf("a packet arrives at %s, and not where the linear table says", in.Node.Label)
	}
}

// TestFastRecovery: while the subnet manager is away, packets skip a member of a group whose
// link is down: adaptive ones, and static ones of a group.
func TestFastRecovery(t *testing.T) {
	for _, recovery := range []bool{true, false} {
		r := newRig(t, "fattree:k=8,ar=updn")
		to := r.lid("node-0032 HCA-1")
		leaf := &r.state.Nodes[r.named("leaf-1").ID()]
		leaf.Adaptive.Info.FREnabled = recovery
		leaf.Adaptive.Update()
		r.state.EnsureTables()
		static := leaf.LFT[to]
		r.state.SM = nil
		if err := r.Cables.Unlink(leaf.GUID(), int(static)); err != nil {
			t.Fatal(err)
		}
		c := r.choice("leaf-1", "node-0032 HCA-1")
		if c.Ports.Has(static) || c.Ports.Len() != 3 {
			t.Errorf("adaptive packets take ports %v; port %d is down", c.Ports, static)
		}
		in := state.ForwardLID(r.at("node-0002 HCA-1", 1), to, false)
		if (in != nil) != recovery {
			t.Errorf("recovery %v: a static packet arrives at %v", recovery, in)
		}
		if err := r.Traffic.Set([]Flow{{From: cableOf(r.at("node-0002 HCA-1", 1)), To: cableOf(r.at("node-0032 HCA-1", 1)), Rate: 1e9}}); err != nil {
			t.Fatal(err)
		}
		if f := r.Traffic.Flows()[0]; f.Carried != 1e9 {
			t.Errorf("recovery %v: an adaptive flow: %+v", recovery, f)
		}
	}
}

// TestAdaptiveFaults: each fault changes what it names, at its switch alone, and stays when
// the subnet manager computes the tables again.
func TestAdaptiveFaults(t *testing.T) {
	const far = "node-0005 HCA-1"
	summary := func(r *rig, sw string) string {
		n := &r.state.Nodes[r.named(sw).ID()]
		c := r.choice(sw, far)
		return fmt.Sprintf("ports %v of %v, group %v of %d, SLs %#x, on %v, keys %v", c.Ports, c.SubGroups, c.Group <= n.Adaptive.GroupTop(), n.Adaptive.Tables[0].Groups.Len(), n.Adaptive.Info.EnableBySLMask, n.Adaptive.Info.E, n.VSKey.ProtectBit && n.N2NKey.ProtectBit)
	}
	const good = "ports 5-8 of [5-8], group true of 9, SLs 0xffff, on true, keys true"
	for fault, want := range map[string]string{
		"stale":   "ports 5,7-8 of [5,7-8], group true of 9, SLs 0xffff, on true, keys true",
		"empty":   "ports  of [], group true of 9, SLs 0xffff, on true, keys true",
		"dead":    "ports 5-8 of [5-9], group true of 9, SLs 0xffff, on true, keys true", // port 9 does not exist
		"illegal": "ports 1,5-8 of [1,5-8], group true of 9, SLs 0xffff, on true, keys true",
		"top":     "ports 5-8 of [5-8], group false of 9, SLs 0xffff, on true, keys true",
		"sl":      "ports 5-8 of [5-8], group true of 9, SLs 0xfffd, on true, keys true",
		"key":     "ports 5-8 of [5-8], group true of 9, SLs 0xffff, on true, keys false",
	} {
		for _, live := range []bool{false, true} {
			spec := "fattree:k=8,ar=updn"
			if !live {
				spec += ",ar_faults=" + fault + "@leaf-1"
			}
			r := newRig(t, spec)
			if live {
				f, err := state.AdaptiveFaultNamed(fault)
				if err == nil {
					r.state.EnsureTables()
					err = r.state.Nodes[r.named("leaf-1").ID()].Break(f)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if got := summary(r, "leaf-1"); got != want {
					t.Errorf("%s, live %v: %s\nwant %s", fault, live, got, want)
				}
				if got := summary(r, "leaf-3"); got != good {
					t.Errorf("%s at another switch, live %v: %s\nwant %s", fault, live, got, good)
				}
				r.state.InvalidateTables()
			}
		}
	}
	r := newRig(t, "fattree:k=8,ar_faults=off@leaf-1")
	if n := &r.state.Nodes[r.named("leaf-1").ID()]; n.Adaptive.Active() {
		t.Error("off: the switch routes adaptively")
	}
}

// TestAdaptiveTraffic: flows that share a link by static routes get links of their own, by
// choices for flows and for packets; a bounded flow keeps its ports when others come and go.
func TestAdaptiveTraffic(t *testing.T) {
	for spec, want := range map[string]string{
		"fattree:k=8":                                "2.5e+10 of 5e+10, 1 ports up",
		"fattree:k=8,ar=updn":                        "5e+10 of 5e+10, 4 ports up",
		"fattree:k=8,ar=updn,ar_with=free":           "5e+10 of 5e+10, 4 ports up",
		"fattree:k=8,ar=updn,ar_faults=off@leaf-1":   "2.5e+10 of 5e+10, 1 ports up",
		"fattree:k=8,ar=updn,ar_faults=empty@leaf-1": "3.75e+10 of 5e+10, 3 ports up",
	} {
		r := newRig(t, spec)
		var flows []Flow
		for i, to := range []string{"node-0005", "node-0009", "node-0013", "node-0017"} { // the first hosts of leaves
			flows = append(flows, Flow{From: cableOf(r.at(fmt.Sprintf("node-%04d HCA-1", i+1), 1)), To: cableOf(r.at(to+" HCA-1", 1)), Rate: 12.5e9})
		}
		if err := r.Traffic.Set(flows); err != nil {
			t.Fatal(err)
		}
		if got := r.carried("leaf-1"); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

// TestAdaptiveFlowKeepsPort: a bounded flow leaves its port when the link fails, and does not
// return when it is back; parts of a free one do.
func TestAdaptiveFlowKeepsPort(t *testing.T) {
	for with, want := range map[string][3]string{"": {"5", "6", "6"}, ",ar_with=free": {"5-8", "6-8", "5-8"}} {
		r := newRig(t, "fattree:k=8,ar=updn"+with)
		leaf := &r.state.Nodes[r.named("leaf-1").ID()]
		used := func() string {
			r.Traffic.Flows()
			var ports adaptive.Ports
			for i := range leaf.Ports {
				if p := &leaf.Ports[i]; p.Num > 4 && p.Counters.Grows() {
					ports.Add(p.Num)
				}
			}
			return ports.String()
		}
		if err := r.Traffic.Set([]Flow{{From: cableOf(r.at("node-0001 HCA-1", 1)), To: cableOf(r.at("node-0009 HCA-1", 1)), Rate: 1e9}}); err != nil {
			t.Fatal(err)
		}
		var got [3]string
		got[0] = used()
		if err := r.Cables.Unlink(leaf.GUID(), 5); err != nil {
			t.Fatal(err)
		}
		got[1] = used()
		if err := r.Cables.Link(leaf.GUID(), 5); err != nil {
			t.Fatal(err)
		}
		if got[2] = used(); got != want {
			t.Errorf("%s: ports %q, want %q", with, got, want)
		}
	}
}

// carried is the sum of what flows carry and demand, and the number of ports up of a leaf in use.
func (r *rig) carried(leaf string) string {
	carried, rate, ports := 0.0, 0.0, 0
	for _, f := range r.Traffic.Flows() {
		carried, rate = carried+f.Carried, rate+f.Rate
	}
	n := &r.state.Nodes[r.named(leaf).ID()]
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Up && p.Peer.Node.IsSwitch && p.Num > 0 && p.Counters.Grows() && p.Peer.Counters.Grows() {
			ports++
		}
	}
	return fmt.Sprintf("%g of %g, %d ports up", carried, rate, ports)
}
