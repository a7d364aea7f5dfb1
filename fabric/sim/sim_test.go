package sim

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"fabsh/fabric"
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

// ask sends c and tells whether an answer came, which c then has. It needs a
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
func encode(e agent.Encoder) []byte {
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
