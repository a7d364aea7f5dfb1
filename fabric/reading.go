package fabric

import (
	"cmp"
	"slices"
	"time"

	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// Reading is what was read from nodes beyond a sweep. Fabric.With keeps its tables
// and data: they must not be modified afterwards.
type Reading struct {
	// LFTs are linear forwarding tables, by node id and LID; nil where none was
	// read.
	LFTs [][]byte
	// Tops are LinearFDBTop of switches, by node id, where LFTs are not those of the sweep. Nil: as
	// in the sweep.
	Tops []mad.LID
	// Adaptive is the adaptive routing of switches, by node id; nil where none was read.
	Adaptive []*adaptive.Switch
	Answers  []Answer
	// CountersRead is when reading the counters among Answers began; zero: unknown.
	CountersRead time.Time
	// Problems are requests without an answer.
	Problems []Problem
}

// Answer is an attribute as a node, or the subnet administrator, returned
// it: raw, with keys of 0 in a file.
type Answer struct {
	Node     int32 // id; NoNode: the subnet administrator, whose record it is
	Port     int16 // whose it is, or where the request came in; NoPort: the node's
	Class    mad.Class
	ID       mad.AttributeID
	Modifier uint32
	Data     []byte
}

// Section is a section of a file of ibdiagnet, or those of its columns that fabsh makes nothing of, as
// text. Columns of keys are left out.
type Section struct {
	Name    string
	Columns []string
	Rows    [][]string // each as long as Columns
}

// Sections are what came with f as text, in the order of the file. They must not be changed.
func (f *Fabric) Sections() []Section { return f.sections }

// NoNode and NoPort mark an Answer without a node or a port.
const (
	NoNode = -1
	NoPort = -1
)

// With returns f with what was read in addition. It keeps what it had where r has
// nothing.
func (f *Fabric) With(r Reading) *Fabric {
	g := f.clone()
	if r.LFTs != nil {
		g.lfts = r.LFTs
	}
	if r.Tops != nil {
		g.switches = slices.Clone(f.switches)
		for id := range g.nodes {
			if sw := g.nodes[id].SwitchInfo(); sw != nil {
				sw.LinearFDBTop = uint16(r.Tops[id])
			}
		}
	}
	if r.Adaptive != nil {
		g.adaptive = r.Adaptive
	}
	if r.Answers != nil {
		g.answers, g.countersRead = slices.Clone(r.Answers), r.CountersRead
		sortAnswers(g.answers)
	}
	g.problems = slices.Concat(f.problems, r.Problems)
	slices.SortStableFunc(g.problems, compareProblems)
	return g
}

// Bare returns f without tables, answers and sections: what a sweep finds. It is f itself if f has none.
func (f *Fabric) Bare() *Fabric {
	if f.lfts == nil && f.adaptive == nil && f.answers == nil && f.sections == nil && f.labels == nil && f.countersRead.IsZero() {
		return f
	}
	g := f.clone()
	g.lfts, g.adaptive, g.answers, g.sections, g.labels, g.countersRead = nil, nil, nil, nil, nil, time.Time{}
	return g
}

// Answers are the answers that came with f, as in a snapshot, in the order of nodes,
// ports, classes, attributes, modifiers. They must not be changed.
func (f *Fabric) Answers() []Answer { return f.answers }

// CountersRead is when reading the counters among Answers began; zero: unknown.
func (f *Fabric) CountersRead() time.Time { return f.countersRead }

// AnswersOf are the answers of a node; of NoNode, the records of the subnet administrator.
func (f *Fabric) AnswersOf(node int) []Answer {
	of := func(node int) int {
		i, _ := slices.BinarySearchFunc(f.answers, int32(node), func(a Answer, node int32) int { return cmp.Compare(a.Node, node) })
		return i
	}
	return f.answers[of(node):of(node+1)]
}

func sortAnswers(list []Answer) {
	if !slices.IsSortedFunc(list, compareAnswers) {
		slices.SortStableFunc(list, compareAnswers)
	}
}

func compareAnswers(a, b Answer) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), a.compareKey(b))
}

