package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Message is a MAD between a client and the subnet.
type Message struct {
	SLID, DLID  mad.LID // mad.PermissiveLID: by a directed route
	SQP, DQP    uint32
	Undelivered bool // the client gets its own MAD back: there will be no answer
	Length      int  // of the MAD that counts
	SL          uint8
	PKeyIndex   uint16  // of the client's port
	HasGRH      bool    // it has a global route header
	GID         mad.GID // in it: the GID of the far end
	MAD         [mad.Size]byte
}

// receiveUnsolicited receives what the subnet sends without a request: traps and Reports; and what
// it sends a host of a transfer, with its faults.
func (c *Client) receiveUnsolicited(p *agent.Packet) {
	m := Message{SLID: p.LID, DLID: c.sender.Port.EndPort().LID, SQP: p.QP, DQP: p.QP, Length: mad.Size, MAD: p.MAD}
	if p.QP == 1 && c.qp > 1 {
		m.DQP = c.qp
	}
	if c.takes == nil {
		c.receive(&m)
		return
	}
	f := c.sender.Model.Draw(p.LID, p.QP, &p.MAD, true)
	if f.Lost {
		return
	}
	c.sendLater(&m, f.Delay)
	if f.Duplicate {
		c.sendLater(&m, f.Delay)
	}
}

// Send forwards m, and answers it. A request without an answer returns to the client, as
// undelivered, at once: the protocol cannot make the client wait. m belongs to the
// subnet: the answer is written into it.
func (c *Client) Send(m *Message) {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	method := mad.Method(m.MAD[mad.MethodOffset])
	response := answersRequest(method)
	if !response { // the answers of other clients are led by the first two bytes
		binary.BigEndian.PutUint16(m.MAD[mad.TIDOffset:], uint16(c.slot))
	}
	if !c.hasSent {
		c.hasSent = true
		defer c.deliverEarly()
	}
	c.classes[m.MAD[mad.ClassOffset]] = true
	c.traps = c.traps || method == mad.MethodTrap
	c.sent = m
	p := &c.work
	p.Address = engine.Address{LID: m.DLID, QP: m.DQP, SL: m.SL, PKeyIndex: m.PKeyIndex, HasGRH: m.HasGRH, GID: m.GID}
	p.MAD = m.MAD
	f := c.sender.Model.Draw(p.LID, p.QP, &p.MAD, false)
	if f.Lost {
		c.bounce(f.Delay)
		return
	}
	switch c.clients.forward(c, m) {
	case delivered:
		return
	case undeliverable:
		if !response {
			c.bounce(0)
		}
		return
	}
	var payload []byte
	if isSegment(p) {
		var whole bool
		if rmppHeader(p.MAD[:]).RMPPType != mad.RMPPTypeData {
			if c.takes != nil { // to others, tables are sent without waiting for ACKs
				c.receiveControl(p)
			}
			return
		}
		if payload, whole = c.receiveSegment(p); !whole {
			return
		}
	}
	switch reply, table := c.exchange.Answer(c.agents, c.sender, p, payload, f.Busy); reply {
	case agent.ReplyMAD:
		c.answered(p, mad.Size)
	case agent.ReplyTable:
		c.sendTable(p, table)
	case agent.ReplyFragments:
		agent.Fragments(p, table, func(p *agent.Packet) { c.answered(p, mad.Size) })
	default:
		if !response {
			c.bounce(0)
		}
	}
}

// bounce returns the MAD that the client has sent.
func (c *Client) bounce(after time.Duration) {
	c.sent.Undelivered = true
	c.sendLater(c.sent, after)
}

// answered sends the client the answer to its request.
func (c *Client) answered(p *agent.Packet, length int) {
	f := c.sender.Model.Draw(p.LID, p.QP, &p.MAD, true)
	if f.Lost {
		c.bounce(f.Delay)
		return
	}
	m := c.sent
	m.SLID, m.DLID, m.SQP, m.DQP = m.DLID, m.SLID, m.DQP, m.SQP
	m.Length, m.MAD = length, p.MAD
	c.sendLater(m, f.Delay)
	if f.Duplicate {
		c.sendLater(m, f.Delay)
	}
}

// sendLater passes m to the client after a time.
func (c *Client) sendLater(m *Message, after time.Duration) {
	if after <= 0 {
		c.receive(m)
		return
	}
	if c.late.Add(1) > maxDelayed {
		c.late.Add(-1)
		return
	}
	late := *m
	time.AfterFunc(after, func() {
		c.late.Add(-1)
		c.receive(&late)
	})
}

// Limits of what is kept for a client that requests more than it receives: bytes of
// tables, beyond which the subnet administrator is busy, and answers that wait for their
// delay, beyond which they are lost, like answers that wait for its socket.
const (
	maxTableBytes = 64 << 20
	maxDelayed    = 1 << 14
)

