package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Client is a foreign program at a port of the subnet. Unlike what Attach gives,
// it also gets requests of others that no agent answers: it may be a subnet
// manager, or serve a class.
//
// The clients of a subnet are used from one goroutine at a time; Receive is called
// from any.
type Client struct {
	conn
	slot    int
	qp      uint32 // its own; 0: it has not said
	asks0   bool   // it takes requests to queue pairs 0 and 1
	isSM    bool
	classes [256]bool // of MADs that it has sent
	spoke   bool      // it has sent a MAD
	since   time.Time // it is attached, or last asked for facts of its port, as programs do that start
	traps   bool      // it has sent a trap
	receive func(*Message)
	sent    *Message // that Send executes
	tables  []*transfer
	held    int          // bytes of tables
	late    atomic.Int32 // answers that wait for their delay
	waiting []waiting    // requests that it has not answered, by time; under s.mu, or by its user
}

// Message is a MAD between a client and the subnet.
type Message struct {
	SLID, DLID  mad.LID // mad.PermissiveLID: by a directed route
	SQP, DQP    uint32
	Undelivered bool // the client gets its own MAD back: there will be no answer
	Length      int  // of the MAD that counts
	MAD         [mad.Size]byte
}

// ClientOptions are what a client says of itself.
type ClientOptions struct {
	Node int
	// QP, above 1, is a queue pair of the client alone: requests to it are for the
	// client, and tables come in segments. A client without one, and without General,
	// is taken for libumad2sim: it gets as much of a table as one MAD holds, and is not
	// told of counters at the end of MADs, which that library cuts off.
	QP uint32
	// General takes requests to queue pairs 0 and 1: one client of a node can.
	General bool
	// Receive takes what comes for the client. It may be called from any goroutine,
	// must not call the subnet, and must not keep the message.
	Receive func(*Message)
}

// MaxClients is how many clients a subnet may have.
const MaxClients = 128

// AttachClient attaches a program to the port of a node, by the rules of Attach.
func (s *Subnet) AttachClient(o ClientOptions) (*Client, error) {
	t, err := s.Attach(o.Node, 0)
	if err != nil {
		return nil, err
	}
	c := &Client{qp: o.QP, asks0: o.General, receive: o.Receive, since: time.Now()}
	base := t.(*conn)
	c.conn.s, c.conn.port, c.conn.faults, c.conn.queue, c.conn.transfers = s, base.port, base.faults, base.queue, base.transfers
	c.conn.sink, c.conn.cut = c.unasked, o.QP <= 1 && !o.General
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.General && slices.ContainsFunc(s.clients, func(other *Client) bool {
		return other != nil && other.port.node == c.port.node && (other.asks0 || other.isSM)
	}) {
		return nil, fmt.Errorf("attach to %s: another program takes the requests to its queue pairs 0 and 1", c.port.node.label)
	}
	if c.slot = slices.Index(s.clients, nil); c.slot < 0 {
		if c.slot = len(s.clients); c.slot == MaxClients {
			return nil, fmt.Errorf("attach to %s: there are %d programs on the simulated subnet, and no more may be", c.port.node.label, MaxClients)
		}
		s.clients = append(s.clients, nil)
	}
	s.clients[c.slot] = c
	s.acceptFor(c)
	return c, nil
}

// Starting: the client does what programs do before they register for what they serve.
func (c *Client) Starting() { c.since = time.Now() }

// Slot is the client's number.
func (c *Client) Slot() int { return c.slot }

// Detach removes the client. A port whose subnet manager it was is one no more.
func (c *Client) Detach() {
	c.SetSM(false)
	c.conn.Close()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.clients[c.slot] != c {
		return
	}
	c.s.clients[c.slot] = nil
	c.giveUp(len(c.waiting))
	c.s.acceptAgain()
}

// SetSM says whether the client is a subnet manager: its port's CapabilityMask
// shows it, and it takes traps and requests to queue pairs 0 and 1.
func (c *Client) SetSM(is bool) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.isSM == is {
		return
	}
	c.isSM = is
	on := c.port == s.sm || slices.ContainsFunc(s.clients, func(o *Client) bool { return o != nil && o.isSM && o.port == c.port })
	before := c.port.info
	c.port.setCapability(mad.CapabilityMaskIsSM, on)
	s.acceptAgain()
	if c.port.info != before {
		var info mad.PortInfo
		info.Decode(c.port.info[:])
		s.trap(c.port.endPort(), mad.NoticeTypeInformational, 144, &mad.NoticeLocalChange{LIDAddr: c.port.endPort().lid, CapabilityMask: info.CapabilityMask})
	}
}

// setCapability sets or clears bits of PortInfo.CapabilityMask.
func (p *port) setCapability(bits mad.CapabilityMask, on bool) {
	var info mad.PortInfo
	info.Decode(p.info[:])
	info.CapabilityMask &^= bits
	if on {
		info.CapabilityMask |= bits
	}
	p.setInfo(&info)
}

// acceptFor registers c for what comes to its port unasked, where nobody else is.
func (s *Subnet) acceptFor(c *Client) {
	at := c.port.endPort()
	for _, key := range []struct {
		acceptKey
		wanted bool
	}{
		{acceptKey{at, mad.ClassSubn, mad.MethodTrap}, (c.isSM || c.asks0) && at != s.sm},
		{acceptKey{at, mad.ClassSubnAdm, mad.MethodReport}, c.qp > 1 || c.asks0 && !c.isSM},
	} {
		if key.wanted && s.accepting[key.acceptKey] == nil {
			s.accepting[key.acceptKey] = &c.conn
		}
	}
}