// compareKey orders the answers of one node.
func (a Answer) compareKey(b Answer) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Modifier, b.Modifier))
}

// LFT is the linear forwarding table that came with the fabric, by LID, as in a
// snapshot; nil without one. It must not be changed.
func (n *Node) LFT() []byte {
	if n.fabric.lfts == nil {
		return nil
	}
	return n.fabric.lfts[n.id]
}

// Adaptive is the adaptive routing of a switch that came with the fabric, as in a snapshot;
// nil without any. It must not be changed.
func (n *Node) Adaptive() *adaptive.Switch {
	if n.fabric.adaptive == nil {
		return nil
	}
	return n.fabric.adaptive[n.id]
}

// HasAdaptive reports whether adaptive routing was read: it came with the fabric, of at least
// one switch.
func (f *Fabric) HasAdaptive() bool { return f.adaptive != nil }

// HasLFTs reports whether forwarding tables came with the fabric.
func (f *Fabric) HasLFTs() bool { return f.lfts != nil }

// The vendor's attributes of ports, nodes and virtual ports that were read beyond a sweep:
// they are among the Answers, and so in snapshots.

// extendedKey is the key of what is derived from ExtendedPortInfo.
type extendedKey struct{}

// ExtendedInfo returns the port's ExtendedPortInfo, or nil where it was not read. It must not be
// changed.
func (p *Port) ExtendedInfo() *mad.ExtendedPortInfo { return p.fabric.extended()[p.id] }

// extended returns the ExtendedPortInfo of ports, by port id.
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
// together, except by links between planes, which are only for management.
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
	group := make([]int, len(f.nodes)) // by node id: the group of a switch, from 1
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

// VirtualPort is a port that an adapter's port has besides its own, for a virtual machine. It
// has a GUID, and may have a LID.
type VirtualPort struct {
	Port  *Port // the physical one
	Index int   // -1: unknown, for what it was read by has no public description
	State mad.PortState
	Info  *mad.VPortInfo // nil: it was not read, and GUID and LID are unknown
}

// LID returns the LID of the virtual port; 0 where it has none of its own, or it is unknown.
func (v *VirtualPort) LID() mad.LID {
	if v.Info == nil || !v.Info.LIDRequired {
		return 0
	}
	return v.Info.LID
}

// GUID returns the port GUID; 0 where it is unknown.
func (v *VirtualPort) GUID() mad.GUID {
	if v.Info == nil {
		return 0
	}
	return v.Info.PortGUID
}

type virtualKey struct{}

// VirtualPorts returns the virtual ports that were read, by port and index. The slice must not
// be changed.
func (f *Fabric) VirtualPorts() []VirtualPort {
	virtualization := f.virtualization() // not within Derived
	return f.Derived(virtualKey{}, func() any {
		var list []VirtualPort
		answersTo(f, mad.AttrVPortState, func(n *Node, a *Answer) {
			p := n.Port(int(a.Port))
			if p == nil {
				return
			}
			var block mad.VPortState
			block.Decode(a.Data)
			info := virtualization[p.id]
			for i, state := range block.State {
				index := int(a.Modifier)*len(block.State) + i
				if info != nil && index <= int(info.VPortIndexTop) && state != 0 {
					list = append(list, VirtualPort{Port: p, Index: index, State: state})
				}
			}
		})
		answersTo(f, mad.AttrVPortInfo, func(n *Node, a *Answer) {
			if p := n.Port(int(a.Port)); p != nil {
				info := new(mad.VPortInfo)
				info.Decode(a.Data)
				list = append(list, VirtualPort{Port: p, Index: -1, State: info.State, Info: info})
			}
		})
		return list
	}).([]VirtualPort)
}

type virtualizationKey struct{}