// sendTable sends a table: to a host, as it acknowledges the segments; to a client that
// does not know segments, as much as one MAD holds, as OpenSM's tables arrive through
// libumad2sim; otherwise all segments, as More requests them.
func (c *Client) sendTable(p *agent.Packet, data []byte) {
	if c.takes != nil {
		p.Address = engine.Address{LID: c.sent.DLID, QP: c.sent.DQP}
		c.startTransfer(p, data)
		return
	}
	if c.qp <= 1 {
		const active = uint8(mad.RMPPFlagsActive)
		clear(p.MAD[mad.RMPPOffset:mad.SAKeyOffset])
		p.MAD[mad.RMPPFlagsOffset] = active
		clear(p.MAD[mad.SADataOffset+copy(p.MAD[mad.SADataOffset:], data):])
		c.answered(p, min(mad.SADataOffset+len(data), mad.Size))
		return
	}
	if len(c.tables) > 0 && c.held+len(data) > maxTableBytes {
		binary.BigEndian.PutUint16(p.MAD[mad.StatusOffset:], uint16(mad.StatusBusy))
		c.answered(p, mad.Size)
		return
	}
	c.held += len(data)
	t := &transfer{Packet: *p, data: data, segs: max(1, (len(data)+mad.SegmentData-1)/mad.SegmentData)}
	t.Address = engine.Address{LID: c.sent.DLID, QP: c.sent.DQP}
	c.tables = append(c.tables, t)
	c.more(1)
}

// More sends the client up to n segments of tables that it has requested. It returns true
// if segments are left.
func (c *Client) More(n int) bool {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	return c.more(n)
}

func (c *Client) more(n int) bool {
	for ; n > 0 && len(c.tables) > 0; n-- {
		t := c.tables[0]
		t.sent++
		p := t.segment(t.sent)
		c.receive(&Message{SLID: t.LID, DLID: c.sender.Port.EndPort().LID, SQP: t.QP, DQP: c.qp, Length: mad.Size, MAD: p.MAD})
		if t.sent == t.segs {
			c.tables, c.held = c.tables[1:], c.held-len(t.data)
		}
	}
	return len(c.tables) > 0
}

// delivery is the result of forward.
type delivery uint8

const (
	forAgent      delivery = iota // an agent is to answer
	delivered                     // to a client
	undeliverable                 // for a program that does not exist or cannot be reached
)

// forward delivers a MAD of from to the client that it is for: answers,
// and requests that the agents of a node leave to its software.
func (h *Clients) forward(from *Client, m *Message) delivery {
	class, method := mad.Class(m.MAD[mad.ClassOffset]), mad.Method(m.MAD[mad.MethodOffset])
	smp := class.Family() == mad.ClassSubn
	response := answersRequest(method)
	switch {
	case response:
	case smp:
		if method != mad.MethodTrap && binary.BigEndian.Uint16(m.MAD[mad.AttributeOffset:]) != uint16(mad.AttrSMInfo.ID) {
			return forAgent
		}
	case m.DQP <= 1 && agent.Has(class):
		return forAgent
	}
	if m.MAD[mad.BaseVersionOffset] != 1 || smp != (m.DQP == 0) {
		return undeliverable
	}
	s := h.agents.Subnet
	s.RLock()
	defer s.RUnlock()
	s.EnsureTables()
	copied := *m
	at, turn := from.route(&copied, response)
	switch {
	case at == nil:
		return undeliverable
	case !response && at.EndPort() == s.SM && (smp || class == mad.ClassSubnAdm):
		return forAgent
	}
	to := h.clientAt(at, &copied, class, method, from)
	switch {
	case to != nil && !smp && !h.inPartition(from, at, m.PKeyIndex):
		return undeliverable
	case to == nil && (method.IsResponse() || class.HasOUI() && !h.hasHost(at)): // ibsysstat would take any answer for its server's
		return undeliverable
	case to == nil:
		return forAgent // which answers that it is not supported
	}
	route := state.FaultRoute{From: from.sender.Port, In: at, Turn: turn}
	if response {
		route.From, route.In = route.In, route.From
	}
	if !from.sender.Model.Survives(route, mad.ParseHeader(m.MAD[:]), copied.MAD[:], &m.MAD, response) {
		return undeliverable
	}
	copied.SLID, copied.GID = m.SLID, from.sender.Port.EndPort().GID()
	if class != mad.ClassSubnDirected && copied.SLID == 0 {
		copied.SLID = from.sender.Port.EndPort().LID
	}
	switch {
	case response:
		from.settle(&copied, to)
	case to.isSM && !to.hasSent && to.takes == nil:
		to.expect(&copied, from).early = true
		return delivered
	case from.takes == nil: // a host has timers of its own
		to.expect(&copied, from)
	}
	to.receive(&copied)
	return delivered
}

// answersRequest reports whether a MAD with that method answers another one; TrapRepress also
// does, because OpenSM waits for it when it has sent a trap.
func answersRequest(m mad.Method) bool { return m.IsResponse() || m == mad.MethodTrapRepress }

