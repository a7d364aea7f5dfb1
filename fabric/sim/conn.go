package sim

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Conn is an attachment to one port of the subnet: an engine.Transport.
type Conn struct {
	engine.Basic

	agents *agent.Agents
	subnet *state.Subnet
	sender agent.Sender
	queue  *delayQueue           // to the program
	late   atomic.Int32          // requests that wait for the tables
	sink   func(p *agent.Packet) // of a Client, in place of the queue; nil: none

	sending  sync.Mutex     // guards both
	work     agent.Packet   // the MAD that Send executes
	exchange agent.Exchange // the state of its execution

	mu           sync.Mutex // guards both
	transfers    map[uint64]*transfer
	reassemblies []*reassembly // in the order they began
}

// Attach connects a program to a port of the subnet; port 0 of a CA stands for
// its first one that has a link. There may be several attachments, on one port
// too; each draws its own faults.
func (h *Clients) Attach(node, port int) (engine.Transport, error) {
	nodes := h.agents.Subnet.Nodes
	if len(nodes) == 0 {
		return nil, errors.New("attach: the simulated subnet is empty")
	}
	if node < 0 || node >= len(nodes) {
		return nil, fmt.Errorf("attach to node %d: the simulated subnet has nodes 0..%d", node, len(nodes)-1)
	}
	p, err := nodes[node].Attachment(port)
	if err != nil {
		return nil, err
	}
	return h.newConn(p), nil
}

func (h *Clients) newConn(p *state.Port) *Conn {
	return &Conn{agents: h.agents, subnet: h.agents.Subnet, sender: agent.Sender{Port: p, Model: h.agents.Faults.NewModel()}, queue: newDelayQueue(), transfers: map[uint64]*transfer{}}
}

// Send executes d; the answer, if there is one, waits in the queue when Send
// returns.
func (c *Conn) Send(d *engine.Datagram) error {
	if c.queue.closed.Load() {
		return engine.ErrClosed
	}
	if len(d.MAD) != mad.Size {
		return &engine.SendError{Err: fmt.Errorf("a MAD of %d bytes, not %d", len(d.MAD), mad.Size)}
	}
	if tablesTakeLong(c.subnet, d) {
		later := engine.Datagram{Address: d.Address, MAD: bytes.Clone(d.MAD)}
		c.late.Add(1)
		go func() {
			defer c.late.Add(-1)
			c.subnet.RLock()
			c.subnet.EnsureTables()
			c.subnet.RUnlock()
			c.send(&later)
		}()
		return nil
	}
	c.send(d)
	return nil
}

// TrySend is Send without requests that may take long to execute: an agent answers in
// less time than it takes to wake another goroutine.
func (c *Conn) TrySend(d *engine.Datagram) (sent bool, err error) {
	if len(d.MAD) == mad.Size && mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSubnAdm {
		return false, nil
	}
	return true, c.Send(d)
}

// tablesTakeLong reports whether the tables are needed for a MAD, and will take a while.
func tablesTakeLong(s *state.Subnet, d *engine.Datagram) bool {
	if len(s.Nodes) < slowTableNodes || !s.TablesStale.Load() {
		return false
	}
	directed := mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSubnDirected && d.LID == mad.PermissiveLID
	method, attr := mad.Method(d.MAD[mad.MethodOffset]), mad.AttributeID(binary.BigEndian.Uint16(d.MAD[mad.AttributeOffset:]))
	return !directed || method != mad.MethodGet || attr == mad.AttrLinearForwardingTable.ID
}

// Behind reports whether requests wait for the tables: in a very large subnet, or on a busy machine, these
// take longer than a program waits for an agent.
func (c *Conn) Behind() bool { return c.late.Load() > 0 }

// BeforeWait has Recv call f before it waits.
func (c *Conn) BeforeWait(f func() (again bool)) (ok bool) {
	c.queue.before = f
	return true
}

