package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// smpHandlers are the attributes of subnet management (IBA 14.2.5).
var smpHandlers = []handler{
	{attr: mad.AttrNodeDescription, get: (*request).getNodeDescription, set: (*request).setNodeDescription},
	{attr: mad.AttrNodeInfo, get: (*request).getNodeInfo},
	{attr: mad.AttrPortInfo, get: (*request).getPortInfo, set: (*request).setPortInfo},
	{attr: mad.AttrSMInfo, on: onSM, get: (*request).getSMInfo, set: (*request).setSMInfo},
	{attr: mad.AttrSwitchInfo, on: onSwitch, get: (*request).getSwitchInfo, set: (*request).setSwitchInfo},
	{attr: mad.AttrLinearForwardingTable, on: onSwitch, get: (*request).getLFT, set: (*request).setLFT},
	{attr: mad.AttrSLtoVLMappingTable, get: sl2vlBlocks.get, set: (*request).setSL2VL},
	{attr: mad.AttrMulticastForwardingTable, on: onSwitch, get: mftBlocks.get, set: mftBlocks.set},
	{attr: mad.AttrGUIDInfo, get: guidBlocks.get, set: guidBlocks.set},
	{attr: mad.AttrPKeyTable, get: pkeyBlocks.get, set: pkeyBlocks.set},
	{attr: mad.AttrVLArbitrationTable, get: vlArbBlocks.get, set: vlArbBlocks.set},
	{attr: mad.AttrMlnxAccessRegister, on: hasRegisters, get: (*request).getRegisterBySMP},
	{attr: mad.AttrMlnxExtPortInfo, on: onMlnx, get: (*request).getMlnxPortInfo, set: (*request).setMlnxPortInfo},
	{attr: mad.AttrLedInfo, get: (*request).getLight, set: (*request).setLight},
}

// Fields that an agent fills in by the port a request came in through.
var (
	nodeInfoPortGUID      = mad.AttrNodeInfo.Field("port_guid")
	nodeInfoLocalPort     = mad.AttrNodeInfo.Field("local_port_num")
	nodeInfoPartitions    = mad.AttrNodeInfo.Field("partition_cap")
	switchInfoPartitions  = mad.AttrSwitchInfo.Field("partition_enforcement_cap")
	portInfoLocalPort     = mad.AttrPortInfo.Field("local_port_num")
	portInfoViolations    = mad.AttrPortInfo.Field("m_key_violations")
	portInfoBadPKeys      = mad.AttrPortInfo.Field("p_key_violations")
	portInfoBadQKeys      = mad.AttrPortInfo.Field("q_key_violations")
	portInfoState         = mad.AttrPortInfo.Field("port_state")
	portInfoKey           = mad.AttrPortInfo.Field("m_key")
	portInfoLease         = mad.AttrPortInfo.Field("m_key_lease_period")
	portInfoProtect       = mad.AttrPortInfo.Field("m_key_protect_bits")
	portInfoSMLID         = mad.AttrPortInfo.Field("master_sm_lid")
	portInfoTimeOut       = mad.AttrPortInfo.Field("subnet_time_out")
	switchInfoStateChange = mad.AttrSwitchInfo.Field("port_state_change")
	switchInfoOptimized   = mad.AttrSwitchInfo.Field("optimized_sl_to_vl_mapping_programming")
)

func (r *request) getNodeDescription() mad.Status {
	copy(r.data, r.in.node.desc[:])
	return r.modifierIs0()
}

func (r *request) setNodeDescription() mad.Status {
	if r.Modifier != 0 {
		copy(r.data, r.in.node.desc[:])
		return mad.StatusBadValue
	}
	copy(r.in.node.desc[:], r.data)
	return mad.StatusOK
}

// getLight reads whether the light of a port is on.
func (r *request) getLight() mad.Status {
	p := r.portOfModifier(int(r.Modifier))
	clear(r.data)
	if p == nil {
		return mad.StatusBadValue
	}
	info := mad.LedInfo{LedMask: r.lights[p]}
	info.Encode(r.data)
	return mad.StatusOK
}

func (r *request) setLight() mad.Status {
	if p := r.portOfModifier(int(r.Modifier)); p != nil {
		var info mad.LedInfo
		info.Decode(r.data)
		r.lights[p] = info.LedMask
	}
	return r.getLight()
}

func (r *request) getNodeInfo() mad.Status {
	r.in.nodeInfo(r.data)
	return r.modifierIs0()
}

// nodeInfo writes the NodeInfo that a request through p reads.
func (p *port) nodeInfo(data []byte) {
	copy(data, p.node.info[:])
	binary.BigEndian.PutUint64(data[nodeInfoPortGUID.Offset/8:], uint64(p.endPort().guid))
	data[nodeInfoLocalPort.Offset/8] = p.num
}

func (r *request) getSwitchInfo() mad.Status {
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	copy(r.data, r.in.node.sw[:])
	return mad.StatusOK
}

func (r *request) setSwitchInfo() mad.Status {
	n := r.in.node
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	next := n.sw
	applySet(mad.AttrSwitchInfo, next[:], r.data)
	var sw mad.SwitchInfo
	if sw.Decode(next[:]); sw.LinearFDBTop >= sw.LinearFDBCap {
		copy(r.data, n.sw[:])
		return mad.StatusBadValue
	}
	n.sw, n.fdbTop = next, mad.LID(sw.LinearFDBTop)
	return r.getSwitchInfo()
}

// getLFT reads a block of the linear forwarding table.
func (r *request) getLFT() mad.Status {
	if r.Modifier >= linearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	r.in.node.readLFT(int(r.Modifier)*mad.LFTBlock, r.data)
	return mad.StatusOK
}

// setLFT writes a block of the linear forwarding table.
func (r *request) setLFT() mad.Status {
	n := r.in.node
	if r.Modifier >= linearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	r.tables()
	first := int(r.Modifier) * mad.LFTBlock
	for len(n.lft) < first+mad.LFTBlock {
		n.lft = append(n.lft, mad.NoPort)
	}
	copy(n.lft[first:], r.data)
	return r.getLFT()
}

// readLFT writes the block of entries from first on to data.
func (n *node) readLFT(first int, data []byte) {
	n.subnet.tables()
	rest := data[copy(data, n.lft[min(first, len(n.lft)):]):]
	for i := range rest {
		rest[i] = mad.NoPort
	}
}
