// Package sm is the subnet manager in the process of a simulated subnet: it sweeps when a
// link changes, and answers other subnet managers.
//
//	sm.go      Manager: where it is; restarts; what else says that it is one
//	sweep.go   the sweep: links active, tables, ports that come and go
//	link.go    what follows when links change: traps, and a sweep
//	sminfo.go  SMInfo, and what other subnet managers ask

package agent

import (
	"errors"
	"fmt"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// priority is that of the subnet manager.
const priority = 14

// Manager is the subnet manager of a subnet. Its fields are guarded by the subnet's
// lock.
type Manager struct {
	subnet   *state.Subnet
	traffic  *state.Traffic
	notices  *state.Notices
	Sweeps   uint32                     // since its start
	otherSMs map[*state.Port]mad.SMInfo // ports that announce a subnet manager too
}

// NewManager returns the subnet manager of a subnet that is up.
func NewManager(s *state.Subnet, t *state.Traffic, n *state.Notices) *Manager {
	m := &Manager{subnet: s, traffic: t, notices: n, Sweeps: 1, otherSMs: map[*state.Port]mad.SMInfo{}}
	m.discover()
	return m
}

// Restart stops the subnet manager, and starts another on the node with that
// GUID; 0: on the same node. The new one does not know the state of the old one,
// such as its subscriptions.
func (m *Manager) Restart(node mad.GUID) error {
	m.subnet.Lock()
	defer m.subnet.Unlock()
	at := m.subnet.SM
	if at == nil {
		return errors.New("the simulated fabric has no subnet manager of its own to restart")
	}
	if node != 0 {
		n := m.subnet.NodeByGUID(node)
		if n == nil {
			return fmt.Errorf("the simulated fabric has no node with GUID %v", node)
		}
		var err error
		if at, err = n.Attachment(0); err != nil {
			return err
		}
	}
	if at.Node.Off {
		return fmt.Errorf("%s has no power, so that nothing runs there: reboot it, or name another node", at.Node.Label)
	}
	m.traffic.BeforeChange()
	m.notices.ForgetSubscriptions()
	m.Sweeps = 0
	m.moveSM(at)
	m.sweep()
	return nil
}

// Node returns the node of the subnet manager in this process, or -1.
func (m *Manager) Node() int {
	m.subnet.RLock()
	defer m.subnet.RUnlock()
	if m.subnet.SM == nil {
		return -1
	}
	return m.subnet.Index(m.subnet.SM.Node)
}

// moveSM sets the LID of the subnet manager in all end ports.
func (m *Manager) moveSM(to *state.Port) {
	from := m.subnet.SM
	m.subnet.SM = to
	for i := range m.subnet.Nodes {
		for _, p := range m.subnet.Nodes[i].EndPorts() {
			p.ChangeInfo(func(info *mad.PortInfo) {
				info.MasterSMLID = to.LID
				switch p {
				case to:
					info.CapabilityMask |= mad.CapabilityMaskIsSM
				case from:
					info.CapabilityMask &^= mad.CapabilityMaskIsSM
				}
			})
		}
	}
}

// Add makes a port answer for a subnet manager with this SMInfo. It does nothing else.
func (m *Manager) Add(node mad.GUID, num int, info mad.SMInfo) error {
	return m.subnet.WithPort(node, num, func(p *state.Port) {
		p.EditInfo(func(info *mad.PortInfo) { info.CapabilityMask |= mad.CapabilityMaskIsSM })
		m.otherSMs[p.EndPort()] = info
	})
}
