package state

import (
	"fmt"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Notices are the notices of events in a subnet: agents send traps to their subnet manager,
// and the subnet administrator sends Reports to its subscribers. Its fields are guarded by the
// subnet's lock.
type Notices struct {
	subnet        *Subnet
	Subscriptions []Subscription
	lastTID       uint64 // of a Report
	LastTrap      uint64 // TID of a Trap
	Repeated      map[trapKey]*repeatedTrap
	Accepting     map[RequestKey]*Receiver
	stored        map[*Port]*storedNotice
}

// NewNotices returns the notices of a subnet.
func NewNotices(s *Subnet) *Notices {
	return &Notices{subnet: s, Repeated: map[trapKey]*repeatedTrap{}, Accepting: map[RequestKey]*Receiver{}, stored: map[*Port]*storedNotice{}}
}

// Receiver is a program that accepts requests of others. It is called with the
// subnet's lock held, and must not keep the MAD.
type Receiver struct {
	Deliver func(from engine.Address, m *[mad.Size]byte)
	Client  bool // it is a foreign program, whose registration package sim changes
}

// RequestKey names the requests that a program accepts.
type RequestKey struct {
	Port   *Port
	Class  mad.Class
	Method mad.Method
}

// NoticeSize is the size of the Notice in a Report, in bytes: with the issuer's GID, which the
// Notice of an SMP lacks.
const NoticeSize = 80

// report sends Reports of a notice to its subscribers.
func (n *Notices) report(notice *mad.Notice) {
	var data [NoticeSize]byte
	notice.Encode(data[:])
	sm := n.subnet.SM
	for i := range n.Subscriptions {
		to := n.Subscriptions[i].To
		if !n.Subscriptions[i].Info.Matches(notice) {
			continue
		}
		n.lastTID++
		r := n.Accepting[RequestKey{Port: to, Class: mad.ClassSubnAdm, Method: mad.MethodReport}]
		if at := ForwardLID(sm, to.LID, false); r == nil || at == nil || at.EndPort() != to {
			continue
		}
		var call engine.Call
		call.PutSA(mad.MethodReport, mad.AttrSubnAdmNotice.ID, 0, 0, data[:])
		h := call.Header()
		h.TID = n.lastTID
		h.Put(call.MAD[:])
		r.Deliver(engine.Address{LID: sm.LID, QP: 1}, &call.MAD)
	}
}

// ForgetSubscriptions drops all subscriptions: a subnet manager that starts does not know
// them.
func (n *Notices) ForgetSubscriptions() { n.Subscriptions, n.lastTID = nil, 0 }

// ReportGID reports that the GID of an end port came into service (trap 64) or
// went out of it (65), or that a multicast group was made (66) or deleted (67).
func (n *Notices) ReportGID(trap uint16, gid mad.GID) {
	notice := mad.Notice{
		IsGeneric: true, Type: mad.NoticeTypeSM, ProducerType: mad.ProducerTypeSM,
		TrapNumber: trap, IssuerLID: n.subnet.SM.LID, IssuerGID: n.subnet.SM.GID(),
	}
	details := mad.NoticeGID{GIDAddr: gid}
	details.Encode(notice.DataDetails[:])
	n.report(&notice)
}

// Subscription is a subscription to Reports: the subscriber, and the notices that it
// subscribed to.
type Subscription struct {
	To   *Port
	Info mad.InformInfo // as the subscriber sent it, QPN 0
}

// Accept registers a program for requests of others that come to an end port, of a
// class and method. One program at a port gets them, as on a host, and the subnet
// manager gets the traps at its own port.
func (n *Notices) Accept(at *Port, class mad.Class, m mad.Method, r *Receiver) (stop func(), err error) {
	n.subnet.Lock()
	defer n.subnet.Unlock()
	key := RequestKey{at, class.Family(), m}
	switch {
	case n.Accepting[key] != nil:
		return nil, fmt.Errorf("another program receives each %s of class %v at this port of the simulated fabric", m.Name(class, class.Version()), class)
	case m == mad.MethodTrap && at == n.subnet.SM:
		return nil, fmt.Errorf("the simulated subnet manager is on this port, and takes its traps; attach to another node (-C)")
	}
	n.Accepting[key] = r
	return func() {
		n.subnet.Lock()
		defer n.subnet.Unlock()
		if n.Accepting[key] == r {
			delete(n.Accepting, key)
		}
	}, nil
}

// Agents send a trap to the LID that PortInfo.MasterSMLID of their port contains, and
// repeat it until it is repressed (IBA 13.4.9, 14.3.10). The subnet manager in this
// process represses it at once.

// maxTrapRepeats is the largest number of repetitions of a trap. The specification has no
// limit; here it is possible that no program receives traps.
const maxTrapRepeats = 8

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
	data  [NoticeSize]byte
	count int
	timer *time.Timer
}

