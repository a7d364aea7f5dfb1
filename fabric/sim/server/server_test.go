//go:build linux

package server

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/hermetic"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(servedSpec); spec != "" {
		serveAlone(spec)
		return
	}
	goleak.VerifyTestMain(hermetic.Tests(m))
}

// served is a server that a test runs.
type served struct {
	*Server
	fabric *fabric.Fabric
	mu     sync.Mutex
	said   []string
	ended  error // of Serve, once stop has returned
	stop   func()
}

// serve serves a fabric until the test ends.
func serve(t testing.TB, spec string, bare bool) *served {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Bare = bare
	return serveFabric(t, f, o)
}

func serveFabric(t testing.TB, f *fabric.Fabric, o sim.Options) *served {
	t.Helper()
	s := &served{fabric: f}
	var err error
	s.Server, err = Listen(sim.New(f, o), f, Options{Name: uniqueName(), Log: func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.said = append(s.said, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	s.stop = sync.OnceFunc(func() { cancel(); s.ended = <-done })
	t.Cleanup(func() {
		if s.stop(); s.ended != nil && s.ended != ErrQuit {
			t.Error(s.ended)
		}
	})
	return s
}

func uniqueName() string { return fmt.Sprintf("fabsh-%016x", rand.Uint64()) }

// log is what the server has said.
func (s *served) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, "\n")
}

// attach attaches our own client.
func (s *served) attach(t testing.TB, o ibsim.Options) *ibsim.Transport {
	t.Helper()
	o.Socket = s.Name
	tr, err := ibsim.Attach(o)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log())
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func sweep(t testing.TB, tr engine.Transport) *fabric.Fabric {
	t.Helper()
	e := engine.New(tr, engine.Options{})
	defer e.Close()
	f, err := discover.Sweep(t.Context(), e, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func text(t testing.TB, f *fabric.Fabric) string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Dump(&b, f, format.KindIbnetdiscover); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Through the sockets, the subnet looks as in process.
func TestSweep(t *testing.T) {
	for _, spec := range []string{"fattree:k=4,levels=3", "torus:dims=3/3,hosts=2", "pgft:m=6/6/6,w=1/6/6,p=1/1/1,remove_links=40,seed=5"} {
		f, o, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, spec, false)
		node := s.names.Standard
		direct, err := sim.New(f, o).Attach(node, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, got := sweep(t, direct), sweep(t, s.attach(t, ibsim.Options{}))
		if want, got := text(t, want), text(t, got); want != got {
			t.Errorf("%s: want\n%s\ngot\n%s", spec, want, got)
		}
	}
}

// A bare subnet is as after power-on.
func TestBare(t *testing.T) {
	s := serve(t, "ring:n=3", true)
	f := sweep(t, s.attach(t, ibsim.Options{}))
	if f.Links() != 6 || len(f.Nodes()) != 6 {
		t.Errorf("%v, want 6 nodes and links", f)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if info := p.Info(); p.LID() != 0 || info.MasterSMLID != 0 || p.Num() > 0 && p.Peer() != nil && info.PortState.String() != "initialize" {
			t.Errorf("%s: LID %d, SM %d, %v", p.Name(), p.LID(), info.MasterSMLID, info.PortState)
		}
	}
}

// There may be many clients, at any node by any of its names.
func TestAttach(t *testing.T) {
	s := serve(t, "ring:n=3,hosts=2", false)
	names := []string{"", "switch-1", "node-0004 HCA-1", s.fabric.Nodes()[4].GUID().String(), fmt.Sprintf("H-%016x", uint64(s.fabric.Nodes()[5].GUID()))}
	for i := range 40 {
		name := names[i%len(names)]
		want, err := s.names.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.attach(t, ibsim.Options{Node: name}).Port()
		if err != nil || p.NodeGUID != s.fabric.Nodes()[want].GUID() {
			t.Errorf("at %q: %v, node %v: %v", name, p, s.fabric.Nodes()[want].GUID(), err)
		}
	}
}

// A subnet manager beside the subnet's own, on one node, is logged; other programs that
// name no node go elsewhere.
func TestBesideSM(t *testing.T) {
	for where, want := range map[string]bool{"": false, "node-0001 HCA-1": true} {
		s := serve(t, "ring:n=3", false)
		r := newRaw(t, s.Name)
		r.connect(where, 0, false)
		r.request(ibsim.CtlSetISSM, []byte{1})
		if got := strings.Contains(s.log(), "on the node of the subnet's own"); got != want {
			t.Errorf("at %q: the log is\n%s", where, s.log())
		}
	}
	only := serve(t, "ring:n=1", false)
	if got := only.names.Standard; got != only.fabric.NodeByName("node-0001 HCA-1")[0].ID() {
		t.Errorf("of one host, node %d is attached to", got)
	}
}

func TestRefused(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	_, err := ibsim.Attach(ibsim.Options{Socket: s.Name, Node: "switch-9"})
	if want := fmt.Sprintf("ibsim at %q: node \"switch-9\" is not in its net file", s.Name); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if want := "a client is refused: unknown node \"switch-9\" (did you mean switch-1?)"; !strings.Contains(s.log(), want) {
		t.Errorf("log %q, want %q", s.log(), want)
	}
	s.attach(t, ibsim.Options{Node: "node-0002 HCA-1", ISSM: true})
	_, err = ibsim.Attach(ibsim.Options{Socket: s.Name, Node: "node-0002 HCA-1", ISSM: true})
	if want := fmt.Sprintf("ibsim at %q: node \"node-0002 HCA-1\" already has a subnet manager", s.Name); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = Listen(s.subnet, s.fabric, Options{Name: s.Name})
	if want := fmt.Sprintf("listen at %q: another simulator has that name in this network namespace; end it, or take another name", s.Name); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = Listen(s.subnet, s.fabric, Options{Name: strings.Repeat("x", 200)})
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a long name: %v", err)
	}
}

// A client that ends without a word gives its place back, and its port is a subnet
// manager's no more.
func TestDead(t *testing.T) {
	s := serve(t, "ring:n=3", true)
	a := newRaw(t, s.Name)
	if slot := a.connect("node-0002 HCA-1", 0, false); slot != 0 {
		t.Fatalf("slot %d", slot)
	}
	a.request(ibsim.CtlSetISSM, []byte{1, 0, 0, 0})
	watcher := newRaw(t, s.Name)
	watcher.connect("node-0002 HCA-1", 0, false)
	isSM := func() bool {
		info := watcher.request(ibsim.CtlGetPortInfo, nil)
		return info[23]&2 != 0 // CapabilityMask, 20 to 23
	}
	if !isSM() {
		t.Error("the port does not show the subnet manager")
	}
	a.close()
	ibsimtest.Poll(t, "the server to notice that its client is gone", func() bool { return !isSM() })
	if want := "client 0 on \"node-0002 HCA-1\" is detached: it has ended without a word"; !strings.Contains(s.log(), want) {
		t.Errorf("log %q, want %q", s.log(), want)
	}
}

// sweepSA is how many NodeRecords the subnet administrator has.
func sweepSA(t testing.TB, e *engine.Engine) int {
	t.Helper()
	f, err := discover.ViaSA(t.Context(), &sa.Client{Engine: e}, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return len(f.Nodes())
}

// TestControlOtherUser: datagrams of other users are refused, or not read, unless AnyUser says
// that they are served.
func TestOtherUser(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	e := engine.New(s.attach(t, ibsim.Options{}), engine.Options{Retries: -1, Timeout: 300e6})
	defer e.Close()
	ask := func() error {
		var c engine.Call
		c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		c.SetRoute(mad.DirectedRoute{0})
		e.Do(t.Context(), &c)
		return c.Err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	s.Do(func() { s.user = os.Getuid() + 1 })
	if err := ask(); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("a request of another user: %v", err)
	}
	_, err := ibsim.Attach(ibsim.Options{Socket: s.Name})
	if want := "attach: another user started this server, and it serves only that user; fabsh sim --any-user serves all"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if want := fmt.Sprintf("a client of user %d is refused: ", os.Getuid()); !strings.Contains(s.log(), want) {
		t.Errorf("the log is %s", s.log())
	}
	s.Do(func() { s.AnyUser = true })
	if err := ask(); err != nil {
		t.Error(err)
	}
	s.attach(t, ibsim.Options{})
}

// TestOwnLimits: what ibsim must not get, fabsh's own server answers: blocks of tables
// above LID 30,719, and the class of congestion control.
func TestOwnLimits(t *testing.T) {
	s := serve(t, "fattree:k=4,levels=2", false)
	e := engine.New(s.attach(t, ibsim.Options{}), engine.Options{Write: true})
	defer e.Close()
	f := sweep(t, s.attach(t, ibsim.Options{}))
	sw := f.OfType(mad.NodeTypeSwitch)[0]
	ask := func(put func(*engine.Call)) *engine.Call {
		t.Helper()
		c := new(engine.Call)
		put(c)
		c.SetLID(sw.LID())
		if e.Do(t.Context(), c); c.Err != nil {
			t.Errorf("%v", c.Err)
		}
		return c
	}
	lft := make([]byte, 64)
	lft[5] = 3
	ask(func(c *engine.Call) { c.PutSMP(mad.MethodSet, mad.AttrLinearForwardingTable.ID, 40000/64, lft) })
	c := ask(func(c *engine.Call) { c.PutSMP(mad.MethodGet, mad.AttrLinearForwardingTable.ID, 40000/64, nil) })
	if got := c.Data()[5]; got != 3 {
		t.Errorf("the entry is %d", got)
	}
	c = ask(func(c *engine.Call) {
		c.PutMAD(mad.Header{Class: mad.ClassCongestion, ClassVersion: mad.ClassCongestion.Version(), Method: mad.MethodGet, Attribute: mad.AttrCongestionInfo.ID}, nil)
	})
	var info mad.CongestionInfo
	if info.Decode(c.Data()); info.ControlTableCap == 0 {
		t.Errorf("%+v", info)
	}
}
