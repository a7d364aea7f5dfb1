package vendor

import (
	"fabsh/fabric"
	"fabsh/fabric/sim/agent/handler"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// HasExtPortInfo reports whether a node has Mellanox' ExtendedPortInfo. OpenSM queries
// each node that may have it.
func HasExtPortInfo(n *state.Node) bool {
	info := n.NodeInfo()
	return info.HasExtPortInfo() || has(n, mad.Capabilities0ExtendedPortInfo)
}

// Ports with something special behind them, in ExtendedPortInfo.SpecialPortType.
const aggregationPort = 1

// GetExtPortInfo reads ExtendedPortInfo; nil: the port does not exist.
func GetExtPortInfo(p *state.Port, data []byte) mad.Status {
	if p == nil {
		return mad.StatusBadValue
	}
	var info mad.ExtendedPortInfo
	if p.FDR10 {
		info.LinkSpeedSupported, info.LinkSpeedEnabled = 1, 1
		if p.Up {
			info.LinkSpeedActive = 1
		}
	}
	info.IsFNMPort = p.FNM
	if p.Node.IsSwitch && p.Peer != nil && p.Peer.Node.Kind == fabric.KindAggregation {
		info.IsSpecialPort, info.SpecialPortType = true, aggregationPort
	}
	if has(p.Node, mad.Capabilities0GlobalOutOfOrder) {
		info.OOOSLMask = 0xffff
	}
	return handler.Answer(data, &info, 0)
}

// HasExtendedNodeInfo reports whether a node announces ExtendedNodeInfo.
func HasExtendedNodeInfo(n *state.Node) bool { return has(n, mad.Capabilities0ExtendedNodeInfo) }

// GetExtendedNodeInfo reads ExtendedNodeInfo: the planes of a device.
func GetExtendedNodeInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	info := mad.ExtendedNodeInfo{AsicMaxPlanes: uint8(n.Planes())}
	if !n.IsSwitch && n.Planes() > 1 {
		info.NodeTypeExtended = mad.ExtendedNodeTypeMultiplane
	}
	return handler.Answer(data, &info, modifier)
}

// SetExtPortInfo refuses all changes: links keep their speed.
func SetExtPortInfo(p *state.Port, data []byte) mad.Status {
	var asked, now mad.ExtendedPortInfo
	asked.Decode(data)
	status := GetExtPortInfo(p, data)
	now.Decode(data)
	if status == mad.StatusOK && asked.LinkSpeedEnabled != now.LinkSpeedEnabled {
		return mad.StatusBadValue
	}
	return status
}
