package ibsim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func attach(t testing.TB, o ibsim.Options) *ibsim.Transport {
	t.Helper()
	tr, err := ibsim.Attach(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func TestPort(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "names"), ibsimtest.FixtureOptions{SM: "a3"})
	ibaddr := func(node string) (lid, sm mad.LID) {
		t.Helper()
		out := ibsimtest.Output(t, f.Command(t, node, "smpquery", "-D", "portinfo", "0"))
		for line := range strings.Lines(out) {
			fmt.Sscanf(strings.ReplaceAll(line, ".", " "), "Lid: %d", &lid)
			fmt.Sscanf(strings.ReplaceAll(line, ".", " "), "SMLid: %d", &sm)
		}
		return lid, sm
	}
	full := []uint16{0xffff}
	for _, c := range []struct {
		name, node string
		want       engine.Port // LIDs aside
	}{
		{"first node", "", engine.Port{Device: "a0", Num: 1, NodeGUID: 0x0c42a10300000100, PortGUID: 0x0c42a10300000101, PKeys: full}},
		{"CA by id", "a2", engine.Port{Device: "a2", Num: 1, NodeGUID: 0x0c42a10300000300, PortGUID: 0x0c42a10300000301, PKeys: full}},
		{"CA by description", "it's a \\\\ backslash", engine.Port{Device: "a1", Num: 1, NodeGUID: 0x0c42a10300000200, PortGUID: 0x0c42a10300000201, PKeys: full}},
		{"switch", "x1", engine.Port{Device: "x1", Num: 0, NodeGUID: 0x0c42a10300001100, PortGUID: 0x0c42a10300001100, PKeys: full}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := attach(t, ibsim.Options{Socket: f.Name, Node: c.node}).Port()
			if err != nil {
				t.Fatal(err)
			}
			c.want.LID, c.want.SMLID = ibaddr(c.want.Device)
			c.want.State = mad.PortStateActive
			c.want.GIDPrefix = 0xfe80000000000000
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if got.LID == 0 || got.SMLID == 0 {
				t.Errorf("LID %d, SMLID %d after the subnet is up", got.LID, got.SMLID)
			}
		})
	}
	// The facts are read afresh.
	tr := attach(t, ibsim.Options{Socket: f.Name, Node: "a4"})
	f.Console(t, `Baselid "a4"[1] 77`)
	if p, err := tr.Port(); err != nil || p.LID != 77 {
		t.Errorf("LID %d, %v after it was set to 77", p.LID, err)
	}
}

func TestAttachErrors(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	refused := func(o ibsim.Options, want string) {
		t.Helper()
		tr, err := ibsim.Attach(o)
		if err == nil {
			tr.Close()
			t.Errorf("%+v: attached", o)
		} else if got := strings.ReplaceAll(err.Error(), f.Name, "NAME"); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", o, got, want)
		}
	}
	refused(ibsim.Options{Socket: f.Name + "x"},
		`ibsim at "NAMEx": no server has this socket in this network namespace; start one with IBSIM_SOCKNAME=NAMEx ibsim -s -n NETFILE, or name the socket of a running one (-F ibsim:NAME)`)
	refused(ibsim.Options{Socket: strings.Repeat("x", 93)},
		`ibsim at "`+strings.Repeat("x", 93)+`": the name of a socket has at most 92 bytes`)
	longest := strings.Repeat("x", 92)
	refused(ibsim.Options{Socket: longest},
		`ibsim at "`+longest+`": no server has this socket in this network namespace; start one with IBSIM_SOCKNAME=`+longest+` ibsim -s -n NETFILE, or name the socket of a running one (-F ibsim:NAME)`)
	refused(ibsim.Options{Socket: f.Name, Node: "nobody"},
		`ibsim at "NAME": node "nobody" is not in its net file`)
	refused(ibsim.Options{Socket: f.Name, Node: "0123456789012345678901234567890x"},
		`node "0123456789012345678901234567890x": too long; ibsim attaches to nodes by names of at most 31 bytes`)
	attach(t, ibsim.Options{Socket: f.Name, Node: "h1", ISSM: true})
	refused(ibsim.Options{Socket: f.Name, Node: "h1", ISSM: true},
		`ibsim at "NAME": node "h1" already has a subnet manager`)
	if n := len(f.Attached(t)); n != 1 {
		t.Errorf("%d clients are attached after the refusals, want 1", n)
	}
	for range 9 {
		attach(t, ibsim.Options{Socket: f.Name})
	}
	full := `ibsim at "NAME": all 10 slots for clients are in use, perhaps by clients that did not detach; Attached on its console lists them, X with a number frees one`
	refused(ibsim.Options{Socket: f.Name}, full)
	refused(ibsim.Options{Socket: f.Name, Node: "h2"}, full)
	f.Console(t, "X 4")
	attach(t, ibsim.Options{Socket: f.Name})
}