// route returns the port where m, sent from c's port, arrives; nil if it does not. For a
// directed route, turn is where its directed part ended, or the directed part of the request.
func (c *Client) route(m *Message, response bool) (at, turn *state.Port) {
	b := m.MAD[:]
	switch {
	case mad.Class(b[mad.ClassOffset]) != mad.ClassSubnDirected:
		return state.ForwardLID(c.sender.Port, m.DLID, m.DQP == 0), nil
	case !response:
		at, turn = state.ForwardDirected(c.sender.Port, m.DLID, b)
		if at != nil {
			b[mad.StatusOffset] &^= state.DirectionBit // the program that answers sets it
		}
		return at, turn
	case b[mad.StatusOffset]&state.DirectionBit == 0, b[mad.HopPointerOffset] != 0, int(b[mad.HopCountOffset]) > mad.MaxHops:
		return nil, nil
	}
	drSLID, _ := state.DRLIDs(b)
	at = c.sender.Port
	if m.DLID != mad.PermissiveLID {
		at = state.ForwardLID(at, m.DLID, true)
	}
	turn = at
	for hop := int(b[mad.HopCountOffset]); at != nil && hop >= 1; hop-- {
		exit := int(b[mad.SMPReturnPathOffset+hop])
		if exit >= len(at.Node.Ports) || !at.Node.IsSwitch && at != c.sender.Port {
			return nil, nil
		}
		at = at.Node.Ports[exit].Neighbour()
	}
	if at != nil && drSLID != mad.PermissiveLID {
		at = state.ForwardLID(at, drSLID, true)
	}
	return at, turn
}

// hasHost reports whether a port has the software of a host, whose kernel answers what
// no program takes.
func (h *Clients) hasHost(at *state.Port) bool {
	return slices.ContainsFunc(h.list, func(c *Client) bool {
		return c != nil && c.takes != nil && c.sender.Port.EndPort() == at.EndPort()
	})
}

// inPartition reports whether a port takes packets with the P_Key at an index of the
// sender's table (IBA 10.9.1.1), or they stay on the host.
func (h *Clients) inPartition(from *Client, at *state.Port, index uint16) bool {
	here, there := from.sender.Port.EndPort(), at.EndPort()
	key := h.agents.Subnet.PKeyAt(here, int(index))
	return here == there || key&state.PKeyBase != 0 && h.agents.Subnet.AcceptsPKey(there, key)
}

// registrationTime is how long a program takes to register for what it serves.
const registrationTime = time.Second

// clientAt returns the client at a port that a MAD is for; nil: none. An answer is for
// the client whose number its transaction ID has. A request of a class that programs serve
// does not return to from, its sender: ibsysstat would take it for the answer.
func (h *Clients) clientAt(p *state.Port, m *Message, class mad.Class, method mad.Method, from *Client) *Client {
	home := p.EndPort()
	if answersRequest(method) {
		// An agent's trap may have the number of a client that has sent none.
		slot := int(binary.BigEndian.Uint16(m.MAD[mad.TIDOffset:]))
		if slot < len(h.list) && h.list[slot] != nil && h.list[slot].sender.Port.EndPort() == home && (method.IsResponse() || h.list[slot].traps) {
			return h.list[slot]
		}
		return nil
	}
	for _, c := range h.list {
		if c != nil && c.takes != nil && m.DQP <= 1 && c.sender.Port.EndPort() == home && c.takes(class, method, &m.MAD) {
			return c
		}
	}
	rules, own := ofClass, from
	switch {
	case m.DQP > 1:
		rules, own = ofQueuePair, nil
	case class.Family() == mad.ClassSubn, class == mad.ClassSubnAdm && method != mad.MethodReport:
		rules, own = ofManager, nil
	}
	for _, rule := range rules {
		for _, c := range h.list {
			if c != nil && c != own && c.takes == nil && c.sender.Port.EndPort() == home && rule(c, m.DQP, class) {
				return c
			}
		}
	}
	return nil
}

// recipientRule reports whether a client gets a request to queue pair qp, of a class.
type recipientRule func(c *Client, qp uint32, class mad.Class) bool

// Rules that select the client at a port that receives a request: the first client for
// which the first rule holds, else the second rule, and so on. libumad2sim crashes on
// messages that its program has not registered for.
var (
	ofQueuePair = []recipientRule{
		func(c *Client, qp uint32, _ mad.Class) bool { return c.qp == qp },
	}
	// ofManager are the rules for requests to a subnet manager.
	ofManager = []recipientRule{
		func(c *Client, _ uint32, _ mad.Class) bool { return c.isSM && !c.general },
		func(c *Client, _ uint32, _ mad.Class) bool { return c.isSM || c.general },
	}
	// ofClass are the rules for all other requests: the client has used the class; or has
	// been attached for a while without sending, as servers do; or accepts all requests.
	ofClass = []recipientRule{
		func(c *Client, _ uint32, class mad.Class) bool { return c.classes[class] && !c.isSM },
		func(c *Client, _ uint32, _ mad.Class) bool {
			return !c.hasSent && !c.isSM && time.Since(c.since) > registrationTime
		},
		func(c *Client, _ uint32, class mad.Class) bool { return c.classes[class] },
		func(c *Client, _ uint32, _ mad.Class) bool { return c.general },
	}
)
