package cabling

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// order matches the sentences of work orders.
var order = regexp.MustCompile(`^(?:(swap) the plugs at (\S+ ?\S*/\d+)(?: \([^)]*\))? and (\S+ ?\S*/\d+)|(move) the plug at (\S+ ?\S*/\d+)(?: \([^)]*\))? to (\S+ ?\S*/\d+)(?: \([^)]*\))?; the other end stays at (\S+ ?\S*/\d+)|(connect) (\S+ ?\S*/\d+)(?: \([^)]*\))? with (\S+ ?\S*/\d+)|(remove) the cable between (\S+ ?\S*/\d+)(?: \([^)]*\))? and (\S+ ?\S*/\d+))`)

// A subnet without subnet manager is repaired from the sentences of the work orders alone. After each
// action a round reports it, and no other, as done; in the end the fabric is the plan.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, o, err := sim.Parse("fattree:k=8,levels=2")
		if err != nil {
			t.Fatal(err)
		}
		o.Bare = true
		subnet := sim.New(f, o)
		conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(conn, engine.Options{})
		defer e.Close()
		sweep := func() *fabric.Fabric {
			f, err := discover.Sweep(t.Context(), e, discover.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		plan := sweep()
		if plan.Unmanaged() == "" {
			t.Error("the subnet has a subnet manager")
		}
		at := func(name string) state.Cable {
			i := strings.LastIndexByte(name, '/')
			n, err := plan.FindNode(name[:i])
			if err != nil {
				t.Fatal(err)
			}
			num, _ := strconv.Atoi(name[i+1:])
			return state.Cable{Node: n.GUID(), Num: num}
		}
		far := func(name string) string {
			c := at(name)
			return plan.NodeByGUID(c.Node)[0].Port(c.Num).Peer().Name()
		}
		recable := func(pairs ...string) {
			t.Helper()
			var list [][2]state.Cable
			for i := 0; i < len(pairs); i += 2 {
				list = append(list, [2]state.Cable{at(pairs[i]), at(pairs[i+1])})
			}
			if err := subnet.Cables.Recable(list...); err != nil {
				t.Fatal(err)
			}
		}
		unlink := func(name string) {
			t.Helper()
			if err := subnet.Cables.Unlink(at(name).Node, at(name).Num); err != nil {
				t.Fatal(err)
			}
		}
		a, b, c := "leaf-2/1", "leaf-3/2", "leaf-4/3"
		recable("leaf-2/2", far("leaf-3/1"), "leaf-3/1", far("leaf-2/2")) // a swap
		recable(a, far(b), b, far(c), c, far(a))                          // a rotation of three
		recable("leaf-5/5", far("leaf-6/6"), "leaf-6/6", far("leaf-5/5")) // a swap between leaves and spines
		unlink("leaf-7/1")                                                // a host is out of reach
		unlink("leaf-7/5")                                                // missing between switches
		unlink("leaf-8/1")                                                //
		recable("leaf-8/2", "leaf-8/1")                                   // undefined; two hosts out of reach
		live := sweep()
		r := Compare(plan, live)
		w := NewFollower(r, live)
		total, largest := 0, 0
		do := func(ctx context.Context, calls ...*engine.Call) error {
			total, largest = total+len(calls), max(largest, len(calls))
			return e.Do(ctx, calls...)
		}
		for len(w.Open()) > 0 {
			if most := w.MaxRequests(); most > 100 {
				t.Fatalf("%d requests", most)
			}
			x := r.Actions[len(r.Actions)-len(w.Open())]
			parts := order.FindStringSubmatch(x.Text())
			if parts == nil {
				t.Fatalf("not understood: %s", x.Text())
			}
			switch {
			case parts[1] != "":
				p, q := farNow(live, at(parts[2])), farNow(live, at(parts[3]))
				recable(parts[2], q, parts[3], p)
			case parts[4] != "":
				recable(parts[7], parts[6])
			case parts[8] != "":
				recable(parts[9], parts[10])
			case parts[11] != "":
				unlink(parts[12])
			}
			before, sent := w.MaxRequests(), total
			done, away, err := w.Round(t.Context(), do)
			if err != nil {
				t.Fatal(err)
			}
			if len(done) != 1 || done[0] != x || away > 0 {
				t.Fatalf("after %q: %d done, %d out of reach", x.Text(), len(done), away)
			}
			if total-sent > before {
				t.Errorf("%d requests, announced %d", total-sent, before)
			}
			again, _, err := w.Round(t.Context(), do)
			if err != nil || len(again) > 0 {
				t.Fatalf("a round without a change: %d done, %v", len(again), err)
			}
		}
		if again := Compare(plan, sweep()); !again.Same() || again.Right != again.Planned || !again.Complete() {
			t.Errorf("after the repair: %s %v", again.Summary(), again.Notes())
		}
	})
}

// farNow returns the other end of the cable at a port.
func farNow(f *fabric.Fabric, c state.Cable) string {
	return f.NodeByGUID(c.Node)[0].Port(c.Num).Peer().Name()
}
