package sim

import (
	"encoding/binary"
	"slices"

	"fabsh/mad"
)

// request is a MAD in the hands of the agent it was addressed to.
type request struct {
	*Subnet
	mad.Header
	from       *port  // where it was sent
	in         *port  // where it came in
	perfNode   *node  // whose performance management is asked
	redirectTo *node  // where that is; nil: here
	data       []byte // its attribute; afterwards the answer's
	payload    []byte // the attribute, where it came in segments
	hideKey    bool   // the M_Key is not to be shown to who does not know it
}

// verdict is what becomes of a request.
type verdict uint8

const (
	silent  verdict = iota // no answer
	denied                 // no answer, for want of the M_Key
	single                 // one MAD
	tabular                // an RMPP transfer
)

// answer takes p from c's port to its end, has an agent execute it and turns p
// into the answer; of a table, into the header of its segments. payload is the
// data of a request that came in segments.
func (s *Subnet) answer(c *conn, p *packet, payload []byte, busy bool) (table []byte, v verdict) {
	r := request{Subnet: s, Header: mad.ParseHeader(p.mad[:]), payload: payload}
	if p.mad[0] != 1 || r.Method&mad.Response != 0 {
		return nil, silent
	}
	switch r.Method {
	case mad.MethodSend, mad.MethodTrap, mad.MethodReport, mad.MethodTrapRepress:
		return nil, silent // nobody is there who wants them
	case mad.MethodGet, mad.MethodGetTable:
		s.mu.RLock()
		table, v = r.execute(c.port, p, busy)
		s.mu.RUnlock()
	default:
		s.mu.Lock()
		table, v = r.execute(c.port, p, busy)
		s.mu.Unlock()
	}
	if v == denied {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.in.endPort().countMKeyViolation()
		return nil, silent
	}
	return table, v
}

func (r *request) execute(from *port, p *packet, busy bool) (table []byte, v verdict) {
	m, h := p.mad[:], r.Header
	r.from = from
	r.data = m[h.Class.DataOffset():][:h.Class.DataSize()]
	smp := h.Class.Family() == mad.ClassSubn
	switch {
	case smp != (p.QP == 0):
	case h.Class != mad.ClassSubnDirected:
		r.in = forwardLID(from, p.LID, smp)
	case p.LID == mad.PermissiveLID:
		r.in = forwardDirected(from, m)
	}
	if r.in == nil {
		return nil, silent
	}
	if smp && !r.checkMKey(m) {
		return nil, denied
	}

	v = single
	var status mad.Status
	if h.Class == mad.ClassPerf && !r.selectPerfAgent(p) {
		return nil, silent
	}
	admin := h.Class == mad.ClassSubnAdm && r.in.endPort() == r.sm
	switch {
	case busy:
		status = mad.StatusBusy
	case !smp && !admin && !hasAgent(h.Class): // as Linux answers for a class without an agent
		status = mad.StatusBadMethodAttribute
	case h.ClassVersion != h.Class.Version():
		status = mad.StatusBadVersion
	case smp:
		status = r.smp()
	case admin:
		table, status, v = r.admin(m)
	case r.redirectTo != nil:
		status = r.redirect()
	case h.Class == mad.ClassCongestion:
		status, v = r.congestion(m)
	case h.Class != mad.ClassPerf:
		status = r.onlyClassPortInfo()
	default:
		status = r.perf()
	}
	if v == silent {
		return nil, silent
	}

	if h.Class == mad.ClassSubnDirected {
		if !canReturn(r.in, m) {
			return nil, silent
		}
	} else if back := forwardLID(r.in, from.endPort().lid, smp); back == nil || back.endPort() != from.endPort() {
		return nil, silent
	}
	m[3] = byte(h.Method | mad.Response)
	if h.Method == mad.MethodSet {
		m[3] = byte(mad.MethodGetResp)
	}
	binary.BigEndian.PutUint16(m[statusByte:], uint16(m[statusByte]&directionBit)<<8|uint16(status))
	if h.Class != mad.ClassSubnDirected {
		p.LID = r.in.endPort().lid
	}
	p.HasGRH = false
	return table, v
}

// hasAgent: all nodes have an agent of the class.
func hasAgent(c mad.Class) bool {
	switch c {
	case mad.ClassPerf, mad.ClassCongestion, mad.ClassBM, mad.ClassDevMgt:
		return true
	}
	return false
}

// reachable: what from sends to the subnet administration at lid arrives.
func (s *Subnet) reachable(from *port, lid mad.LID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	in := forwardLID(from, lid, false)
	return in != nil && in.endPort() == s.sm
}

// checkMKey checks the M_Key of SMP m (IBA 14.2.4): a wrong one gets no answer
// where the port's protection level asks for the right one.
func (r *request) checkMKey(m []byte) bool {
	guard := r.in.endPort()
	if guard.mkey == 0 || binary.BigEndian.Uint64(m[mad.SMPKeyOffset:]) == guard.mkey {
		return true
	}
	r.hideKey = guard.keyLevel > 0
	return r.Method == mad.MethodGet && guard.keyLevel < 2
}

// countMKeyViolation notes an SMP with a wrong M_Key.
func (p *port) countMKeyViolation() {
	if n := portInfoViolations.Uint(p.info[:]); n < portInfoViolations.Max() {
		portInfoViolations.SetUint(p.info[:], n+1)
	}
}

// allows: a is known, and has the method.
func allows(a *mad.Attribute, m mad.Method) bool { return a != nil && slices.Contains(a.Methods, m) }

// applySet does to image, the attribute on the wire, what a Set with data asks
// for: fields that are read-only stay, zeros that mean no change too, and bits
// that are written as 1 to clear are cleared.
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
