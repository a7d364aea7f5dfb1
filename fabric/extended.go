package fabric

import (
	"fabsh/mad"
)

// The vendor's attributes of ports, nodes and virtual ports that were read beyond a sweep:
// they are among the Answers, and so in snapshots.

// extendedKey is the key of what is derived from ExtendedPortInfo.
type extendedKey struct{}

// ExtendedInfo returns the port's ExtendedPortInfo, or nil where it was not read. It must not be
// changed.
func (p *Port) ExtendedInfo() *mad.ExtendedPortInfo { return p.fabric.extended()[p.id] }

// extended returns those of all ports, by id.
func (f *Fabric) extended() map[int32]*mad.ExtendedPortInfo {
	return f.Derived(extendedKey{}, func() any {
		var all map[int32]*mad.ExtendedPortInfo
		answersTo(f, mad.AttrExtendedPortInfo, func(n *Node, a *Answer) {
			if q := n.Port(int(a.Modifier & 0xff)); q != nil {
				if all == nil {
					all = map[int32]*mad.ExtendedPortInfo{}
				}
				all[q.id] = new(mad.ExtendedPortInfo)
				all[q.id].Decode(a.Data)
			}
		})
		return all
	}).(map[int32]*mad.ExtendedPortInfo)
}

// answersTo calls fn for the answers of nodes to an attribute of subnet management.
func answersTo(f *Fabric, attr *mad.Attribute, fn func(n *Node, a *Answer)) {
	for i := range f.answers {
		a := &f.answers[i]
		if a.Node >= 0 && a.Class == attr.Class && a.ID == attr.ID && len(a.Data) >= attr.Size {
			fn(&f.nodes[a.Node], a)
		}
	}
}

// planesKey is the key of the planes of ports.
type planesKey struct{}

// Plane returns the plane of a port where adapters have several (XDR): the ports of an adapter
// that share a port GUID are planes 1, 2 and so on, in the order of their numbers. A port of a
// switch has the plane of the adapters that it leads to, over any number of switches; 0 where
// these are in several planes, or none has any.
func (p *Port) Plane() int {
	between := p.fabric.extended() // not within Derived
	return int(p.fabric.Derived(planesKey{}, func() any { return planesOf(p.fabric, between) }).([]uint8)[p.id])
}

// planesOf returns the planes of all ports. Switches that have a path between them without an adapter are
// together, but for the links between planes that are only for management.
func planesOf(f *Fabric, extended map[int32]*mad.ExtendedPortInfo) []uint8 {
	between := func(p *Port) bool {
		x := extended[p.id]
		return x != nil && x.IsFNMPort
	}
	planes := make([]uint8, len(f.ports))
	for i := range f.ports {
		if p := &f.ports[i]; !p.Node().IsSwitch() && p.guid != 0 {
			plane, of := uint8(0), uint8(0)
			for q := range p.Node().Ports() {
				if q.guid == p.guid {
					if of++; q == p {
						plane = of
					}
				}
			}
			if of > 1 {
				planes[i] = plane
			}
		}
	}
	group := make([]int, len(f.nodes)) // by node: that of a switch, from 1
	for first := range f.nodes {
		if !f.nodes[first].IsSwitch() || group[first] != 0 {
			continue
		}
		plane, mixed := uint8(0), false
		members := []int{first}
		group[first] = first + 1
		for k := 0; k < len(members); k++ {
			for p := range f.nodes[members[k]].Ports() {
				q := p.Peer()
				switch {
				case q == nil, between(p) || between(q):
				case !q.Node().IsSwitch():
					if x := planes[q.id]; x != 0 {
						mixed = mixed || plane != 0 && x != plane
						plane = x
					}
				case group[q.node] == 0:
					group[q.node] = first + 1
					members = append(members, int(q.node))
				}
			}
		}
		for _, id := range members {
			for p := range f.nodes[id].Ports() {
				if !mixed && !between(p) && p.Peer() != nil {
					planes[p.id] = plane
				}
			}
		}
	}
	return planes
}
