package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// A cable is unplugged, and plugged in again: the switches at its ends send traps,
// ports without another route disappear and appear, others get another route.
func TestCable(t *testing.T) {
	const spec = "ring:n=3" // with a host each: port 1; the SM is on node-0001's
	r := newRig(t, spec)
	far := r.attach("node-0003 HCA-1")
	for _, c := range []*program{r.conn, far} {
		r.accept(c, mad.ClassSubnAdm, mad.MethodReport)
		if s := r.inform(c, everything(), 0); s != 0 {
			t.Fatal(s)
		}
	}
	sw := func(i int) mad.GUID { return r.named(fmt.Sprintf("switch-%d", i)).GUID() }
	change := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, c *program, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.events(c)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	// TIDs are the subnet administrator's, of all reports.
	change(r.Cables.Unlink(sw(2), 1))
	want("a host's cable", r.conn, "Report 1 4: trap 128 of LID 2 switch-2, switch 2", "Report 3 4: trap 65 of LID 4 node-0001 HCA-1, node-0002 HCA-1")
	want("a host's cable, elsewhere", far, "Report 2 4: trap 128 of LID 2 switch-2, switch 2", "Report 4 4: trap 65 of LID 4 node-0001 HCA-1, node-0002 HCA-1")
	change(r.Cables.Unlink(sw(2), 1))
	want("nothing more to pull", r.conn)
	change(r.Cables.Link(r.named("node-0002 HCA-1").GUID(), 1))
	want("plugged in at the other end", r.conn, "Report 5 4: trap 128 of LID 2 switch-2, switch 2", "Report 7 4: trap 64 of LID 4 node-0001 HCA-1, node-0002 HCA-1")
	if p := r.at("node-0002 HCA-1", 1); p.State != mad.PortStateActive {
		t.Errorf("the port is %v", p.State)
	}
	r.events(far)

	// Of the ring, a chain is left: all stay, by other ways.
	from := r.named("switch-1")
	toward3 := 0
	for p := range from.Ports() {
		if q := p.Peer(); q != nil && q.Node().Name() == "switch-3" {
			toward3 = p.Num()
		}
	}
	change(r.Cables.Unlink(from.GUID(), toward3))
	// switch-3 had its way to the subnet manager over that cable.
	want("a cable between switches", r.conn, "Report 9 4: trap 128 of LID 1 switch-1, switch 1", "Report 11 4: trap 128 of LID 3 switch-3, switch 3")
	if to := state.ForwardLID(r.at("node-0003 HCA-1", 1), 4, false); to == nil {
		t.Error("node-0003 has no way to node-0001")
	}
	r.events(far)
	change(r.Cables.Unlink(sw(3), 1)) // far's own: it hears no more
	want("a host", r.conn, "Report 13 4: trap 128 of LID 3 switch-3, switch 3", "Report 15 4: trap 65 of LID 4 node-0001 HCA-1, node-0003 HCA-1")
	want("itself, without a way", far)
}

// Errors of Unlink and its like.
func TestCableErrors(t *testing.T) {
	r := newRig(t, "ring:n=1") // whose ports 2 and 3 have no cable
	sw := r.named("switch-1").GUID()
	for _, c := range []struct {
		node mad.GUID
		num  int
		want string
	}{
		{1, 1, "the simulated fabric has no node with GUID 0x0000000000000001"},
		{sw, 0, "no port 0"},
		{sw, 99, "no port 99"},
		{sw, 2, "has no cable"},
	} {
		if err := r.Cables.Unlink(c.node, c.num); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Unlink(%v, %d): %v", c.node, c.num, err)
		}
	}
	if err := r.SM.Restart(1); err == nil {
		t.Error("RestartSM on no node")
	}
}
