package sim

import (
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// bringUpPort writes p's PortInfo, with the width and speed of known, if it has any.
func bringUpPort(p *state.Port, known *mad.PortInfo, s *state.Subnet, o *spec.SubnetOptions) {
	info := mad.PortInfo{
		LocalPortNum:       p.Num,
		LinkWidthSupported: mad.LinkWidth1x | mad.LinkWidth4x, LinkWidthActive: mad.LinkWidth4x,
		LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtHDR,
		LinkDownDefaultState: mad.LinkDownDefaultStatePolling,
		MTUCap:               mad.MTU4096, NeighborMTU: mad.MTU4096,
		VLCap: mad.VLs0To7, OperationalVLs: mad.OperationalVLs0To7,
		VLArbitrationHighCap: state.VLArbCap, VLArbitrationLowCap: state.VLArbCap,
		HOQLife: state.LifeTime, SubnetTimeOut: state.LifeTime, RespTimeValue: state.LifeTime,
		LocalPhyErrors: 8, OverrunErrors: 8, LinkRoundTripLatency: 0xff_ffff,
		CapabilityMask: mad.CapabilityMaskIsTrapSupported | mad.CapabilityMaskIsSLMappingSupported |
			mad.CapabilityMaskIsSystemImageGUIDsupported | mad.CapabilityMaskIsExtendedSpeedsSupported |
			mad.CapabilityMaskIsCapabilityMask2Supported,
		CapabilityMask2: mad.CapabilityMask2IsSetNodeDescriptionSupported | mad.CapabilityMask2IsLinkSpeedHDRSupported,
	}
	if known != nil && known.LinkWidthActive != 0 {
		info.LinkWidthActive, info.LinkWidthSupported = known.LinkWidthActive, known.LinkWidthActive|mad.LinkWidth1x
		info.LinkSpeedActive = known.LinkSpeedActive
		info.LinkSpeedExtActive, info.LinkSpeedExtActive2 = known.LinkSpeedExtActive, known.LinkSpeedExtActive2
	}
	if s := o.Speed; s != "" {
		info.LinkSpeedActive = mad.LinkSpeed(mad.WordsLinkSpeed.Code[s])
		info.LinkSpeedExtActive = mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code[s])
		info.LinkSpeedExtActive2 = mad.LinkSpeedExt2(mad.WordsLinkSpeedExt2.Code[s])
		if info.LinkSpeedActive == 0 {
			info.LinkSpeedActive = mad.LinkSpeedQDR
		}
	}
	if w := o.Width; w != "" {
		info.LinkWidthActive = mad.LinkWidth(mad.WordsLinkWidth.Code[w])
		info.LinkWidthSupported = info.LinkWidthActive | mad.LinkWidth1x
	}
	info.LinkSpeedSupported = mad.LinkSpeedSDR | andSlower(info.LinkSpeedActive)
	info.LinkSpeedExtSupported, info.LinkSpeedExtSupported2 = andSlower(info.LinkSpeedExtActive), info.LinkSpeedExtActive2
	if info.LinkSpeedExtActive2 != 0 {
		info.LinkSpeedExtSupported = andSlower(mad.LinkSpeedExtNDR)
	}
	if info.LinkSpeedExtActive2 != 0 {
		info.CapabilityMask2 |= mad.CapabilityMask2IsExtendedSpeeds2Supported | mad.CapabilityMask2IsLinkSpeedXDRSupported
	}
	if info.LinkWidthSupported&mad.LinkWidth2x != 0 {
		info.CapabilityMask2 |= mad.CapabilityMask2IsLinkWidth2xSupported
	}
	if info.LinkSpeedExtSupported != 0 {
		info.LinkSpeedSupported = andSlower(mad.LinkSpeedQDR)
	}
	if info.LinkSpeedExtSupported&mad.LinkSpeedExtNDR != 0 {
		info.CapabilityMask2 |= mad.CapabilityMask2IsLinkSpeedNDRSupported
	}
	info.LinkWidthEnabled, info.LinkSpeedEnabled = info.LinkWidthSupported, info.LinkSpeedSupported
	info.LinkSpeedExtEnabled, info.LinkSpeedExtEnabled2 = info.LinkSpeedExtSupported, info.LinkSpeedExtSupported2

	info.PortState, info.PortPhysicalState = mad.PortStateActive, mad.PortPhysicalStateLinkUp
	p.Up = p.Peer != nil
	if o.Bare && p.Num > 0 {
		info.PortState = mad.PortStateInitialize
	}
	if p.Num > 0 && !p.Up {
		info.PortState, info.PortPhysicalState = mad.PortStateDown, mad.PortPhysicalStatePolling
		info.LinkSpeedActive, info.LinkSpeedExtActive, info.LinkSpeedExtActive2 = mad.LinkSpeedSDR, 0, 0
	}
	if p == p.EndPort() {
		info.GIDPrefix, info.LID, info.LMC, info.GUIDCap = state.GIDPrefix, p.LID, p.LMC, state.GUIDCap
		info.CapabilityMask |= mad.CapabilityMaskIsLEDInfoSupported | mad.CapabilityMaskIsNoticeSupported | mad.CapabilityMaskIsDRNoticeSupported
		if s.SM != nil {
			info.MasterSMLID = s.SM.LID
		}
		if o.MKey != 0 {
			info.MKey, info.MKeyProtectBits = o.MKey, o.MKeyLevel
		}
		if p.Node.IsSwitch {
			info.CapabilityMask |= mad.CapabilityMaskIsMulticastFDBTopSupported
		} else {
			info.CapabilityMask |= mad.CapabilityMaskIsAutomaticMigrationSupported |
				mad.CapabilityMaskIsCommunicationManagementSupported | mad.CapabilityMaskIsClientReregistrationSupported
		}
	}
	if p == s.SM {
		info.CapabilityMask |= mad.CapabilityMaskIsSM
	}
	if isWhole(known) && o.Speed == "" && o.Width == "" {
		info = twinPort(p, known, &info)
	}
	p.SetInfo(&info)
}

