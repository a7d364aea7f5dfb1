package agent

import (
	"encoding/binary"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// reply states how a request is answered.
type reply uint8

// How a request is answered.
const (
	ReplyMAD       reply = iota // by one MAD
	ReplyTable                  // by an RMPP transfer
	ReplyFragments              // by MADs of class version 1 of subnet administration; see Fragments
	replyNone                   // without an answer
)

// Packet is one MAD with the address of its far end.
type Packet struct {
	engine.Address
	MAD [mad.Size]byte
}

// Sender is a program that sends requests.
type Sender struct {
	Port  *state.Port
	Model *state.FaultModel
	Cut   bool // the program receives 224 bytes of each MAD, as through libumad2sim
}

// Exchange is a request on its way to an agent and back. One is reused for the requests
// of a program, so that they do not allocate.
type Exchange struct {
	agents  *Agents
	sender  Sender
	header  mad.Header
	mad     []byte // all of it
	data    []byte // its attribute; afterwards the attribute of the answer
	payload []byte // the attribute of a request in several segments
	reply   reply
	table   []byte // of ReplyTable and ReplyFragments: the records

	route      state.FaultRoute // from the sender's port to where it came in
	in         *state.Port      // where it came in
	access     mkeyAccess       // what its M_Key allows
	badKey     *state.BadKey    // the wrong P_Key or Q_Key for which the packet is dropped; nil: both are right
	perfNode   *state.Node      // of performance management: the node that it is about
	redirectTo *state.Node      // of performance management: the node that it is redirected to; nil: none

	sma smaRequest
	pma pmaRequest
	cc  ccRequest
	sa  saRequest
}

// Answer forwards p from the sender's port, lets the agent there execute it, and turns p
// into the answer; for a table, into the header of its segments. payload is the data of a
// request that came in segments. If busy is set, the agent answers BUSY.
func (x *Exchange) Answer(a *Agents, from Sender, p *Packet, payload []byte, busy bool) (reply, []byte) {
	x.agents, x.sender, x.header, x.mad, x.payload = a, from, mad.ParseHeader(p.MAD[:]), p.MAD[:], payload
	x.reply, x.table, x.access, x.badKey, x.perfNode, x.redirectTo = ReplyMAD, nil, mkeyAccess{}, nil, nil, nil
	h := &x.header
	x.data = x.mad[h.Class.DataOffset():][:h.Class.DataSize()]
	smp := h.Class.Family() == mad.ClassSubn
	switch {
	case p.MAD[mad.BaseVersionOffset] != 1, h.Method&mad.Response != 0,
		h.Method == mad.MethodSend, h.Method == mad.MethodReport: // no agent accepts them
		return replyNone, nil
	case h.Method == mad.MethodTrapRepress, h.Method == mad.MethodTrap:
		a.Subnet.Lock()
		x.notice(p)
		a.Subnet.Unlock()
	case smp && h.Method != mad.MethodGet && h.Method != mad.MethodSet:
		return replyNone, nil // all but Get and Set is dropped (Shanley, InfiniBand Network Architecture, "SMP Validation")
	case h.Method == mad.MethodGet, h.Method == mad.MethodGetTable:
		a.Subnet.RLock()
		x.execute(p, busy)
		a.Subnet.RUnlock()
	default:
		a.Subnet.Lock()
		if smp || h.Class == mad.ClassCongestion {
			a.Traffic.BeforeChange()
		}
		x.execute(p, busy)
		a.Subnet.Unlock()
	}
	if x.access.Denied || x.access.EndLease {
		a.Subnet.Lock()
		afterMKey(a.Subnet, a.Notices, x.in.EndPort(), x.access, checkedSMP{Header: *h, MAD: x.mad, LID: p.LID, From: from.Port})
		a.Subnet.Unlock()
	}
	if x.badKey != nil {
		a.Subnet.Lock()
		a.Notices.BadKey(x.badKey)
		a.Subnet.Unlock()
	}
	return x.reply, x.table
}

// execute lets the agent execute p, and turns p into the answer, if there is one.
func (x *Exchange) execute(p *Packet, busy bool) {
	if !x.forward(p) || !x.survives(p, false) || !x.inPartition(p) || !x.authorise(p) {
		x.reply = replyNone
		return
	}
	if x.agents.Seen != nil {
		x.agents.Seen(x.in.Node.GUID(), x.header)
	}
	status := x.run(busy)
	if x.reply != replyNone && !x.returns(p) {
		x.reply = replyNone
	}
	if x.reply != replyNone {
		x.respond(p, status)
	}
}

// forward finds the port where p arrives; false: it arrives nowhere.
func (x *Exchange) forward(p *Packet) bool {
	smp := x.header.Class.Family() == mad.ClassSubn
	x.in, x.route = nil, state.FaultRoute{From: x.sender.Port}
	switch {
	case smp != (p.QP == 0):
	case x.header.Class != mad.ClassSubnDirected:
		x.in = state.ForwardLID(x.sender.Port, p.LID, smp)
	default:
		x.in, x.route.Turn = state.ForwardDirected(x.sender.Port, p.LID, x.mad)
	}
	x.route.In = x.in
	return x.in != nil
}

// survives reports whether the request, or with back its answer, is not lost at a port on
// its path.
func (x *Exchange) survives(p *Packet, back bool) bool {
	return x.sender.Model.Survives(x.route, x.header, x.mad, &p.MAD, back)
}

// inPartition reports whether the keys of a packet of general services are right. Its
// P_Key must name a partition of the destination in which one of the two ports is a full
// member, and its Q_Key must be the Q_Key of queue pair 1 (IBA 9.6.1, 10.9.3). Redirected
// agents check their own Q_Key.
func (x *Exchange) inPartition(p *Packet) bool {
	at := x.in.EndPort()
	if p.QP == 0 || x.in.Node.Off || at == x.sender.Port.EndPort() { // or it stays on the host
		return true
	}
	key := x.agents.Subnet.PKeyAt(x.sender.Port.EndPort(), int(p.PKeyIndex))
	pKey := !x.agents.Subnet.AcceptsPKey(at, key)
	switch {
	case key&state.PKeyBase == 0: // the sender has no such entry, and sends nothing
		return false
	case !pKey && (p.QP != 1 || p.QKey == 0 || p.QKey == mad.GeneralQKey):
		return true
	}
	x.badKey = &state.BadKey{From: x.sender.Port, At: at, SL: p.SL, QP: p.QP, PKey: pKey, Key: p.QKey}
	if pKey {
		x.badKey.Key = uint32(key)
	}
	if p.HasGRH {
		x.badKey.SGID, x.badKey.DGID = x.sender.Port.EndPort().GID(), p.GID
	}
	return false
}

// authorise reports whether the request is answered: there is an agent, and the M_Key
// allows the request.
func (x *Exchange) authorise(p *Packet) bool {
	switch {
	case x.in.Node.Off, x.agents.SA.Muted && x.header.Class == mad.ClassSubnAdm:
		return false
	case x.header.Class == mad.ClassPerf:
		x.perfNode, x.redirectTo = performanceAgentAt(x.in.Node, p.QP, p.QKey)
		return x.perfNode != nil
	case x.header.Class.Family() == mad.ClassSubn:
		x.access = checkMKey(x.agents.Subnet, x.in.EndPort(), x.header.Method, binary.BigEndian.Uint64(x.mad[mad.SMPKeyOffset:]))
		return !x.access.Denied
	}
	return true
}

// run lets the agent execute the request. The caller holds the lock; for a Get, for
// reading.
func (x *Exchange) run(busy bool) mad.Status {
	h, agent := &x.header, classAgents[x.header.Class.Family()]
	sa := h.Class == mad.ClassSubnAdm && x.in.EndPort() == x.agents.Subnet.SM
	switch {
	case busy, x.in.Node.ConsumeBusy():
		return mad.StatusBusy
	case agent == nil && !sa: // as Linux answers for a class without an agent
		return mad.StatusBadMethodAttribute
	case h.ClassVersion != h.Class.Version() && !(sa && h.ClassVersion == 1):
		return mad.StatusBadVersion
	case sa:
		return x.runSA()
	case x.redirectTo != nil:
		return redirectPerformance(x.perfNode, x.redirectTo, x.data)
	case h.Method != mad.MethodGet && h.Method != mad.MethodSet:
		return agent.unknownMethod
	}
	attr := agent.lookup(h.Class, h.Attribute)
	if !methodAllowed(attr, h.Method) {
		return mad.StatusBadMethodAttribute
	}
	return agent.run(x, attr, h.Method == mad.MethodSet)
}

func (x *Exchange) runSA() mad.Status {
	x.sa = saRequest{SA: x.agents.SA, Header: x.header, From: x.sender.Port, MAD: x.mad, Data: x.data, Payload: x.payload}
	status := x.sa.Run()
	switch {
	case x.sa.Silent:
		x.reply = replyNone
	case x.sa.IsTable && x.header.ClassVersion == 1:
		x.reply, x.table = ReplyFragments, x.sa.Table
	case x.sa.IsTable:
		x.reply, x.table = ReplyTable, x.sa.Table
	}
	x.sa.Table = nil
	return status
}

// returns reports whether an answer reaches the sender.
func (x *Exchange) returns(p *Packet) bool {
	from := x.sender.Port
	if x.header.Class == mad.ClassSubnDirected {
		if !state.CanReturn(from, x.in, x.route.Turn, x.mad) {
			return false
		}
	} else if back := state.ForwardLID(x.in, from.EndPort().LID, x.header.Class == mad.ClassSubn); back == nil || back.EndPort() != from.EndPort() {
		return false
	}
	return x.survives(p, true)
}

// respond turns p into the answer of the agent.
func (x *Exchange) respond(p *Packet, status mad.Status) {
	m := x.mad
	m[mad.MethodOffset] = byte(x.header.Method | mad.Response)
	if x.header.Method == mad.MethodSet {
		m[mad.MethodOffset] = byte(mad.MethodGetResp)
	}
	binary.BigEndian.PutUint16(m[mad.StatusOffset:], uint16(m[mad.StatusOffset]&state.DirectionBit)<<8|uint16(status))
	if x.header.Class != mad.ClassSubnDirected {
		p.LID = x.in.EndPort().LID
	}
	p.HasGRH = false
}

// notice ends the repetition of a trap on TrapRepress, or passes a Trap to the subnet
// manager in this process, which answers by TrapRepress.
func (x *Exchange) notice(p *Packet) {
	x.reply = replyNone
	h, s, notices := &x.header, x.agents.Subnet, x.agents.Notices
	if p.QP != 0 || h.Class != mad.ClassSubn {
		return
	}
	if h.Method == mad.MethodTrapRepress {
		if in := state.ForwardLID(x.sender.Port, p.LID, true); in != nil {
			notices.Repress(in.EndPort(), h.TID, x.data)
		}
		return
	}
	if h.ClassVersion != h.Class.Version() || h.Attribute != mad.AttrSubnNotice.ID || s.SM == nil || s.SM.Node.Off {
		return
	}
	if !x.forward(p) || x.in.EndPort() != s.SM || !state.Arrives(s.SM, x.sender.Port) || !x.survives(p, false) {
		return
	}
	notices.ReceiveTrap(x.sender.Port, x.data)
	if !x.survives(p, true) {
		return
	}
	x.mad[mad.MethodOffset] = byte(mad.MethodTrapRepress)
	p.LID, p.HasGRH, x.reply = s.SM.LID, false, ReplyMAD
}

// Reaches reports whether what a port sends to the subnet administrator at lid arrives.
func (a *Agents) Reaches(from *state.Port, lid mad.LID) bool {
	a.Subnet.RLock()
	defer a.Subnet.RUnlock()
	in := state.ForwardLID(from, lid, false)
	return in != nil && in.EndPort() == a.Subnet.SM
}
