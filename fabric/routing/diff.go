package routing

import (
	"bytes"
	"context"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// Diff is what changes in the tables from one Routes to another.
type Diff struct {
	Switches []SwitchDiff // those with changes, by number
	Entries  int
	Blocks   int       // that would be written
	LIDs     []mad.LID // those with a change on some switch
}

// SwitchDiff is what changes in the table of one switch.
type SwitchDiff struct {
	Switch  int // in the graph of the new tables
	Entries int
	Blocks  []int
}

// Diff compares r with the tables before it. Where the graphs differ, switches are
// matched by GUID, and all entries of a new one count.
//
// Time: O(S*L).
func (r *Routes) Diff(old *Routes) *Diff {
	old = old.seenOn(r.graph)
	blocks := max(r.stride, old.stride) / block
	changed := make([]bool, blocks*block)
	d := &Diff{}
	for s := range r.graph.switches {
		sd := SwitchDiff{Switch: s}
		for i := range blocks {
			x, y := old.block(s, i), r.block(s, i)
			if bytes.Equal(x, y) {
				continue
			}
			sd.Blocks = append(sd.Blocks, i)
			for j := range y {
				if x[j] != y[j] {
					sd.Entries++
					changed[i*block+j] = true
				}
			}
		}
		if sd.Entries > 0 {
			d.Switches = append(d.Switches, sd)
			d.Entries += sd.Entries
			d.Blocks += len(sd.Blocks)
		}
	}
	for lid, is := range changed {
		if is {
			d.LIDs = append(d.LIDs, mad.LID(lid))
		}
	}
	return d
}

// dropped is a block beyond the end of a table.
var dropped = bytes.Repeat([]byte{NoPort}, block)

// block is block i of the table of switch s. Rows are filled up with NoPort.
func (r *Routes) block(s, i int) []byte {
	if (i+1)*block > r.stride {
		return dropped
	}
	return r.lft[s*r.stride+i*block:][:block]
}

// Rerouted is what became of paths from one Routes to another.
type Rerouted struct {
	// Pairs are those of an endpoint and a LID of another whose packets take other
	// cables, or other ports, than before: they leave a switch through another
	// port, or what is behind the port is another switch or endpoint.
	Pairs int64
	// Broken are those of Pairs whose packets do not arrive any more.
	Broken int64
	// Before and After are the most routes on a link, as Balance counts them; 0
	// where Pairs is.
	Before, After int64
}

// Rerouted compares the paths of r with those of old, between CAs and routers that
// both have. before is the port of the older fabric that a port of the newer one
// is; nil: there is none.
//
// Time: O(S) for each LID whose paths may differ, and O(S*L) to find these.
func (r *Routes) Rerouted(ctx context.Context, old *Routes, before func(*fabric.Port) *fabric.Port) (Rerouted, error) {
	x := &reroute{new: r, old: old, switches: make([]int32, len(r.graph.switches))}
	x.pair(before)
	x.compare()
	found := make([]Rerouted, r.graph.workers)
	memory := make([][]int8, r.graph.workers)
	err := r.graph.each(ctx, len(r.graph.terminals), func(worker, t int) {
		if memory[worker] == nil {
			memory[worker] = make([]int8, len(x.switches))
		}
		x.count(t, memory[worker], &found[worker])
	})
	var sum Rerouted
	for _, f := range found {
		sum.Pairs += f.Pairs
		sum.Broken += f.Broken
	}
	if err != nil || sum.Pairs == 0 {
		return sum, err
	}
	for of, most := range map[*Routes]*int64{old: &sum.Before, r: &sum.After} {
		loads, err := of.load(ctx)
		if err != nil {
			return sum, err
		}
		*most = distributionOf(loads).Max
	}
	return sum, nil
}

// reroute is a comparison of paths. Numbers are those of the newer graph.
type reroute struct {
	new, old  *Routes
	switches  []int32  // the older number of a switch, or -1
	terminals []int32  // and of a terminal
	ports     [][]bool // by switch: the ports behind which there is something else
	on        []int64  // endpoints that both have, by switch
	was       []int32  // the older LID of a LID of an endpoint, or -1
	differs   []bool   // by LID: some hop towards it differs
}

// pair finds the older numbers, and the ports that lead elsewhere.
func (x *reroute) pair(before func(*fabric.Port) *fabric.Port) {
	g, o := x.new.graph, x.old.graph
	x.terminals = slices.Repeat([]int32{-1}, len(g.terminals))
	x.on = make([]int64, len(g.switches))
	for t := range g.terminals {
		if p := before(g.terminals[t].Port); p != nil {
			x.terminals[t] = int32(o.TerminalOf(p))
		}
		if e := &g.terminals[t]; e.Switch >= 0 && e.Out > 0 && x.terminals[t] >= 0 {
			x.on[e.Switch]++
		}
	}
	x.ports = make([][]bool, len(g.switches))
	for s, n := range g.switches {
		x.switches[s] = -1
		if p := before(n.Port(0)); p != nil {
			x.switches[s] = int32(o.SwitchOf(p.Node()))
		}
		for p := range n.Ports() {
			was := before(p)
			same := was != nil && (was.Peer() == nil) == (p.Peer() == nil)
			if same && p.Peer() != nil {
				same = before(p.Peer()) == was.Peer()
			}
			if same {
				continue
			}
			if x.ports[s] == nil {
				x.ports[s] = make([]bool, n.NumPorts()+1)
			}
			x.ports[s][p.Num()] = true
		}
	}
}

// What is known of the path from a switch to a destination, as bits.
const (
	pathKnown   int8 = 1 << iota
	pathChanged      // it differs
	pathDead         // it does not arrive
	pathOnStack      // it is followed now
)

// count adds the pairs whose destination is terminal t.
func (x *reroute) count(t int, state []int8, found *Rerouted) {
	g := x.new.graph
	e := &g.terminals[t]
	for lid := int(e.LID); lid < int(e.LID)+e.Count; lid++ {
		if lid >= len(x.differs) || !x.differs[lid] {
			continue
		}
		clear(state)
		for s := range g.switches {
			if x.on[s] == 0 {
				continue
			}
			n := x.on[s]
			if s == e.Switch {
				n-- // not to itself
			}
			if path := x.follow(int32(s), t, lid, int(x.was[lid]), state); path&pathChanged != 0 {
				found.Pairs += n
				if path&pathDead != 0 {
					found.Broken += n
				}
			}
		}
	}
}

// compare finds the LIDs towards which some switch sends packets through another port
// than before, or through one that leads elsewhere.
func (x *reroute) compare() {
	g, o := x.new.graph, x.old.graph
	x.was = slices.Repeat([]int32{-1}, len(g.byLID))
	x.differs = make([]bool, len(g.byLID))
	for t, e := range g.terminals {
		if x.terminals[t] < 0 || e.Switch < 0 || e.Out == 0 {
			continue
		}
		f := &o.terminals[x.terminals[t]]
		for k := range min(e.Count, f.Count) {
			if lid := int(e.LID) + k; lid < len(x.was) {
				x.was[lid] = int32(f.LID) + int32(k)
			}
		}
	}
	for s := range x.switches {
		for lid, was := range x.was {
			if was >= 0 && x.hopDiffers(int32(s), lid, int(was)) {
				x.differs[lid] = true
			}
		}
	}
}

func (x *reroute) hopDiffers(s int32, lid, was int) bool {
	p := x.new.entry(s, lid)
	return x.switches[s] < 0 || p != x.old.entry(x.switches[s], was) || x.ports[s] != nil && int(p) < len(x.ports[s]) && x.ports[s][p]
}

func (r *Routes) entry(s int32, lid int) uint8 {
	if lid > int(r.top) {
		return NoPort
	}
	return r.lft[int(s)*r.stride+lid]
}

// follow says what became of the path from switch s to terminal t. What is found on
// the way is kept in state.
func (x *reroute) follow(s int32, t, lid, was int, state []int8) int8 {
	switch {
	case state[s] == pathOnStack:
		return pathKnown | pathDead // a loop
	case state[s] != 0:
		return state[s]
	}
	g := x.new.graph
	path := pathKnown
	if x.hopDiffers(s, lid, was) {
		path |= pathChanged
	}
	switch target := g.target(s, x.new.entry(s, lid)); {
	case target >= 0:
		state[s] = pathOnStack
		path |= x.follow(g.chanTo[target], t, lid, was, state)
	case target != int32(-2-t):
		path |= pathDead
	}
	state[s] = path
	return path
}