// send executes a MAD of the right size.
func (c *Conn) send(d *engine.Datagram) {
	c.sending.Lock()
	defer c.sending.Unlock()
	p := &c.work
	p.Address = d.Address
	copy(p.MAD[:], d.MAD)
	f := c.sender.Model.Draw(p.LID, p.QP, &p.MAD, false)
	if f.Lost {
		return
	}
	c.handle(p, f.Busy)
	if f.Duplicate {
		p.Address = d.Address
		copy(p.MAD[:], d.MAD)
		c.handle(p, f.Busy)
	}
}

// handle has p's agent execute it and sends the answer.
func (c *Conn) handle(p *agent.Packet, busy bool) {
	var payload []byte
	if isSegment(p) {
		if !c.agents.Reaches(c.sender.Port, p.LID) {
			return
		}
		if rmppHeader(p.MAD[:]).RMPPType != mad.RMPPTypeData {
			c.receiveControl(p)
			return
		}
		var whole bool
		if payload, whole = c.receiveSegment(p); !whole {
			return
		}
	}
	switch reply, table := c.exchange.Answer(c.agents, c.sender, p, payload, busy); reply {
	case agent.ReplyMAD:
		c.deliver(p)
	case agent.ReplyTable:
		c.startTransfer(p, table)
	case agent.ReplyFragments:
		agent.Fragments(p, table, c.deliver)
	}
}

// deliver sends p to the program, with its faults.
func (c *Conn) deliver(p *agent.Packet) {
	if c.sink != nil {
		c.sink(p)
		return
	}
	f := c.sender.Model.Draw(p.LID, p.QP, &p.MAD, true)
	if f.Lost || c.overflows(p) {
		return
	}
	c.queue.push(p, f.Delay)
	if f.Duplicate {
		c.queue.push(p, f.Delay)
	}
}

// overflows reports whether p is an SMP, and the short queue of virtual lane 15 is full.
func (c *Conn) overflows(p *agent.Packet) bool {
	room := c.agents.Faults.Settings.Load().VL15
	return room > 0 && p.QP == 0 && c.queue.waiting() >= room
}

// Recv waits for the next MAD.
func (c *Conn) Recv(d *engine.Datagram) error {
	p, err := c.queue.pop()
	if err != nil {
		return err
	}
	d.Address = p.Address
	d.Undelivered, d.Cut, d.Timeout = false, false, 0
	d.MAD = append(d.MAD[:0], p.MAD[:]...)
	return nil
}

// Close wakes Recv. Packets in the queue are lost.
func (c *Conn) Close() error {
	c.queue.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transfers {
		c.endTransfer(t)
	}
	return nil
}

// Traits returns the traits of the transport: the fabric is simulated.
func (c *Conn) Traits() engine.Traits { return engine.Traits{Name: "sim", Simulated: true} }

// Port reads the port from the tables of its agent.
func (c *Conn) Port() (engine.Port, error) {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	home := c.sender.Port
	info, node := home.PortInfo(), home.Node.NodeInfo()
	p := engine.Port{
		Device: "sim", Num: home.Num, NodeGUID: node.NodeGUID, PortGUID: home.GUID,
		LID: info.LID, LMC: info.LMC, SMLID: info.MasterSMLID, SMSL: info.MasterSMSL,
		State: info.PortState, GIDPrefix: info.GIDPrefix,
	}
	p.PKeys = slices.Collect(c.subnet.PKeys(home))
	return p, nil
}

// Accept registers the program for requests of others, of a class and method.
func (c *Conn) Accept(class mad.Class, m mad.Method) (stop func(), err error) {
	return c.agents.Notices.Accept(c.sender.Port.EndPort(), class, m, c.receiver())
}

// receiver delivers requests of others to the program.
func (c *Conn) receiver() *state.Receiver {
	return &state.Receiver{Deliver: func(from engine.Address, m *[mad.Size]byte) {
		c.deliver(&agent.Packet{Address: from, MAD: *m})
	}}
}

// slowTableNodes is the number of nodes from which computing the tables takes too long for a
// program to wait for in Send.
const slowTableNodes = 5000

