package sim

import (
	"bytes"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// A fabric that was read with its settings, tables and counters, such as a snapshot, is
// brought up with them. Snapshots contain no keys; the subnet manager is that of this
// subnet, and the subnet prefix is the default one.

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
			if sw := from.SwitchInfo(); sw != nil {
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
			n.Adaptive.Take(&adaptive.Switch{})
		case a.Unknown == "":
			n.Adaptive.Take(a)
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
