// Package bringup creates the state of a simulated subnet from a topology, in the state
// after a subnet manager has brought it up.
//
//	bringup.go  New: nodes, LIDs, the place of the subnet manager
//	port.go     the PortInfo of a port
//	twin.go     settings, tables and counters that came with the fabric

package sim

import (
	"fabsh/fabric"
	"fabsh/fabric/sim/spec"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// bringUp brings up a subnet with f's topology, except with Options.Bare: each end port has a
// LID (that of f, if it is valid and unique), each cable is an active link, and each
// switch has forwarding tables to all LIDs.
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

// chooseSM returns the port of the subnet manager: that of node, or of the first CA with
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

// assignLIDs gives each end port a LID: that of f, unless a port before has it,
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
