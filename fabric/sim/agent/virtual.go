package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Virtual ports. The public sources do not say how the modifier of VPortInfo has port and
// index; here the index is in the lower half, and the port in the upper one, where 0 is the
// port that the request came in through, as in VNodeInfo and VPortState. No Set is accepted.

// hasVirtual reports whether a node announces virtualization.
func hasVirtual(n *state.Node) bool { return has(n, mad.Capabilities0Virtualization) }

// virtualPort returns the port and the index or block that a modifier names; nil: the port
// does not exist.
func virtualPort(in *state.Port, modifier uint32) (p *state.Port, index int) {
	return in.PortOfModifier(int(modifier >> 16)), int(modifier & 0xffff)
}

// getVirtualization reads VirtualizationInfo; the modifier is the port.
func getVirtualization(in *state.Port, modifier uint32, data []byte) mad.Status {
	p := in.PortOfModifier(int(modifier))
	if p == nil {
		return mad.StatusBadValue
	}
	return encodeAnswer(data, &mad.VirtualizationInfo{VPortCap: state.MaxVirtualPorts, VPortIndexTop: uint16(len(p.Virtual)), VirtualizationEnable: true}, 0)
}

// getVirtualPort reads VPortInfo.
func getVirtualPort(in *state.Port, modifier uint32, data []byte) mad.Status {
	p, index := virtualPort(in, modifier)
	if p == nil || index > len(p.Virtual) {
		return mad.StatusBadValue
	}
	info := mad.VPortInfo{State: p.State, GUIDCap: 1, CapMask: mad.VPortCapabilitiesCM, LIDRequired: true, LID: p.LID, PortGUID: p.GUID}
	if index > 0 {
		v := p.Virtual[index-1]
		info.LIDRequired, info.LID, info.PortGUID = v.LID != 0, v.LID, v.GUID
	}
	return encodeAnswer(data, &info, 0)
}

// getVirtualNode reads VNodeInfo.
func getVirtualNode(in *state.Port, modifier uint32, data []byte) mad.Status {
	p, index := virtualPort(in, modifier)
	if p == nil || index > len(p.Virtual) {
		return mad.StatusBadValue
	}
	info := mad.VNodeInfo{PartitionCap: mad.PKeyBlock, LocalPortNum: 1, NumPorts: 1, VNodeGUID: p.Node.GUID()}
	if index > 0 {
		info.VNodeGUID = p.Virtual[index-1].Node
	}
	return encodeAnswer(data, &info, 0)
}

// getVirtualStates reads a block of VPortState.
func getVirtualStates(in *state.Port, modifier uint32, data []byte) mad.Status {
	p, block := virtualPort(in, modifier)
	var info mad.VPortState
	if p == nil || block > len(p.Virtual)/len(info.State) {
		return mad.StatusBadValue
	}
	for i := range info.State {
		if block*len(info.State)+i <= len(p.Virtual) {
			info.State[i] = p.State
		}
	}
	return encodeAnswer(data, &info, 0)
}
