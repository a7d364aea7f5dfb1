package agent

import (
	"fabsh/mad"
)

func (r *smaRequest) getNodeDescription() mad.Status {
	copy(r.Data, r.In.Node.Description[:])
	return checkModifier(r.Modifier)
}

func (r *smaRequest) setNodeDescription() mad.Status {
	if r.Modifier != 0 {
		copy(r.Data, r.In.Node.Description[:])
		return mad.StatusBadValue
	}
	copy(r.In.Node.Description[:], r.Data)
	return mad.StatusOK
}

func (r *smaRequest) getNodeInfo() mad.Status {
	r.In.ReadNodeInfo(r.Data)
	return checkModifier(r.Modifier)
}

func (r *smaRequest) getSwitchInfo() mad.Status {
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	copy(r.Data, r.In.Node.SwitchInfo[:])
	return mad.StatusOK
}

func (r *smaRequest) setSwitchInfo() mad.Status {
	n := r.In.Node
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	next := n.SwitchInfo
	applySet(mad.AttrSwitchInfo, next[:], r.Data)
	var sw mad.SwitchInfo
	if sw.Decode(next[:]); sw.LinearFDBTop >= sw.LinearFDBCap {
		copy(r.Data, n.SwitchInfo[:])
		return mad.StatusBadValue
	}
	n.SwitchInfo, n.FDBTop = next, mad.LID(sw.LinearFDBTop)
	return r.getSwitchInfo()
}

// getLight reads whether the light of a port is on.
func (r *smaRequest) getLight() mad.Status {
	p := r.In.PortOfModifier(int(r.Modifier))
	clear(r.Data)
	if p == nil {
		return mad.StatusBadValue
	}
	return encodeAnswer(r.Data, &mad.LedInfo{LedMask: p.Light}, 0)
}

func (r *smaRequest) setLight() mad.Status {
	if p := r.In.PortOfModifier(int(r.Modifier)); p != nil {
		var info mad.LedInfo
		info.Decode(r.Data)
		p.Light = info.LedMask
	}
	return r.getLight()
}

// The vendor's attributes of a node.

func (r *smaRequest) getRegister() mad.Status {
	return getRegisterBySMP(r.In.Node, r.Subnet.Uptime(), r.Data)
}

func (r *smaRequest) getExtPortInfo() mad.Status {
	return getExtPortInfo(r.In.PortOfModifier(int(r.Modifier)), r.Data)
}

func (r *smaRequest) setExtPortInfo() mad.Status {
	return setExtPortInfo(r.In.PortOfModifier(int(r.Modifier)), r.Data)
}

// onSM reports whether the request came to the port of a subnet manager.
func onSM(r *smaRequest) bool { return r.SM.RunsAt(r.In.EndPort()) }

func (r *smaRequest) getSMInfo() mad.Status {
	info := r.SM.InfoAt(r.In.EndPort(), !r.HideKey)
	return encodeAnswer(r.Data, &info, r.Modifier)
}

// setSMInfo passes the request of another subnet manager to the subnet manager of the
// port. The answer contains the state before it.
func (r *smaRequest) setSMInfo() mad.Status {
	var asker mad.SMInfo
	asker.Decode(r.Data)
	info := r.SM.InfoAt(r.In.EndPort(), !r.HideKey)
	encodeAnswer(r.Data, &info, 0)
	if !r.SM.Transition(r.In.EndPort(), r.Modifier, asker.SMState) {
		return mad.StatusBadValue
	}
	return mad.StatusOK
}
