package state

import (
	"hash/fnv"

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
	Tables  []*adaptive.Table // by private LFT, for LIDs up to that of the tables
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

// Take sets what a switch was read to have. Tables that were not read are those that are
// computed.
func (a *Adaptive) Take(from *adaptive.Switch) {
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

// weight is that of a sub-group in hashes.
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
