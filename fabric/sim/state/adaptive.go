package state

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// AdaptiveSettings are what the subnet manager sets up of adaptive routing (AR).
type AdaptiveSettings struct {
	AdaptiveOptions
	HBF          bool // packets that are not routed adaptively are hashed over the group
	WHBF         bool // so are they, with more to the primary sub-group
	Notification bool // of routing, by strings (RN)
	PFRN         bool // and by packets
	// Private gives packets from other switches a private LFT of their own, number 1.
	Private bool
	// AllTransports also routes UD and UC adaptively.
	AllTransports bool
}

// Adaptive is the adaptive routing of a switch.
type Adaptive struct {
	Info    mad.AdaptiveRoutingInfo // but for GroupTop
	HBF     mad.HBFConfig
	Weights [3]uint8 // of sub-groups, for WHBF
	PFRN    mad.PFRNConfig
	Private [][16]uint8       // private LFT by input port and SL; nil: 0
	Tables  []*adaptive.Table // by private LFT, up to the highest LID of the forwarding tables
	Faults  []AdaptiveFault   // of the tables, whenever they are computed

	routing adaptive.Switch // what packets follow
}

// Update makes packets follow the settings and tables.
func (a *Adaptive) Update() {
	i := &a.Info
	a.routing = adaptive.Switch{
		Enabled: i.E, SLs: adaptive.AllSLs,
		HBF: i.HBFEn, HBFSLs: adaptive.SLs(i.EnableBySLMaskHBF), Weighted: i.WHBFEn,
		FastRecovery: i.FREnabled, Private: a.Private, Tables: a.Tables,
	}
	if i.BySLEn {
		a.routing.SLs = adaptive.SLs(i.EnableBySLMask)
	}
	if i.ByTranspCap {
		for t, disabled := range map[adaptive.Transport]bool{adaptive.RC: i.DisRC, adaptive.UC: i.DisUC, adaptive.UD: i.DisUD, adaptive.DC: i.DisDC} {
			if disabled {
				a.routing.Static |= adaptive.TransportSet(t)
			}
		}
	}
}

// SetFrom sets what was read from a switch. Tables that were not read are computed.
func (a *Adaptive) SetFrom(from *adaptive.Switch) {
	i := &a.Info
	i.E, i.HBFEn, i.WHBFEn, i.FREnabled = from.Enabled, from.HBF, from.Weighted, from.FastRecovery
	i.EnableBySLMask, i.EnableBySLMaskHBF = uint16(from.SLs), uint16(from.HBFSLs)
	i.DisRC, i.DisUC, i.DisUD, i.DisDC = from.Static.Has(adaptive.RC), from.Static.Has(adaptive.UC), from.Static.Has(adaptive.UD), from.Static.Has(adaptive.DC)
	a.Private = from.Private
	for plft, t := range from.Tables {
		if plft >= len(a.Tables) {
			a.Tables = append(a.Tables, a.Tables[0])
		}
		if t == nil || t.Ports() == nil {
			continue
		}
		c := t.Clone()
		if c.Groups == nil {
			c.Groups = adaptive.NewGroups(1)
		}
		a.Tables[plft] = c
		i.SubGrpsActive = uint8(c.Groups.SubGroups())
		i.SubGrpsSup = max(i.SubGrpsSup, i.SubGrpsActive)
	}
	a.Update()
}

// Routing is what packets follow. It shares memory of a, and must not be changed.
func (a *Adaptive) Routing() *adaptive.Switch { return &a.routing }

// PrivateOf are the private LFTs of packets that come in by a port, by SL.
func (a *Adaptive) PrivateOf(port int) (row [16]uint8) {
	if port < len(a.Private) {
		row = a.Private[port]
	}
	return row
}

// Active reports whether packets follow the tables of a, and not the linear forwarding table.
func (a *Adaptive) Active() bool { return a != nil && a.routing.Active() }

// setTable sets the table of all private LFTs.
func (a *Adaptive) setTable(t *adaptive.Table) {
	a.Tables = []*adaptive.Table{t}
	if a.Private != nil {
		a.Tables = append(a.Tables, t)
	}
	a.Update()
}

// GroupTop is the highest group.
func (a *Adaptive) GroupTop() uint16 {
	top := 0
	for _, t := range a.Tables {
		top = max(top, t.Groups.Len()-1)
	}
	for _, f := range a.Faults {
		if f == FaultTop {
			top = min(top, 1)
		}
	}
	return uint16(max(top, 0))
}

// Choose is what switch n does with a packet; n must be Active. A port whose link up reports
// not to be up is down.
func (n *Node) Choose(p adaptive.Packet, up func(p *Port) bool) adaptive.Choice {
	n.Subnet.EnsureTables()
	return n.Adaptive.routing.Choose(p, func(port uint8) bool {
		return port > 0 && (int(port) >= len(n.Ports) || !up(&n.Ports[port]))
	})
}

