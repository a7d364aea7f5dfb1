package sim

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestAdaptiveTwin: a fabric that was read with its adaptive routing is brought up with it.
func TestAdaptiveTwin(t *testing.T) {
	r := newRig(t, "fattree:k=4,levels=3,ar_faults=empty@leaf-3+off@leaf-2+sl@spine-1")
	r.state.EnsureTables()
	b := fabric.NewBuilder()
	for i := range r.Nodes() {
		n, from := &r.state.Nodes[i], &r.Nodes()[i]
		h := b.AddNode(fabric.NodeSpec{Info: *from.Info(), Name: from.Name()})
		if n.IsSwitch && n.Name() != "core-1" { // of which nothing was read
			b.SetAdaptive(h, n.Adaptive.Routing())
		}
	}
	for i := range r.Ports() {
		if p := &r.Ports()[i]; p.Peer() != nil {
			if err := b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := b.Build()
	twin := &rig{t: t, Fabric: f, Subnet: New(f, Options{})}
	twin.conn = twin.attach(f.OfType(mad.NodeTypeCA)[0].Name())
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		if !n.IsSwitch {
			continue
		}
		for _, a := range []struct {
			attr   *mad.Attribute
			blocks uint32
		}{{mad.AttrAdaptiveRoutingInfo, 1}, {mad.AttrAdaptiveRoutingGroupTable, 12}, {mad.AttrAdaptiveRoutingLFT, 4}} {
			for block := range a.blocks {
				_, want := r.get(a.attr, block, r.lid(n.Name()))
				_, got := twin.get(a.attr, block, twin.lid(n.Name()))
				if n.Name() == "core-1" {
					var info mad.AdaptiveRoutingInfo
					if info.Decode(got); a.attr == mad.AttrAdaptiveRoutingInfo && info.E {
						t.Error("core-1 routes adaptively")
					}
					continue
				}
				if a.attr == mad.AttrAdaptiveRoutingInfo { // GroupTop is what is in use
					copy(got[5:8], want[5:8])
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s %d of %s (-want +got)\n%s", a.attr.Name, block, n.Name(), diff)
				}
			}
		}
	}
}

// TestAdaptiveReaders: readers compute the tables that they need, at the same time.
func TestAdaptiveReaders(t *testing.T) {
	r := newRig(t, "fattree:k=8,levels=3,ar=updn,ar_faults=stale@leaf-1")
	hosts := r.hosts()
	for range 3 {
		r.state.Lock()
		r.state.InvalidateTables()
		r.state.Unlock()
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				r.state.RLock()
				defer r.state.RUnlock()
				var data [state.SMPSize]byte
				n := &r.state.Nodes[i]
				if i%2 == 0 {
					agent.GetAdaptiveLFT(n, 1, data[:])
				} else if in := state.ForwardLID(hosts[i], hosts[100-i].LID, false); in == nil || in.LID != hosts[100-i].LID {
					t.Errorf("arrives at %v", in)
				}
				n.Choose(adaptive.Packet{LID: hosts[i].LID, Transport: adaptive.RC}, (*state.Port).Active)
			})
		}
		readers.Wait()
	}
}
