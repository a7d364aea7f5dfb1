package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

func (r *smaRequest) getPortInfo() mad.Status {
	p := r.portOfPortInfo()
	if p == nil {
		return mad.StatusBadValue
	}
	r.readPortInfo(p)
	return mad.StatusOK
}

func (r *smaRequest) setPortInfo() mad.Status {
	p := r.portOfPortInfo()
	if p == nil {
		return mad.StatusBadValue
	}
	before := p.State
	status := r.applyPortInfo(p)
	r.readPortInfo(p)
	// The answer is complete: it does not show what the sweep changes.
	if now := p.State; before != now && (min(before, now) == mad.PortStateDown || now == mad.PortStateInitialize) {
		r.SM.LinksChanged(p, p.Peer)
	}
	return status
}

// portOfPortInfo returns the port that the modifier names, or nil. The modifier's top
// bit means that the requester supports the extended speeds; agents show them in any
// case.
func (r *smaRequest) portOfPortInfo() *state.Port {
	const extendedSpeeds = 1 << 31
	return r.In.PortOfModifier(int(r.Modifier &^ extendedSpeeds))
}

// readPortInfo writes p's PortInfo to the answer.
func (r *smaRequest) readPortInfo(p *state.Port) {
	copy(r.Data, p.Info[:])
	portInfoLocalPort.SetUint(r.Data, uint64(r.In.Num))
	if r.HideKey {
		portInfoKey.SetUint(r.Data, 0)
	}
	if leaseOver(r.Subnet, p) {
		portInfoProtect.SetUint(r.Data, 0)
	}
}

// applyPortInfo applies a Set completely or, if a part is invalid, not at all (IBA
// 14.2.5.6).
func (r *smaRequest) applyPortInfo(p *state.Port) mad.Status {
	var next, asked mad.PortInfo
	old := p.PortInfo()
	asked.Decode(r.Data)
	image := p.Info
	applySet(mad.AttrPortInfo, image[:], r.Data)
	next.Decode(image[:])
	next.PortState, next.PortPhysicalState = old.PortState, old.PortPhysicalState
	if asked.OperationalVLs == 0 { // no change
		next.OperationalVLs = old.OperationalVLs
	}
	if p != p.EndPort() { // fields of end ports only
		next.MKey, next.MKeyProtectBits, next.MKeyLeasePeriod = old.MKey, old.MKeyProtectBits, old.MKeyLeasePeriod
		next.GIDPrefix, next.LID, next.LMC = old.GIDPrefix, old.LID, old.LMC
		next.MasterSMLID, next.MasterSMSL, next.SubnetTimeOut = old.MasterSMLID, old.MasterSMSL, old.SubnetTimeOut
	} else if next.LID == 0 && old.LID != 0 || int(next.LID)+1<<next.LMC-1 > int(mad.MaxUnicastLID) || next.MasterSMLID > mad.MaxUnicastLID {
		return mad.StatusBadValue
	}
	enableSupported(&next)
	switch {
	case next.LinkWidthEnabled&^next.LinkWidthSupported != 0,
		next.LinkSpeedEnabled&^next.LinkSpeedSupported != 0,
		next.LinkSpeedExtEnabled != mad.LinkSpeedExtDisabled && next.LinkSpeedExtEnabled&^next.LinkSpeedExtSupported != 0,
		next.LinkSpeedExtEnabled2&^next.LinkSpeedExtSupported2 != 0,
		next.NeighborMTU == 0 || next.NeighborMTU > next.MTUCap,
		mad.VLs(next.OperationalVLs) > next.VLCap,
		next.LinkDownDefaultState > mad.LinkDownDefaultStatePolling,
		asked.PortPhysicalState > mad.PortPhysicalStateDisabled,
		p.Num == 0 && asked.PortPhysicalState != 0:
		return mad.StatusBadValue
	}
	switch asked.PortState {
	case mad.PortStateNoChange, mad.PortStateDown:
	case mad.PortStateArmed:
		if old.PortState != mad.PortStateInitialize && old.PortState != mad.PortStateArmed {
			return mad.StatusBadValue
		}
		next.PortState = asked.PortState
	case mad.PortStateActive:
		if old.PortState != mad.PortStateArmed && old.PortState != mad.PortStateActive {
			return mad.StatusBadValue
		}
		next.PortState = asked.PortState
	default:
		return mad.StatusBadValue
	}

	r.Subnet.SetLID(p, next.LID, next.LMC)
	p.SetInfo(&next)
	switch {
	case p.Num == 0:
	case asked.PortPhysicalState != 0:
		p.LinkDown(asked.PortPhysicalState)
	case asked.PortState == mad.PortStateDown:
		p.LinkDown(mad.PortPhysicalState(next.LinkDownDefaultState))
	}
	return 0
}

// enableSupported replaces values that stand for all that is supported.
func enableSupported(i *mad.PortInfo) {
	if i.LinkWidthEnabled == mad.LinkWidthSupported {
		i.LinkWidthEnabled = i.LinkWidthSupported
	}
	if i.LinkSpeedEnabled == mad.LinkSpeedSupported {
		i.LinkSpeedEnabled = i.LinkSpeedSupported
	}
	if i.LinkSpeedExtEnabled == mad.LinkSpeedExtSupported {
		i.LinkSpeedExtEnabled = i.LinkSpeedExtSupported
	}
}

var (
	portInfoLocalPort = mad.AttrPortInfo.Field("local_port_num")
	portInfoKey       = mad.AttrPortInfo.Field("m_key")
	portInfoProtect   = mad.AttrPortInfo.Field("m_key_protect_bits")
)
