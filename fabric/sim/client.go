package sim

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Client is a foreign program at a port of the subnet. Unlike an attachment of Attach, it
// also receives requests of other programs that no agent answers: it may be a subnet
// manager, or serve a class.
//
// Its methods may be called from any goroutine.
type Client struct {
	*Conn
	clients *Clients
	slot    int
	qp      uint32 // its own; 0: not announced
	general bool   // it takes requests to queue pairs 0 and 1
	isSM    bool
	accepts *state.Receiver
	classes [256]bool // of MADs that it has sent
	hasSent bool      // it has sent a MAD
	since   time.Time // when it was attached, or last queried facts of its port, as programs do at start
	traps   bool      // it has sent a trap
	receive func(*Message)
	takes   TakesFunc // nil: by the rules for libumad2sim
	sent    *Message  // that Send executes
	tables  []*transfer
	held    int              // bytes of tables
	late    atomic.Int32     // answers that wait for their delay
	waiting []pendingRequest // requests that it has not answered, by time; under the subnet's lock, or by its user
}

// ClientOptions are what a client announces.
type ClientOptions struct {
	Node int
	Port int // 0: the first of a channel adapter that has a link
	// QP, above 1, is a queue pair of the client alone: requests to it are for the
	// client, and tables come in segments. A client without one, and without General,
	// is treated as libumad2sim: it gets as much of a table as one MAD holds, and no
	// counters at the end of MADs, which that library truncates.
	QP uint32
	// General takes requests to queue pairs 0 and 1: one client of a node can.
	General bool
	// Takes makes the client all software of a host's port, as its kernel has registered
	// it: it gets the requests to queue pairs 0 and 1 that Takes reports, and tables in
	// segments. Registered reports a change. Takes must not call the subnet.
	Takes TakesFunc
	// Receive takes what comes for the client. It may be called from any goroutine,
	// must not call the subnet, and must not keep the message.
	Receive func(*Message)
}

// TakesFunc reports whether software of a host takes requests of a class and method; m is
// one, or nil: any.
type TakesFunc func(class mad.Class, method mad.Method, m *[mad.Size]byte) bool

// Clients are the programs that are attached to a subnet.
type Clients struct {
	agents *agent.Agents
	using  sync.Mutex // held while a client sends, comes or goes; taken before the subnet's lock
	list   []*Client  // by number; nil: the place is free. Guarded by the subnet's lock
}

// newClients returns an empty Clients.
func newClients(a *agent.Agents) *Clients { return &Clients{agents: a} }

// Watch calls fn with each request that reaches the agents of a node, before it is answered. fn
// may be called from any goroutine, and must not call the subnet. Watch must be called before
// the first request.
func (h *Clients) Watch(fn func(node mad.GUID, h mad.Header)) { h.agents.Seen = fn }

// maxClients is how many clients a subnet may have.
const maxClients = 128

// AttachClient attaches a program to the port of a node, by the rules of Attach.
func (h *Clients) AttachClient(o ClientOptions) (*Client, error) {
	h.using.Lock()
	defer h.using.Unlock()
	t, err := h.Attach(o.Node, o.Port)
	if err != nil {
		return nil, err
	}
	c := &Client{Conn: t.(*Conn), clients: h, qp: o.QP, general: o.General, takes: o.Takes, receive: o.Receive, since: time.Now()}
	c.sink, c.sender.Cut = c.receiveUnsolicited, o.QP <= 1 && !o.General && o.Takes == nil
	c.accepts = c.receiver()
	c.accepts.Client = true
	h.agents.Subnet.Lock()
	defer h.agents.Subnet.Unlock()
	if o.General && slices.ContainsFunc(c.clients.list, func(other *Client) bool {
		return other != nil && other.sender.Port.Node == c.sender.Port.Node && (other.general || other.isSM)
	}) {
		return nil, fmt.Errorf("attach to %s: another program takes the requests to its queue pairs 0 and 1", c.sender.Port.Node.Label)
	}
	if c.slot = slices.Index(h.list, nil); c.slot < 0 {
		if c.slot = len(h.list); c.slot == maxClients {
			return nil, fmt.Errorf("attach to %s: %d programs are attached to the simulated subnet, the maximum", c.sender.Port.Node.Label, maxClients)
		}
		h.list = append(h.list, nil)
	}
	h.list[c.slot] = c
	h.register(c)
	return c, nil
}

