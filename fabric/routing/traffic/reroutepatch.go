package traffic

import (
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// patches are what the switches that differ change in the paths to LIDs that both
// tables have, where the endpoints are the same.
type patches struct {
	x         *reroute
	was, is   []bool  // LIDs that are patched: of the older tables, of the newer
	lid       []int32 // of the newer tables, by that of the older
	different []int32 // switches that are not alike
	work      []patchWork
}

// patchWork is what a worker has found, and its memory.
type patchWork struct {
	found Rerouted
	gone  []int64 // load that is gone, at most 0, by channel of the older graph
	come  []int64 // load that is new, by channel of the newer
	at    []int32 // switches that send packets to the LID elsewhere
	isAt  []bool  // by switch of the older graph: it is one of them
	first []int64 // by such a switch: packets that come to it before any other of them
}

// fewSwitches is which part of the switches may differ, at most: to patch the paths
// behind more of them takes longer than to follow all again.
const fewSwitches = 8

// newPatches finds the LIDs that can be patched.
func (x *reroute) newPatches(olds, news *verify.Endpoints) *patches {
	g, o := x.new.Graph(), x.old.Graph()
	p := &patches{x: x, was: make([]bool, int(o.Top())+1), is: make([]bool, int(g.Top())+1), lid: make([]int32, int(o.Top())+1), work: make([]patchWork, o.Workers())}
	for s, alike := range x.alike {
		if !alike {
			p.different = append(p.different, int32(s))
		}
	}
	if len(g.Switches()) != len(o.Switches()) || len(p.different) > len(g.Switches())/fewSwitches {
		return p
	}
	for s, was := range x.switches {
		if was < 0 || news.On[s] != olds.On[was] || int64(news.On[s]) != x.on[s] {
			return p
		}
	}
	for lid, was := range x.was {
		if was < 0 || !news.Wanted[lid] || int(was) >= int(o.Top())+1 || !olds.Wanted[was] {
			continue
		}
		if x.terminals[g.TerminalByLID(mad.LID(lid))] == int32(o.TerminalByLID(mad.LID(was))) { // else two ports have one LID
			p.is[lid], p.was[was], p.lid[was] = true, true, int32(lid)
		}
	}
	return p
}

// patch takes the packets to a LID that come to a switch that differs off the cables
// behind it, and puts them on those that they take now. w has followed the older
// paths, and has the endpoints behind each switch.
func (p *patches) patch(worker int, w *verify.Walk, was mad.LID) {
	lid := int(p.lid[was])
	if !p.x.differs[lid] {
		return
	}
	m := &p.work[worker]
	if m.isAt == nil {
		m.isAt, m.first = make([]bool, len(w.State)), make([]int64, len(w.State))
		m.gone, m.come = make([]int64, len(w.Graph.Channels())), make([]int64, len(p.x.new.Graph().Channels()))
	}
	arrive := true
	m.at = m.at[:0]
	for _, s := range p.different {
		if of := p.x.switches[s]; w.State[of] != verify.Unknown && p.x.hopDiffers(s, lid, int(was)) {
			m.at = append(m.at, s)
			m.first[s], m.isAt[of] = int64(w.Flow[of]), true
			arrive = arrive && w.State[of] >= 0
		}
	}
	if arrive {
		p.take(m, w)
		p.put(m, lid)
	} else { // how many packets come there is not known: they are followed again
		p.is[lid] = false
		for _, s := range w.Order {
			if c := w.Via[s]; c >= 0 && w.State[s] >= 0 {
				m.gone[c] -= int64(w.Flow[s])
			}
		}
	}
	for _, s := range m.at {
		m.isAt[p.x.switches[s]] = false
	}
}

// take takes off the packets, up to where the next switch that differs does so.
func (p *patches) take(m *patchWork, w *verify.Walk) {
	for _, s := range m.at {
		at := p.x.switches[s]
		n := int64(w.Flow[at])
		for w.Via[at] >= 0 {
			m.gone[w.Via[at]] -= n
			if at = w.Graph.ChannelTo(w.Via[at]); m.isAt[at] {
				m.first[p.newer(m, at)] -= n
				break
			}
		}
	}
}

// newer is the number in the newer graph of a switch that differs.
func (p *patches) newer(m *patchWork, old int32) int32 {
	for _, s := range m.at {
		if p.x.switches[s] == old {
			return s
		}
	}
	return graph.NoChannel
}

// put puts the packets on their cables, if they arrive.
func (p *patches) put(m *patchWork, lid int) {
	g := p.x.new.Graph()
	t := int32(g.TerminalByLID(mad.LID(lid)))
	for _, s := range m.at {
		n := m.first[s]
		if n == 0 {
			continue
		}
		arrives := p.load(m.come, s, lid, n)
		if int(s) == g.Terminals()[t].Switch {
			n-- // not to itself
		}
		m.found.Pairs += n
		if !arrives {
			m.found.Broken += n
		}
	}
}

// load adds n packets from switch s to a LID to the load, if they arrive.
func (p *patches) load(load []int64, s int32, lid int, n int64) bool {
	g := p.x.new.Graph()
	t := int32(g.TerminalByLID(mad.LID(lid)))
	var way [64]int32
	path := way[:0]
	for at := s; len(path) <= len(g.Switches()); {
		target := g.Target(at, p.x.new.Entry(at, mad.LID(lid)))
		if target < 0 {
			if target != graph.ToTerminal(t) {
				return false
			}
			for _, c := range path {
				load[c] += n
			}
			return true
		}
		path = append(path, target.Channel())
		at = g.ChannelTo(target.Channel())
	}
	return false // a loop
}

// found adds up what the workers have found.
func (p *patches) found() Rerouted {
	var sum Rerouted
	for i := range p.work {
		sum.add(p.work[i].found)
	}
	return sum
}

func (r *Rerouted) add(f Rerouted) {
	r.Pairs += f.Pairs
	r.Broken += f.Broken
}