// adaptivePort is the port for a MAD: UD of SL 0, as packets of management have no queue pair
// and thus no flow. If it is routed adaptively, it takes the static port while that may be
// chosen, as its queue is as short as any.
func (n *Node) adaptivePort(in uint8, dlid mad.LID) uint8 {
	n.Subnet.EnsureTables()
	a := &n.Adaptive.routing
	t := a.Table(a.PLFT(in, 0))
	if t == nil {
		return mad.NoPort
	}
	e := t.Entry(dlid)
	if (e.State == adaptive.Static || !a.HBF && a.Static.Has(adaptive.UD)) && (!a.FastRecovery || e.Port == 0 || int(e.Port) >= len(n.Ports) || n.Ports[e.Port].Up) {
		return e.Port
	}
	c := n.Choose(adaptive.Packet{In: in, LID: dlid, Transport: adaptive.UD}, func(p *Port) bool { return p.Up })
	switch {
	case c.Hashed:
		return n.Hash(&c, uint64(dlid))
	case c.Ports.Has(c.Port):
		return c.Port
	case !c.Ports.Empty():
		return c.Ports.First()
	}
	return mad.NoPort
}

// Hash is the port that hash-based forwarding gives a flow, by the seed of the switch. With
// weights, sub-groups get flows by their weights.
func (n *Node) Hash(c *adaptive.Choice, flow uint64) uint8 {
	var ports []uint8
	for sub, set := range c.SubGroups {
		for p := range set.All() {
			for range n.Adaptive.weight(sub) {
				if c.Ports.Has(p) {
					ports = append(ports, p)
				}
			}
		}
	}
	if len(ports) == 0 {
		return mad.NoPort
	}
	seed, h := n.Adaptive.HBF.Seed, fnv.New64a()
	var text [12]byte
	for i := range 8 {
		text[i] = byte(flow >> (8 * i))
	}
	for i := range 4 {
		text[8+i] = byte(seed >> (8 * i))
	}
	h.Write(text[:])
	return ports[h.Sum64()%uint64(len(ports))]
}

// weight returns the weight of a sub-group in hashes.
func (a *Adaptive) weight(sub int) uint8 {
	if !a.Info.WHBFEn || sub >= len(a.Weights) {
		return 1
	}
	return a.Weights[sub]
}

// DisableAdaptive ends adaptive routing at a switch whose linear forwarding table is written
// (MLNX_OFED manual, Adaptive Routing Manager, 8.8.4). Its tables stay unchanged.
func (n *Node) DisableAdaptive() {
	a := n.Adaptive
	if !a.Active() {
		return
	}
	a.Info.E, a.Info.HBFEn = false, false
	for i, t := range a.Tables { // they share the entries of n.LFT
		a.Tables[i] = t.Clone()
	}
	a.Update()
}

// The capabilities that devices announce with ar=.
const (
	switchCapabilities = mad.Capabilities0PrivateLFT | mad.Capabilities0AR | mad.Capabilities0PortSLToPrivateLFT
	caCapabilities     = mad.Capabilities0GlobalOutOfOrder
)

// SetUpAdaptive gives switches adaptive routing, as OpenSM sets it up: for all service
// levels, and of the transports RC and DC, which accept packets out of order
// (ar_sl_mask 0xFFFF, ar_transport_mask 0xA of its defaults). Without on, they support it, but
// it is off.
func (s *Subnet) SetUpAdaptive(set *AdaptiveSettings, on bool) {
	s.Adaptive = set
	s.AnnouncePortInfo()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.IsMellanox() {
			continue
		}
		// Keys that are not 0, and differ between nodes.
		n.VSKey = &mad.VSKeyInfo{VSKey: uint64(n.GUID()) ^ 0x5a5a_0a0a_0000_0000, ProtectBit: true, LeasePeriod: 60}
		if !n.IsSwitch {
			n.Capabilities.CapMask0 |= caCapabilities
			continue
		}
		n.N2NKey = &mad.N2NKeyInfo{N2NMgrKey: uint64(n.GUID()) ^ 0x5a5a_0c0c_0000_0000, ProtectBit: true, LeasePeriod: 60}
		n.Capabilities.CapMask0 |= switchCapabilities
		n.Adaptive = newAdaptive(n, set, on)
	}
	for i := range s.Nodes { // switches of other vendors follow their linear tables
		if n := &s.Nodes[i]; n.IsSwitch && n.Adaptive == nil {
			n.Adaptive = &Adaptive{}
		}
	}
}

// AnnouncePortInfo lets devices announce ExtendedPortInfo.
func (s *Subnet) AnnouncePortInfo() {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsMellanox() {
			n.Capabilities.CapMask0 |= mad.Capabilities0ExtendedPortInfo
			if n.Planes() > 1 {
				n.Capabilities.CapMask0 |= mad.Capabilities0ExtendedNodeInfo
			}
		}
	}
}

