package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Info returns the SMInfo of the subnet manager.
func (m *Manager) Info() mad.SMInfo {
	return mad.SMInfo{GUID: m.subnet.SM.GUID, ActCount: m.Sweeps, Priority: priority, SMState: mad.SMStateMaster}
}

// Requests between subnet managers: the modifier of a Set (IBA 14.4.1).
const (
	smHandover    = 1
	smAcknowledge = 2
	smDisable     = 3
	smStandby     = 4
	smDiscover    = 5
)

// transitions are the state changes of a subnet manager, its own and requested ones; it
// refuses others (IBA 14.4.1; opensm osm_sm_state_mgr.c osm_sm_state_mgr_check_legality).
// A subnet manager that has not offered its mastership stays master.
var transitions = map[mad.SMState]map[uint32]mad.SMState{
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

// RunsAt reports whether an end port is that of a subnet manager.
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
	next, legal := transitions[info.SMState][modifier]
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
