package agent

import (
	"encoding/binary"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// smaRequest is a Get or Set at an agent of subnet management, and what the agent may read and
// change.
type smaRequest struct {
	Subnet   *state.Subnet
	SM       *Manager
	Notices  *state.Notices
	In       *state.Port // that the request came in through
	Modifier uint32
	Data     []byte // the attribute; afterwards of the answer
	HideKey  bool   // the requester does not know the M_Key, and may not read it
}

// smaHandlers are the attributes of subnet management (IBA 14.2.5).
var smaHandlers = handlerTable[*smaRequest]{
	{Attr: mad.AttrNodeDescription, Get: (*smaRequest).getNodeDescription, Set: (*smaRequest).setNodeDescription},
	{Attr: mad.AttrNodeInfo, Get: (*smaRequest).getNodeInfo},
	{Attr: mad.AttrPortInfo, Get: (*smaRequest).getPortInfo, Set: (*smaRequest).setPortInfo},
	{Attr: mad.AttrSMInfo, On: onSM, Get: (*smaRequest).getSMInfo, Set: (*smaRequest).setSMInfo},
	{Attr: mad.AttrSwitchInfo, On: onSwitch, Get: (*smaRequest).getSwitchInfo, Set: (*smaRequest).setSwitchInfo},
	{Attr: mad.AttrLinearForwardingTable, On: onSwitch, Get: (*smaRequest).getLFT, Set: (*smaRequest).setLFT},
	{Attr: mad.AttrSLtoVLMappingTable, Get: getBlock(state.SL2VLBlocks), Set: (*smaRequest).setSL2VL},
	{Attr: mad.AttrMulticastForwardingTable, On: onSwitch, Get: getBlock(state.MFTBlocks), Set: setBlock(state.MFTBlocks)},
	{Attr: mad.AttrGUIDInfo, Get: getBlock(state.GUIDBlocks), Set: setBlock(state.GUIDBlocks)},
	{Attr: mad.AttrPKeyTable, Get: getBlock(state.PKeyBlocks), Set: setBlock(state.PKeyBlocks)},
	{Attr: mad.AttrVLArbitrationTable, Get: getBlock(state.VLArbBlocks), Set: setBlock(state.VLArbBlocks)},
	{Attr: mad.AttrMlnxAccessRegister, On: func(r *smaRequest) bool { return hasRegisters(r.In.Node) }, Get: (*smaRequest).getRegister},
	{Attr: mad.AttrExtendedPortInfo, On: func(r *smaRequest) bool { return hasExtendedPortInfo(r.In.Node) }, Get: (*smaRequest).getExtPortInfo, Set: (*smaRequest).setExtPortInfo},
	{Attr: mad.AttrAdaptiveRoutingLFT, On: onVendor(hasAdaptive), Get: getVendor(GetAdaptiveLFT)},
	{Attr: mad.AttrAdaptiveRoutingGroupTable, On: onVendor(hasAdaptive), Get: getVendor(getGroups)},
	{Attr: mad.AttrAdaptiveRoutingInfo, On: onVendor(hasAdaptive), Get: getVendor(getAdaptiveInfo)},
	{Attr: mad.AttrGeneralInfo, On: onVendor(hasGeneralInfo), Get: getVendor(getGeneralInfo)},
	{Attr: mad.AttrExtendedNodeInfo, On: onVendor(hasExtendedNodeInfo), Get: getVendor(getExtendedNodeInfo)},
	{Attr: mad.AttrVirtualizationInfo, On: onVendor(hasVirtualization), Get: getVirtual(getVirtualization)},
	{Attr: mad.AttrVPortInfo, On: onVendor(hasVirtualization), Get: getVirtual(getVirtualPort)},
	{Attr: mad.AttrVNodeInfo, On: onVendor(hasVirtualization), Get: getVirtual(getVirtualNode)},
	{Attr: mad.AttrVPortState, On: onVendor(hasVirtualization), Get: getVirtual(getVirtualStates)},
	{Attr: mad.AttrPrivateLFTInfo, On: onVendor(hasPrivate), Get: getVendor(getPrivateInfo)},
	{Attr: mad.AttrPrivateLFTDef, On: onVendor(hasPrivate), Get: getVendor(getPrivateDef)},
	{Attr: mad.AttrPrivateLFTMap, On: onVendor(hasPrivate), Get: getVendor(getPrivateMap)},
	{Attr: mad.AttrPortSLToPrivateLFTMap, On: onVendor(hasPortSL), Get: getVendor(getPortSL)},
	{Attr: mad.AttrHBFConfig, On: onVendor(hasAdaptive), Get: getVendor(getHBF)},
	{Attr: mad.AttrWeightedHBFConfig, On: onVendor(hasAdaptive), Get: getVendor(getWHBF)},
	{Attr: mad.AttrPFRNConfig, On: onVendor(hasAdaptive), Get: getVendor(getPFRN)},
	{Attr: mad.AttrRNSubGroupDirectionTable, On: onVendor(hasAdaptive), Get: getVendor(getSubGroupDirections)},
	{Attr: mad.AttrRNGenStringTable, On: onVendor(hasAdaptive), Get: getVendor(getGenStrings)},
	{Attr: mad.AttrRNRcvString, On: onVendor(hasAdaptive), Get: getVendor(getRcvStrings)},
	{Attr: mad.AttrRNXmitPortMask, On: onVendor(hasAdaptive), Get: getVendor(getXmitPorts)},
	{Attr: mad.AttrRNGenBySubGroupPriority, On: onVendor(hasAdaptive), Get: getVendor(getPriorities)},
	{Attr: mad.AttrSubnNotice, Get: (*smaRequest).getNotice, Set: (*smaRequest).setNotice},
	{Attr: mad.AttrLedInfo, Get: (*smaRequest).getLight, Set: (*smaRequest).setLight},
}

// The nodes that have an attribute.
func onSwitch(r *smaRequest) bool { return r.In.Node.IsSwitch }

func onVendor(has func(*state.Node) bool) func(r *smaRequest) bool {
	return func(r *smaRequest) bool { return has(r.In.Node) }
}

// getVirtual returns the Get of an attribute of virtual ports.
func getVirtual(get func(in *state.Port, modifier uint32, data []byte) mad.Status) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status { return get(r.In, r.Modifier, r.Data) }
}

