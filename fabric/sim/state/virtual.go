package state

import (
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// VirtualPort is a virtual port of an adapter's port, from index 1 on; index 0 stands for the
// port itself.
type VirtualPort struct {
	GUID, Node mad.GUID
	LID        mad.LID // 0: it uses that of index 0
}

// MaxVirtualPorts is the highest index of a virtual port.
const MaxVirtualPorts = 255

// virtualGUID makes the GUIDs of virtual ports of those of their ports.
const virtualGUID = 1 << 40

// AddVirtualPorts gives each port of the adapters of Mellanox and NVIDIA virtual ports. Those
// with an odd index have a LID of their own, above all others, as long as there are LIDs.
func (s *Subnet) AddVirtualPorts(count int) {
	top := s.topLID()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.IsSwitch || !n.IsMellanox() || n.Kind != fabric.KindHost {
			continue
		}
		n.Capabilities.CapMask0 |= mad.Capabilities0Virtualization
		for j := range n.Ports[1:] {
			p := &n.Ports[1+j]
			p.SetCapability2(mad.CapabilityMask2IsVirtualizationSupported)
			for index := 1; index <= count; index++ {
				guid := p.GUID + mad.GUID(index)*virtualGUID
				v := VirtualPort{GUID: guid, Node: guid}
				if index%2 == 1 && p.LID != 0 && top < mad.MaxUnicastLID {
					top++
					v.LID = top
				}
				p.Virtual = append(p.Virtual, v)
			}
		}
	}
}

// hasVirtual reports whether lid is that of a virtual port of p.
func (p *Port) hasVirtual(lid mad.LID) bool {
	return p.Virtual != nil && slices.ContainsFunc(p.Virtual, func(v VirtualPort) bool { return v.LID == lid })
}
