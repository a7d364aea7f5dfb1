package sim

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/mad/engine"
)

// bringUpTopologies are the specs of the topologies on which properties are tested.
var testTopologies = []string{
	"", "fattree:k=8,levels=3", "fattree:k=4,levels=4", "fattree:k=4,levels=1", "fattree:k=2,levels=3",
	"pgft:m=4/4/8,w=1/2/4,p=1/2/1", "pgft:m=3/3,w=1/2,p=2/3", "pgft:m=6/2/5,w=1/3/1,p=1/1/2",
	"ring:n=1", "ring:n=2", "ring:n=2,hosts=0", "ring:n=9,hosts=3", "ring:n=100,hosts=2",
}

// picture is a topology as text.
func picture(f *fabric.Fabric) (list []string) {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		list = append(list, fmt.Sprintf("%v %v %q %d ports", n.Type(), n.GUID(), n.Name(), n.NumPorts()))
		for p := range n.Ports() {
			if p.Peer() != nil {
				list = append(list, fmt.Sprintf("  %s - %s", p.Name(), p.Peer().Name()))
			}
		}
	}
	return list
}

// discover sweeps a subnet.
func (r *rig) discover(o engine.Options) *fabric.Fabric {
	r.t.Helper()
	f, err := discover.Sweep(context.Background(), r.engine(o), discover.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// TestDiscover: a sweep finds the simulated topology.
func TestDiscover(t *testing.T) {
	for _, spec := range testTopologies {
		if spec == "ring:n=2,hosts=0" { // no node to ask from
			continue
		}
		t.Run(spec, func(t *testing.T) {
			r := newRig(t, spec)
			got := r.discover(engine.Options{})
			if diff := cmp.Diff(r.Fabric.String(), got.String()); diff != "" {
				t.Error(diff, got.Problems())
			}
			if diff := cmp.Diff(picture(r.Fabric), picture(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for i := range got.Nodes() {
				n := &got.Nodes()[i]
				if at := r.state.LIDs[n.LID()]; at == nil || at.Node.Label != n.Label() {
					t.Errorf("%s has LID %d", n.Label(), n.LID())
				}
			}
			// What was found can be simulated in its turn.
			again := &rig{t: t, Fabric: got, Subnet: New(got, Options{})}
			again.conn = again.attach(got.From().Node().Name())
			if diff := cmp.Diff(picture(r.Fabric), picture(again.discover(engine.Options{}))); diff != "" {
				t.Errorf("the second time (-want +got)\n%s", diff)
			}
			for i := range again.state.Ports {
				if p, q := &again.state.Ports[i], &r.state.Ports[i]; p.LID != q.LID || p.Rate != q.Rate || p.State != q.State {
					t.Fatalf("the second time, port %d of %s differs", p.Num, p.Node.Label)
				}
			}
		})
	}
}

// TestDiscoverWithFaults: with faults a sweep finds the whole topology.
func TestDiscoverWithFaults(t *testing.T) {
	want := picture(newRig(t, "fattree:k=8,levels=3").Fabric)
	for _, faults := range []string{"delay=20ms", "loss=0.05,delay=20ms", "loss=0.02,dup=0.1,busy=0.1,delay=5ms,jitter=20ms"} {
		t.Run(faults, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=8,levels=3,"+faults)
				start := time.Now()
				got := r.discover(engine.Options{Retries: 5})
				t.Log(time.Since(start))
				if diff := cmp.Diff(want, picture(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if len(got.Problems()) > 0 {
					t.Error(got.Problems())
				}
			})
		})
	}
}

// TestDiscoverDead: a dead host is missing, and one problem names it.
func TestDiscoverDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=8,levels=3,delay=1ms,dead=node-0100 HCA-1")
		start := time.Now()
		got := r.discover(engine.Options{})
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("took %v: more than one ladder of retries", took)
		}
		if len(got.Nodes()) != 207 || got.Complete() || len(got.Problems()) != 1 {
			t.Errorf("%v; %v", got, got.Problems())
		}
	})
}
