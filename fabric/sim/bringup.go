package sim

import (
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// Limits of the simulated hardware, and settings of the subnet manager.
const (
	gidPrefix    = 0xfe80_0000_0000_0000 // the default subnet prefix (IBA 4.1.1)
	linearCap    = 48 << 10              // entries of a linear forwarding table
	multicastCap = 4 << 10               // entries of a multicast forwarding table
	guidCap      = 8                     // entries of a GUIDInfo table
	vlArbCap     = 8                     // entries of either VL arbitration table
	smPriority   = 14
	lifeTime     = 18 // 4.096 us << 18: 1.07 s
)

// New brings up a subnet with f's topology, but for Options.Bare: each end port has a LID (that of f,
// if it is valid and unique), each cable is an active link, each switch has the
// forwarding tables to all LIDs.
func New(f *fabric.Fabric, o Options) *Subnet {
	s := &Subnet{options: o, blocks: map[blockKey]*[smpSize]byte{}, accepting: map[acceptKey]*conn{}, sweeps: 1, otherSMs: map[*port]mad.SMInfo{}, repeated: map[trapKey]*repeatedTrap{}, lights: map[*port]bool{}, settings: map[blockKey][]byte{}, groups: []*group{broadcastGroup()}}
	s.faults.Store(&faultOptions{Loss: o.Loss, Dup: o.Dup, Busy: o.Busy, Delay: o.Delay, Jitter: o.Jitter, Seed: o.Seed, VL15: o.VL15})
	s.addNodes(f)
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			s.port(p).peer = s.port(p.Peer())
		}
	}
	for _, p := range o.Dead {
		s.port(p).dead = true
	}
	s.lids = make([]*port, mad.MaxUnicastLID+1)
	if !o.Bare {
		s.sm = s.chooseSM(o.SM)
		s.assignLIDs(f)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		s.port(p).fdr10 = p.Speed() == "fdr10"
		s.port(p).bringUp(p.Info(), s)
	}
	if !o.Bare {
		s.fillTables()
	}
	if !o.Bare {
		s.twinTables(f)
	}
	s.addRegisters(&o)
	s.setRedirects()
	s.discover()
	for _, e := range o.Errors {
		s.port(e.Port).grow(counterKey{"SymbolErrorCounter", 0}, e.Rate, false, s.now())
	}
	if o.Traffic > 0 {
		_ = s.SetTraffic(s.HostPairs(o.Traffic)) // the ports are its own, and no more than there are LIDs
	}
	return s
}

func (s *Subnet) port(p *fabric.Port) *port { return &s.nodes[p.Node().ID()].ports[p.Num()] }

func (s *Subnet) addNodes(f *fabric.Fabric) {
	s.nodes = make([]node, len(f.Nodes()))
	total := 0
	for i := range f.Nodes() {
		total += f.Nodes()[i].NumPorts() + 1
	}
	s.ports = make([]port, total)
	rest := s.ports
	for i := range s.nodes {
		n, from := &s.nodes[i], &f.Nodes()[i]
		n.subnet = s
		n.label, n.isSwitch = from.Label(), from.IsSwitch()
		count := from.NumPorts() + 1
		n.ports, rest = rest[:count:count], rest[count:]
		for num := range n.ports {
			p := &n.ports[num]
			p.node, p.num = n, uint8(num)
			if known := from.Port(num); known != nil {
				p.guid = known.GUID()
			}
			if p.guid == 0 && num > 0 && !n.isSwitch {
				p.guid = from.GUID() + mad.GUID(num)
			}
		}
		info := *from.Info()
		info.BaseVersion, info.ClassVersion = 1, 1
		info.PartitionCap = max(info.PartitionCap, mad.PKeyBlock)
		info.Encode(n.info[:])
		copy(n.desc[:], from.Name())
		if n.isSwitch {
			sw := mad.SwitchInfo{
				LinearFDBCap: linearCap, MulticastFDBCap: multicastCap, LifeTimeValue: lifeTime,
				DefaultMulticastPrimaryPort: mad.NoPort, DefaultMulticastNotPrimaryPort: mad.NoPort,
				PartitionEnforcementCap: mad.PKeyBlock, InboundEnforcementCap: true, OutboundEnforcementCap: true,
				EnhancedPort0: from.SwitchInfo() != nil && from.SwitchInfo().EnhancedPort0,
			}
			if known := from.SwitchInfo(); known != nil && known.LinearFDBCap != 0 {
				sw = *known
				sw.LinearFDBCap, sw.LinearFDBTop = min(sw.LinearFDBCap, linearCap), 0
			}
			sw.Encode(n.sw[:])
		}
	}
}

// chooseSM is the port of the subnet manager: that of node, or of the first CA
// with a cable, or of the first switch.
func (s *Subnet) chooseSM(on *fabric.Node) *port {
	if on != nil {
		p, err := s.nodes[on.ID()].attachment(0)
		if err == nil {
			return p
		}
	}
	for _, want := range []bool{false, true} {
		for i := range s.nodes {
			if n := &s.nodes[i]; n.isSwitch == want {
				if p, err := n.attachment(0); err == nil {
					return p
				}
			}
		}
	}
	return nil
}

