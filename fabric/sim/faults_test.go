package sim

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// outcomes are the results of Get(NodeInfo) of each node, window at a time.
func outcomes(t *testing.T, spec string, window int) map[string]string {
	r := newRig(t, spec)
	e := r.engine(engine.Options{Window: window, Timeout: 100 * time.Millisecond, Retries: -1})
	var calls []*engine.Call
	for i := range r.Fabric.Nodes() {
		calls = append(calls, smp(mad.MethodGet, mad.AttrNodeInfo, 0, r.lid(r.Fabric.Nodes()[i].Name()), nil))
	}
	if err := e.Do(context.Background(), calls...); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i, c := range calls {
		got[r.Fabric.Nodes()[i].Name()] = "answered"
		switch {
		case errors.Is(c.Err, engine.ErrTimeout):
			got[r.Fabric.Nodes()[i].Name()] = "lost"
		case c.Err != nil:
			got[r.Fabric.Nodes()[i].Name()] = c.Header().Status.String()
		}
	}
	return got
}

// TestWorkersDoNotMatter: the same nodes fail with any window, and others with
// another seed.
func TestWorkersDoNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const spec = "fattree:k=8,levels=3,loss=0.1,delay=5ms,jitter=3ms"
		want := outcomes(t, spec, 1)
		lost := 0
		for _, outcome := range want {
			if outcome == "lost" {
				lost++
			}
		}
		if lost < 20 || lost > 60 { // 208 * (1 - 0.9^2) = 39.5
			t.Errorf("%d of 208 lost", lost)
		}
		for _, window := range []int{2, 7, 32} {
			if diff := cmp.Diff(want, outcomes(t, spec, window)); diff != "" {
				t.Errorf("window %d: (-1 +%d)\n%s", window, window, diff)
			}
		}
		if cmp.Equal(want, outcomes(t, spec+",seed=2", 1)) {
			t.Error("another seed changes nothing")
		}
	})
}

// TestBusy: a busy agent does nothing, and the engine asks again.
func TestBusy(t *testing.T) {
	r := newRig(t, small+",busy=1")
	c := smp(mad.MethodSet, mad.AttrNodeDescription, 0, here, []byte("x"))
	if status, _ := r.smp(c); status != mad.StatusBusy {
		t.Error(status)
	}
	if got := mad.AttrNodeDescription.Field("node_string").Text(r.at("node-0001 HCA-1", 1).Node.Description[:]); got != "node-0001 HCA-1" {
		t.Errorf("renamed to %q", got)
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small+",busy=0.5,delay=1ms")
		e := r.engine(engine.Options{Retries: 20})
		var calls []*engine.Call
		for range 20 {
			calls = append(calls, smp(mad.MethodGet, mad.AttrNodeInfo, 0, leaf1, nil))
		}
		do(t, e, calls...)
		if busy := e.Stats().Busy; busy < 5 || busy > 50 {
			t.Errorf("%d of 20 answers were BUSY", busy)
		}
	})
}

// TestDelay: an answer takes the delay of the options, and does not delay another.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small+",delay=20ms")
		e := r.engine(engine.Options{})
		var calls []*engine.Call
		for range 30 {
			calls = append(calls, smp(mad.MethodGet, mad.AttrNodeInfo, 0, leaf1, nil))
		}
		start := time.Now()
		do(t, e, calls...)
		// The engine lets some at a time at one destination.
		if took := time.Since(start); took < 20*time.Millisecond || took%(20*time.Millisecond) != 0 {
			t.Errorf("took %v", took)
		}
		for _, c := range calls {
			if c.Elapsed < 20*time.Millisecond {
				t.Errorf("answered after %v", c.Elapsed)
			}
		}
	})
}

// TestJitter: answers arrive in the order of their delays.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small+",delay=20ms,jitter=20ms")
		const n = 50
		start := time.Now()
		for i := range uint32(n) {
			c := smp(mad.MethodGet, mad.AttrLinearForwardingTable, i, leaf1, nil)
			if err := r.conn.Send(&engine.Datagram{Address: c.To, MAD: c.MAD[:]}); err != nil {
				t.Fatal(err)
			}
		}
		var order []uint32
		last := time.Duration(0)
		for range n {
			var d engine.Datagram
			if err := r.conn.Recv(&d); err != nil {
				t.Fatal(err)
			}
			order = append(order, mad.ParseHeader(d.MAD).Modifier)
			now := time.Since(start)
			if now < last || now < 20*time.Millisecond || now > 40*time.Millisecond {
				t.Errorf("answer after %v", now)
			}
			last = now
		}
		if slices.IsSorted(order) {
			t.Error("none has overtaken another")
		}
		if slices.Sort(order); order[0] != 0 || len(slices.Compact(order)) != n {
			t.Errorf("answers %v", order)
		}
	})
}

// TestDup: all MADs come twice, and results do not change.
func TestDup(t *testing.T) {
	r := newRig(t, small+",dup=1")
	e := r.engine(engine.Options{})
	do(t, e, smp(mad.MethodGet, mad.AttrNodeInfo, 0, leaf1, nil))
	for e.Stats().Duplicate < 3 { // twice there, twice back
		runtime.Gosched()
	}
	if got := len(r.records(e, mad.AttrNodeRecord, 0, 0, nil)); got != 14 {
		t.Errorf("%d records", got)
	}
}

// TestDead: a dead host does not answer, nor do nodes behind it; at the other
// end its link is up.
func TestDead(t *testing.T) {
	r := newRig(t, small+",dead=node-0002 HCA-1+leaf-1/3")
	for i, test := range []struct {
		to   any
		want bool
	}{
		{leaf1, true},
		{node2, false},
		{r.lid("node-0002 HCA-1"), false},
		{mad.DirectedRoute{0, 1, 3}, false},          // spine-1, straight
		{mad.DirectedRoute{0, 1, 4, 2, 3}, true},     // spine-1, around
		{mad.DirectedRoute{0, 1, 4, 2, 3, 1}, false}, // leaf-1 from there
	} {
		if got := r.conn.ask(t, smp(mad.MethodGet, mad.AttrNodeInfo, 0, test.to, nil)); got != test.want {
			t.Errorf("%d: answered: %v", i, got)
		}
	}
	for _, num := range []uint32{2, 3} {
		if i := r.portInfo(num, leaf1); i.PortState != mad.PortStateActive || i.PortPhysicalState != mad.PortPhysicalStateLinkUp {
			t.Errorf("port %d: %v %v", num, i.PortState, i.PortPhysicalState)
		}
	}
}
