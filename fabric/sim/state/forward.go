package state

import (
	"encoding/binary"

	"fabsh/fabric"
	"fabsh/mad"
)

// DirectionBit is D, the top bit of a directed-route SMP's status: the SMP is on its way
// back (IBA 14.2.1.2).
const DirectionBit = 0x80

// MaxLIDHops is the number of hops after which a packet in a forwarding loop is dropped.
// Real switches drop it by its time in the fabric (IBA 18.2.5.4), also without a notice.
const MaxLIDHops = 64

// DRLIDs are DrSLID and DrDLID of a directed-route SMP: the LIDs of the ports at
// which the LID-routed parts before and behind the directed one begin and end;
// permissive: there is no such part.
func DRLIDs(m []byte) (slid, dlid mad.LID) {
	return mad.LID(binary.BigEndian.Uint16(m[mad.SMPDrSLIDOffset:])), mad.LID(binary.BigEndian.Uint16(m[mad.SMPDrSLIDOffset+2:]))
}

// ForwardDirected follows the route of directed-route SMP m from port from, and
// returns the port at which it arrives, and the one at which the directed part
// ended; nil if it is dropped. Then m is as the requester gets it back: with the
// return path, hop pointer 0, and D set.
//
// The rules are in IBA 14.2.2 (C14-9 for requests, C14-13 for responses).
// An SMP whose lid is not permissive is routed there by LID first, and if DrDLID
// is not permissive, by LID again from the end of the directed part.
func ForwardDirected(from *Port, lid mad.LID, m []byte) (in, end *Port) {
	hops := int(m[mad.HopCountOffset])
	if m[mad.HopPointerOffset] != 0 || m[mad.StatusOffset]&DirectionBit != 0 || hops > mad.MaxHops {
		return nil, nil
	}
	drSLID, drDLID := DRLIDs(m)
	at := from
	if lid != mad.PermissiveLID {
		if drSLID == mad.PermissiveLID { // no answer could come back
			return nil, nil
		}
		if at = ForwardLID(from, lid, true); at == nil {
			return nil, nil
		}
	}
	initial, back := m[mad.SMPInitialPathOffset:], m[mad.SMPReturnPathOffset:]
	for hop := 1; hop <= hops; hop++ {
		exit := at.exitPort(initial[hop], at == from && hop == 1)
		if exit == nil {
			return nil, nil
		}
		if at = exit.Neighbour(); at == nil {
			return nil, nil
		}
		back[hop] = at.Num
	}
	end = at
	if drDLID != mad.PermissiveLID {
		if !at.Node.IsSwitch && at != from && !at.hasLID(drDLID) { // only switches forward
			return nil, nil
		}
		if at = ForwardLID(at, drDLID, true); at == nil {
			return nil, nil
		}
	}
	m[mad.StatusOffset] |= DirectionBit
	return at, end
}

// CanReturn reports whether the answer to SMP m, which ForwardDirected forwarded from
// from to in, past end, can return. It cannot if the Set itself took down a link of the
// route.
func CanReturn(from, in, end *Port, m []byte) bool {
	drSLID, drDLID := DRLIDs(m)
	if drDLID != mad.PermissiveLID && !Arrives(in, end) {
		return false
	}
	at, back := end, m[mad.SMPReturnPathOffset:]
	for hop := int(m[mad.HopCountOffset]); hop >= 1; hop-- {
		if at = at.Node.Ports[back[hop]].Neighbour(); at == nil {
			return false
		}
	}
	if drSLID == mad.PermissiveLID {
		return true
	}
	to := ForwardLID(at, drSLID, true)
	return to != nil && to.EndPort() == from.EndPort()
}

// Arrives reports whether an SMP from a port arrives at the LID of another.
func Arrives(from, to *Port) bool {
	at := ForwardLID(from, to.EndPort().LID, true)
	return at != nil && at.EndPort() == to.EndPort()
}

