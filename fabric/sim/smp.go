package sim

import (
	"fabsh/mad"
)

// Fields that an agent fills in by the port a request came in through.
var (
	nodeInfoPortGUID      = mad.AttrNodeInfo.Field("port_guid")
	nodeInfoLocalPort     = mad.AttrNodeInfo.Field("local_port_num")
	portInfoLocalPort     = mad.AttrPortInfo.Field("local_port_num")
	portInfoViolations    = mad.AttrPortInfo.Field("m_key_violations")
	portInfoState         = mad.AttrPortInfo.Field("port_state")
	portInfoKey           = mad.AttrPortInfo.Field("m_key")
	switchInfoStateChange = mad.AttrSwitchInfo.Field("port_state_change")
	switchInfoOptimized   = mad.AttrSwitchInfo.Field("optimized_sl_to_vl_mapping_programming")
)

// smp executes a subnet management request.
func (r *request) smp() mad.Status {
	if r.Method != mad.MethodGet && r.Method != mad.MethodSet {
		return mad.StatusBadMethod
	}
	a := mad.Lookup(mad.ClassSubn, r.Attribute)
	if !allows(a, r.Method) {
		return mad.StatusBadMethodAttribute
	}
	set := r.Method == mad.MethodSet
	n := r.in.node
	switch a {
	case mad.AttrNodeDescription:
		if set {
			copy(n.desc[:], r.data)
		}
		copy(r.data, n.desc[:])
		return r.modifierIs0()
	case mad.AttrNodeInfo:
		r.in.nodeInfo(r.data)
		return r.modifierIs0()
	case mad.AttrPortInfo:
		return r.portInfo(set)
	case mad.AttrGUIDInfo, mad.AttrPKeyTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable:
		return r.table(a, set)
	case mad.AttrSMInfo:
		if r.in.endPort() == r.sm {
			return r.smInfo(set)
		}
	case mad.AttrSwitchInfo:
		if n.isSwitch {
			return r.switchInfo(set)
		}
	case mad.AttrLinearForwardingTable:
		if n.isSwitch {
			return r.linearTable(set)
		}
	case mad.AttrMulticastForwardingTable:
		if n.isSwitch {
			return r.table(a, set)
		}
	}
	return mad.StatusBadMethodAttribute
}

func (r *request) modifierIs0() mad.Status {
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	return 0
}

// nodeInfo writes what the agent says to what comes in through p.
func (p *port) nodeInfo(data []byte) {
	copy(data, p.node.info[:])
	nodeInfoPortGUID.SetUint(data, uint64(p.endPort().guid))
	nodeInfoLocalPort.SetUint(data, uint64(p.num))
}

func (r *request) switchInfo(set bool) mad.Status {
	n := r.in.node
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	if set {
		next := n.sw
		applySet(mad.AttrSwitchInfo, next[:], r.data)
		var sw mad.SwitchInfo
		if sw.Decode(next[:]); sw.LinearFDBTop >= sw.LinearFDBCap {
			copy(r.data, n.sw[:])
			return mad.StatusBadValue
		}
		n.sw, n.fdbTop = next, mad.LID(sw.LinearFDBTop)
	}
	copy(r.data, n.sw[:])
	return 0
}

// smInfo answers for the subnet manager, which stays master whatever others ask.
func (r *request) smInfo(set bool) mad.Status {
	if set {
		return mad.StatusBadValue
	}
	info := r.smInfoNow()
	clear(r.data)
	info.Encode(r.data)
	return r.modifierIs0()
}

func (s *Subnet) smInfoNow() mad.SMInfo {
	return mad.SMInfo{GUID: s.sm.guid, ActCount: s.sweeps, Priority: smPriority, SMState: mad.SMStateMaster}
}