// Starting reports whether the client is in the phase before programs register for the
// requests that they serve.
func (c *Client) Starting() {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	c.since = time.Now()
}

// Registered has the subnet learn for what the software of a host is registered now.
func (c *Client) Registered() {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	c.subnet.Lock()
	defer c.subnet.Unlock()
	c.clients.registerAll()
}

// Slot returns the client's number.
func (c *Client) Slot() int { return c.slot }

// Detach removes the client, and the subnet manager that it was from its port.
func (c *Client) Detach() {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	c.setSM(false)
	c.Conn.Close()
	c.subnet.Lock()
	defer c.subnet.Unlock()
	if c.clients.list[c.slot] != c {
		return
	}
	c.clients.list[c.slot] = nil
	c.returnUnanswered(len(c.waiting))
	c.clients.registerAll()
}

// SetSM sets whether the client is a subnet manager: its port's CapabilityMask shows it,
// and it receives traps and requests to queue pairs 0 and 1.
func (c *Client) SetSM(is bool) {
	c.clients.using.Lock()
	defer c.clients.using.Unlock()
	c.setSM(is)
}

func (c *Client) setSM(is bool) {
	c.subnet.Lock()
	defer c.subnet.Unlock()
	if c.isSM == is {
		return
	}
	c.isSM = is
	on := c.sender.Port == c.subnet.SM || slices.ContainsFunc(c.clients.list, func(o *Client) bool { return o != nil && o.isSM && o.sender.Port == c.sender.Port })
	before := c.sender.Port.Info
	c.sender.Port.SetCapability(mad.CapabilityMaskIsSM, on)
	c.clients.registerAll()
	if c.sender.Port.Info != before {
		end := c.sender.Port.EndPort()
		c.agents.Notices.Trap(end, mad.NoticeTypeInformational, 144, &mad.NoticeLocalChange{LIDAddr: end.LID, CapabilityMask: c.sender.Port.PortInfo().CapabilityMask})
	}
}

// register registers c for requests of others to its port, unless another client is
// registered.
func (h *Clients) register(c *Client) {
	at, accepting := c.sender.Port.EndPort(), h.agents.Notices.Accepting
	for _, key := range []struct {
		state.RequestKey
		wanted bool
	}{
		{state.RequestKey{Port: at, Class: mad.ClassSubn, Method: mad.MethodTrap}, (c.isSM || c.general) && at != h.agents.Subnet.SM},
		{state.RequestKey{Port: at, Class: mad.ClassSubnAdm, Method: mad.MethodReport}, c.qp > 1 || c.general && !c.isSM},
	} {
		if c.takes != nil {
			key.wanted = at != h.agents.Subnet.SM || key.Method != mad.MethodTrap
			key.wanted = key.wanted && c.takes(key.Class, key.Method, nil)
		}
		if key.wanted && accepting[key.RequestKey] == nil {
			accepting[key.RequestKey] = c.accepts
		}
	}
}

// registerAll registers all clients again: real subnet managers first.
func (h *Clients) registerAll() {
	maps.DeleteFunc(h.agents.Notices.Accepting, func(_ state.RequestKey, r *state.Receiver) bool { return r.Client })
	for _, sm := range []bool{true, false} {
		for _, c := range h.list {
			if c != nil && c.isSM == sm {
				h.register(c)
			}
		}
	}
}

// Name returns the name of the node.
func (c *Client) Name() string {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	return c.sender.Port.Node.Name()
}

// Port returns the LID and the state of the port.
func (c *Client) Port() (mad.LID, mad.PortState) {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	return c.sender.Port.LID, c.sender.Port.State
}

// NodeInfo returns the answer of the port's agent.
func (c *Client) NodeInfo() (info mad.NodeInfo) {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	var data [state.SMPSize]byte
	c.sender.Port.ReadNodeInfo(data[:])
	info.Decode(data[:])
	return info
}

// PortInfo returns the agent's PortInfo of port num; 0, or an invalid number, is the
// client's port.
func (c *Client) PortInfo(num int) mad.PortInfo {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	p := c.sender.Port
	if num > 0 && num < len(p.Node.Ports) {
		p = &p.Node.Ports[num]
	}
	return p.PortInfo()
}

// Ethernet reports whether the port is of an Ethernet network.
func (c *Client) Ethernet() bool {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	return c.sender.Port.Ethernet
}