// andSlower returns the mask of the fastest speed and all slower ones.
func andSlower[T ~uint8](fastest T) T {
	set := fastest
	for ; fastest != 0; fastest >>= 1 {
		set |= fastest
	}
	return set
}

// isWhole reports whether a PortInfo was read from a port; files of topologies have only
// LIDs, widths and speeds.
func isWhole(i *mad.PortInfo) bool {
	return i != nil && i.MTUCap != 0 && i.LinkWidthSupported != 0 && i.VLCap != 0
}

// twinPort returns the PortInfo of a port that was read; own is that of a new port.
func twinPort(p *state.Port, known, own *mad.PortInfo) mad.PortInfo {
	info := *known
	info.LocalPortNum, info.MKey, info.MKeyProtectBits = own.LocalPortNum, own.MKey, own.MKeyProtectBits
	info.GIDPrefix, info.LID, info.LMC, info.MasterSMLID = own.GIDPrefix, own.LID, own.LMC, own.MasterSMLID
	info.CapabilityMask = info.CapabilityMask&^mad.CapabilityMaskIsSM | own.CapabilityMask&mad.CapabilityMaskIsSM
	switch up := info.PortState >= mad.PortStateInitialize && info.PortState <= mad.PortStateActive; {
	case !p.Up && p.Num > 0: // no cable
		info.PortState = mad.PortStateDown
		if info.PortPhysicalState == mad.PortPhysicalStateLinkUp {
			info.PortPhysicalState = mad.PortPhysicalStatePolling
		}
	case !up, own.PortState == mad.PortStateInitialize:
		info.PortState, info.PortPhysicalState = own.PortState, own.PortPhysicalState
	default:
		info.PortPhysicalState = mad.PortPhysicalStateLinkUp
	}
	return info
}
