package state

import (
	"fabsh/mad"
	"fabsh/mad/engine"
	"time"
)

// Agents send a trap to the LID that PortInfo.MasterSMLID of their port contains, and
// repeat it until it is repressed (IBA 13.4.9, 14.3.10). The subnet manager in this
// process represses it at once.

// maxRepeats is the largest number of repetitions of a trap. The specification has no
// limit; here it is possible that no program receives traps.
const maxRepeats = 8

var (
	portInfoSMLID   = mad.AttrPortInfo.Field("master_sm_lid")
	portInfoTimeOut = mad.AttrPortInfo.Field("subnet_time_out")

	portInfoCapabilities = mad.AttrPortInfo.Field("capability_mask")
)

// trapKey identifies an event of a port: it repeats one trap of a number, the latest.
type trapKey struct {
	from   *Port
	number uint16
}

// repeatedTrap is a trap that was not repressed yet.
type repeatedTrap struct {
	tid   uint64
	data  [noticeSize]byte
	count int
	timer *time.Timer
}

// Details are the data of a Notice, such as mad.NoticePort.
type Details interface{ Encode([]byte) }

// Trap sends a trap of end port from, and reports whether a program received it. An agent
// without IsTrapSupported only keeps the notice.
func (n *Notices) Trap(from *Port, t mad.NoticeType, number uint16, details Details) (delivered bool) {
	notice := newNotice(from, t, number, details)
	return n.issue(from, &notice)
}

// issue sends a notice of end port from.
func (n *Notices) issue(from *Port, notice *mad.Notice) (delivered bool) {
	n.keep(from, notice)
	if mad.CapabilityMask(portInfoCapabilities.Uint(from.Info[:]))&mad.CapabilityMaskIsTrapSupported == 0 {
		return true
	}
	to := ForwardLID(from, mad.LID(portInfoSMLID.Uint(from.Info[:])), true)
	if to != nil && to.EndPort() == n.subnet.SM {
		forwarded := *notice
		forwarded.IssuerGID = from.GID()
		n.report(&forwarded)
		return true
	}
	key := trapKey{from, notice.TrapNumber}
	n.stopTrap(key)
	n.LastTrap++
	t1 := &repeatedTrap{tid: n.LastTrap}
	notice.Encode(t1.data[:])
	n.Repeated[key] = t1
	t1.timer = time.AfterFunc(trapInterval(from), func() { n.repeatTrap(key, t1) })
	return n.sendTrap(from, t1)
}

// trapInterval is the least time between two traps of a port: its SubnetTimeOut
// (IBA 14.2.5.6).
func trapInterval(p *Port) time.Duration {
	return 4096 * time.Nanosecond << min(portInfoTimeOut.Uint(p.Info[:]), 31)
}

// sendTrap sends t to the program that accepts traps where from's subnet manager
// is.
func (n *Notices) sendTrap(from *Port, t *repeatedTrap) (delivered bool) {
	to := ForwardLID(from, mad.LID(portInfoSMLID.Uint(from.Info[:])), true)
	if to == nil {
		return false
	}
	r := n.Accepting[RequestKey{to.EndPort(), mad.ClassSubn, mad.MethodTrap}]
	if r == nil {
		return false
	}
	var call engine.Call
	call.PutSMP(mad.MethodTrap, mad.AttrSubnNotice.ID, 0, t.data[:SMPSize])
	h := call.Header()
	h.TID = t.tid
	h.Put(call.MAD[:])
	r.Deliver(engine.Address{LID: from.LID}, &call.MAD)
	return true
}

// repeatTrap sends a trap again that was not repressed.
func (n *Notices) repeatTrap(key trapKey, t *repeatedTrap) {
	n.subnet.Lock()
	defer n.subnet.Unlock()
	if n.Repeated[key] != t {
		return
	}
	if t.count++; t.count > maxRepeats {
		delete(n.Repeated, key)
		return
	}
	n.sendTrap(key.from, t)
	t.timer.Reset(trapInterval(key.from))
}

func (n *Notices) stopTrap(key trapKey) {
	if t := n.Repeated[key]; t != nil {
		t.timer.Stop()
		delete(n.Repeated, key)
	}
}

// ReceiveTrap passes a trap that a program at from has sent to the subnet manager in this
// process. An OpenSM in standby sends such traps.
func (n *Notices) ReceiveTrap(from *Port, data []byte) {
	notice := parseNotice(data)
	notice.IssuerGID = from.EndPort().GID()
	n.report(&notice)
}

// Repress ends the repetition of the trap of an end port that a TrapRepress names.
func (n *Notices) Repress(at *Port, tid uint64, data []byte) {
	notice := parseNotice(data)
	if key := (trapKey{at, notice.TrapNumber}); n.Repeated[key] != nil && n.Repeated[key].tid == tid {
		n.stopTrap(key)
	}
}

// parseNotice decodes the Notice of an SMP, which is shorter than that of a Report.
func parseNotice(smp []byte) (notice mad.Notice) {
	var data [noticeSize]byte
	copy(data[:], smp)
	notice.Decode(data[:])
	return notice
}

// StopTraps ends the repetition of all traps.
func (n *Notices) StopTraps() {
	n.subnet.Lock()
	defer n.subnet.Unlock()
	for key := range n.Repeated {
		n.stopTrap(key)
	}
}