// Waiting returns how many MADs wait for Recv. Only the caller of Recv may call it.
func (c *Conn) Waiting() int { return len(c.queue.taken) - c.queue.next + c.queue.waiting() }

// Transfers returns how many answers of several segments are on their way.
func (c *Conn) Transfers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.transfers)
}

// Reassemblies returns how many requests of several segments are remembered.
func (c *Conn) Reassemblies() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.reassemblies)
}

// delayQueue holds the packets on their way to the program at one conn. Without
// delays it is two slices that sender and receiver exchange, without a timer, and
// without allocation once they have grown.
type delayQueue struct {
	closed atomic.Bool

	// Used by the receiver alone: the packets that it took from ready, the next one that
	// it returns, and what it calls before it waits; again: it must check once more.
	taken  []agent.Packet
	next   int
	before func() (again bool)

	mu      sync.Mutex // guards all below
	wake    sync.Cond  // ready has grown, the first of delayed is due, or closed
	ready   []agent.Packet
	delayed delayHeap
	seq     uint64
	timer   *time.Timer // runs while the receiver waits for the first of delayed
}

func newDelayQueue() *delayQueue {
	q := &delayQueue{}
	q.wake.L = &q.mu
	return q
}

// push adds p, which the receiver gets after the delay.
func (q *delayQueue) push(p *agent.Packet, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return
	}
	if delay <= 0 {
		q.ready = append(q.ready, *p)
	} else {
		q.seq++
		heap.Push(&q.delayed, &delayedPacket{due: time.Now().Add(delay), seq: q.seq, Packet: *p})
	}
	q.wake.Signal()
}

// waiting returns the number of packets that the receiver has not taken yet.
func (q *delayQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready) + len(q.delayed)
}

// pop waits for a packet. The pointer is valid until the next pop.
func (q *delayQueue) pop() (*agent.Packet, error) {
	if q.closed.Load() {
		return nil, engine.ErrClosed
	}
	if q.next == len(q.taken) {
		if err := q.refill(); err != nil {
			return nil, err
		}
	}
	q.next++
	return &q.taken[q.next-1], nil
}

// refill waits until packets are ready, and takes all of them.
func (q *delayQueue) refill() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked := q.before == nil
	for {
		if q.closed.Load() {
			return engine.ErrClosed
		}
		wait := q.moveDue()
		switch {
		case len(q.ready) > 0:
			q.taken, q.ready, q.next = q.ready, q.taken[:0], 0
			return nil
		case !asked:
			q.mu.Unlock()
			asked = !q.before()
			q.mu.Lock()
			continue // packets may have come meanwhile
		case wait > 0:
			q.setTimer(wait)
		}
		q.wake.Wait()
		asked = q.before == nil
	}
}

// moveDue moves the delayed packets that are due to ready. It returns the time
// until the next one is due; 0 without another.
func (q *delayQueue) moveDue() time.Duration {
	if len(q.delayed) == 0 {
		return 0
	}
	now := time.Now()
	for len(q.delayed) > 0 {
		if wait := q.delayed[0].due.Sub(now); wait > 0 {
			return wait
		}
		q.ready = append(q.ready, heap.Pop(&q.delayed).(*delayedPacket).Packet)
	}
	return 0
}

func (q *delayQueue) setTimer(wait time.Duration) {
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.wake.Signal()
		})
		return
	}
	q.timer.Reset(wait)
}

// close wakes the receiver.
func (q *delayQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed.Store(true)
	if q.timer != nil {
		q.timer.Stop()
	}
	q.delayed, q.ready = nil, nil
	q.wake.Broadcast()
}

// delayedPacket is a packet that arrives at due; seq orders packets of one instant.
type delayedPacket struct {
	due time.Time
	seq uint64
	agent.Packet
}

type delayHeap []*delayedPacket

func (h delayHeap) Len() int { return len(h) }

func (h delayHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].seq < h[j].seq
}

func (h delayHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *delayHeap) Push(x any) { *h = append(*h, x.(*delayedPacket)) }

func (h *delayHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
