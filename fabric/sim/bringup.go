package sim

import (
	"bytes"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// bringUp returns a subnet with f's topology, in the state after a subnet manager has brought it
// up, except with Options.Bare: each end port has a LID (its LID in f, if it is valid and
// unique), each cable is an active link, and each switch has forwarding tables to all LIDs.
func bringUp(f *fabric.Fabric, o *spec.SubnetOptions) *state.Subnet {
	s := addNodes(f)
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			s.PortOf(p).Peer = s.PortOf(p.Peer())
		}
	}
	markFNM(s, f)
	for _, p := range o.Dead {
		s.PortOf(p).Dead = true
	}
	if !o.Bare {
		if !o.NoSM {
			s.SM = chooseSM(s, o.SM)
		}
		assignLIDs(s, f, o.LMC)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		s.PortOf(p).FDR10 = p.Speed() == "fdr10"
		bringUpPort(s.PortOf(p), p.Info(), s, o)
	}
	if o.VirtualPorts > 0 {
		s.AddVirtualPorts(o.VirtualPorts)
	}
	if s.HasPlanes {
		s.AnnouncePortInfo()
	}
	if o.Adaptive == nil && !o.Bare && f.HasAdaptive() {
		s.SetUpAdaptive(&state.AdaptiveSettings{AdaptiveOptions: state.AdaptiveOptions{Engine: state.LFTEngines[0]}}, true)
	}
	if o.Adaptive != nil {
		s.SetUpAdaptive(o.Adaptive, !o.Bare)
		for _, f := range o.AdaptiveFaults {
			_ = s.Nodes[f.Node.ID()].Break(f.Fault) // which waits for the tables
		}
	}
	if o.Engines != nil && !o.Bare {
		s.Router = &openSM{engines: o.Engines}
	}
	if !o.Bare {
		s.InvalidateTables()
		twinTables(s, f)
		if o.Adaptive == nil {
			twinAdaptive(s, f)
		}
	}
	if o.Registers {
		s.GiveRegisters()
		for _, f := range o.RegisterFaults {
			s.Nodes[f.Node.ID()].Hardware.Break(f.Fault, f.Num) // options has refused faults that fail
		}
	}
	for _, r := range o.Redirects {
		n, at := &s.Nodes[r.Node.ID()], &s.Nodes[r.At.ID()]
		n.RedirectTo, at.RedirectedHere = at, n
	}
	for _, e := range o.Errors {
		s.PortOf(e.Port).Grow(state.CounterKey{Name: "SymbolErrorCounter", Element: 0}, e.Rate, false, s.Now())
	}
	return s
}

func addNodes(f *fabric.Fabric) *state.Subnet {
	total := 0
	for i := range f.Nodes() {
		total += f.Nodes()[i].NumPorts() + 1
	}
	s := state.New(len(f.Nodes()), total)
	rest := s.Ports
	for i := range s.Nodes {
		n, from := &s.Nodes[i], &f.Nodes()[i]
		n.Subnet = s
		n.Origin = from.GUID()
		n.Label, n.IsSwitch, n.Kind = from.Label(), from.IsSwitch(), from.Kind()
		count := from.NumPorts() + 1
		n.Ports, rest = rest[:count:count], rest[count:]
		for num := range n.Ports {
			p := &n.Ports[num]
			p.Node, p.Num = n, uint8(num)
			if known := from.Port(num); known != nil {
				p.GUID = known.GUID()
			}
			if p.GUID == 0 && num > 0 && !n.IsSwitch {
				p.GUID = from.GUID() + mad.GUID(num)
			}
		}
		info := *from.Info()
		info.BaseVersion, info.ClassVersion = 1, 1
		info.PartitionCap = max(info.PartitionCap, mad.PKeyBlock)
		info.Encode(n.Info[:])
		copy(n.Description[:], from.Name())
		if n.IsSwitch {
			sw := mad.SwitchInfo{
				LinearFDBCap: state.LinearCap, MulticastFDBCap: state.MulticastCap, LifeTimeValue: state.LifeTime,
				MulticastFDBTop:             uint16(state.FirstMLID - 1), // no entry
				DefaultMulticastPrimaryPort: mad.NoPort, DefaultMulticastNotPrimaryPort: mad.NoPort,
				PartitionEnforcementCap: mad.PKeyBlock, InboundEnforcementCap: true, OutboundEnforcementCap: true,
				EnhancedPort0: from.SwitchInfo() != nil && from.SwitchInfo().EnhancedPort0,
			}
			if known := from.SwitchInfo(); known != nil && known.LinearFDBCap != 0 {
				sw = *known
				sw.LinearFDBCap, sw.LinearFDBTop = min(sw.LinearFDBCap, state.LinearCap), 0
			}
			sw.Encode(n.SwitchInfo[:])
		}
	}
	return s
}

