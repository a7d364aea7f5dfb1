package agent

import (
	"fabsh/fabric"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// hasExtPortInfo reports whether a node has Mellanox' ExtendedPortInfo. OpenSM queries
// each node that may have it.
func hasExtPortInfo(n *state.Node) bool {
	info := n.NodeInfo()
	return info.HasExtPortInfo() || has(n, mad.Capabilities0ExtendedPortInfo)
}

// Ports with something special behind them, in ExtendedPortInfo.SpecialPortType.
const aggregationPort = 1

// getExtPortInfo reads ExtendedPortInfo; nil: the port does not exist.
func getExtPortInfo(p *state.Port, data []byte) mad.Status {
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
	return encodeAnswer(data, &info, 0)
}

// hasExtendedNodeInfo reports whether a node announces ExtendedNodeInfo.
func hasExtendedNodeInfo(n *state.Node) bool { return has(n, mad.Capabilities0ExtendedNodeInfo) }

// getExtendedNodeInfo reads ExtendedNodeInfo: the planes of a device.
func getExtendedNodeInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	info := mad.ExtendedNodeInfo{AsicMaxPlanes: uint8(n.Planes())}
	if !n.IsSwitch && n.Planes() > 1 {
		info.NodeTypeExtended = mad.ExtendedNodeTypeMultiplane
	}
	return encodeAnswer(data, &info, modifier)
}

// setExtPortInfo refuses all changes: links keep their speed.
func setExtPortInfo(p *state.Port, data []byte) mad.Status {
	var asked, now mad.ExtendedPortInfo
	asked.Decode(data)
	status := getExtPortInfo(p, data)
	now.Decode(data)
	if status == mad.StatusOK && asked.LinkSpeedEnabled != now.LinkSpeedEnabled {
		return mad.StatusBadValue
	}
	return status
}
