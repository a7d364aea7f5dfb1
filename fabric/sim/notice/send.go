package notice

import (
	"fmt"

	"fabsh/fabric/sim/counter"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// thresholdTraps are the traps of counters that count how often a threshold was
// exceeded: LocalPhyErrors and OverrunErrors of PortInfo (IBA 14.2.5.1, 14.2.5.6), and
// the time in which each lane of a switch's port is to hear of flow control.
var thresholdTraps = map[string]uint16{
	"LocalLinkIntegrityErrors":      129,
	"ExcessiveBufferOverrunErrors":  130,
	"PortVLXmitFlowCtlUpdateErrors": 131,
}

// ThresholdTrap sends the trap of a counter that grows, if it has one.
func (n *Notices) ThresholdTrap(p *state.Port, key counter.Key) {
	number := thresholdTraps[key.Name]
	if number == 131 && !p.Node.IsSwitch { // it is of switches alone
		return
	}
	if end := p.EndPort(); number != 0 && !p.Node.Off && end.LID != 0 {
		n.Trap(end, mad.NoticeTypeUrgent, number, &mad.NoticePort{LIDAddr: end.LID, PortNo: p.Num})
	}
}

// Traps are the numbers that SendTrap takes.
var Traps = [...]int{128, 129, 130, 131, 144, 145, 256, 257, 258, 259}

// SendTrap has the agent of a port send a trap to its subnet manager: 128, 131 and 259
// of switches, the others of all nodes. Keys and addresses in it are made up.
func (n *Notices) SendTrap(number int, node mad.GUID, num int) error {
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
		return fmt.Errorf("only switches send trap %d, and %s is none", number, p.Node.Label)
	}
	const wrongKey = 0x7fff
	kind, details := mad.NoticeTypeUrgent, Details(nil)
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
		counter := portInfoBadPKeys
		if number == 258 {
			counter = portInfoBadQKeys
		}
		end.CountViolation(counter)
	case 259:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeSwitchBadPKey{LIDAddr1: end.LID, LIDAddr2: end.LID, PKey: wrongKey, QP1: 1, QP2: 1, GIDAddr1: end.GID(), GIDAddr2: end.GID(), SwLIDAddr: end.LID, PortNo: p.Num}
	default:
		return fmt.Errorf("there is no trap %d to send: there are %v", number, Traps)
	}
	n.Trap(end, kind, uint16(number), details)
	return nil
}

var (
	portInfoBadPKeys = mad.AttrPortInfo.Field("p_key_violations")
	portInfoBadQKeys = mad.AttrPortInfo.Field("q_key_violations")
)