// assignLIDs gives each end port a LID: that of f, unless a port before has it,
// then the lowest free ones in the order of the nodes, as many as Options.LMC says.
func (s *Subnet) assignLIDs(f *fabric.Fabric) {
	var without []*port
	for i := range s.nodes {
		for _, p := range s.nodes[i].endPorts() {
			from := f.Nodes()[i].Port(int(p.num))
			if from != nil {
				p.lid, p.lmc = from.LID(), uint8(from.LMC())
			}
			if !s.reserveLIDs(p) {
				p.lid, p.lmc = 0, 0
				without = append(without, p)
			}
		}
	}
	next := map[uint8]int{} // by LMC: the LIDs before are taken
	for _, p := range without {
		if !p.node.isSwitch {
			p.lmc = s.options.LMC
		}
		count := 1 << p.lmc
		lid := max(count, next[p.lmc])
		for p.lid = mad.LID(lid); lid+count <= len(s.lids) && !s.reserveLIDs(p); p.lid = mad.LID(lid) {
			lid += count
		}
		if lid+count > len(s.lids) {
			p.lid, p.lmc = 0, 0 // more ports than LIDs: the last ones have none
		}
		next[p.lmc] = lid
	}
}

// reserveLIDs gives p its LIDs; false if they are not valid, or another port has
// one of them.
func (s *Subnet) reserveLIDs(p *port) bool {
	last := int(p.lid) + 1<<p.lmc - 1
	if p.lid == 0 || p.lid&(1<<p.lmc-1) != 0 || last >= len(s.lids) {
		return false
	}
	mine := s.lids[p.lid : last+1]
	if slices.ContainsFunc(mine, func(q *port) bool { return q != nil }) {
		return false
	}
	for i := range mine {
		mine[i] = p
	}
	return true
}

// endPorts are the ports of n that have LIDs: of a switch port 0, of others all
// that have cables.
func (n *node) endPorts() (ports []*port) {
	if n.isSwitch {
		return []*port{&n.ports[0]}
	}
	for i := range n.ports[1:] {
		if p := &n.ports[1+i]; p.peer != nil {
			ports = append(ports, p)
		}
	}
	return ports
}

// bringUp writes p's PortInfo, with the width and speed of known, if it has any.
func (p *port) bringUp(known *mad.PortInfo, s *Subnet) {
	info := mad.PortInfo{
		LocalPortNum:       p.num,
		LinkWidthSupported: mad.LinkWidth1x | mad.LinkWidth4x, LinkWidthActive: mad.LinkWidth4x,
		LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtHDR,
		LinkDownDefaultState: mad.LinkDownDefaultStatePolling,
		MTUCap:               mad.MTU4096, NeighborMTU: mad.MTU4096,
		VLCap: mad.VLs0To7, OperationalVLs: mad.OperationalVLs0To7,
		VLArbitrationHighCap: vlArbCap, VLArbitrationLowCap: vlArbCap,
		HOQLife: lifeTime, SubnetTimeOut: lifeTime, RespTimeValue: lifeTime,
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
	if s := s.options.Speed; s != "" {
		info.LinkSpeedActive = mad.LinkSpeed(mad.WordsLinkSpeed.Code[s])
		info.LinkSpeedExtActive = mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code[s])
		info.LinkSpeedExtActive2 = mad.LinkSpeedExt2(mad.WordsLinkSpeedExt2.Code[s])
		if info.LinkSpeedActive == 0 {
			info.LinkSpeedActive = mad.LinkSpeedQDR
		}
	}
	if w := s.options.Width; w != "" {
		info.LinkWidthActive = mad.LinkWidth(mad.WordsLinkWidth.Code[w])
		info.LinkWidthSupported = info.LinkWidthActive | mad.LinkWidth1x
	}
	info.LinkSpeedSupported = mad.LinkSpeedSDR | andSlower(info.LinkSpeedActive)
	info.LinkSpeedExtSupported, info.LinkSpeedExtSupported2 = andSlower(info.LinkSpeedExtActive), info.LinkSpeedExtActive2
	if info.LinkSpeedExtActive2 != 0 {
		info.LinkSpeedExtSupported = andSlower(mad.LinkSpeedExtNDR)
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
	p.up = p.peer != nil
	if s.options.Bare && p.num > 0 {
		info.PortState = mad.PortStateInitialize
	}
	if p.num > 0 && !p.up {
		info.PortState, info.PortPhysicalState = mad.PortStateDown, mad.PortPhysicalStatePolling
		info.LinkSpeedActive, info.LinkSpeedExtActive, info.LinkSpeedExtActive2 = mad.LinkSpeedSDR, 0, 0
	}
	if p == p.endPort() {
		info.GIDPrefix, info.LID, info.LMC, info.GUIDCap = gidPrefix, p.lid, p.lmc, guidCap
		info.CapabilityMask |= mad.CapabilityMaskIsLEDInfoSupported
		if s.sm != nil {
			info.MasterSMLID = s.sm.lid
		}
		if s.options.MKey != 0 {
			info.MKey, info.MKeyProtectBits = s.options.MKey, s.options.MKeyLevel
		}
		if !p.node.isSwitch {
			info.CapabilityMask |= mad.CapabilityMaskIsAutomaticMigrationSupported |
				mad.CapabilityMaskIsCommunicationManagementSupported | mad.CapabilityMaskIsClientReregistrationSupported
		}
	}
	if p == s.sm {
		info.CapabilityMask |= mad.CapabilityMaskIsSM
	}
	if isWhole(known) && s.options.Speed == "" && s.options.Width == "" {
		info = p.twinPort(known, &info)
	}
	p.setInfo(&info)
}

// andSlower is the mask of the fastest speed and all slower ones.
func andSlower[T ~uint8](fastest T) T {
	set := fastest
	for ; fastest != 0; fastest >>= 1 {
		set |= fastest
	}
	return set
}