// chooseSM returns the port of the subnet manager: a port of node on, or of the first CA with
// a cable, or of the first switch.
func chooseSM(s *state.Subnet, on *fabric.Node) *state.Port {
	if on != nil {
		p, err := s.Nodes[on.ID()].Attachment(0)
		if err == nil {
			return p
		}
	}
	for _, want := range []bool{false, true} {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.IsSwitch == want {
				if p, err := n.Attachment(0); err == nil {
					return p
				}
			}
		}
	}
	return nil
}

// assignLIDs gives each end port a LID: its LID in f, unless a port before has it,
// then the lowest free ones in the order of the nodes, as many as Options.LMC says.
func assignLIDs(s *state.Subnet, f *fabric.Fabric, lmc uint8) {
	var without []*state.Port
	for i := range s.Nodes {
		for _, p := range s.Nodes[i].EndPorts() {
			from := f.Nodes()[i].Port(int(p.Num))
			if from != nil {
				p.LID, p.LMC = from.LID(), uint8(from.LMC())
			}
			if !s.ReserveLIDs(p) {
				p.LID, p.LMC = 0, 0
				without = append(without, p)
			}
		}
	}
	next := map[uint8]int{} // by LMC: the LIDs before are taken
	for _, p := range without {
		if !p.Node.IsSwitch {
			p.LMC = lmc
		}
		count := 1 << p.LMC
		lid := max(count, next[p.LMC])
		for p.LID = mad.LID(lid); lid+count <= len(s.LIDs) && !s.ReserveLIDs(p); p.LID = mad.LID(lid) {
			lid += count
		}
		if lid+count > len(s.LIDs) {
			p.LID, p.LMC = 0, 0 // more ports than LIDs: the last ones have none
		}
		next[p.LMC] = lid
	}
}

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
		info.LinkSpeedActive = mad.LinkSpeed(mad.WordsLinkSpeed.Code()[s])
		info.LinkSpeedExtActive = mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code()[s])
		info.LinkSpeedExtActive2 = mad.LinkSpeedExt2(mad.WordsLinkSpeedExt2.Code()[s])
		if info.LinkSpeedActive == 0 {
			info.LinkSpeedActive = mad.LinkSpeedQDR
		}
	}
	if w := o.Width; w != "" {
		info.LinkWidthActive = mad.LinkWidth(mad.WordsLinkWidth.Code()[w])
		info.LinkWidthSupported = info.LinkWidthActive | mad.LinkWidth1x
	}
	info.LinkSpeedSupported = mad.LinkSpeedSDR | slowerSpeeds(info.LinkSpeedActive)
	info.LinkSpeedExtSupported, info.LinkSpeedExtSupported2 = slowerSpeeds(info.LinkSpeedExtActive), info.LinkSpeedExtActive2
	if info.LinkSpeedExtActive2 != 0 {
		info.LinkSpeedExtSupported = slowerSpeeds(mad.LinkSpeedExtNDR)
	}
	if info.LinkSpeedExtActive2 != 0 {
		info.CapabilityMask2 |= mad.CapabilityMask2IsExtendedSpeeds2Supported | mad.CapabilityMask2IsLinkSpeedXDRSupported
	}
	if info.LinkWidthSupported&mad.LinkWidth2x != 0 {
		info.CapabilityMask2 |= mad.CapabilityMask2IsLinkWidth2xSupported
	}
	if info.LinkSpeedExtSupported != 0 {
		info.LinkSpeedSupported = slowerSpeeds(mad.LinkSpeedQDR)
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
	if isCompletePortInfo(known) && o.Speed == "" && o.Width == "" {
		info = twinPort(p, known, &info)
	}
	p.SetInfo(&info)
}

// slowerSpeeds returns the mask of the fastest speed and all slower ones.
func slowerSpeeds[T ~uint8](fastest T) T {
	set := fastest
	for ; fastest != 0; fastest >>= 1 {
		set |= fastest
	}
	return set
}

