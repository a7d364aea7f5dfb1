package sim

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

func TestAttach(t *testing.T) {
	r := newRig(t, "ring:n=1,hosts=2")
	for _, test := range []struct {
		node, port int
		want       string // "" for none
	}{
		{0, 0, ""}, {1, 0, ""}, {1, 1, ""},
		{-1, 0, "attach to node -1: the simulated subnet has nodes 0..2"},
		{3, 0, "attach to node 3: the simulated subnet has nodes 0..2"},
		{0, 1, `attach to port 1 of switch "switch-1" (0x0002c90300100000): only port 0 of a switch has software behind it`},
		{0, 5, `attach to port 5 of "switch-1" (0x0002c90300100000): it has ports up to 4`},
		{1, 2, `attach to port 2 of "node-0001 HCA-1" (0x0002c90310000000): it has ports up to 1`},
		{1, -1, `attach to port -1 of "node-0001 HCA-1" (0x0002c90310000000): it has ports up to 1`},
	} {
		tr, err := r.Attach(test.node, test.port)
		got := ""
		if err != nil {
			got = err.Error()
		} else if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if got != test.want {
			t.Errorf("%d/%d: %q, want %q", test.node, test.port, got, test.want)
		}
	}

	b := fabric.NewBuilder()
	if _, err := New(b.Build(), Options{}).Attach(0, 0); err == nil || err.Error() != "attach: the simulated subnet is empty" {
		t.Error(err)
	}
	b = fabric.NewBuilder()
	b.AddNode(fabric.NodeSpec{Name: "lonely", Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 2, NodeGUID: 1}})
	_, err := New(b.Build(), Options{}).Attach(0, 0)
	if want := `attach to "lonely" (0x0000000000000001): none of its ports has a link`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPort(t *testing.T) {
	r := newRig(t, small)
	got, err := r.conn.Port()
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Port{
		Device: "sim", Num: 1, NodeGUID: 0x0002c90310000000, PortGUID: 0x0002c90310000001,
		LID: 7, SMLID: 7, State: mad.PortStateActive, GIDPrefix: 0xfe80 << 48, PKeys: make([]uint16, 128),
	}
	want.PKeys[0] = 0xffff
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, err = r.attach("spine-1").Port(); err != nil {
		t.Fatal(err)
	}
	want = engine.Port{
		Device: "sim", NodeGUID: 0x0002c90300100040, PortGUID: 0x0002c90300100040,
		LID: 5, SMLID: 7, State: mad.PortStateActive, GIDPrefix: 0xfe80 << 48, PKeys: make([]uint16, 32),
	}
	want.PKeys[0] = 0xffff
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(engine.Traits{Name: "sim", Simulated: true}, r.conn.Traits()); diff != "" {
		t.Error(diff)
	}
}

func TestSendErrors(t *testing.T) {
	r := newRig(t, small)
	var refused *engine.SendError
	if err := r.conn.Send(&engine.Datagram{MAD: make([]byte, 255)}); !errors.As(err, &refused) || err.Error() != "a MAD of 255 bytes, not 256" {
		t.Error(err)
	}
	// Close wakes a waiting Recv, and ends transfers.
	r.send(saCall(mad.MethodGetTable, mad.AttrNodeRecord, 0, 0, nil, r.state.SM.LID))
	var d engine.Datagram
	if err := r.conn.Recv(&d); err != nil || r.conn.Transfers() != 1 {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- r.conn.Recv(&d) }()
	if err := r.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	if r.conn.Transfers() != 0 {
		t.Error("a transfer goes on")
	}
	if err := r.conn.Send(&engine.Datagram{MAD: make([]byte, mad.Size)}); !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	if err := r.conn.Recv(&d); !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	if err := r.conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyPrograms: several engines read and write one subnet at once, for the
// race detector.
func TestManyPrograms(t *testing.T) {
	// In virtual time, as tables are resent by the clock, and a machine may be slow.
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small)
		var all sync.WaitGroup
		for i := range r.Fabric.Nodes() {
			c := r.attach(r.Fabric.Nodes()[i].Name())
			e := engine.New(c, engine.Options{Write: true})
			t.Cleanup(func() { e.Close() })
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				var calls []*engine.Call
				for range 50 {
					lid := mad.LID(1 + random.IntN(len(r.Fabric.Nodes())))
					calls = append(calls,
						smp(mad.MethodGet, mad.AttrPortInfo, 1, lid, nil),
						smp(mad.MethodSet, mad.AttrNodeDescription, 0, lid, []byte("renamed")),
						saCall(mad.MethodGetTable, mad.AttrPathRecord, 0, pathSLIDMask, encode(&mad.PathRecord{SLID: lid}), r.state.SM.LID))
				}
				do(t, e, calls...)
			})
		}
		all.Wait()
	})
}
