package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// LinksChanged reports changed links: the switches at their ports send their traps, one
// each, and the subnet manager sweeps. An agent repeats its trap until the subnet manager
// receives it: a trap that had no route before the sweep is sent again afterwards.
func (m *Manager) LinksChanged(changed ...*state.Port) {
	told := map[*state.Node]bool{}
	var undelivered []*state.Node
	for _, p := range changed {
		if p == nil { // a port without a cable has no peer
			continue
		}
		if n := p.Node; n.IsSwitch && !n.Off && !told[n] {
			told[n] = true
			if !m.linkTrap(n) {
				undelivered = append(undelivered, n)
			}
		}
	}
	if len(changed) == 0 || m.subnet.SM == nil || m.subnet.SM.Node.Off {
		return // a program does that, if any; the traps are repeated
	}
	m.sweep()
	for _, n := range undelivered {
		m.linkTrap(n)
	}
}

// linkTrap sends trap 128 of switch n.
func (m *Manager) linkTrap(n *state.Node) (delivered bool) {
	from := &n.Ports[0]
	return m.notices.Trap(from, mad.NoticeTypeUrgent, 128, &mad.NoticeSwitch{LIDAddr: from.LID})
}
