package agent

import (
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Manager is the subnet manager of a subnet, in this process: it sweeps when a link changes, and
// answers other subnet managers. Its fields are guarded by the subnet's lock.
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
// GUID; 0: on its present node. The new one does not know the state of the old one,
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
	if m.subnet.Router != nil {
		m.subnet.Router.Forget()
	}
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
	delete(m.otherSMs, to) // one subnet manager runs on a port
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

// RunOther runs a subnet manager on a node, with a state and a priority, beside the one in this
// process. It answers other subnet managers, and does nothing else.
func (m *Manager) RunOther(node mad.GUID, status mad.SMState, priority uint8) error {
	return m.changeOther(node, func(p *state.Port) error {
		info := m.otherSMs[p]
		info.GUID, info.SMState, info.Priority = p.GUID, status, priority
		info.ActCount++
		m.otherSMs[p] = info
		return nil
	})
}

// StopOther stops a subnet manager that RunOther has started.
func (m *Manager) StopOther(node mad.GUID) error {
	return m.changeOther(node, func(p *state.Port) error {
		if _, runs := m.otherSMs[p]; !runs {
			return fmt.Errorf("no second subnet manager runs on %s", p.Node.Label)
		}
		delete(m.otherSMs, p)
		return nil
	})
}

// changeOther changes whether a second subnet manager runs on a node, of which the port reports a
// change of its capabilities (IBA 14.2.5.1, trap 144).
func (m *Manager) changeOther(node mad.GUID, change func(*state.Port) error) error {
	m.subnet.Lock()
	defer m.subnet.Unlock()
	n := m.subnet.NodeByGUID(node)
	if n == nil {
		return fmt.Errorf("the simulated fabric has no node with GUID %v", node)
	}
	p, err := n.Attachment(0)
	if err != nil {
		return err
	}
	if p == m.subnet.SM {
		return fmt.Errorf("the subnet manager of the simulated fabric runs on %s; name another node", n.Label)
	}
	if err := change(p); err != nil {
		return err
	}
	before := p.Info
	_, runs := m.otherSMs[p]
	if p.SetCapability(mad.CapabilityMaskIsSM, runs); p.Info != before {
		m.notices.Trap(p, mad.NoticeTypeInformational, 144, &mad.NoticeLocalChange{LIDAddr: p.LID, CapabilityMask: p.PortInfo().CapabilityMask})
	}
	return nil
}

// smPriority is the priority of the subnet manager.
const smPriority = 14

// Info returns the SMInfo of the subnet manager.
func (m *Manager) Info() mad.SMInfo {
	return mad.SMInfo{GUID: m.subnet.SM.GUID, ActCount: m.Sweeps, Priority: smPriority, SMState: mad.SMStateMaster}
}

// Requests between subnet managers: the modifier of a Set (IBA 14.4.1).
const (
	smHandover    = 1
	smAcknowledge = 2
	smDisable     = 3
	smStandby     = 4
	smDiscover    = 5
)

// smTransitions are the state changes of a subnet manager, its own and requested ones; it
// refuses others (IBA 14.4.1; opensm osm_sm_state_mgr.c osm_sm_state_mgr_check_legality).
// A subnet manager that has not offered its mastership stays master.
var smTransitions = map[mad.SMState]map[uint32]mad.SMState{
	mad.SMStateNotActive:   {smStandby: mad.SMStateStandby},
	mad.SMStateDiscovering: {smHandover: mad.SMStateDiscovering},
	mad.SMStateStandby: {
		smHandover: mad.SMStateMaster, smAcknowledge: mad.SMStateStandby,
		smDisable: mad.SMStateNotActive, smDiscover: mad.SMStateDiscovering,
	},
	mad.SMStateMaster: {smHandover: mad.SMStateMaster},
}

// SMKey is the SM_Key, which trusted requesters know: OpenSM's default (opensm
// osm_base.h OSM_DEFAULT_SM_KEY, OSM_DEFAULT_SA_KEY).
const SMKey = 1

// RunsAt reports whether a subnet manager answers at an end port.
func (m *Manager) RunsAt(p *state.Port) bool {
	_, other := m.otherSMs[p]
	return other || p == m.subnet.SM
}

// InfoAt returns the SMInfo of the subnet manager at an end port. OpenSM ignores one that
// does not show the SM_Key, and would become a second master (opensm osm_sminfo_rcv.c
// smi_rcv_process_get_response, osm_sminfo_rcv_process).
func (m *Manager) InfoAt(p *state.Port, showKey bool) mad.SMInfo {
	if info, other := m.otherSMs[p]; other {
		return info
	}
	info := m.Info()
	if showKey {
		info.SMKey = SMKey
	}
	return info
}

// Transition executes a request, given by a modifier, of another subnet manager in state
// asker at the subnet manager of an end port; it returns false if that is not legal. Only
// masters send requests, except ACKNOWLEDGE, which a subnet manager sends that takes over
// from another (opensm osm_sminfo_rcv.c smi_rcv_check_set_req_legality).
func (m *Manager) Transition(p *state.Port, modifier uint32, asker mad.SMState) bool {
	info := m.InfoAt(p, false)
	next, legal := smTransitions[info.SMState][modifier]
	wanted := mad.SMStateMaster
	if modifier == smAcknowledge {
		wanted = mad.SMStateStandby
	}
	if !legal || asker != wanted {
		return false
	}
	if _, other := m.otherSMs[p]; other {
		info.SMState = next
		info.ActCount++
		m.otherSMs[p] = info
	} else {
		m.sweep() // it must now configure the subnet of the other one
	}
	return true
}

// LinksChanged reports changed links: the switches at their ports send their traps, one
// each, and the subnet manager sweeps. An agent repeats its trap until the subnet manager
// receives it: a trap that had no route before the sweep is sent again afterwards.
func (m *Manager) LinksChanged(changed ...*state.Port) {
	notified := map[*state.Node]bool{}
	var undelivered []*state.Node
	for _, p := range changed {
		if p == nil { // a port without a cable has no peer
			continue
		}
		if n := p.Node; n.IsSwitch && !n.Off && !notified[n] {
			notified[n] = true
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

// sweep is a sweep of the subnet manager: it discovers the nodes, makes links
// active, fills the forwarding tables, and reports the end ports that appeared
// and disappeared (opensm reports traps 65 while it drops nodes, osm_drop_mgr.c,
// and 64 when the subnet is up, osm_state_mgr.c).
func (m *Manager) sweep() {
	if m.subnet.SM == nil || m.subnet.SM.Node.Off {
		return
	}
	m.Sweeps++
	appeared, disappeared := m.discover()
	for i := range m.subnet.Nodes { // opensm osm_ucast_mgr.c set_fwd_top
		if n := &m.subnet.Nodes[i]; n.Found {
			n.ClearStateChange()
		}
	}
	for i := range m.subnet.Ports {
		if p := &m.subnet.Ports[i]; p.Up && p.State == mad.PortStateInitialize && (p.Node.Found || p.Peer.Node.Found) {
			p.ChangeInfo(func(info *mad.PortInfo) { info.PortState = mad.PortStateActive })
		}
	}
	m.traffic.Suspend()
	m.subnet.InvalidateTables()
	for _, p := range disappeared {
		m.leaveAll(p)
	}
	m.subnet.SetAllMFTs()
	for _, p := range disappeared {
		m.notices.ReportGID(65, p.GID())
	}
	for _, p := range appeared {
		m.notices.ReportGID(64, p.GID())
	}
}

// discover finds the nodes and end ports that the subnet manager reaches.
func (m *Manager) discover() (appeared, disappeared []*state.Port) {
	for i := range m.subnet.Nodes {
		m.subnet.Nodes[i].Found = false
	}
	if m.subnet.SM == nil {
		return nil, nil
	}
	m.subnet.SM.Node.Found = true
	queue := []*state.Node{m.subnet.SM.Node}
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.Ports {
			p := &n.Ports[i]
			if !n.IsSwitch && p != m.subnet.SM { // CAs do not forward
				continue
			}
			if far := p.Neighbour(); far != nil && !far.Node.Found {
				far.Node.Found = true
				queue = append(queue, far.Node)
			}
		}
	}
	for i := range m.subnet.Nodes {
		for _, p := range m.subnet.Nodes[i].EndPorts() {
			before := p.InService
			far := p.Neighbour()
			p.InService = p == m.subnet.SM || p.Num == 0 && p.Node.Found || far != nil && far.Node.Found && (far.Node.IsSwitch || far == m.subnet.SM)
			switch {
			case p.InService && !before:
				appeared = append(appeared, p)
			case before && !p.InService:
				disappeared = append(disappeared, p)
			}
		}
	}
	return appeared, disappeared
}

// leaveAll ends the memberships of a port that is out of service (opensm
// osm_drop_mgr.c drop_mgr_remove_port).
func (m *Manager) leaveAll(p *state.Port) {
	for _, g := range slices.Clone(m.subnet.Groups) {
		before := len(g.Members)
		g.Members = slices.DeleteFunc(g.Members, func(x state.Member) bool { return x.Port == p })
		if len(g.Members) < before {
			m.DeleteEmptyGroup(g)
			m.subnet.SetMFTs(g)
		}
	}
}

// DeleteEmptyGroup deletes a group that no longer has full members.
func (m *Manager) DeleteEmptyGroup(g *state.Group) {
	if g.FullMembers() > 0 {
		return
	}
	m.notices.ReportGID(67, g.MGID)
	g.Members = nil
	m.subnet.Groups = slices.DeleteFunc(m.subnet.Groups, func(x *state.Group) bool { return x == g && !g.WellKnown })
}