// PKeys returns the table of the port's P_Keys.
func (c *Client) PKeys() []uint16 {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	return slices.Collect(c.subnet.PKeys(c.sender.Port.EndPort()))
}

// GIDs returns the table of the port's GIDs; entries that are not set have GUID 0.
func (c *Client) GIDs() (list []mad.GID) {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	p := c.sender.Port.EndPort()
	prefix := p.PortInfo().GIDPrefix
	for block := range uint32(state.GUIDCap / mad.GUIDBlock) {
		b := c.subnet.Block(state.GUIDBlocks, p, block)
		for i := range mad.GUIDBlock {
			list = append(list, mad.MakeGID(prefix, mad.GUID(binary.BigEndian.Uint64(b[8*i:]))))
		}
	}
	return list
}

// Counters returns an attribute of the port's performance management; nil: its agent does
// not have it.
func (c *Client) Counters(attr *mad.Attribute) []byte {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	return c.agents.PortCounters(c.sender.Port, attr)
}

// ReadPKeys writes the first block of the port's P_Keys to data.
func (c *Client) ReadPKeys(data []byte) {
	c.subnet.RLock()
	defer c.subnet.RUnlock()
	c.subnet.ReadBlock(state.PKeyBlocks, c.sender.Port, 0, data)
}

// GUID returns the GUID of the port.
func (c *Client) GUID() mad.GUID { return c.sender.Port.EndPort().GUID }

// QP returns the queue pair of ClientOptions.
func (c *Client) QP() uint32 { return c.qp }

// IsSM reports whether the client receives requests like a subnet manager.
func (c *Client) IsSM() bool { return c.isSM || c.general }

// Requests that wait: a host's kernel returns a request to its program if there is no answer in time.
// libumad2sim does not, and OpenSM waits for ever for lost answers. So requests that
// clients have not answered are returned when these clients detach, or take too long.

const (
	// answerTimeout is how long a client may take to answer. OpenSM takes seconds for
	// tables of large subnets.
	answerTimeout = 10 * time.Second
	// maxPending is how many requests may wait for one client; beyond it the oldest one
	// is returned.
	maxPending = 1024
)

// pendingRequest is a request that a client has not answered yet.
type pendingRequest struct {
	from    *Client
	message Message
	until   time.Time
	early   bool // the client did not get it yet
}

// expect notes that c is to answer m, from another client.
func (c *Client) expect(m *Message, from *Client) *pendingRequest {
	if len(c.waiting) == maxPending {
		c.returnUnanswered(1)
	}
	c.waiting = append(c.waiting, pendingRequest{from: from, message: *m, until: time.Now().Add(answerTimeout)})
	return &c.waiting[len(c.waiting)-1]
}

// deliverEarly gives c the requests that came for it before it had sent anything. OpenSM
// announces that it is a subnet manager, and loses requests in the milliseconds until its
// first sweep begins: another OpenSM that requests its SMInfo would wait for the answer.
func (c *Client) deliverEarly() {
	for i := range c.waiting {
		if w := &c.waiting[i]; w.early {
			w.early = false
			c.receive(&w.message)
		}
	}
}

// settle notes that c has answered with m.
func (c *Client) settle(m *Message, to *Client) {
	tid := binary.BigEndian.Uint64(m.MAD[mad.TIDOffset:])
	for i := range c.waiting {
		if w := &c.waiting[i]; w.from == to && binary.BigEndian.Uint64(w.message.MAD[mad.TIDOffset:]) == tid {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return
		}
	}
}

// returnUnanswered returns the first n requests that wait for c.
func (c *Client) returnUnanswered(n int) {
	for i := range c.waiting[:n] {
		w := &c.waiting[i]
		if slot := w.from.slot; slot < len(c.clients.list) && c.clients.list[slot] == w.from {
			w.message.Undelivered = true
			w.from.receive(&w.message)
		}
	}
	c.waiting = append(c.waiting[:0], c.waiting[n:]...)
}

// ReturnExpired returns the requests that clients should have answered by now.
func (h *Clients) ReturnExpired(now time.Time) {
	h.using.Lock()
	defer h.using.Unlock()
	h.agents.Subnet.Lock()
	defer h.agents.Subnet.Unlock()
	for _, c := range h.list {
		if c == nil {
			continue
		}
		n := 0
		for n < len(c.waiting) && now.After(c.waiting[n].until) {
			n++
		}
		c.returnUnanswered(n)
	}
}