// getVendor returns the Get of an attribute of the vendor.
func getVendor(get func(n *state.Node, modifier uint32, data []byte) mad.Status) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status { return get(r.In.Node, r.Modifier, r.Data) }
}

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

// getRegister reads a register of the vendor.
func (r *smaRequest) getRegister() mad.Status {
	return getRegisterBySMP(r.In.Node, r.Subnet.Uptime(), r.Data)
}

func (r *smaRequest) getExtPortInfo() mad.Status {
	return getExtendedPortInfo(r.In.PortOfModifier(int(r.Modifier)), r.Data)
}

func (r *smaRequest) setExtPortInfo() mad.Status {
	return setExtendedPortInfo(r.In.PortOfModifier(int(r.Modifier)), r.Data)
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

// getBlock returns the Get of a table in blocks.
func getBlock(t *state.BlockTable) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status {
		p, block, ok := t.Locate(r.In, r.Modifier)
		if !ok {
			return mad.StatusBadValue
		}
		r.Subnet.ReadBlock(t, p, block, r.Data)
		return mad.StatusOK
	}
}

// setBlock returns the Set of a table in blocks.
func setBlock(t *state.BlockTable) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status {
		p, block, ok := t.Locate(r.In, r.Modifier)
		if !ok {
			return mad.StatusBadValue
		}
		r.Subnet.WriteBlock(t, p, block, r.Data)
		r.Subnet.ReadBlock(t, p, block, r.Data)
		return mad.StatusOK
	}
}

// Bits of SLtoVLMappingTable's modifier that mean all ports of a switch (IBA
// 14.2.5.8; opensm opensm/osm_qos.c qos_extports_setup).
const (
	allOutPorts = 1 << 16
	allInPorts  = 1 << 17
)

// setSL2VL sets the mapping of one pair of ports, or with optimized programming
// the mappings of several, where SwitchInfo says that the switch supports it.
func (r *smaRequest) setSL2VL() mad.Status {
	n, mod := r.In.Node, int(r.Modifier)
	if !n.IsSwitch || mod&(allInPorts|allOutPorts) == 0 {
		return setBlock(state.SL2VLBlocks)(r)
	}
	in, out := mod>>8&0xff, mod&0xff
	if switchInfoOptimized.Uint(n.SwitchInfo[:])&1 == 0 || mod>>18 != 0 || in >= len(n.Ports) || out >= len(n.Ports) {
		return mad.StatusBadValue
	}
	for i := range n.Ports {
		for o := range n.Ports {
			if (mod&allInPorts != 0 || i == in) && (mod&allOutPorts != 0 || o == out) {
				r.Subnet.WriteBlock(state.SL2VLBlocks, r.In.EndPort(), uint32(i<<8|o), r.Data)
			}
		}
	}
	return mad.StatusOK
}

// getLFT reads a block of the linear forwarding table.
func (r *smaRequest) getLFT() mad.Status {
	if r.Modifier >= state.LinearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	r.In.Node.ReadLFT(int(r.Modifier)*mad.LFTBlock, r.Data)
	return mad.StatusOK
}

