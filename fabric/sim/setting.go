package sim

import (
	"fmt"
	"time"

	"fabsh/mad"
)

// SetLoss has MADs be lost with a probability, in each direction: all of them, or
// with a node those that cross its ports; a num of 0 or more: that port.
func (s *Subnet) SetLoss(p float64, node mad.GUID, num int) error {
	if p < 0 || p > 1 || p != p {
		return fmt.Errorf("%v is no probability, from 0 to 1", p)
	}
	if node == 0 {
		s.changeFaults(func(o *faultOptions) { o.Loss = p })
		return nil
	}
	return s.edit(node, max(0, num), func(at *port) {
		ports := at.node.ports
		if num >= 0 {
			ports = ports[num : num+1]
		}
		for i := range ports {
			s.lose(&ports[i], loss{share: p})
		}
	})
}

// SetDelay sets the time from a request to its answer, and what is added to it at
// random.
func (s *Subnet) SetDelay(delay, jitter time.Duration) error {
	if delay < 0 || jitter < 0 {
		return fmt.Errorf("a delay of %v is not possible", min(delay, jitter))
	}
	s.changeFaults(func(o *faultOptions) { o.Delay, o.Jitter = delay, jitter })
	return nil
}

// SetBusy has the agents of a node answer BUSY to the next requests.
func (s *Subnet) SetBusy(node mad.GUID, requests int) error {
	if requests < 0 {
		return fmt.Errorf("%d requests are not possible", requests)
	}
	return s.edit(node, 0, func(p *port) { p.node.busy.Store(int64(requests)) })
}

// takeBusy: the node is busy for one more request.
func (n *node) takeBusy() bool {
	for {
		left := n.busy.Load()
		if left == 0 {
			return false
		}
		if n.busy.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

// SetMKey gives the end ports of a node an M_Key, a protection level, and a lease
// in seconds; 0: it has no end.
func (s *Subnet) SetMKey(node mad.GUID, key uint64, protect uint8, lease uint16) error {
	if protect > 3 {
		return fmt.Errorf("there is no protection level %d: there are 0 to 3", protect)
	}
	return s.edit(node, 0, func(at *port) {
		for _, p := range at.node.endPorts() {
			var info mad.PortInfo
			info.Decode(p.info[:])
			info.MKey, info.MKeyProtectBits, info.MKeyLeasePeriod = key, protect, lease
			p.setInfo(&info)
			p.leaseEnd = time.Time{}
		}
	})
}

// Traps are the numbers that SendTrap takes.
var Traps = [...]int{128, 129, 130, 131, 144, 145, 256, 257, 258, 259}

// SendTrap has the agent of a port send a trap to its subnet manager: 128, 131 and 259
// of switches, the others of all nodes. Keys and addresses in it are made up.
func (s *Subnet) SendTrap(number int, node mad.GUID, num int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portAt(node, num)
	if err != nil {
		return err
	}
	end := p.endPort()
	if num == 0 && !p.node.isSwitch {
		if end, err = p.node.attachment(0); err != nil {
			return err
		}
		p = end
	}
	if (number == 128 || number == 131 || number == 259) && !p.node.isSwitch {
		return fmt.Errorf("only switches send trap %d, and %s is none", number, p.node.label)
	}
	const wrongKey = 0x7fff
	kind, details := mad.NoticeTypeUrgent, encoder(nil)
	switch number {
	case 128:
		details = &mad.NoticeSwitch{LIDAddr: end.lid}
	case 129, 130, 131:
		details = &mad.NoticePort{LIDAddr: end.lid, PortNo: p.num}
	case 144:
		var info mad.PortInfo
		info.Decode(end.info[:])
		kind = mad.NoticeTypeInformational
		details = &mad.NoticeLocalChange{LIDAddr: end.lid, OtherLocalChanges: true, NodeDescriptionChange: true,
			CapabilityMask: info.CapabilityMask, CapabilityMask2: info.CapabilityMask2}
	case 145:
		var info mad.NodeInfo
		info.Decode(p.node.info[:])
		kind = mad.NoticeTypeInformational
		details = &mad.NoticeSystemImage{LIDAddr: end.lid, SystemImageGUID: info.SystemImageGUID}
	case 256:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeBadMKey{LIDAddr: end.lid, Method: uint8(mad.MethodSet), AttributeID: uint16(mad.AttrPortInfo.ID)}
	case 257, 258:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeBadKey{LIDAddr1: end.lid, LIDAddr2: end.lid, Key: wrongKey, QP1: 1, QP2: 1, GIDAddr1: end.gid(), GIDAddr2: end.gid()}
		counter := portInfoBadPKeys
		if number == 258 {
			counter = portInfoBadQKeys
		}
		countViolation(end, counter)
	case 259:
		kind = mad.NoticeTypeSecurity
		details = &mad.NoticeSwitchBadPKey{LIDAddr1: end.lid, LIDAddr2: end.lid, PKey: wrongKey, QP1: 1, QP2: 1, GIDAddr1: end.gid(), GIDAddr2: end.gid(), SwLIDAddr: end.lid, PortNo: p.num}
	default:
		return fmt.Errorf("there is no trap %d to send: there are %v", number, Traps)
	}
	s.trap(end, kind, uint16(number), details)
	return nil
}
