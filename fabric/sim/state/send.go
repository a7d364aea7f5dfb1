package state

import (
	"fmt"

	"fabsh/mad"
)

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
	kind, details := mad.NoticeTypeUrgent, Details(nil)
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
		var data [noticeSize]byte
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
func newNotice(from *Port, t mad.NoticeType, number uint16, details Details) mad.Notice {
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