func newAdaptive(n *Node, set *AdaptiveSettings, on bool) *Adaptive {
	subGroups := uint8(1)
	if set.Secondary {
		subGroups = 2
	}
	a := &Adaptive{
		Info: mad.AdaptiveRoutingInfo{
			ByTranspCap: true, BySLCap: true, BySLEn: true, EnableBySLMask: 0xffff,
			DisUD: !set.AllTransports, DisUC: !set.AllTransports,
			DirNumSup: 8, GroupTableCopySup: 1, SubGrpsActive: subGroups, SubGrpsSup: 2,
			FRSup: true, FREnabled: on, FRNSup: true, ARNSup: true, RNXmitEnabled: on && set.Notification, RNVersionCap: 1, ARVersionCap: 1,
			StringWidthCap: 8, GroupCap: adaptive.MaxGroups - 1, E: on, AgeingTime: 30,
			HBFSup: true, WHBFSup: true, SymmetricHashSup: true, BTHDQPHashSup: true, PFRNSup: true, PFRNEn: on && set.PFRN,
			HBFEn: on && set.HBF, WHBFEn: on && set.WHBF,
		},
		HBF:     mad.HBFConfig{Seed: uint32(n.GUID()), FieldsEnable: 0x40F00C0F}, // OpenSM's defaults
		Weights: [3]uint8{1, 1, 0},
	}
	if a.Info.HBFEn {
		a.Info.EnableBySLMaskHBF = 0xffff
	}
	if a.Info.WHBFEn {
		a.Weights = [3]uint8{3, 1, 0}
	}
	if set.PFRN {
		a.PFRN = mad.PFRNConfig{PolicySup: true, MaskClearTimeout: 180, MaskForceClearTimeout: 720}
	}
	if set.Private {
		a.Private = make([][16]uint8, len(n.Ports))
		for i := range n.Ports[1:] {
			if p := &n.Ports[1+i]; p.Peer != nil && p.Peer.Node.IsSwitch {
				for sl := range a.Private[1+i] {
					a.Private[1+i][sl] = 1
				}
			}
		}
	}
	a.Update()
	return a
}

// mellanox is NodeInfo.VendorID of Mellanox, and of NVIDIA after it.
const mellanox = 0x2c9

// IsMellanox reports whether a node is of Mellanox, or NVIDIA. Files of topologies may not
// have the vendor: then it is, too.
func (n *Node) IsMellanox() bool {
	info := n.NodeInfo()
	return info.VendorID == 0 || info.VendorID == mellanox
}

// AdaptiveFault is a fault of the adaptive routing of a switch.
type AdaptiveFault uint8

// The faults of tables concern the groups of one other switch: the first to which the switch
// has a choice. They come back whenever the subnet manager computes the tables.
const (
	FaultStale   AdaptiveFault = iota // the group lacks the static port, as before its cable was there
	FaultEmpty                        // the group has no ports
	FaultDead                         // the group has a port more, which has no link
	FaultIllegal                      // the group has a port more, by which packets do not get nearer
	FaultTop                          // GroupTop is below the group
	FaultSL                           // EnableBySLMask lacks SL 1
	FaultKey                          // the vendor's keys (VS and N2N) do not protect
	FaultOff                          // adaptive routing is off, at this switch alone
)

// adaptiveFaults are the names and effects of faults, by number.
var adaptiveFaults = []struct{ name, doc string }{
	{"stale", "a group is of an earlier time, and lacks the static port"},
	{"empty", "a group has no ports"},
	{"dead", "a group has a port without a link"},
	{"illegal", "a group has a port that does not lead nearer"},
	{"top", "a group is above GroupTop"},
	{"sl", "the mask of service levels lacks SL 1"},
	{"key", "the keys of the vendor's classes do not protect"},
	{"off", "the switch alone does not route adaptively"},
}

// AdaptiveFaultNames returns the names of all faults.
func AdaptiveFaultNames() (names []string) {
	for _, f := range adaptiveFaults {
		names = append(names, f.name)
	}
	return names
}

// AdaptiveFaultDoc returns one line on all faults.
func AdaptiveFaultDoc() string {
	var list []string
	for _, f := range adaptiveFaults {
		list = append(list, f.name+" ("+f.doc+")")
	}
	return strings.Join(list, ", ")
}

// AdaptiveFaultNamed returns the fault with a name.
func AdaptiveFaultNamed(name string) (AdaptiveFault, error) {
	names := AdaptiveFaultNames()
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown fault %q%s; supported: %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
	}
	return AdaptiveFault(i), nil
}

