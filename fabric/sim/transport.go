package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// conn is an attachment to one port of the subnet: an engine.Transport.
type conn struct {
	engine.Basic

	s      *Subnet
	port   *port
	faults *faultModel
	queue  *delayQueue     // to the program
	sink   func(p *packet) // of a Client, in place of the queue; nil: none
	cut    bool            // the program sees 224 bytes of each MAD, as libumad2sim hands them over

	sending sync.Mutex // guards both
	work    packet     // the MAD that Send executes
	request request    // the state of its execution

	mu           sync.Mutex // guards both
	transfers    map[uint64]*transfer
	reassemblies []*reassembly // in the order they began
}

// Attach connects a program to a port of the subnet; port 0 of a CA stands for
// its first one that has a link. There may be several attachments, on one port
// too; each draws its own faults.
func (s *Subnet) Attach(node, port int) (engine.Transport, error) {
	if len(s.nodes) == 0 {
		return nil, errors.New("attach: the simulated subnet is empty")
	}
	if node < 0 || node >= len(s.nodes) {
		return nil, fmt.Errorf("attach to node %d: the simulated subnet has nodes 0..%d", node, len(s.nodes)-1)
	}
	n := &s.nodes[node]
	p, err := n.attachment(port)
	if err != nil {
		return nil, err
	}
	return &conn{s: s, port: p, faults: newFaultModel(&s.faults), queue: newDelayQueue(), transfers: map[uint64]*transfer{}}, nil
}

// attachment is the port of n that a program may use: a switch's port 0, or
// a port of another node.
func (n *node) attachment(num int) (*port, error) {
	if num < 0 || num >= len(n.ports) {
		return nil, fmt.Errorf("attach to port %d of %s: it has ports up to %d", num, n.label, len(n.ports)-1)
	}
	if n.isSwitch {
		if num != 0 {
			return nil, fmt.Errorf("attach to port %d of switch %s: only port 0 of a switch has software behind it", num, n.label)
		}
		return &n.ports[0], nil
	}
	if num > 0 {
		return &n.ports[num], nil
	}
	for i := range n.ports[1:] {
		if p := &n.ports[1+i]; p.peer != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("attach to %s: none of its ports has a link", n.label)
}

// Send executes d; the answer, if there is one, waits in the queue when Send
// returns.
func (c *conn) Send(d *engine.Datagram) error {
	if c.queue.closed.Load() {
		return engine.ErrClosed
	}
	if len(d.MAD) != mad.Size {
		return &engine.SendError{Err: fmt.Errorf("a MAD of %d bytes, not %d", len(d.MAD), mad.Size)}
	}
	if c.s.tablesTakeLong(d) {
		later := engine.Datagram{Address: d.Address, MAD: bytes.Clone(d.MAD)}
		go func() {
			c.s.mu.RLock()
			c.s.tables()
			c.s.mu.RUnlock()
			c.send(&later)
		}()
		return nil
	}
	c.send(d)
	return nil
}

// TrySend is Send, but of queries, which may be long work: an agent answers in less
// time than it takes to wake another goroutine.
func (c *conn) TrySend(d *engine.Datagram) (sent bool, err error) {
	if len(d.MAD) == mad.Size && mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSubnAdm {
		return false, nil
	}
	return true, c.Send(d)
}

// BeforeWait has Recv call f before it waits.
func (c *conn) BeforeWait(f func() (again bool)) (ok bool) {
	c.queue.before = f
	return true
}

// send is Send of a MAD of the right size.
func (c *conn) send(d *engine.Datagram) {
	c.sending.Lock()
	defer c.sending.Unlock()
	p := &c.work
	p.Address = d.Address
	copy(p.mad[:], d.MAD)
	f := c.faults.draw(p, false)
	if f.lost {
		return
	}
	c.handle(p, f.busy)
	if f.duplicate {
		p.Address = d.Address
		copy(p.mad[:], d.MAD)
		c.handle(p, f.busy)
	}
}

// handle has p's agent execute it and sends the answer.
func (c *conn) handle(p *packet, busy bool) {
	var payload []byte
	if isSegment(p) {
		if !c.s.reachable(c.port, p.LID) {
			return
		}
		if rmppHeader(p.mad[:]).RMPPType != mad.RMPPTypeData {
			c.receiveControl(p)
			return
		}
		var whole bool
		if payload, whole = c.receiveSegment(p); !whole {
			return
		}
	}
	switch r := c.s.answer(c, p, payload, busy); r.reply {
	case replyMAD:
		c.deliver(p)
	case replyTable:
		c.startTransfer(p, r.table)
		r.table = nil
	}
}

// deliver sends p to the program, with its faults.
func (c *conn) deliver(p *packet) {
	if c.sink != nil {
		c.sink(p)
		return
	}
	f := c.faults.draw(p, true)
	if f.lost || c.overflows(p) {
		return
	}
	c.queue.push(p, f.delay)
	if f.duplicate {
		c.queue.push(p, f.delay)
	}
}

// overflows: p is an SMP, and the short queue of virtual lane 15 is full.
func (c *conn) overflows(p *packet) bool {
	room := c.faults.options.Load().VL15
	return room > 0 && p.QP == 0 && c.queue.waiting() >= room
}

// Recv waits for the next MAD.
func (c *conn) Recv(d *engine.Datagram) error {
	p, err := c.queue.pop()
	if err != nil {
		return err
	}
	d.Address = p.Address
	d.Undelivered, d.Cut, d.Timeout = false, false, 0
	d.MAD = append(d.MAD[:0], p.mad[:]...)
	return nil
}

// Close wakes Recv. Packets in the queue are lost.
func (c *conn) Close() error {
	c.queue.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transfers {
		c.endTransfer(t)
	}
	return nil
}

// Traits: the transport does nothing for the engine, and the fabric is simulated.
func (c *conn) Traits() engine.Traits { return engine.Traits{Name: "sim", Simulated: true} }

// Port reads the port from the tables of its agent.
func (c *conn) Port() (engine.Port, error) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	home := c.port
	var info mad.PortInfo
	info.Decode(home.info[:])
	var node mad.NodeInfo
	node.Decode(home.node.info[:])
	p := engine.Port{
		Device: "sim", Num: home.num, NodeGUID: node.NodeGUID, PortGUID: home.guid,
		LID: info.LID, LMC: info.LMC, SMLID: info.MasterSMLID, SMSL: info.MasterSMSL,
		State: info.PortState, GIDPrefix: info.GIDPrefix,
	}
	var block [smpSize]byte
	for i := range uint32(node.PartitionCap) / mad.PKeyBlock {
		c.s.readBlock(pkeyBlocks, home, i, block[:])
		for j := range mad.PKeyBlock {
			p.PKeys = append(p.PKeys, binary.BigEndian.Uint16(block[2*j:]))
		}
	}
	return p, nil
}
