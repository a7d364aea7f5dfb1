package certificate

import (
	"cmp"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Subnet is what a certificate is checked against: a current fabric, and a change.
type Subnet struct {
	Fabric *fabric.Fabric
	// Table is the linear forwarding table of a switch; entries beyond its end are unused.
	Table func(sw *fabric.Node) []uint8
	// Choices returns the ports by which a switch with adaptive routing on may send packets
	// to a LID, with mad.NoPort if it may drop some; nil for a switch that follows its Table.
	// No function: all follow it.
	Choices func(sw *fabric.Node) func(to mad.LID) []uint8
	// VL is the lane on which a switch sends packets that come in by a port and leave
	// by another. It is called only if the certificate distinguishes lanes.
	VL func(sw *fabric.Node, in, out, sl uint8) uint8
	// Levels has a bit for each service level that packets of a host port to a LID may
	// have. It is called only if the certificate distinguishes lanes.
	Levels func(from *fabric.Port, to mad.LID) uint16
	// Changes are what the plan changes, by number.
	Changes []Change
}

// network is the switches of a fabric, and the links between them that are up.
type network struct {
	switches []*fabric.Node // by GUID
	index    []int32        // switch by node ID; -1: not a switch
	leads    [][]int32      // by switch and port: to a channel, or leadsToEnd(end), or nowhere
	channels []channel
	ends     []end
	byLID    []int32   // end by LID; noEnd: none
	hosts    [][]int32 // by switch: its ends that are CAs or routers with a LID
}

// channel is a direction of a link between two switches.
type channel struct {
	from, to int32
	in       uint8 // port of the switch to which it leads
	out      uint8
}

// end is where paths end: a port of a CA or router, or a switch itself.
type end struct {
	port *fabric.Port
	at   int32 // switch
	out  uint8 // its port to the end; 0: the end is the switch
}

const (
	nowhere = -1
	noEnd   = -1
)

func leadsToEnd(end int32) int32 { return -2 - end }

func newNetwork(f *fabric.Fabric) *network {
	n := &network{index: slices.Repeat([]int32{-1}, len(f.Nodes()))}
	for i := range f.Nodes() {
		if node := &f.Nodes()[i]; node.IsSwitch() {
			n.switches = append(n.switches, node)
		}
	}
	slices.SortStableFunc(n.switches, func(a, b *fabric.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	for s, sw := range n.switches {
		n.index[sw.ID()] = int32(s)
		n.leads = append(n.leads, slices.Repeat([]int32{nowhere}, sw.NumPorts()+1))
	}
	n.hosts = make([][]int32, len(n.switches))
	for s, sw := range n.switches {
		for p := range sw.Ports() {
			if to := n.behind(p); to >= 0 && to != int32(s) {
				n.leads[s][p.Num()] = int32(len(n.channels))
				n.channels = append(n.channels, channel{int32(s), to, uint8(p.Peer().Num()), uint8(p.Num())})
			}
		}
	}
	for i := range f.Ports() { // of two ports with one LID, the first of the fabric has it
		p := &f.Ports()[i]
		switch peer := p.Peer(); {
		case p.Node().IsSwitch() && p.Num() == 0:
			n.addEnd(end{p, n.index[p.Node().ID()], 0})
		case !p.Node().IsSwitch() && peer != nil:
			if at := n.behind(p); at >= 0 {
				n.addEnd(end{p, at, uint8(peer.Num())})
			} else { // its LID is assigned from those behind switches
				n.addEnd(end{p, -1, 0})
			}
		}
	}
	return n
}

// behind returns the switch that the link of p leads to; -1: none, or the link is down.
func (n *network) behind(p *fabric.Port) int32 {
	q := p.Peer()
	if q == nil || p.State() == mad.PortStateDown || q.State() == mad.PortStateDown {
		return -1
	}
	return n.index[q.Node().ID()]
}

func (n *network) addEnd(e end) {
	number, count := int32(len(n.ends)), 0
	n.ends = append(n.ends, e)
	if e.at >= 0 {
		n.leads[e.at][e.out] = leadsToEnd(number)
	}
	for lid := int(e.port.LID()); e.port.LID() != 0 && count < 1<<e.port.LMC() && lid <= int(mad.MaxUnicastLID); lid++ {
		for len(n.byLID) <= lid {
			n.byLID = append(n.byLID, noEnd)
		}
		if n.byLID[lid] != noEnd {
			break
		}
		n.byLID[lid] = number
		count++
	}
	if e.out > 0 && count > 0 {
		n.hosts[e.at] = append(n.hosts[e.at], number)
	}
}

// lead returns where a port of a switch leads.
func (n *network) lead(s int32, port uint8) int32 {
	if int(port) < len(n.leads[s]) {
		return n.leads[s][port]
	}
	return nowhere
}

// endOf returns the end of a LID to which packets are sent.
func (n *network) endOf(lid int) int32 {
	if lid >= len(n.byLID) || n.byLID[lid] == noEnd || n.ends[n.byLID[lid]].at < 0 {
		return noEnd
	}
	return n.byLID[lid]
}

// drain returns the longest time that packets stay in the two switches of a channel: by the
// longest HOQLife of each, in units of 4.096 us times two to its power; above 19 it has
// no limit (IBA 14.2.5.6), and ok is false.
func (n *network) drain() (longest time.Duration, ok bool) {
	stay := make([]time.Duration, len(n.switches))
	for s, sw := range n.switches {
		for p := range sw.Ports() {
			switch info := p.Info(); {
			case p.Peer() == nil:
			case info == nil || info.HOQLife > 19:
				return 0, false
			default:
				stay[s] = max(stay[s], 4096*time.Nanosecond<<info.HOQLife)
			}
		}
	}
	longest = 1
	for _, c := range n.channels {
		longest = max(longest, stay[c.from]+stay[c.to])
	}
	return longest, true
}
