package sim

import (
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Agents send a trap to the LID that PortInfo.MasterSMLID of their port names,
// and again until it is repressed (IBA 13.4.9, 14.3.10). The subnet manager in
// this process needs no second one.

// maxRepeats is how often a trap is repeated at most. The specification has no
// end; here nobody may listen.
const maxRepeats = 8

// trapKey names what a port tells of: it repeats one trap of a number, the latest.
type trapKey struct {
	from   *port
	number uint16
}

// repeatedTrap is a trap that was not repressed yet.
type repeatedTrap struct {
	tid   uint64
	data  [noticeSize]byte
	count int
	timer *time.Timer
}

// trap sends a trap of end port from. It tells whether somebody got it.
func (s *Subnet) trap(from *port, t mad.NoticeType, number uint16, details encoder) (delivered bool) {
	var node mad.NodeInfo
	node.Decode(from.node.info[:])
	notice := mad.Notice{
		IsGeneric: true, Type: t, ProducerType: mad.ProducerType(node.NodeType),
		TrapNumber: number, IssuerLID: from.lid,
	}
	details.Encode(notice.DataDetails[:])
	to := forwardLID(from, mad.LID(portInfoSMLID.Uint(from.info[:])), true)
	if to != nil && to.endPort() == s.sm {
		notice.IssuerGID = from.gid()
		s.report(&notice)
		return true
	}
	key := trapKey{from, number}
	s.stopTrap(key)
	s.lastTrap++
	t1 := &repeatedTrap{tid: s.lastTrap}
	notice.Encode(t1.data[:])
	s.repeated[key] = t1
	t1.timer = time.AfterFunc(trapInterval(from), func() { s.repeatTrap(key, t1) })
	return s.sendTrap(from, t1)
}

// trapInterval is the least time between two traps of a port: its SubnetTimeOut
// (IBA 14.2.5.6).
func trapInterval(p *port) time.Duration {
	return 4096 * time.Nanosecond << min(portInfoTimeOut.Uint(p.info[:]), 31)
}

// sendTrap sends t to the program that accepts traps where from's subnet manager
// is.
func (s *Subnet) sendTrap(from *port, t *repeatedTrap) (delivered bool) {
	to := forwardLID(from, mad.LID(portInfoSMLID.Uint(from.info[:])), true)
	if to == nil {
		return false
	}
	c := s.accepting[acceptKey{to.endPort(), mad.ClassSubn, mad.MethodTrap}]
	if c == nil {
		return false
	}
	var call engine.Call
	call.PutSMP(mad.MethodTrap, mad.AttrSubnNotice.ID, 0, t.data[:smpSize])
	h := call.Header()
	h.TID = t.tid
	h.Put(call.MAD[:])
	c.deliver(&packet{Address: engine.Address{LID: from.lid}, mad: call.MAD})
	return true
}

// repeatTrap sends a trap again that nobody repressed.
func (s *Subnet) repeatTrap(key trapKey, t *repeatedTrap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repeated[key] != t {
		return
	}
	if t.count++; t.count > maxRepeats {
		delete(s.repeated, key)
		return
	}
	s.sendTrap(key.from, t)
	t.timer.Reset(trapInterval(key.from))
}

func (s *Subnet) stopTrap(key trapKey) {
	if t := s.repeated[key]; t != nil {
		t.timer.Stop()
		delete(s.repeated, key)
	}
}

// takeTrap has the subnet manager in this process take a trap that a program sends it:
// it reports it, and answers by TrapRepress. An OpenSM that stands by sends such ones.
func (s *Subnet) takeTrap(r *request, p *packet) {
	if p.QP != 0 || r.Class != mad.ClassSubn || r.ClassVersion != r.Class.Version() || r.Attribute != mad.AttrSubnNotice.ID || s.sm == nil || s.sm.node.off {
		return
	}
	if r.in = forwardLID(r.from, p.LID, true); r.in == nil || r.in.endPort() != s.sm || !arrives(s.sm, r.from) || !r.survives(r.chances, p, false) {
		return
	}
	var notice mad.Notice
	var data [noticeSize]byte
	copy(data[:], r.mad[r.Class.DataOffset():][:smpSize])
	notice.Decode(data[:])
	notice.IssuerGID = r.from.endPort().gid()
	s.report(&notice)
	if !r.survives(r.chances, p, true) {
		return
	}
	r.mad[mad.MethodOffset] = byte(mad.MethodTrapRepress)
	p.LID, p.HasGRH, r.reply = s.sm.lid, false, replyMAD
}

// repress ends the repetition of the trap that a TrapRepress names.
func (s *Subnet) repress(r *request, p *packet) {
	if p.QP != 0 || r.Class != mad.ClassSubn {
		return
	}
	in := forwardLID(r.from, p.LID, true)
	if in == nil {
		return
	}
	var notice mad.Notice
	var data [noticeSize]byte
	copy(data[:], r.mad[r.Class.DataOffset():][:smpSize])
	notice.Decode(data[:])
	if key := (trapKey{in.endPort(), notice.TrapNumber}); s.repeated[key] != nil && s.repeated[key].tid == r.TID {
		s.stopTrap(key)
	}
}

// thresholdTraps are the traps of counters that count how often a threshold was
// exceeded: LocalPhyErrors and OverrunErrors of PortInfo (IBA 14.2.5.1, 14.2.5.6), and
// the time in which each lane of a switch's port is to hear of flow control.
var thresholdTraps = map[string]uint16{
	"LocalLinkIntegrityErrors":      129,
	"ExcessiveBufferOverrunErrors":  130,
	"PortVLXmitFlowCtlUpdateErrors": 131,
}

// putCounter sets a counter of a port. Where it grows by that, its port has exceeded
// a threshold.
func (s *Subnet) putCounter(p *port, key counterKey, v uint64) {
	before := p.value(key, s.now())
	p.settle(s.now())
	p.setCounter(key, v)
	if v > before {
		s.thresholdTrap(p, key)
	}
}

// thresholdTrap sends the trap of a counter that grows, if it has one.
func (s *Subnet) thresholdTrap(p *port, key counterKey) {
	number := thresholdTraps[key.name]
	if number == 131 && !p.node.isSwitch { // it is of switches alone
		return
	}
	if end := p.endPort(); number != 0 && !p.node.off && end.lid != 0 {
		s.trap(end, mad.NoticeTypeUrgent, number, &mad.NoticePort{LIDAddr: end.lid, PortNo: p.num})
	}
}
