package discover

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// fakeNet is a subnet of nodes that answer directed-route Gets and nothing else.
// It is independent of fabric/sim.
type fakeNet struct {
	nodes []*fakeNode
	local *fakeNode // the engine is at its first connected port

	mu     sync.Mutex
	asked  int                  // requests that came in
	hook   func(n *fakeNet)     // called with mu held before each request is answered
	lost   func(p *packet) bool // called with mu held
	delay  func() time.Duration // nil: none
	status func(p *packet) mad.Status
}

// fakeNode is a node.
type fakeNode struct {
	info  mad.NodeInfo
	name  string
	sw    mad.SwitchInfo
	ports []fakePort // 0 to NumPorts
	dead  bool
}

// fakePort is one of its ports.
type fakePort struct {
	info mad.PortInfo
	guid mad.GUID
	peer *fakeNode
	at   int
}

// packet is a request that reached a node.
type packet struct {
	node *fakeNode
	in   int // port it came in through
	h    mad.Header
	data []byte
}

func (n *fakeNet) add(t mad.NodeType, guid mad.GUID, ports int, name string) *fakeNode {
	b := &fakeNode{name: name, ports: make([]fakePort, ports+1)}
	b.info = mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: t, NumPorts: uint8(ports),
		SystemImageGUID: guid, NodeGUID: guid, PortGUID: guid, PartitionCap: 8, DeviceID: 0x1234, Revision: 1, VendorID: 0x2c9}
	for i := range b.ports {
		p := &b.ports[i]
		p.guid = guid
		if t != mad.NodeTypeSwitch {
			p.guid = guid + mad.GUID(i)
		}
		p.info = mad.PortInfo{PortState: mad.PortStateDown, PortPhysicalState: mad.PortPhysicalStatePolling, LinkWidthActive: mad.LinkWidth4x, LinkSpeedActive: mad.LinkSpeedQDR}
	}
	if t == mad.NodeTypeSwitch {
		b.ports[0].info.PortState, b.ports[0].info.PortPhysicalState = mad.PortStateActive, mad.PortPhysicalStateLinkUp
		b.ports[0].info.LID = mad.LID(len(n.nodes) + 1)
		b.sw = mad.SwitchInfo{LinearFDBCap: 48 << 10, EnhancedPort0: guid&1 != 0}
	}
	n.nodes = append(n.nodes, b)
	if n.local == nil {
		n.local = b
	}
	return b
}

func (n *fakeNet) sw(guid mad.GUID, ports int, name string) *fakeNode {
	return n.add(mad.NodeTypeSwitch, guid, ports, name)
}

func (n *fakeNet) ca(guid mad.GUID, ports int, name string) *fakeNode {
	return n.add(mad.NodeTypeCA, guid, ports, name)
}

// link connects two ports.
func (n *fakeNet) link(a *fakeNode, p int, b *fakeNode, q int) {
	a.ports[p].peer, a.ports[p].at = b, q
	b.ports[q].peer, b.ports[q].at = a, p
	for _, e := range []struct {
		b *fakeNode
		p int
	}{{a, p}, {b, q}} {
		i := &e.b.ports[e.p].info
		i.PortState, i.PortPhysicalState = mad.PortStateActive, mad.PortPhysicalStateLinkUp
		if e.b.info.NodeType != mad.NodeTypeSwitch {
			i.LID = mad.LID(1000 + 16*slices.Index(n.nodes, e.b) + e.p)
		}
	}
}

// unlink takes a link down.
func (n *fakeNet) unlink(a *fakeNode, p int) {
	b, q := a.ports[p].peer, a.ports[p].at
	for _, j := range []*fakePort{&a.ports[p], &b.ports[q]} {
		j.peer = nil
		j.info.PortState, j.info.PortPhysicalState = mad.PortStateDown, mad.PortPhysicalStatePolling
	}
}

// walk follows a directed route; nil where it leads nowhere.
func (n *fakeNet) walk(route mad.DirectedRoute) (*fakeNode, int) {
	b, in := n.local, 0
	if b.info.NodeType != mad.NodeTypeSwitch {
		in = slices.IndexFunc(b.ports, func(j fakePort) bool { return j.peer != nil })
		in = max(in, 1)
	}
	for i, out := range route[1:] {
		if i > 0 && b.info.NodeType != mad.NodeTypeSwitch || int(out) >= len(b.ports) || b.ports[out].peer == nil {
			return nil, 0
		}
		b, in = b.ports[out].peer, b.ports[out].at
		if b.dead {
			return nil, 0
		}
	}
	return b, in
}

// handle answers a request in place; false: there is no answer.
func (n *fakeNet) handle(d *engine.Datagram) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if n.hook != nil {
		n.hook(n)
	}
	p := &packet{h: mad.ParseHeader(d.MAD), data: d.MAD[64:128]}
	p.node, p.in = n.walk(mad.RouteOf(d.MAD))
	if p.node == nil || n.lost != nil && n.lost(p) {
		return false
	}
	if n.status != nil {
		p.h.Status = n.status(p)
	}
	if p.h.Status == 0 && !p.node.answer(p) {
		return false
	}
	p.h.Method |= mad.Response
	p.h.Put(d.MAD)
	binary.BigEndian.PutUint16(d.MAD[4:], uint16(p.h.Status)|0x8000) // the D bit (IBA 14.2.1.2)
	return true
}