// exitPort is port num of the node that a directed route reached at p, to leave
// through it; nil if it cannot.
func (p *Port) exitPort(num uint8, first bool) *Port {
	switch {
	case num == 0 || int(num) >= len(p.Node.Ports):
		return nil
	case !p.Node.IsSwitch && (!first || num != p.Num): // only switches forward
		return nil
	}
	return &p.Node.Ports[num]
}

// ForwardLID follows the linear forwarding tables from port from to dlid, and
// returns the port at which the packet arrives (of a switch: comes in); nil if it
// is dropped. All but SMPs need links that are active at both ends (IBA 7.2.7).
func ForwardLID(from *Port, dlid mad.LID, smp bool) *Port {
	if dlid == 0 || dlid > mad.MaxUnicastLID {
		return nil
	}
	at := from
	for range MaxLIDHops {
		out, arrived := at.NextHop(dlid, at == from)
		if arrived {
			return at
		}
		if out == nil || !smp && !out.Active() {
			return nil
		}
		if at = out.Neighbour(); at == nil {
			return nil
		}
	}
	return nil
}

// NextHop returns where a packet to dlid goes that came in through p, or is sent from p:
// it has arrived, or it leaves through out; nil: it is dropped.
func (p *Port) NextHop(dlid mad.LID, sent bool) (out *Port, arrived bool) {
	n := p.Node
	if !n.IsSwitch {
		switch {
		case p.hasLID(dlid):
			return nil, true
		case sent:
			return p, false
		}
		return nil, false
	}
	num := n.lftEntry(dlid)
	if n.Adaptive.Active() {
		num = n.adaptivePort(p.Num, dlid)
	}
	return n.Leave(num, dlid)
}

// Leave returns the next hop of a packet that the switch forwards through port num, as NextHop.
func (n *Node) Leave(num uint8, dlid mad.LID) (out *Port, arrived bool) {
	switch {
	case num == 0:
		return nil, n.Ports[0].hasLID(dlid)
	case int(num) >= len(n.Ports):
		return nil, false
	}
	return &n.Ports[num], false
}

// InvalidateTables gives all switches tables for the links that are up, which are
// computed when they are needed.
func (s *Subnet) InvalidateTables() {
	s.tableTop = s.topLID()
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsSwitch {
			n.LFT = nil
			n.SetTop(s.tableTop)
		}
	}
	s.TablesStale.Store(true)
}

// EnsureTables computes the tables of all switches, if they have changed. It must be
// called before a link or a LID changes, and before a table is read or written. The
// lock may be held for reading only.
func (s *Subnet) EnsureTables() {
	if s.TablesStale.Load() {
		s.computeTables()
	}
}

func (s *Subnet) computeTables() {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	if !s.TablesStale.Load() {
		return
	}
	switches, network, planes := s.network()
	if s.Router != nil {
		for i, table := range s.Router.Tables(s, switches) {
			switches[i].LFT = table
		}
	} else if s.Adaptive == nil {
		for i, table := range computeLFTs(network, s.tableTop) {
			switches[i].LFT = table
		}
	} else {
		tables, choices := computeAdaptiveLFTs(network, s.tableTop, s.Adaptive.AdaptiveOptions)
		for i, n := range switches {
			n.LFT = tables[i]
			n.Adaptive.setTable(choices[i])
		}
	}
	s.joinPlanes(switches, network, planes)
	for _, n := range switches {
		n.repeatFaults()
	}
	s.TablesStale.Store(false)
}

