package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestSpecSeed: the seed decides which cables a random topology has, and what is
// removed; the LIDs are those of what is left.
func TestSpecSeed(t *testing.T) {
	links := func(spec string) (list []string) {
		f, o := mustParse(t, spec)
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Peer() != nil {
				list = append(list, p.Name()+" "+p.Peer().Name())
			}
		}
		got := 0
		for _, p := range New(f, o).state.EndPortsWith(func(*state.Port) bool { return true }) {
			got = max(got, int(p.LID))
		}
		if got != len(f.Nodes()) {
			t.Errorf("%s: highest LID %d of %d nodes", spec, got, len(f.Nodes()))
		}
		return list
	}
	for _, spec := range []string{"random:n=20,degree=5", "torus:dims=4/4,hosts=2,remove_links=5,remove_switches=2"} {
		one := links(spec)
		if !cmp.Equal(one, links(spec+",seed=1")) || cmp.Equal(one, links(spec+",seed=2")) {
			t.Errorf("%s: the seed does not decide", spec)
		}
	}
}

// TestSpecManager: the subnet manager is where the spec has it.
func TestSpecManager(t *testing.T) {
	f, o := mustParse(t, "ring:n=3,sm=node-0002 HCA-1")
	if got := New(f, o).state.SM.Node.Label; got != o.SM.Label() {
		t.Errorf("the subnet manager is on %s", got)
	}
}

// TestHardware: ports have the speed and width that the spec says, errors and traffic
// grow at its rates.
func TestHardware(t *testing.T) {
	f, o := mustParse(t, "fattree:k=4,levels=2,speed=edr,width=2x,errors=leaf-1/2+leaf-2/1@120/m,traffic=8Gb/s,vl15=3")
	r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
	r.conn = r.attach("node-0001 HCA-1")
	now := time.Unix(0, 0) // before the time of the machine
	r.SetClock(func() time.Time { return now })
	now = now.Add(10 * time.Second)
	if got := r.counters(mad.AttrPortCountersExtended, "leaf-1", 2); got["symbol_error_counter"]/20 != 1 || got["port_rcv_data"]/25e8 != 1 {
		t.Errorf("counters %v", got)
	}
	info := r.portInfo(2, leaf1)
	if s, w := mad.ActiveSpeed(&info), mad.ActiveWidth(&info); s != "edr" || w != "2x" {
		t.Errorf("%s %s", s, w)
	}
}
