package sim

import (
	"encoding/binary"
	"time"

	"fabsh/fabric/sim/agent"
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
	GID         mad.GID // in it: that of the far end
	MAD         [mad.Size]byte
}

// unasked receives what the subnet sends without a request: traps and Reports; and what
// it sends a host of a transfer, with its faults.
func (c *Client) unasked(p *agent.Packet) {
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
	c.later(&m, f.Delay)
	if f.Duplicate {
		c.later(&m, f.Delay)
	}
}

// Send forwards m, and answers it. A request without an answer returns to the client, as
// undelivered, at once: the protocol cannot make the client wait. m belongs to the
// subnet: the answer is written into it.
func (c *Client) Send(m *Message) {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	method := mad.Method(m.MAD[mad.MethodOffset])
	response := answers(method)
	if !response { // the answers of other clients are led by the first two bytes
		binary.BigEndian.PutUint16(m.MAD[mad.TIDOffset:], uint16(c.slot))
	}
	if !c.spoke {
		c.spoke = true
		defer c.takeEarly()
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
	default:
		if !response {
			c.bounce(0)
		}
	}
}

// bounce returns the MAD that the client has sent.
func (c *Client) bounce(after time.Duration) {
	c.sent.Undelivered = true
	c.later(c.sent, after)
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
	c.later(m, f.Delay)
	if f.Duplicate {
		c.later(m, f.Delay)
	}
}

func (c *Client) later(m *Message, after time.Duration) {
	if after <= 0 {
		c.receive(m)
		return
	}
	if c.late.Add(1) > maxLate {
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
// delay, beyond which they are lost like those that wait for its socket.
const (
	maxHeld = 64 << 20
	maxLate = 1 << 14
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
	if len(c.tables) > 0 && c.held+len(data) > maxHeld {
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
