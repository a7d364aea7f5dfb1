package state

import (
	"fabsh/fabric"
	"fabsh/mad"
)

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
	if s.Adaptive == nil {
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
				network[i].Links.Add(index[p.Peer.Node], p.Num)
			}
		}
	}
	// Hosts have the first numbers, so that routes to aggregation nodes do not change theirs;
	// those of each plane have their own.
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
