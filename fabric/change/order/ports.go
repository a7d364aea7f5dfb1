package order

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// PortsInput is a set of links that are to be disabled.
type PortsInput struct {
	Graph *routing.Graph
	Ports []*fabric.Port // one of each link
	// Last are LIDs whose links are disabled last: those of the subnet manager,
	// of the SA, and of this host.
	Last []mad.LID
	// Host is the port of this host: of a link between switches the nearer side
	// is disabled, so that it can be enabled again. Nil: the first of Last.
	Host *fabric.Port
	// Max is how many links may be disabled; 0: 10, or one of 200 if that is more.
	Max int
	// AcceptLost disables links even where pairs lose their last path.
	AcceptLost bool
	// Tables, if not nil, are those in force when the links go: their paths over
	// the links are counted.
	Tables *routing.Routes
}

// PortsPlan is how links are disabled: in this order, each at this port.
type PortsPlan struct {
	Disable []*fabric.Port
	Links   int   // of the fabric that are up
	Lost    int64 // ordered pairs of endpoints without any path left
	Routed  int64 // entries of Tables that lead over the links: their packets are dropped until the tables change
}

// Ports plans to disable links. The error is a *Refusal if they are too many, or if a
// pair of CAs or routers would lose its last path.
//
// Time: O(S*L) with tables, else O(C).
func Ports(in PortsInput) (*PortsPlan, error) {
	t := newNet(in.Graph)
	p := &PortsPlan{Links: len(t.channels) / 2}
	for _, e := range t.terminals {
		if e.Out > 0 && e.Switch >= 0 {
			p.Links++
		}
	}
	hops := t.hopsFrom(in.host(t))
	gone := map[*fabric.Port]bool{}
	for _, port := range in.Ports {
		if port.Peer() == nil {
			return nil, fmt.Errorf("disable %s: it has no link", port.Label())
		}
		side, err := t.side(port, hops)
		if err != nil {
			return nil, err
		}
		if !gone[side] {
			gone[side], gone[side.Peer()] = true, true
			p.Disable = append(p.Disable, side)
		}
	}
	limit := in.Max
	if limit == 0 {
		limit = max(10, p.Links/200)
	}
	if len(p.Disable) > limit {
		return p, &Refusal{Round: -1, Reason: fmt.Sprintf("%d links of %d would be disabled, more than %d", len(p.Disable), p.Links, limit), Hint: "disable them in parts, or allow more"}
	}
	last := in.lastSwitches(t)
	slices.SortStableFunc(p.Disable, func(a, b *fabric.Port) int { return last(a) - last(b) })
	if in.Tables != nil {
		p.Routed = t.routedOver(in.Tables, p.Disable)
	}
	var example string
	if p.Lost, example = t.separated(gone); p.Lost > 0 && !in.AcceptLost {
		return p, &Refusal{Round: -1, Reason: fmt.Sprintf("%d pairs would lose their last path: as %s", p.Lost, example), Hint: "leave one link of each, or accept the loss"}
	}
	return p, nil
}

// host is the switch of this host, or -1.
func (in *PortsInput) host(t *net) int {
	port := in.Host
	if port == nil && len(in.Last) > 0 {
		if i := t.g.TerminalByLID(in.Last[0]); i >= 0 {
			return t.terminals[i].Switch
		}
	}
	if port == nil {
		return -1
	}
	if i := t.g.TerminalOf(port); i >= 0 {
		return t.terminals[i].Switch
	}
	return -1
}

// hopsFrom are the distances from a switch, by switch; -1: not reached.
func (t *net) hopsFrom(s int) []int32 {
	hops := slices.Repeat([]int32{-1}, t.n)
	if s < 0 {
		return hops
	}
	hops[s] = 0
	queue := []int{s}
	for i := 0; i < len(queue); i++ {
		for c := t.chanBase[queue[i]]; c < t.chanBase[queue[i]+1]; c++ {
			if to := t.channels[c].To; hops[to] < 0 {
				hops[to] = hops[queue[i]] + 1
				queue = append(queue, int(to))
			}
		}
	}
	return hops
}

