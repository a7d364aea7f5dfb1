package sim

import "fabsh/mad"

// onSM: the request came to the port of a subnet manager.
func onSM(r *request) bool {
	_, other := r.otherSMs[r.in.endPort()]
	return other || r.in.endPort() == r.sm
}

func (r *request) getSMInfo() mad.Status {
	info := r.smInfoHere()
	clear(r.data)
	info.Encode(r.data)
	return r.modifierIs0()
}

// smInfoHere is what the subnet manager of the port says of itself. OpenSM takes no
// notice of one that does not show the SM_Key, and would be a second master (opensm
// osm_sminfo_rcv.c smi_rcv_process_get_response, osm_sminfo_rcv_process).
func (r *request) smInfoHere() mad.SMInfo {
	if info, other := r.otherSMs[r.in.endPort()]; other {
		return info
	}
	info := r.smInfo()
	if !r.hideKey {
		info.SMKey = saKey
	}
	return info
}

func (s *Subnet) smInfo() mad.SMInfo {
	return mad.SMInfo{GUID: s.sm.guid, ActCount: s.sweeps, Priority: smPriority, SMState: mad.SMStateMaster}
}

// What one subnet manager asks of another: the modifier of a Set (IBA 14.4.1).
const (
	smHandover    = 1
	smAcknowledge = 2
	smDisable     = 3
	smStandby     = 4
	smDiscover    = 5
)

// smTransitions are the states that a subnet manager goes to, by its own and by what
// it is asked; what is not here it refuses (IBA 14.4.1; opensm osm_sm_state_mgr.c
// osm_sm_state_mgr_check_legality). One that has not offered its mastership stays
// master.
var smTransitions = map[mad.SMState]map[uint32]mad.SMState{
	mad.SMStateNotActive:   {smStandby: mad.SMStateStandby},
	mad.SMStateDiscovering: {smHandover: mad.SMStateDiscovering},
	mad.SMStateStandby: {
		smHandover: mad.SMStateMaster, smAcknowledge: mad.SMStateStandby,
		smDisable: mad.SMStateNotActive, smDiscover: mad.SMStateDiscovering,
	},
	mad.SMStateMaster: {smHandover: mad.SMStateMaster},
}

// setSMInfo has the subnet manager of the port do what another one asks. The answer
// says what it was before. Only masters ask, but for ACKNOWLEDGE, which who takes
// over from one sends (opensm osm_sminfo_rcv.c smi_rcv_check_set_req_legality).
func (r *request) setSMInfo() mad.Status {
	var asker mad.SMInfo
	asker.Decode(r.data)
	info := r.smInfoHere()
	clear(r.data)
	info.Encode(r.data)
	next, legal := smTransitions[info.SMState][r.Modifier]
	wanted := mad.SMStateMaster
	if r.Modifier == smAcknowledge {
		wanted = mad.SMStateStandby
	}
	if !legal || asker.SMState != wanted {
		return mad.StatusBadValue
	}
	if _, other := r.otherSMs[r.in.endPort()]; other {
		info.SMState = next
		info.ActCount++
		r.otherSMs[r.in.endPort()] = info
	} else if !r.noSweep {
		r.sweep() // it has a subnet to configure that was another's
	}
	return mad.StatusOK
}