// Encoder is a struct of an attribute, or of the details of a Notice, such as mad.NoticePort.
type Encoder interface{ Encode([]byte) }

// Trap sends a trap of end port from, and reports whether a program received it. An agent
// without IsTrapSupported only keeps the notice.
func (n *Notices) Trap(from *Port, t mad.NoticeType, number uint16, details Encoder) (delivered bool) {
	notice := newNotice(from, t, number, details)
	return n.issue(from, &notice)
}

// issue sends a notice of end port from.
func (n *Notices) issue(from *Port, notice *mad.Notice) (delivered bool) {
	n.store(from, notice)
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
	if t.count++; t.count > maxTrapRepeats {
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

// parseNotice decodes the Notice of an SMP, which is shorter than the Notice of a Report.
func parseNotice(smp []byte) (notice mad.Notice) {
	var data [NoticeSize]byte
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

// thresholdTraps are the traps of counters that count how often a threshold was exceeded:
// LocalPhyErrors and OverrunErrors of PortInfo (IBA 14.2.5.1, 14.2.5.6), and the time
// within which each lane of a switch's port must receive a flow control packet.
var thresholdTraps = map[string]uint16{
	"LocalLinkIntegrityErrors":      129,
	"ExcessiveBufferOverrunErrors":  130,
	"PortVLXmitFlowCtlUpdateErrors": 131,
}

// ThresholdTrap sends the trap of a counter that grows, if it has one.
func (n *Notices) ThresholdTrap(p *Port, key CounterKey) {
	number := thresholdTraps[key.Name]
	if number == 131 && !p.Node.IsSwitch { // only switches have it
		return
	}
	if end := p.EndPort(); number != 0 && !p.Node.Off && end.LID != 0 {
		n.Trap(end, mad.NoticeTypeUrgent, number, &mad.NoticePort{LIDAddr: end.LID, PortNo: p.Num})
	}
}

// Traps are the numbers that SendTrap takes.
var Traps = [...]int{128, 129, 130, 131, 144, 145, 256, 257, 258, 259}

// SendTrap sends a trap from the agent of a port to its subnet manager: 128, 131 and 259
// from switches, the others from all nodes. Keys and addresses in it are invented;
// fields, if not nil, changes the notice, whose layout it receives.
func (n *Notices) SendTrap(number int, node mad.GUID, num int, fields func(layout *mad.Attribute, notice []byte) error) error {
	n.subnet.Lock()
	defer n.subnet.Unlock()
	p, err := n.subnet.PortByGUID(node, num)
	if err != nil {
		return err
	}
	end := p.EndPort()
	if num == 0 && !p.Node.IsSwitch {
		if end, err = p.Node.Attachment(0); err != nil {
			return err
		}
		p = end
	}
	if (number == 128 || number == 131 || number == 259) && !p.Node.IsSwitch {
		return fmt.Errorf("only switches send trap %d, and %s is not a switch", number, p.Node.Label)
	}
	const wrongKey = 0x7fff
	kind, details := mad.NoticeTypeUrgent, Encoder(nil)
	violated := (*mad.Field)(nil)
	switch number {
	case 128:
		details = &mad.NoticeSwitch{LIDAddr: end.LID}
	case 129, 130, 131:
		details = &mad.NoticePort{LIDAddr: end.LID, PortNo: p.Num}
	case 144:
		info := end.PortInfo()
		kind = mad.NoticeTypeInformational
		details = &mad.NoticeLocalChange{LIDAddr: end.LID, OtherLocalChanges: true, NodeDescriptionChange: true,
			CapabilityMask: info.CapabilityMask, CapabilityMask2: info.CapabilityMask2}
	case 145:
		info := p.Node.NodeInfo()
		kind = mad.NoticeTypeInformational
		details = &mad.NoticeSystemImage{LIDAddr: end.LID, SystemImageGUID: info.SystemImageGUID}
	case 256:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeBadMKey{LIDAddr: end.LID, Method: uint8(mad.MethodSet), AttributeID: uint16(mad.AttrPortInfo.ID)}
	case 257, 258:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeBadKey{LIDAddr1: end.LID, LIDAddr2: end.LID, Key: wrongKey, QP1: 1, QP2: 1, GIDAddr1: end.GID(), GIDAddr2: end.GID()}
		violated = portInfoBadPKeys
		if number == 258 {
			violated = portInfoBadQKeys
		}
	case 259:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeSwitchBadPKey{LIDAddr1: end.LID, LIDAddr2: end.LID, PKey: wrongKey, QP1: 1, QP2: 1, GIDAddr1: end.GID(), GIDAddr2: end.GID(), SwLIDAddr: end.LID, PortNo: p.Num}
	default:
		return fmt.Errorf("unsupported trap %d; supported: %v", number, Traps)
	}
	notice := newNotice(end, kind, uint16(number), details)
	if fields != nil {
		var data [NoticeSize]byte
		notice.Encode(data[:])
		if err := fields(mad.AttrSubnNotice.Resolve(data[:SMPSize], 0), data[:SMPSize]); err != nil {
			return err
		}
		notice = parseNotice(data[:])
	}
	if violated != nil {
		end.CountViolation(violated)
	}
	n.issue(end, &notice)
	return nil
}

// BadKey is a packet of general services whose P_Key or Q_Key its destination does not have.
type BadKey struct {
	PKey     bool // the P_Key is wrong; else the Q_Key
	Key      uint32
	From, At *Port // the sender's port, and the end port where the packet arrived
	SL       uint8
	QP       uint32  // of the destination
	SGID     mad.GID // of the global route header; zero without one
	DGID     mad.GID
}

// BadKey counts a packet with a wrong key, and sends its trap: 257 for a P_Key, 258 for a
// Q_Key.
func (n *Notices) BadKey(b *BadKey) {
	number, counter := uint16(258), portInfoBadQKeys
	if b.PKey {
		number, counter = 257, portInfoBadPKeys
	}
	b.At.CountViolation(counter)
	n.Trap(b.At, mad.NoticeTypeSecurity, number, &mad.NoticeBadKey{LIDAddr1: b.From.EndPort().LID, LIDAddr2: b.At.LID,
		Key: b.Key, SL: b.SL, QP1: 1, QP2: b.QP, GIDAddr1: b.SGID, GIDAddr2: b.DGID})
}

// newNotice is a notice of the specification, of the agent of an end port.
func newNotice(from *Port, t mad.NoticeType, number uint16, details Encoder) mad.Notice {
	node := from.Node.NodeInfo()
	notice := mad.Notice{
		IsGeneric: true, Type: t, ProducerType: mad.ProducerType(node.NodeType),
		TrapNumber: number, IssuerLID: from.LID,
	}
	details.Encode(notice.DataDetails[:])
	return notice
}

var (
	portInfoBadPKeys = mad.AttrPortInfo.Field("p_key_violations")
	portInfoBadQKeys = mad.AttrPortInfo.Field("q_key_violations")
)

// An agent that announces IsNoticeSupported keeps its latest notice, for programs that
// poll it by Get(Notice), until a Set(Notice) with the toggle of that notice clears it
// (IBA 13.4.9).

// storedNotice is what the agent of an end port keeps.
type storedNotice struct {
	notice mad.Notice
	count  uint16 // since the last was cleared
	toggle bool
}

const maxNoticeCount = 1<<15 - 1 // of NoticeCount

// store stores a notice in the agent of an end port.
func (n *Notices) store(at *Port, notice *mad.Notice) {
	k := n.stored[at]
	if k == nil {
		k = new(storedNotice)
		n.stored[at] = k
	}
	k.notice = *notice
	if k.count < maxNoticeCount {
		k.count++
	}
}

// StoredNotice returns the notice that the agent of an end port keeps, or one of type "empty".
func (n *Notices) StoredNotice(at *Port) mad.Notice {
	k := n.stored[at]
	if k == nil || k.count == 0 {
		empty := mad.Notice{IsGeneric: true, Type: mad.NoticeTypeEmpty, IssuerLID: at.LID}
		if k != nil {
			empty.NoticeToggle = k.toggle
		}
		return empty
	}
	notice := k.notice
	notice.NoticeToggle, notice.NoticeCount = k.toggle, k.count
	return notice
}

// Clear drops the notice with that toggle from the agent of an end port.
func (n *Notices) Clear(at *Port, toggle bool) {
	if k := n.stored[at]; k != nil && k.count > 0 && k.toggle == toggle {
		k.count, k.toggle = 0, !k.toggle
	}
}
