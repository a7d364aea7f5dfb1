package sim

import (
	"encoding/binary"
	"slices"

	"fabsh/mad"
)

// handler answers for one attribute. To have an agent answer for one more
// attribute, add a handler to the table in the file of its class: smp.go, pma.go
// or cc.go (of the subnet administrator: sa.go).
type handler struct {
	attr *mad.Attribute        // nil: each attribute of the class that on admits
	on   func(r *request) bool // the nodes that have the attribute; nil: all
	get  handlerFunc           // nil: the agent has no Get of it
	set  handlerFunc           // nil: no Set
}

// handlerFunc executes a request. r.data is the attribute of the request, and
// afterwards that of the answer. Gets run at the same time, a Set alone.
type handlerFunc func(r *request) mad.Status

// agent is the agent of a management class, which all nodes have.
type agent struct {
	handlers      []handler
	unknownMethod mad.Status // of methods other than Get and Set
}

// agents are those of a node, by class.
var agents = [256]*agent{
	mad.ClassSubn:       {smpHandlers, mad.StatusBadMethod},
	mad.ClassPerf:       {perfHandlers, mad.StatusBadMethod},
	mad.ClassCongestion: {congestionHandlers, mad.StatusBadMethodAttribute},
	mad.ClassBM:         {[]handler{{attr: mad.AttrBMClassPortInfo, get: (*request).getClassPortInfo}}, mad.StatusBadMethodAttribute},
	mad.ClassVendor0A:   {[]handler{{attr: mad.AttrAccessRegister, on: hasRegisters, get: (*request).getRegister}}, mad.StatusBadMethodAttribute},
	mad.ClassDevMgt:     {[]handler{{attr: mad.AttrDevMgtClassPortInfo, get: (*request).getClassPortInfo}}, mad.StatusBadMethodAttribute},
}

// execute calls the handler of the request.
func (a *agent) execute(r *request) mad.Status {
	set := r.Method == mad.MethodSet
	if !set && r.Method != mad.MethodGet {
		return a.unknownMethod
	}
	r.attr = a.lookup(r.Class, r.Attribute)
	if !allows(r.attr, r.Method) {
		return mad.StatusBadMethodAttribute
	}
	for i := range a.handlers {
		h := &a.handlers[i]
		if h.attr != nil && h.attr != r.attr || h.on != nil && !h.on(r) {
			continue
		}
		if set && h.set != nil {
			return h.set(r)
		}
		if !set && h.get != nil {
			return h.get(r)
		}
	}
	return mad.StatusBadMethodAttribute
}

// lookup is mad.Lookup, without its map for what the agent has.
func (a *agent) lookup(c mad.Class, id mad.AttributeID) *mad.Attribute {
	for i := range a.handlers {
		if attr := a.handlers[i].attr; attr != nil && attr.ID == id {
			return attr
		}
	}
	return mad.Lookup(c, id)
}

// allows: a is known, and has the method.
func allows(a *mad.Attribute, m mad.Method) bool { return a != nil && slices.Contains(a.Methods, m) }

// The nodes that have an attribute.
func onSwitch(r *request) bool    { return r.in.node.isSwitch }
func onNonSwitch(r *request) bool { return !r.in.node.isSwitch }

// request is a MAD at the agent to which it was sent.
type request struct {
	*Subnet
	mad.Header
	attr       *mad.Attribute
	chances    *faultModel
	from       *port  // that it was sent from
	cut        bool   // the requester sees the beginning of the answer alone
	in         *port  // that it came in through
	perfNode   *node  // of performance management: the node that it is about
	redirectTo *node  // of performance management: the node that it is redirected to; nil: none
	mad        []byte // all of it
	data       []byte // its attribute; afterwards that of the answer
	payload    []byte // the attribute of a request in several segments
	turn       *port  // of a directed route: where its directed part ended
	hideKey    bool   // the requester does not know the M_Key, and may not read it
	badMKey    bool   // the M_Key was wrong
	endLease   bool   // the M_Key was right, and its lease was running out
	reply      reply
	table      []byte // of replyTable: the records
}

// reply says how a request is answered.
type reply uint8

const (
	replyMAD   reply = iota // by one MAD
	replyTable              // by an RMPP transfer
	replyNone               // not at all
)