// setLFT writes a block of the linear forwarding table.
func (r *smaRequest) setLFT() mad.Status {
	n := r.In.Node
	if r.Modifier >= state.LinearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	r.Subnet.EnsureTables()
	n.DisableAdaptive()
	first := int(r.Modifier) * mad.LFTBlock
	for len(n.LFT) < first+mad.LFTBlock {
		n.LFT = append(n.LFT, mad.NoPort)
	}
	copy(n.LFT[first:], r.Data)
	return r.getLFT()
}

var switchInfoOptimized = mad.AttrSwitchInfo.Field("optimized_sl_to_vl_mapping_programming")

// getNotice reads the latest notice, whether or not its trap was received.
func (r *smaRequest) getNotice() mad.Status {
	kept := r.Notices.StoredNotice(r.In.EndPort())
	var data [state.NoticeSize]byte
	kept.Encode(data[:])
	copy(r.Data, data[:])
	return checkModifier(r.Modifier)
}

// setNotice clears the notice that has the toggle of the request.
func (r *smaRequest) setNotice() mad.Status {
	if r.Modifier == 0 {
		r.Notices.Clear(r.In.EndPort(), noticeToggle.Uint(r.Data) != 0)
	}
	return r.getNotice()
}

var noticeToggle = mad.AttrSubnNotice.Field("notice_toggle")

var (
	portInfoViolations = mad.AttrPortInfo.Field("m_key_violations")
	portInfoLease      = mad.AttrPortInfo.Field("m_key_lease_period")
)

// mkeyAccess is what the M_Key of an SMP permits.
type mkeyAccess struct {
	Denied   bool // the M_Key is wrong: there is no answer
	HideKey  bool // the requester may not read the M_Key
	EndLease bool // the M_Key is right, and its lease was running out
}

// checkMKey returns what an SMP with a key is permitted at an end port: its M_Key is
// right, or the port's protection level allows the method without it (IBA 14.2.4).
func checkMKey(s *state.Subnet, p *state.Port, m mad.Method, key uint64) mkeyAccess {
	if p.MKey == 0 || key == p.MKey {
		return mkeyAccess{EndLease: !p.LeaseEnd.IsZero()}
	}
	level := p.KeyLevel
	if leaseOver(s, p) {
		level = 0
	}
	return mkeyAccess{Denied: m != mad.MethodGet || level >= 2, HideKey: level > 0}
}

// leaseOver reports whether the lease of p's M_Key has expired, so that every requester
// may read it (IBA 14.2.4.2).
func leaseOver(s *state.Subnet, p *state.Port) bool {
	return !p.LeaseEnd.IsZero() && !s.Now().Before(p.LeaseEnd)
}

// checkedSMP is an SMP whose M_Key was checked.
type checkedSMP struct {
	Header mad.Header
	MAD    []byte
	LID    mad.LID // that it was sent to
	From   *state.Port
}

// afterMKey updates the lease of an end port's M_Key: a wrong M_Key starts it, and a
// right one, while the lease runs, ends it. It needs the lock for changes.
func afterMKey(s *state.Subnet, n *state.Notices, end *state.Port, a mkeyAccess, m checkedSMP) {
	if leaseOver(s, end) { // PortInfo then shows it
		end.ChangeInfo(func(info *mad.PortInfo) { info.MKeyProtectBits = 0 })
		end.LeaseEnd = time.Time{}
	}
	if a.EndLease {
		end.LeaseEnd = time.Time{}
		return
	}
	end.CountViolation(portInfoViolations)
	if lease := portInfoLease.Uint(end.Info[:]); lease > 0 && end.LeaseEnd.IsZero() && end.KeyLevel > 0 {
		end.LeaseEnd = s.Now().Add(time.Duration(lease) * time.Second)
	}
	details := m.notice()
	n.Trap(end, mad.NoticeTypeSecurity, 256, &details)
}

// notice returns trap 256 for an SMP with a wrong M_Key.
func (m *checkedSMP) notice() mad.NoticeBadMKey {
	r := m.Header
	details := mad.NoticeBadMKey{
		Method: uint8(r.Method), AttributeID: uint16(r.Attribute), AttributeModifier: r.Modifier,
		MKey: binary.BigEndian.Uint64(m.MAD[mad.SMPKeyOffset:]),
	}
	if r.Class == mad.ClassSubnDirected {
		hops := int(m.MAD[mad.HopCountOffset])
		details.DrSLID, _ = state.DRLIDs(m.MAD)
		details.DRNotice, details.DRPathTruncated = true, hops > len(details.DRNoticeReturnPath)
		details.LIDAddr = mad.PermissiveLID
		if m.LID != mad.PermissiveLID {
			details.LIDAddr = m.From.EndPort().LID
		}
		path := m.MAD[mad.SMPReturnPathOffset+1:][:min(hops, len(details.DRNoticeReturnPath))]
		details.DRHopCount = uint8(copy(details.DRNoticeReturnPath[:], path))
	} else {
		details.LIDAddr = m.From.EndPort().LID
	}
	return details
}