// A place that is given back is free again, however the transport ended.
func TestCloseDetaches(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	for i := range 25 { // more than there are places
		tr := attach(t, ibsim.Options{Socket: f.Name})
		e := engine.New(tr, engine.Options{})
		c := nodeInfo(mad.DirectedRoute{0, uint8(i % 2)})
		if i%2 == 0 {
			e.Do(t.Context(), c)
		} else {
			e.Start(c) // and close with the answer on its way
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := tr.Close(); err != nil { // a second time
			t.Fatal(err)
		}
		if clients := f.Attached(t); len(clients) != 0 {
			t.Fatalf("after Close there is still: %q", clients)
		}
	}
}

func nodeInfo(route mad.DirectedRoute) *engine.Call {
	c := &engine.Call{}
	c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	c.SetRoute(route)
	return c
}

func TestClosed(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	recv := make(chan error)
	go func() { recv <- tr.Recv(&engine.Datagram{}) }()
	tr.Close()
	if err := <-recv; err != engine.ErrClosed {
		t.Errorf("the Recv that waited: %v", err)
	}
	if err := tr.Recv(&engine.Datagram{}); err != engine.ErrClosed {
		t.Errorf("Recv: %v", err)
	}
	if err := send(tr, nodeInfo(mad.DirectedRoute{0})); err != engine.ErrClosed {
		t.Errorf("Send: %v", err)
	}
	if _, err := tr.Port(); err != engine.ErrClosed {
		t.Errorf("Port: %v", err)
	}
}

func send(tr engine.Transport, c *engine.Call) error {
	return tr.Send(&engine.Datagram{Address: c.To, MAD: c.MAD[:], Timeout: time.Second})
}

// An ibsim that ends in mid-run ends all waiting.
func TestKilled(t *testing.T) {
	t.Parallel()
	t.Run("reader", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		tr := attach(t, ibsim.Options{Socket: f.Name})
		recv := make(chan error)
		go func() { recv <- tr.Recv(&engine.Datagram{}) }()
		f.Kill(t)
		checkGone(t, f, <-recv)
		checkGone(t, f, tr.Recv(&engine.Datagram{}))
		checkGone(t, f, send(tr, nodeInfo(mad.DirectedRoute{0})))
		_, err := tr.Port()
		checkGone(t, f, err)
	})
	t.Run("writer", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		tr := attach(t, ibsim.Options{Socket: f.Name})
		f.Kill(t)
		checkGone(t, f, send(tr, nodeInfo(mad.DirectedRoute{0})))
		checkGone(t, f, tr.Recv(&engine.Datagram{}))
	})
	// With answers outstanding, and with the writer waiting because ibsim
	// takes nothing.
	t.Run("frozen", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		tr := attach(t, ibsim.Options{Socket: f.Name})
		f.Freeze(t)
		sent := make(chan error)
		go func() {
			for {
				if err := send(tr, nodeInfo(mad.DirectedRoute{0})); err != nil {
					sent <- err
					return
				}
			}
		}()
		f.Kill(t)
		checkGone(t, f, <-sent)
		checkGone(t, f, tr.Recv(&engine.Datagram{}))
	})
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
		e := engine.New(attach(t, ibsim.Options{Socket: f.Name}), engine.Options{Timeout: time.Hour})
		defer e.Close()
		f.Freeze(t)
		calls := make([]*engine.Call, 100)
		for i := range calls {
			calls[i] = nodeInfo(mad.DirectedRoute{0, 1, uint8(1 + i%8)})
		}
		done := make(chan error)
		go func() { done <- e.Do(t.Context(), calls...) }()
		f.Kill(t)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			var me *engine.Error
			if !errors.As(c.Err, &me) {
				t.Fatalf("a call ended with %v", c.Err)
			}
			checkGone(t, f, me.Err)
		}
	})
}

func checkGone(t *testing.T, f *ibsimtest.Fixture, err error) {
	t.Helper()
	want := fmt.Sprintf("ibsim at %q: it has ended or crashed; start it and attach again", f.Name)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Someone else can disconnect us by ibsim's console, and another client take
// our place.
func TestDisplaced(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	f.Console(t, "X 0")
	attach(t, ibsim.Options{Socket: f.Name})
	err := send(tr, nodeInfo(mad.DirectedRoute{0}))
	want := fmt.Sprintf("ibsim at %q: another client has our slot; attach again", f.Name)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	tr.Close()
	if clients := f.Attached(t); len(clients) != 1 {
		t.Errorf("the one that was displaced has taken the other's place away: %q", clients)
	}
}

// What ibsim has no time for is an error soon enough, and the next request is
// not mistaken about the late reply.
func TestFrozenFacts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	before, err := tr.Port()
	if err != nil {
		t.Fatal(err)
	}
	resume := f.Freeze(t)
	_, err = tr.Port()
	want := fmt.Sprintf("ibsim at %q: local port: no reply within 5s; it is stopped, or waits for a client that does not read its answers: ", f.Name)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s...", err, want)
	}
	resume()
	after, err := tr.Port()
	if err != nil || after.NodeGUID != before.NodeGUID || after.Num != before.Num {
		t.Errorf("after the stop: %+v, %v; before %+v", after, err, before)
	}
}