// answer forwards p from c's port, has the agent there execute it, and turns p
// into the answer; of a table, into the header of its segments. payload is the
// data of a request that came in segments. The request is c's until its next.
func (s *Subnet) answer(c *conn, p *packet, payload []byte, busy bool) *request {
	r := &c.request
	*r = request{Subnet: s, Header: mad.ParseHeader(p.mad[:]), chances: c.faults, from: c.port, cut: c.cut, mad: p.mad[:], payload: payload}
	switch {
	case p.mad[mad.BaseVersionOffset] != 1, r.Method&mad.Response != 0:
		r.reply = replyNone
	case r.Method == mad.MethodTrapRepress:
		r.reply = replyNone
		s.mu.Lock()
		s.repress(r, p)
		s.mu.Unlock()
	case r.Method == mad.MethodTrap:
		r.reply = replyNone
		s.mu.Lock()
		s.takeTrap(r, p)
		s.mu.Unlock()
	case r.Method == mad.MethodSend, r.Method == mad.MethodReport:
		r.reply = replyNone // no agent takes them
	case r.Class.Family() == mad.ClassSubn && r.Method != mad.MethodGet && r.Method != mad.MethodSet:
		r.reply = replyNone // all but Get and Set is dropped (Shanley, InfiniBand Network Architecture, "SMP Validation")
	case r.Method == mad.MethodGet, r.Method == mad.MethodGetTable:
		s.mu.RLock()
		r.execute(p, busy)
		s.mu.RUnlock()
	default:
		s.mu.Lock()
		if r.Method == mad.MethodSet && r.Class.Family() == mad.ClassSubn {
			s.beforeChange()
		}
		r.execute(p, busy)
		s.mu.Unlock()
	}
	if r.badMKey || r.endLease {
		s.mu.Lock()
		r.afterMKey(p)
		s.mu.Unlock()
	}
	return r
}

// execute forwards p, executes it, and makes p the answer.
func (r *request) execute(p *packet, busy bool) {
	m := r.mad
	r.data = m[r.Class.DataOffset():][:r.Class.DataSize()]
	smp := r.Class.Family() == mad.ClassSubn
	switch {
	case smp != (p.QP == 0):
	case r.Class != mad.ClassSubnDirected:
		r.in = forwardLID(r.from, p.LID, smp)
	default:
		r.in, r.turn = forwardDirected(r.from, p.LID, m)
	}
	if !r.survives(r.chances, p, false) {
		r.in = nil
	}
	switch {
	case r.in == nil, r.in.node.off, r.mutedSA && r.Class == mad.ClassSubnAdm, r.Class == mad.ClassPerf && !r.selectPerfAgent(p):
		r.reply = replyNone
		return
	case smp && !r.checkMKey():
		r.reply, r.badMKey = replyNone, true
		return
	}

	var status mad.Status
	a := agents[r.Class.Family()]
	sa := r.Class == mad.ClassSubnAdm && r.in.endPort() == r.sm
	switch {
	case busy, r.in.node.takeBusy():
		status = mad.StatusBusy
	case a == nil && !sa: // as Linux answers for a class without an agent
		status = mad.StatusBadMethodAttribute
	case r.ClassVersion != r.Class.Version() && !(sa && r.ClassVersion == 1):
		status = mad.StatusBadVersion
	case sa:
		status = r.executeSA()
	case r.redirectTo != nil:
		status = r.redirect()
	default:
		status = a.execute(r)
	}
	if r.reply == replyNone {
		return
	}

	if r.Class == mad.ClassSubnDirected {
		if !canReturn(r.from, r.in, r.turn, m) {
			r.reply = replyNone
			return
		}
	} else if back := forwardLID(r.in, r.from.endPort().lid, smp); back == nil || back.endPort() != r.from.endPort() {
		r.reply = replyNone
		return
	}
	if !r.survives(r.chances, p, true) {
		r.reply = replyNone
		return
	}
	m[mad.MethodOffset] = byte(r.Method | mad.Response)
	if r.Method == mad.MethodSet {
		m[mad.MethodOffset] = byte(mad.MethodGetResp)
	}
	binary.BigEndian.PutUint16(m[mad.StatusOffset:], uint16(m[mad.StatusOffset]&directionBit)<<8|uint16(status))
	if r.Class != mad.ClassSubnDirected {
		p.LID = r.in.endPort().lid
	}
	p.HasGRH = false
}

// reachable: what from sends to the subnet administrator at lid arrives.
func (s *Subnet) reachable(from *port, lid mad.LID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	in := forwardLID(from, lid, false)
	return in != nil && in.endPort() == s.sm
}

// modifierIs0 is the status of a request whose modifier has no meaning.
func (r *request) modifierIs0() mad.Status {
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	return mad.StatusOK
}

// getClassPortInfo answers for a class without capabilities.
func (r *request) getClassPortInfo() mad.Status {
	clear(r.data)
	classPortInfo(r.Class).Encode(r.data)
	return r.modifierIs0()
}

// classPortInfo is the ClassPortInfo of a class without capabilities.
func classPortInfo(c mad.Class) *mad.ClassPortInfo {
	return &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: c.Version(), RespTimeValue: lifeTime}
}

// applySet changes image, the attribute on the wire, as a Set with data asks:
// read-only fields stay as they are, and so do those of which 0 means no change;
// in fields that are cleared by 1 the bits that are set are cleared.
func applySet(a *mad.Attribute, image, data []byte) {
	for i := range a.Fields {
		f := &a.Fields[i]
		if f.ReadOnly {
			continue
		}
		for e := range f.Count {
			v := f.UintAt(data, e)
			switch {
			case f.NoChange && v == 0:
			case f.W1C:
				f.SetUintAt(image, e, f.UintAt(image, e)&^v)
			default:
				f.SetUintAt(image, e, v)
			}
		}
	}
}
