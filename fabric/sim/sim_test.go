package sim

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustParse(t testing.TB, spec string) (*fabric.Fabric, Options) {
	t.Helper()
	f, o, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

// rig is a subnet with a program on the first CA, where the subnet manager is.
type rig struct {
	t testing.TB
	*fabric.Fabric
	*Subnet
	conn *program
}

func newRig(t testing.TB, spec string) *rig {
	t.Helper()
	f, o := mustParse(t, spec)
	r := &rig{t: t, Fabric: f, Subnet: New(f, o)}
	r.conn = r.attach(f.OfType(mad.NodeTypeCA)[0].Name())
	return r
}

// program is a program at a port of the subnet.
type program struct {
	*Conn
	node *state.Node
}

// attach puts another program on a node.
func (r *rig) attach(name string) *program {
	r.t.Helper()
	node := r.named(name).ID()
	tr, err := r.Attach(node, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { tr.Close() })
	return &program{tr.(*Conn), &r.state.Nodes[node]}
}

func (r *rig) named(name string) *fabric.Node {
	r.t.Helper()
	nodes := r.NodeByName(name)
	if len(nodes) != 1 {
		r.t.Fatalf("%d nodes named %q", len(nodes), name)
	}
	return nodes[0]
}

// at is a port's state.
func (r *rig) at(name string, num int) *state.Port {
	r.t.Helper()
	return r.state.PortOf(r.named(name).Port(num))
}

// lid is a node's LID.
func (r *rig) lid(name string) mad.LID {
	r.t.Helper()
	n := &r.state.Nodes[r.named(name).ID()]
	return n.EndPorts()[0].LID
}

// ask sends c and reports whether an answer came, which c then has. It needs a
// subnet without delays, where an answer is there when Send returns.
func (c *program) ask(t testing.TB, call *engine.Call) bool {
	t.Helper()
	if err := c.Send(&engine.Datagram{Address: call.To, MAD: call.MAD[:]}); err != nil {
		t.Fatal(err)
	}
	if c.Waiting() == 0 {
		return false
	}
	var d engine.Datagram
	if err := c.Recv(&d); err != nil {
		t.Fatal(err)
	}
	if n := c.Waiting(); n != 0 {
		t.Fatalf("%d answers to one request", n+1)
	}
	copy(call.MAD[:], d.MAD)
	call.To = d.Address
	return true
}

// smp is an SMP; to is a LID or a directed route.
func smp(m mad.Method, a *mad.Attribute, modifier uint32, to any, data []byte) *engine.Call {
	c := &engine.Call{}
	c.PutSMP(m, a.ID, modifier, data)
	switch to := to.(type) {
	case mad.DirectedRoute:
		c.SetRoute(to)
	case mad.LID:
		c.SetLID(to)
	}
	return c
}

// get and set send an SMP that must be answered, and give status and data.
func (r *rig) get(a *mad.Attribute, modifier uint32, to any) (mad.Status, []byte) {
	r.t.Helper()
	return r.smp(smp(mad.MethodGet, a, modifier, to, nil))
}

func (r *rig) set(a *mad.Attribute, modifier uint32, to any, data []byte) (mad.Status, []byte) {
	r.t.Helper()
	return r.smp(smp(mad.MethodSet, a, modifier, to, data))
}

func (r *rig) smp(c *engine.Call) (mad.Status, []byte) {
	r.t.Helper()
	if !r.conn.ask(r.t, c) {
		r.t.Fatalf("no answer to %v %#x", c.Header().Attribute, c.Header().Modifier)
	}
	if h := c.Header(); !h.Method.IsResponse() {
		r.t.Fatalf("method %#x of the answer", uint8(h.Method))
	}
	return c.Header().Status, c.Data()[:state.SMPSize]
}

func (r *rig) portInfo(modifier uint32, to any) (i mad.PortInfo) {
	r.t.Helper()
	status, data := r.get(mad.AttrPortInfo, modifier, to)
	if status != 0 {
		r.t.Fatalf("PortInfo: %v", status)
	}
	i.Decode(data)
	return i
}

// encode gives the bytes of an attribute.
func encode(e state.Encoder) []byte {
	data := make([]byte, 200)
	e.Encode(data)
	return data
}

// engine puts an engine on the program's place.
func (r *rig) engine(o engine.Options) *engine.Engine {
	e := engine.New(r.conn, o)
	r.t.Cleanup(func() { e.Close() })
	return e
}

// do runs calls that must succeed.
func do(t testing.TB, e *engine.Engine, calls ...*engine.Call) {
	t.Helper()
	if err := e.Do(context.Background(), calls...); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if c.Err != nil {
			t.Fatal(c.Err)
		}
	}
}