// side is the side of a link to disable: the switch's, of two that nearer to this host.
func (t *net) side(port *fabric.Port, hops []int32) (*fabric.Port, error) {
	a, b := t.g.SwitchOf(port.Node()), t.g.SwitchOf(port.Peer().Node())
	switch {
	case a < 0 && b < 0:
		return nil, fmt.Errorf("disable %s: the link is between two CAs, and nothing could enable it again from elsewhere", port.Label())
	case b < 0 || a >= 0 && uint32(hops[a]) <= uint32(hops[b]): // -1 is far
		return port, nil
	}
	return port.Peer(), nil
}

// lastSwitches says of a port whether it is at a switch of a LID of Last: 1, or 2 if
// the LID is behind it.
func (in *PortsInput) lastSwitches(t *net) func(*fabric.Port) int {
	rank := map[*fabric.Node]int{}
	for _, lid := range in.Last {
		if i := t.g.TerminalByLID(lid); i >= 0 && t.terminals[i].Switch >= 0 {
			rank[t.g.Switches()[t.terminals[i].Switch]] = 1
			rank[t.terminals[i].Port.Node()] = 2
		}
	}
	return func(p *fabric.Port) int { return max(rank[p.Node()], rank[p.Peer().Node()]) }
}

// routedOver counts the entries that lead to these ports, for LIDs of endpoints.
func (t *net) routedOver(r *routing.Routes, ports []*fabric.Port) (entries int64) {
	for _, side := range ports {
		for _, p := range []*fabric.Port{side, side.Peer()} {
			s := t.g.SwitchOf(p.Node())
			if s < 0 {
				continue
			}
			for lid, port := range r.Row(s) {
				if int(port) == p.Num() {
					if to := t.terminal(lid); to >= 0 && t.isEnd(to) {
						entries++
					}
				}
			}
		}
	}
	return entries
}

// separated counts the ordered pairs of CAs' and routers' ports that are connected now
// and are not without the links of these ports, and has one as text.
func (t *net) separated(gone map[*fabric.Port]bool) (pairs int64, example string) {
	before, after := t.parts(nil), t.parts(gone)
	count := func(of func(terminal int) [2]int32) (n int64) {
		size := map[[2]int32]int64{}
		for i, e := range t.terminals {
			if e.Switch >= 0 && e.Out > 0 {
				size[of(i)]++
			}
		}
		for _, k := range size {
			n += k * (k - 1)
		}
		return n
	}
	was := func(i int) [2]int32 { return [2]int32{before[t.terminals[i].Switch], -1} }
	is := func(i int) [2]int32 {
		if gone[t.terminals[i].Port] {
			return [2]int32{-1, int32(i)}
		}
		return [2]int32{after[t.terminals[i].Switch], -1}
	}
	pairs = count(was) - count(is)
	if pairs == 0 {
		return 0, ""
	}
	first := map[[2]int32]int{}
	for i, e := range t.terminals {
		if e.Switch < 0 || e.Out == 0 {
			continue
		}
		j, ok := first[was(i)]
		if !ok {
			first[was(i)] = i
		} else if is(j) != is(i) {
			return pairs, t.terminals[j].Port.Label() + " and " + e.Port.Label()
		}
	}
	return pairs, ""
}

// parts numbers the connected parts of the switches without some links, by switch.
func (t *net) parts(gone map[*fabric.Port]bool) []int32 {
	part := slices.Repeat([]int32{-1}, t.n)
	for root := range t.n {
		if part[root] >= 0 {
			continue
		}
		part[root] = int32(root)
		queue := []int32{int32(root)}
		for i := 0; i < len(queue); i++ {
			for c := t.chanBase[queue[i]]; c < t.chanBase[queue[i]+1]; c++ {
				if to := t.channels[c].To; part[to] < 0 && !gone[t.g.ChannelPort(int(c))] {
					part[to] = int32(root)
					queue = append(queue, to)
				}
			}
		}
	}
	return part
}