func (b *fakeNode) answer(p *packet) bool {
	data := p.data
	clear(data)
	switch p.h.Attribute {
	case mad.AttrNodeInfo.ID:
		i := b.info
		i.LocalPortNum, i.PortGUID = uint8(p.in), b.ports[p.in].guid
		i.Encode(data)
	case mad.AttrNodeDescription.ID:
		copy(data, b.name)
	case mad.AttrSwitchInfo.ID:
		b.sw.Encode(data)
	case mad.AttrPortInfo.ID:
		num := int(p.h.Modifier)
		if num == 0 && b.info.NodeType != mad.NodeTypeSwitch {
			num = p.in
		}
		if num >= len(b.ports) {
			p.h.Status = mad.StatusBadValue
			return true
		}
		i := b.ports[num].info
		i.LocalPortNum = uint8(p.in)
		i.Encode(data)
	default:
		p.h.Status = mad.StatusBadMethodAttribute
	}
	return true
}

// fakeConn is the transport of a fakeNet.
type fakeConn struct {
	engine.Basic

	net    *fakeNet
	queue  chan *engine.Datagram
	closed chan struct{}
	broken chan error
}

func (n *fakeNet) attach() *fakeConn {
	return &fakeConn{net: n, queue: make(chan *engine.Datagram, 1<<12), closed: make(chan struct{}), broken: make(chan error, 1)}
}

func (c *fakeConn) Send(d *engine.Datagram) error {
	x := &engine.Datagram{Address: d.Address, MAD: slices.Clone(d.MAD)}
	answer := func() {
		if c.net.handle(x) {
			select {
			case c.queue <- x:
			case <-c.closed:
			}
		}
	}
	if c.net.delay != nil {
		time.AfterFunc(c.net.delay(), answer)
		return nil
	}
	answer()
	return nil
}

func (c *fakeConn) Recv(d *engine.Datagram) error {
	select {
	case x := <-c.queue:
		d.Address, d.MAD = x.Address, append(d.MAD[:0], x.MAD...)
		d.Undelivered, d.Cut = false, false
		return nil
	case err := <-c.broken:
		return err
	case <-c.closed:
		return engine.ErrClosed
	}
}

// fail breaks the transport.
func (c *fakeConn) fail(err error) { c.broken <- err }

func (c *fakeConn) Close() error { close(c.closed); return nil }

func (c *fakeConn) Traits() engine.Traits { return engine.Traits{Name: "fake"} }

func (c *fakeConn) Port() (engine.Port, error) {
	b := c.net.local
	p := engine.Port{Device: b.name, NodeGUID: b.info.NodeGUID, PortGUID: b.info.PortGUID}
	for _, j := range b.ports {
		if j.info.LID != 0 {
			p.LID, p.SMLID, p.SMSL = j.info.LID, j.info.MasterSMLID, j.info.MasterSMSL
			break
		}
	}
	return p, nil
}

// describe is the nodes, links and problems of f.
func describe(f *fabric.Fabric) string {
	var b strings.Builder
	fmt.Fprintln(&b, f)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		fmt.Fprintf(&b, "%s %s lid %d at %s\n", typeOf(n), n.Label(), n.LID(), n.Route())
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				fmt.Fprintf(&b, "  %d - node %d %s\n", p.Num(), q.Node().ID(), q.Name())
			}
		}
	}
	for _, p := range f.Problems() {
		fmt.Fprintf(&b, "%s: %s\n", p.Kind, p.Text)
	}
	return b.String()
}

// typeOf is a node's type in a word.
func typeOf(n *fabric.Node) string {
	if n.Type() == mad.NodeTypeCA {
		return "CA"
	}
	return n.Type().String()
}

// jitter makes answers arrive in any order.
func jitter(seed int64) func() time.Duration {
	r := rand.New(rand.NewSource(seed))
	var mu sync.Mutex
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		// Never 0: within a bubble the race detector may crash (go.dev/issue/78156).
		return time.Duration(1+r.Intn(1000)) * time.Microsecond
	}
}

var update = flag.Bool("update", false, "write what was got to the golden files")

// golden is a file of expected outputs, by name.
type golden struct {
	path string
	a    *txtar.Archive
}

func loadGolden(t *testing.T, path string) *golden {
	t.Helper()
	g := &golden{path, new(txtar.Archive)}
	if *update {
		t.Cleanup(func() {
			if err := os.WriteFile(path, txtar.Format(g.a), 0o666); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	var err error
	if g.a, err = txtar.ParseFile(path); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *golden) check(t *testing.T, name, got string) {
	t.Helper()
	want := ""
	for _, f := range g.a.Files {
		if f.Name == name {
			want = string(f.Data)
		}
	}
	if want == "" && *update {
		g.a.Files = append(g.a.Files, txtar.File{Name: name, Data: []byte(got)})
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}