// TestSpecSeed: the seed decides which cables a random topology has, and what is
// removed; what is left has its LIDs.
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

// TestSpecFile: a file may be followed by keys, and may have colons in its name.
func TestSpecFile(t *testing.T) {
	const net = `
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90300100000
switchguid=0x2c90300100000(2c90300100000)
Switch	4 "S-0002c90300100000"		# "leaf 1: left" base port 0 lid 12 lmc 0
[1]	"H-0002c90310000000"[1](2c90310000001) 		# "node 1 HCA-1" lid 5 4xEDR
[2]	"H-0002c90310000010"[1](2c90310000011) 		# "node 2 HCA-1" lid 5 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x2c90310000000
caguid=0x2c90310000000
Ca	1 "H-0002c90310000000"		# "node 1 HCA-1"
[1](2c90310000001) 	"S-0002c90300100000"[1]		# lid 5 lmc 0 "leaf 1: left" lid 12 4xEDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x2c90310000010
caguid=0x2c90310000010
Ca	1 "H-0002c90310000010"		# "node 2 HCA-1"
[1](2c90310000011) 	"S-0002c90300100000"[2]		# lid 5 lmc 0 "leaf 1: left" lid 12 4xHDR
`
	dir := t.TempDir()
	for _, name := range []string{"net", "net:1"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(net), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, keys := range []string{"", ":loss=0.5", ":"} {
			f, o, err := Parse(path + keys)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.String(); !strings.HasPrefix(got, "fabric: 3 nodes (1 switch, 2 CAs), 2 links") || o.Loss != 0 != (keys == ":loss=0.5") {
				t.Errorf("%s%s: %s, %v", name, keys, got, o.Loss)
			}
			// LID 5, which two claim, is left to the first.
			s := New(f, Options{})
			got := map[string]mad.LID{}
			for i := range s.state.Nodes {
				p := s.state.Nodes[i].EndPorts()[0]
				got[mad.AttrNodeDescription.Field("node_string").Text(s.state.Nodes[i].Description[:])+" "+agent.RateCode(p.ManagedPorts()[len(p.ManagedPorts())-1].Rate).String()] = p.LID
			}
			want := map[string]mad.LID{"leaf 1: left 10": 12, "node 1 HCA-1 100": 5, "node 2 HCA-1 200": 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
	}
	if _, _, err := Parse(filepath.Join(dir, "net:kk=1")); err == nil || !strings.Contains(err.Error(), `unknown key "kk"`) {
		t.Error(err)
	}
}

// TestDumpAndLoad: what is discovered, written and loaded again is simulated
// again, and looks alike.
func TestDumpAndLoad(t *testing.T) {
	for _, spec := range testTopologies {
		if spec == "ring:n=2,hosts=0" {
			continue
		}
		t.Run(spec, func(t *testing.T) {
			dump := func(r *rig) []byte {
				var b bytes.Buffer
				if err := format.Dump(&b, r.discover(engine.Options{}), "ibnetdiscover"); err != nil {
					t.Fatal(err)
				}
				return b.Bytes()
			}
			r := newRig(t, spec)
			want := dump(r)
			path := filepath.Join(t.TempDir(), "net")
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
			again := newRig(t, path)
			if diff := cmp.Diff(string(want), string(dump(again))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
