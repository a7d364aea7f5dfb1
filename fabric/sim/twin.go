package sim

import (
	"bytes"

	"fabsh/fabric"
	"fabsh/mad"
)

// A fabric that was read with its settings, tables and counters, as from a snapshot,
// is brought up with them. Keys are in no snapshot, the subnet manager is this one's,
// and the subnet prefix is the default one.

// isWhole: a PortInfo was read from a port; files of topologies know no more than
// LIDs, widths and speeds.
func isWhole(i *mad.PortInfo) bool {
	return i != nil && i.MTUCap != 0 && i.LinkWidthSupported != 0 && i.VLCap != 0
}

// twinPort is the PortInfo of a port that was read, where that of a new port would
// be own.
func (p *port) twinPort(known, own *mad.PortInfo) mad.PortInfo {
	info := *known
	info.LocalPortNum, info.MKey, info.MKeyProtectBits = own.LocalPortNum, own.MKey, own.MKeyProtectBits
	info.GIDPrefix, info.LID, info.LMC, info.MasterSMLID = own.GIDPrefix, own.LID, own.LMC, own.MasterSMLID
	info.CapabilityMask = info.CapabilityMask&^mad.CapabilityMaskIsSM | own.CapabilityMask&mad.CapabilityMaskIsSM
	switch up := info.PortState >= mad.PortStateInitialize && info.PortState <= mad.PortStateActive; {
	case !p.up && p.num > 0: // no cable
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

// twinTables takes over the tables and counters that came with f.
func (s *Subnet) twinTables(f *fabric.Fabric) {
	if f.HasLFTs() {
		s.tables()
	}
	for i := range s.nodes {
		n, from := &s.nodes[i], &f.Nodes()[i]
		if lft := from.LFT(); n.isSwitch && lft != nil {
			lft = lft[:min(len(lft), linearCap)]
			n.lft = bytes.Clone(lft)
			n.setTop(mad.LID(max(len(lft), 1) - 1))
			if sw := from.SwitchInfo(); sw != nil {
				n.setTop(mad.LID(min(int(sw.LinearFDBTop), linearCap-1)))
			}
		}
		for _, a := range f.AnswersOf(i) {
			s.twinAnswer(n, &a)
		}
	}
}

// twinAnswer takes over what an agent of n answered.
func (s *Subnet) twinAnswer(n *node, a *fabric.Answer) {
	if len(a.Data) == 0 { // it gave none
		return
	}
	at := &n.ports[0]
	if !n.isSwitch {
		ports := n.endPorts()
		if len(ports) == 0 {
			return
		}
		at = ports[0]
	}
	if int(a.Port) > 0 && int(a.Port) < len(n.ports) {
		at = &n.ports[a.Port]
	}
	switch a.Class {
	case mad.ClassSubn:
		for _, t := range []*blockTable{guidBlocks, pkeyBlocks, sl2vlBlocks, vlArbBlocks, mftBlocks} {
			if t.attr.ID != a.ID || t == mftBlocks && !n.isSwitch {
				continue
			}
			r := &request{Subnet: s, Header: mad.Header{Modifier: a.Modifier}, in: at}
			if p, block, ok := t.locate(r); ok {
				s.writeBlock(t, p, block, a.Data[:min(len(a.Data), t.attr.Size)])
			}
		}
	case mad.ClassPerf:
		for _, c := range counterViews()[mad.Lookup(a.Class, a.ID)] {
			for e := range c.Count {
				key := counterKey{c.Name, e}
				if v := c.UintAt(a.Data, e); a.Port >= 0 && v > at.counters[key] {
					at.setCounter(key, v)
				}
			}
		}
	}
}