// acceptAgain registers all clients anew: real subnet managers first.
func (s *Subnet) acceptAgain() {
	for key, c := range s.accepting {
		if c.sink != nil {
			delete(s.accepting, key)
		}
	}
	for _, sm := range []bool{true, false} {
		for _, c := range s.clients {
			if c != nil && c.isSM == sm {
				s.acceptFor(c)
			}
		}
	}
}

// unasked takes what the subnet sends the client by itself: traps and Reports.
func (c *Client) unasked(p *packet) {
	m := Message{SLID: p.LID, DLID: c.port.endPort().lid, SQP: p.QP, DQP: p.QP, Length: mad.Size, MAD: p.mad}
	if p.QP == 1 && c.qp > 1 {
		m.DQP = c.qp
	}
	c.receive(&m)
}

// Send has the subnet forward m, and answer it. What gets no answer comes back to
// the client, as undelivered, at once: for there is no way to tell it to wait. m is
// the subnet's: the answer is made in it.
func (c *Client) Send(m *Message) {
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
	p.Address = engine.Address{LID: m.DLID, QP: m.DQP}
	p.mad = m.MAD
	f := c.faults.draw(p, false)
	if f.lost {
		c.bounce(f.delay)
		return
	}
	switch c.s.forwardToClient(c, m) {
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
		if rmppHeader(p.mad[:]).RMPPType != mad.RMPPTypeData {
			return // tables are sent to clients without waiting for ACKs
		}
		if payload, whole = c.receiveSegment(p); !whole {
			return
		}
	}
	switch r := c.s.answer(&c.conn, p, payload, f.busy); r.reply {
	case replyMAD:
		c.answered(p, mad.Size)
	case replyTable:
		c.sendTable(p, r.table)
		r.table = nil
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

// answered sends the client an answer to what it has sent.
func (c *Client) answered(p *packet, length int) {
	f := c.faults.draw(p, true)
	if f.lost {
		c.bounce(f.delay)
		return
	}
	m := c.sent
	m.SLID, m.DLID, m.SQP, m.DQP = m.DLID, m.SLID, m.DQP, m.SQP
	m.Length, m.MAD = length, p.mad
	c.later(m, f.delay)
	if f.duplicate {
		c.later(m, f.delay)
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

// What is kept for a client that asks for more than it takes: bytes of tables, beyond
// which the subnet administrator is busy, and answers that wait for their delay,
// beyond which they are lost, as those that wait for its socket.
const (
	maxHeld = 64 << 20
	maxLate = 1 << 14
)

// sendTable sends a table: as much as one MAD holds to a client that knows no
// segments, as OpenSM's tables come through libumad2sim; else all segments, as
// More asks for them.
func (c *Client) sendTable(p *packet, data []byte) {
	if c.qp <= 1 {
		const active = uint8(mad.RMPPFlagsActive)
		clear(p.mad[mad.RMPPOffset:mad.SAKeyOffset])
		p.mad[mad.RMPPFlagsOffset] = active
		clear(p.mad[mad.SADataOffset+copy(p.mad[mad.SADataOffset:], data):])
		c.answered(p, min(mad.SADataOffset+len(data), mad.Size))
		return
	}
	if len(c.tables) > 0 && c.held+len(data) > maxHeld {
		binary.BigEndian.PutUint16(p.mad[mad.StatusOffset:], uint16(mad.StatusBusy))
		c.answered(p, mad.Size)
		return
	}
	c.held += len(data)
	t := &transfer{packet: *p, data: data, segs: max(1, (len(data)+mad.SegmentData-1)/mad.SegmentData)}
	t.Address = engine.Address{LID: c.sent.DLID, QP: c.sent.DQP}
	c.tables = append(c.tables, t)
	c.More(1)
}

// More sends the client up to n segments of tables that it has asked for. More are
// left, if it returns true.
func (c *Client) More(n int) bool {
	for ; n > 0 && len(c.tables) > 0; n-- {
		t := c.tables[0]
		t.sent++
		p := t.segment(t.sent)
		c.receive(&Message{SLID: t.LID, DLID: c.port.endPort().lid, SQP: t.QP, DQP: c.qp, Length: mad.Size, MAD: p.mad})
		if t.sent == t.segs {
			c.tables, c.held = c.tables[1:], c.held-len(t.data)
		}
	}
	return len(c.tables) > 0
}

// Name is the name of the node.
func (c *Client) Name() string {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.port.node.name()
}

// Port is the LID and the state of the port.
func (c *Client) Port() (mad.LID, mad.PortState) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.port.lid, c.port.state
}

// NodeInfo is what the agent of the port says.
func (c *Client) NodeInfo() (info mad.NodeInfo) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	var data [smpSize]byte
	c.port.nodeInfo(data[:])
	info.Decode(data[:])
	return info
}

// PortInfo is what the agent says of port num; 0, and what is no port, is the
// client's.
func (c *Client) PortInfo(num int) (info mad.PortInfo) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	p := c.port
	if num > 0 && num < len(p.node.ports) {
		p = &p.node.ports[num]
	}
	info.Decode(p.info[:])
	return info
}

// ReadPKeys writes the first block of the port's P_Keys to data.
func (c *Client) ReadPKeys(data []byte) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	c.s.readBlock(pkeyBlocks, c.port, 0, data)
}

// name is the node's description as text.
func (n *node) name() string {
	text, _, _ := bytes.Cut(n.desc[:], []byte{0})
	return string(text)
}

// GUID is that of the port.
func (c *Client) GUID() mad.GUID { return c.port.endPort().guid }

// QP is the queue pair of ClientOptions.
func (c *Client) QP() uint32 { return c.qp }

// IsSM: the client takes requests as a subnet manager does.
func (c *Client) IsSM() bool { return c.isSM || c.asks0 }
