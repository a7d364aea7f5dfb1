package ibsim_test

import (
	"fmt"
	"strings"
	"testing"

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