// network returns the switches, what determines their tables, and their planes.
func (s *Subnet) network() (switches []*Node, network []lftSwitch, planes []int) {
	index := map[*Node]uint16{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsSwitch {
			index[n] = uint16(len(switches))
			switches = append(switches, n)
		}
	}
	network = make([]lftSwitch, len(switches))
	for i, n := range switches {
		network[i].Ports = len(n.Ports)
		network[i].Destinations = []lftDestination{{LID: n.Ports[0].LID, Number: int32(i)}}
		for j := range n.Ports[1:] {
			p := &n.Ports[1+j]
			if p.Up && !p.FNM && p.Peer.Node.IsSwitch && p.Peer.Node != n {
				network[i].Links.add(index[p.Peer.Node], p.Num)
			}
		}
	}
	// Hosts have the first numbers, so that routes to aggregation nodes do not change theirs;
	// each plane has numbers of its own.
	planes = s.planesOf(switches)
	numbers := make([]int32, len(switches))
	for _, inner := range []bool{false, true} {
		for i := range s.Ports {
			p := &s.Ports[i]
			if p.Node.IsSwitch || p.LID == 0 || !p.Up || !p.Peer.Node.IsSwitch || inner != (p.Node.Kind == fabric.KindAggregation) {
				continue
			}
			at := index[p.Peer.Node]
			sw, plane := &network[at], planes[at]
			for l := range 1 << p.LMC {
				sw.Destinations = append(sw.Destinations, lftDestination{LID: p.LID + mad.LID(l), Port: p.Peer.Num, Number: numbers[plane]})
			}
			for _, v := range p.Virtual {
				if v.LID != 0 {
					sw.Destinations = append(sw.Destinations, lftDestination{LID: v.LID, Port: p.Peer.Num, Number: numbers[plane]})
				}
			}
			sw.Hosts = sw.Hosts || !inner
			numbers[plane]++
		}
	}
	return switches, network, planes
}

// Switches of different planes are linked by FNM ports alone. Tables are computed for each
// plane by itself; a packet to another plane crosses at the first switch, and then follows
// the tables there, so planes add no credit loops.

// Planes is the number of planes that the ports of a node belong to: a switch is in one, and
// its device in as many as its FNM ports lead to, and its own.
func (n *Node) Planes() int {
	sw := n
	for i := range n.Ports[1:] {
		if p := &n.Ports[1+i]; !n.IsSwitch && p.Peer != nil {
			sw = p.Peer.Node
		}
	}
	planes := 1
	for i := range sw.Ports {
		if sw.Ports[i].FNM {
			planes++
		}
	}
	if n.Kind == fabric.KindAggregation {
		return 1
	}
	return planes
}

// planesOf returns the plane of each switch: switches that links join are in one.
// Without FNM ports, all are in plane 0.
func (s *Subnet) planesOf(switches []*Node) []int {
	plane := make([]int, len(switches))
	if !s.HasPlanes {
		return plane
	}
	number := map[*Node]int{} // from 1
	index := map[*Node]int{}
	for i, n := range switches {
		index[n] = i
	}
	for i, n := range switches {
		if number[n] != 0 {
			continue
		}
		number[n] = i + 1
		for queue := []*Node{n}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			plane[index[at]] = i
			for j := range at.Ports[1:] {
				p := &at.Ports[1+j]
				if p.Up && !p.FNM && p.Peer.Node.IsSwitch && number[p.Peer.Node] == 0 {
					number[p.Peer.Node] = i + 1
					queue = append(queue, p.Peer.Node)
				}
			}
		}
	}
	return plane
}

// joinPlanes adds to the tables the routes to other planes.
func (s *Subnet) joinPlanes(switches []*Node, network []lftSwitch, plane []int) {
	if !s.HasPlanes {
		return
	}
	index := map[*Node]int{}
	for i, n := range switches {
		index[n] = i
	}
	for i, n := range switches {
		for j := range n.Ports[1:] {
			p := &n.Ports[1+j]
			if !p.Up || !p.FNM || !p.Peer.Node.IsSwitch || plane[index[p.Peer.Node]] == plane[i] {
				continue
			}
			for to := range network {
				if plane[to] != plane[index[p.Peer.Node]] {
					continue
				}
				for _, d := range network[to].Destinations {
					n.LFT[d.LID] = p.Num
				}
			}
		}
	}
}
