// Package opensm models the tables that OpenSM 3.3 makes: from nothing at its start, and with the
// tables in force after a loss.
//
// A Network is the part of a subnet that the manager reaches, and Settings are the options of
// OpenSM that matter. Compute returns the tables. minhop, updn, dnup and dor keep each entry that
// still lies on a shortest path and choose only the others; ftree, sssp, dfsssp and lash compute
// all entries again. nue and torus-2QoS are not modelled.
//
// Most choices between equal ports depend on the order in which OpenSM does its work. Its maps
// have GUIDs in network byte order as keys and compare them as numbers of the host, so on
// little-endian machines they iterate by the last byte first: order Q (opensm osm_node_info_rcv.c,
// cl_qmap_insert). The model follows that order, as on amd64 and arm64.
//
// Nothing here is safe for concurrent use, except that a Network may be read by several goroutines.
package opensm

import (
	"cmp"
	"math/bits"
	"slices"

	"fabsh/mad"
)

// Network is the part of a subnet that its manager reaches.
type Network struct {
	Switches []Switch
	Ends     []End
	// SM is the LID of the subnet manager.
	SM mad.LID
}

// Switch is a switch with its links.
type Switch struct {
	GUID, System mad.GUID // NodeGUID and SystemImageGUID
	LID          mad.LID
	Links        []Link // by port, from port 0, which has none
}

// Link is the other end of a link, for a port of a switch.
type Link struct {
	Kind LinkKind
	Port uint8 // at the other end
	To   int32 // the index in Switches or Ends
}

// LinkKind is the type of the other end of a link.
type LinkKind uint8

const (
	NoLink   LinkKind = iota // no link, or one that is down
	ToSwitch                 // to another switch
	ToEnd                    // to a port of a CA or router
)

// End is a port of a CA or router.
type End struct {
	Node, GUID mad.GUID // NodeGUID and PortGUID
	Num        uint8    // of the port
	Router     bool
	LID        mad.LID
	Count      int   // of LIDs
	Switch     int32 // where it is attached; negative: at no switch
	Port       uint8 // of that switch
}

// Reached returns the part of n that is connected with the end or switch that has the LID n.SM, and
// for each of its switches and ends the index in n. Without such a LID it is all of n.
func (n *Network) Reached() (part *Network, switches, ends []int32) {
	found := n.reach()
	if found == nil {
		found = slices.Repeat([]bool{true}, len(n.Switches))
	}
	place := slices.Repeat([]int32{-1}, len(n.Switches))
	part = &Network{SM: n.SM}
	for s := range n.Switches {
		if found[s] {
			place[s] = int32(len(switches))
			switches = append(switches, int32(s))
		}
	}
	endPlace := slices.Repeat([]int32{-1}, len(n.Ends))
	for i, e := range n.Ends {
		if e.Switch < 0 && e.LID != n.SM || e.Switch >= 0 && !found[e.Switch] {
			continue
		}
		if e.Switch >= 0 {
			e.Switch = place[e.Switch]
		}
		endPlace[i] = int32(len(ends))
		ends, part.Ends = append(ends, int32(i)), append(part.Ends, e)
	}
	for _, s := range switches {
		sw := n.Switches[s]
		sw.Links = slices.Clone(sw.Links)
		for p := range sw.Links {
			switch l := &sw.Links[p]; l.Kind {
			case ToSwitch:
				l.To = place[l.To]
			case ToEnd:
				l.To = endPlace[l.To]
			}
		}
		part.Switches = append(part.Switches, sw)
	}
	return part, switches, ends
}

// reach returns the switches that are connected with n.SM; nil: no node has that LID.
func (n *Network) reach() (found []bool) {
	start := int32(-1)
	for i := range n.Ends {
		if e := &n.Ends[i]; n.SM != 0 && n.SM >= e.LID && int(n.SM) < int(e.LID)+e.Count {
			found, start = make([]bool, len(n.Switches)), e.Switch
		}
	}
	for s := range n.Switches {
		if n.SM != 0 && n.Switches[s].LID == n.SM {
			found, start = make([]bool, len(n.Switches)), int32(s)
		}
	}
	if start < 0 {
		return found
	}
	found[start] = true
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		for _, l := range n.Switches[queue[0]].Links {
			if l.Kind == ToSwitch && !found[l.To] {
				found[l.To] = true
				queue = append(queue, l.To)
			}
		}
	}
	return found
}

// compareQ compares two GUIDs in order Q.
func compareQ(a, b mad.GUID) int {
	return cmp.Compare(bits.ReverseBytes64(uint64(a)), bits.ReverseBytes64(uint64(b)))
}

// network is a Network whose switches are in order Q.
type network struct {
	Network
	was  []int32 // the index in the original network, by switch
	base []int32 // first place of a switch's ports among all ports, and the end
	top  mad.LID // the highest LID
	lmc  bool    // some end has several LIDs

	byLID []int32 // what has a LID: 0 nothing, 1+s switch s, -1-i end i
}