// VirtualizationInfo returns the VirtualizationInfo of p, or nil where it was not read. It must
// not be changed.
func (p *Port) VirtualizationInfo() *mad.VirtualizationInfo { return p.fabric.virtualization()[p.id] }

// virtualization returns the VirtualizationInfo of ports, by port id.
func (f *Fabric) virtualization() map[int32]*mad.VirtualizationInfo {
	return f.Derived(virtualizationKey{}, func() any {
		all := map[int32]*mad.VirtualizationInfo{}
		answersTo(f, mad.AttrVirtualizationInfo, func(n *Node, a *Answer) {
			if q := n.Port(int(a.Port)); q != nil {
				all[q.id] = new(mad.VirtualizationInfo)
				all[q.id].Decode(a.Data)
			}
		})
		return all
	}).(map[int32]*mad.VirtualizationInfo)
}

// RouterTables are what a router of NVIDIA reported of other subnets.
type RouterTables struct {
	Info     mad.RouterInfo
	NextHops []mad.NextHop       // subnets that it leads to
	Adjacent []mad.AdjSubnet     // subnets that it is in
	LIDs     []mad.AdjSubnetLIDs // LIDs of routers (FLIDs) of the adjacent subnets
}

type routersKey struct{}

// Router returns the tables of n; nil where they were not read. They must not be changed.
func (n *Node) Router() *RouterTables {
	all := n.fabric.Derived(routersKey{}, func() any {
		all := map[int32]*RouterTables{}
		f := n.fabric
		answersTo(f, mad.AttrRouterInfo, func(n *Node, a *Answer) {
			t := new(RouterTables)
			t.Info.Decode(a.Data)
			all[n.id] = t
		})
		rows := func(attr *mad.Attribute, size func(*mad.RouterInfo) int, add func(t *RouterTables, data []byte, rest int)) {
			answersTo(f, attr, func(n *Node, a *Answer) {
				if t := all[n.id]; t != nil {
					if rest := size(&t.Info) - int(a.Modifier)*routerBlock[attr]; rest > 0 {
						add(t, a.Data, rest)
					}
				}
			})
		}
		rows(mad.AttrNextHopTable, func(i *mad.RouterInfo) int { return int(i.NextHopTop) }, func(t *RouterTables, data []byte, rest int) {
			var x mad.NextHopTable
			x.Decode(data)
			t.NextHops = append(t.NextHops, x.Record[:min(rest, len(x.Record))]...)
		})
		rows(mad.AttrAdjSiteLocalSubnetsTable, func(i *mad.RouterInfo) int { return int(i.AdjSubnetsTop) }, func(t *RouterTables, data []byte, rest int) {
			var x mad.AdjSiteLocalSubnetsTable
			x.Decode(data)
			t.Adjacent = append(t.Adjacent, x.Record[:min(rest, len(x.Record))]...)
		})
		rows(mad.AttrAdjSubnetsRouterLIDInfo, func(i *mad.RouterInfo) int { return int(i.AdjLIDInfoTop) }, func(t *RouterTables, data []byte, rest int) {
			var x mad.AdjSubnetsRouterLIDInfo
			x.Decode(data)
			t.LIDs = append(t.LIDs, x.Record[:min(rest, len(x.Record))]...)
		})
		return all
	}).(map[int32]*RouterTables)
	return all[n.id]
}

// routerBlock is the number of entries in a block of a router's table.
var routerBlock = map[*mad.Attribute]int{
	mad.AttrNextHopTable:             len(mad.NextHopTable{}.Record),
	mad.AttrAdjSiteLocalSubnetsTable: len(mad.AdjSiteLocalSubnetsTable{}.Record),
	mad.AttrAdjSubnetsRouterLIDInfo:  len(mad.AdjSubnetsRouterLIDInfo{}.Record),
}

// RouterBlocks returns the number of blocks of a router's table, of so many entries.
func RouterBlocks(attr *mad.Attribute, entries int) int {
	size := routerBlock[attr]
	return (entries + size - 1) / size
}