// isCompletePortInfo reports whether a PortInfo was read from a port; files of topologies have only
// LIDs, widths and speeds.
func isCompletePortInfo(i *mad.PortInfo) bool {
	return i != nil && i.MTUCap != 0 && i.LinkWidthSupported != 0 && i.VLCap != 0
}

// twinPort returns the PortInfo of a port that was read; own is the PortInfo of a new port.
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

// A fabric that was read with its settings, tables and counters, such as a snapshot, is
// brought up with them. Snapshots contain no keys; the subnet manager is this subnet's own, and
// the subnet prefix is the default one.

// twinTables takes over the tables and counters that came with f.
func twinTables(s *state.Subnet, f *fabric.Fabric) {
	if f.HasLFTs() {
		s.EnsureTables()
	}
	for i := range s.Nodes {
		n, from := &s.Nodes[i], &f.Nodes()[i]
		if lft := from.LFT(); n.IsSwitch && lft != nil {
			lft = lft[:min(len(lft), state.LinearCap)]
			n.LFT = bytes.Clone(lft)
			n.SetTop(mad.LID(max(len(lft), 1) - 1))
			// Without LinearFDBCap, SwitchInfo is of a file that lacks most of it.
			if sw := from.SwitchInfo(); sw != nil && (sw.LinearFDBCap != 0 || sw.LinearFDBTop != 0) {
				n.SetTop(mad.LID(min(int(sw.LinearFDBTop), state.LinearCap-1)))
			}
		}
		for _, a := range f.AnswersOf(i) {
			twinAnswer(s, n, &a)
		}
	}
}

// twinAdaptive takes over the adaptive routing that came with f, where it is known.
func twinAdaptive(s *state.Subnet, f *fabric.Fabric) {
	if s.Adaptive == nil {
		return
	}
	s.EnsureTables()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch a := f.Nodes()[i].Adaptive(); {
		case n.Capabilities.CapMask0&mad.Capabilities0AR == 0:
		case a == nil:
			n.Adaptive.SetFrom(&adaptive.Switch{})
		case a.Unknown == "":
			n.Adaptive.SetFrom(a)
		}
	}
}

// markFNM marks the ports for the management of the network.
func markFNM(s *state.Subnet, f *fabric.Fabric) {
	for _, a := range f.Answers() {
		if a.Class != mad.ClassSubn || a.ID != mad.AttrExtendedPortInfo.ID || a.Node < 0 || len(a.Data) <= fnmByte || a.Data[fnmByte]&0x80 == 0 {
			continue
		}
		if n := &s.Nodes[a.Node]; a.Port > 0 && int(a.Port) < len(n.Ports) {
			n.Ports[a.Port].FNM, s.HasPlanes = true, true
		}
	}
}

const fnmByte = 352 / 8 // ExtendedPortInfo.IsFNMPort

// twinAnswer takes over what an agent of n answered.
func twinAnswer(s *state.Subnet, n *state.Node, a *fabric.Answer) {
	if len(a.Data) == 0 { // it gave none
		return
	}
	at := &n.Ports[0]
	if !n.IsSwitch {
		ports := n.EndPorts()
		if len(ports) == 0 {
			return
		}
		at = ports[0]
	}
	if int(a.Port) > 0 && int(a.Port) < len(n.Ports) {
		at = &n.Ports[a.Port]
	}
	switch a.Class {
	case mad.ClassSubn:
		for _, t := range []*state.BlockTable{state.GUIDBlocks, state.PKeyBlocks, state.SL2VLBlocks, state.VLArbBlocks, state.MFTBlocks} {
			if t.Attr.ID != a.ID || t == state.MFTBlocks && !n.IsSwitch {
				continue
			}
			if p, block, ok := t.Locate(at, a.Modifier); ok {
				s.WriteBlock(t, p, block, a.Data[:min(len(a.Data), t.Attr.Size)])
			}
		}
	case mad.ClassPerf:
		for _, c := range state.CounterViews()[mad.Lookup(a.Class, a.ID)] {
			for e := range c.Count {
				key := state.CounterKey{Name: c.Name, Element: e}
				if v := c.UintAt(a.Data, e); a.Port >= 0 && v > at.Counters.Value(key, s.Now()) {
					at.Counters.Set(key, v)
				}
			}
		}
	}
}