// newNetwork sorts the switches of n.
func newNetwork(n *Network) *network {
	w := &network{Network: Network{Ends: slices.Clone(n.Ends), SM: n.SM}}
	for s := range n.Switches {
		w.was = append(w.was, int32(s))
	}
	slices.SortStableFunc(w.was, func(a, b int32) int { return compareQ(n.Switches[a].GUID, n.Switches[b].GUID) })
	place := make([]int32, len(w.was))
	for s, old := range w.was {
		place[old] = int32(s)
	}
	for _, old := range w.was {
		sw := n.Switches[old]
		sw.Links = slices.Clone(sw.Links)
		for p := range sw.Links {
			if l := &sw.Links[p]; l.Kind == ToSwitch {
				l.To = place[l.To]
			}
		}
		w.base = append(w.base, w.base0())
		w.Switches = append(w.Switches, sw)
		w.top = max(w.top, sw.LID)
	}
	w.base = append(w.base, w.base0())
	for i := range w.Ends {
		e := &w.Ends[i]
		if e.Switch >= 0 {
			e.Switch = place[e.Switch]
		}
		if e.Count > 0 {
			w.top = max(w.top, e.LID+mad.LID(e.Count)-1)
		}
		w.lmc = w.lmc || e.Count > 1
	}
	w.byLID = make([]int32, int(w.top)+1)
	for s := range w.Switches {
		w.byLID[w.Switches[s].LID] = int32(1 + s)
	}
	for i := range w.Ends {
		for k := range w.Ends[i].Count {
			w.byLID[int(w.Ends[i].LID)+k] = int32(-1 - i)
		}
	}
	w.byLID[0] = 0
	return w
}

// base0 returns the number of ports of the switches so far.
func (w *network) base0() int32 {
	if s := len(w.Switches); s > 0 {
		return w.base[s-1] + int32(len(w.Switches[s-1].Links))
	}
	return 0
}

// home returns the switch of a LID, and the port of this switch to it: 0 for the switch
// itself; false: the LID is at no switch.
func (w *network) home(lid mad.LID) (s int32, port uint8, ok bool) {
	switch at := w.byLID[lid]; {
	case at > 0:
		return at - 1, 0, true
	case at < 0 && w.Ends[-1-at].Switch >= 0:
		return w.Ends[-1-at].Switch, w.Ends[-1-at].Port, true
	}
	return 0, 0, false
}

// destination is an end port with LIDs, in the order in which OpenSM routes to them.
type destination struct {
	lid      mad.LID
	count    int
	home     int32 // the switch; negative: none
	port     uint8 // of this switch; 0: it is the switch itself
	isSwitch bool
}

func (w *network) endDestination(i int32) destination {
	e := &w.Ends[i]
	return destination{lid: e.LID, count: e.Count, home: e.Switch, port: e.Port}
}

func (w *network) switchDestination(s int32) destination {
	return destination{lid: w.Switches[s].LID, count: 1, home: s, isSwitch: true}
}

// endsBehind appends the ends behind a switch, by its ports.
func (w *network) endsBehind(list []destination, s int32) []destination {
	for _, l := range w.Switches[s].Links {
		if l.Kind == ToEnd && w.Ends[l.To].Count > 0 {
			list = append(list, w.endDestination(l.To))
		}
	}
	return list
}

// byLoad returns the switches in order Q, those with the most of count first.
func (w *network) byLoad(count func(s int32) int) []int32 {
	list := make([]int32, len(w.Switches))
	load := make([]int, len(w.Switches))
	for s := range list {
		list[s], load[s] = int32(s), count(int32(s))
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(load[b], load[a]) })
	return list
}

// linksToEnds counts the links of a switch to ports that are not of switches.
func (w *network) linksToEnds(s int32) (n int) {
	for _, l := range w.Switches[s].Links {
		if l.Kind == ToEnd {
			n++
		}
	}
	return n
}

// destinations returns all end ports in the order of minhop and its relatives: those of first,
// by their GUIDs; the ends behind the switches, those with the most links to ends first; then all
// others in order Q of their port GUIDs (opensm osm_ucast_mgr.c, ucast_mgr_build_lfts).
func (w *network) destinations(first []mad.GUID) (list []destination) {
	if len(first) > 0 {
		byGUID := map[mad.GUID]destination{}
		for s := range w.Switches {
			byGUID[w.Switches[s].GUID] = w.switchDestination(int32(s))
		}
		for i := range w.Ends {
			if w.Ends[i].Count > 0 {
				byGUID[w.Ends[i].GUID] = w.endDestination(int32(i))
			}
		}
		seen := map[mad.LID]bool{}
		for _, guid := range first {
			if d, ok := byGUID[guid]; ok && !seen[d.lid] {
				list, seen[d.lid] = append(list, d), true
			}
		}
		rest := w.destinations(nil)
		return append(list, slices.DeleteFunc(rest, func(d destination) bool { return seen[d.lid] })...)
	}
	for _, s := range w.byLoad(w.linksToEnds) {
		list = w.endsBehind(list, s)
	}
	type other struct {
		guid mad.GUID
		destination
	}
	var others []other
	for s := range w.Switches {
		others = append(others, other{w.Switches[s].GUID, w.switchDestination(int32(s))})
	}
	for i := range w.Ends {
		if e := &w.Ends[i]; e.Switch < 0 && e.Count > 0 {
			others = append(others, other{e.GUID, w.endDestination(int32(i))})
		}
	}
	slices.SortStableFunc(others, func(a, b other) int { return compareQ(a.guid, b.guid) })
	for _, o := range others {
		list = append(list, o.destination)
	}
	return list
}