// Break gives switch n a fault of adaptive routing. Before the tables are computed, those
// that are not possible are ignored.
func (n *Node) Break(f AdaptiveFault) error {
	a := n.Adaptive
	if a == nil {
		return fmt.Errorf("%s does not support adaptive routing; start the simulated fabric with ar=updn", n.Label)
	}
	if slices.Contains(a.Faults, f) {
		return nil
	}
	switch f {
	case FaultSL:
		a.Info.BySLEn, a.Info.EnableBySLMask = true, a.Info.EnableBySLMask&^2
	case FaultKey:
		n.VSKey.ProtectBit, n.N2NKey.ProtectBit = false, false
	case FaultOff:
		a.Info.E = false
	default:
		if len(a.Tables) > 0 && !n.Subnet.TablesStale.Load() && !n.injectGroup(f) {
			return fmt.Errorf("%s has no group with which fault %s is possible", n.Label, adaptiveFaults[f].name)
		}
	}
	a.Faults = append(a.Faults, f)
	a.Update()
	return nil
}

// repeatFaults causes the faults of tables again, which were computed. One may no longer be
// possible: the switch may have lost its cables.
func (n *Node) repeatFaults() {
	if n.Adaptive == nil {
		return
	}
	for _, f := range n.Adaptive.Faults {
		if f <= FaultTop {
			n.injectGroup(f)
		}
	}
}

// injectGroup causes a fault of a group, and reports whether that was possible.
func (n *Node) injectGroup(f AdaptiveFault) bool {
	if len(n.Adaptive.Tables) == 0 {
		return false
	}
	t := n.Adaptive.Tables[0]
	group, lid, ok := n.groupInUse(t)
	if !ok {
		return false
	}
	ports := t.Groups.Ports(group, 0)
	switch f {
	case FaultTop: // see GroupTop
		return true
	case FaultEmpty:
		for sub := range t.Groups.SubGroups() {
			if t.Groups.Set(group, sub, adaptive.Ports{}) != nil {
				return false
			}
		}
		return true
	case FaultStale:
		if ports.Remove(t.Entry(lid).Port); ports.Empty() {
			ok = n.addPort(&ports, func(p *Port) bool { return p.Up && p.Num != t.Entry(lid).Port })
		}
	case FaultDead:
		if !n.addPort(&ports, func(p *Port) bool { return !p.Up }) {
			ports.Add(uint8(min(len(n.Ports), maxPort))) // a port that does not exist
		}
	case FaultIllegal:
		ok = n.addPort(&ports, func(p *Port) bool { return p.Up && n.Subnet.leadsAway(p, lid) }) ||
			n.addPort(&ports, func(p *Port) bool { return p.Up })
	}
	return ok && t.Groups.Set(group, 0, ports) == nil
}

// maxPort is the highest number of a port.
const maxPort = 254

// groupInUse returns a group above 1, and a LID to which packets are routed by it. If there
// is no such group, a LID gets one, of its static port.
func (n *Node) groupInUse(t *adaptive.Table) (group int, lid mad.LID, ok bool) {
	static := -1
	for i := range int(t.Top()) + 1 {
		e := t.Entry(mad.LID(i))
		switch {
		case e.State != adaptive.Static && e.Group > 1:
			return int(e.Group), mad.LID(i), true
		case static < 0 && e.Port > 0 && int(e.Port) < len(n.Ports):
			static = i
		}
	}
	if static < 0 {
		return 0, 0, false
	}
	lid = mad.LID(static)
	e := t.Entry(lid)
	group = max(2, t.Groups.Len())
	if t.Groups.Set(group, 0, adaptive.PortSet(e.Port)) != nil {
		return 0, 0, false
	}
	t.Set(lid, adaptive.Entry{State: adaptive.Bounded, Port: e.Port, Group: uint16(group)})
	return group, lid, true
}

// addPort adds the first port for which ok holds.
func (n *Node) addPort(to *adaptive.Ports, ok func(*Port) bool) bool {
	for i := range n.Ports[1:] {
		if p := &n.Ports[1+i]; !to.Has(p.Num) && !p.FNM && ok(p) {
			to.Add(p.Num)
			return true
		}
	}
	return false
}

// leadsAway reports whether port p leads to an end port without the LID, or to a
// switch whose route to it returns.
func (s *Subnet) leadsAway(p *Port, lid mad.LID) bool {
	to := p.Peer
	if !to.Node.IsSwitch {
		return !to.hasLID(lid)
	}
	at := to.Node
	for range MaxLIDHops { // by the static ports
		if !at.IsSwitch || int(lid) >= len(at.LFT) || int(at.LFT[lid]) >= len(at.Ports) {
			return false
		}
		out := &at.Ports[at.LFT[lid]]
		if out.Peer == nil {
			return false
		}
		if at = out.Peer.Node; at == p.Node {
			return true
		}
	}
	return false
}
