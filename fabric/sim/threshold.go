package sim

import "fabsh/mad"

// thresholdTraps are the traps of counters that count how often a threshold of
// PortInfo was exceeded: LocalPhyErrors and OverrunErrors (IBA 14.2.5.1, 14.2.5.6).
var thresholdTraps = map[counterKey]uint16{
	{"LocalLinkIntegrityErrors", 0}:     129,
	{"ExcessiveBufferOverrunErrors", 0}: 130,
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
	number := thresholdTraps[key]
	if end := p.endPort(); number != 0 && !p.node.off && end.lid != 0 {
		s.trap(end, mad.NoticeTypeUrgent, number, &mad.NoticePort{LIDAddr: end.lid, PortNo: p.num})
	}
}
