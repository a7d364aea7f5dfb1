package verify

import (
	"context"
	"math/bits"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// Disjointness describes how far apart the paths to the LIDs of one port are (LMC, IBA
// 7.11.1): a sender that has several paths goes on where a link or a switch fails.
type Disjointness struct {
	Ports int   // endpoints with several LIDs, on a switch
	LIDs  int   // the most of one
	Pairs int64 // of an endpoint and such a port on another switch
	// Links are numbers of pairs, by how many of their paths no two of which share a
	// channel between switches: the most that can be chosen. 0: none arrives.
	Links []int64
	// Switches are the numbers of pairs for paths that share no switch but the first and the last.
	Switches []int64
}

// measureDisjointness measures the disjointness of the paths between endpoints; nil: no endpoint has
// several LIDs.
//
// Time: O(P) for each LID of several and each switch with endpoints, P links a path.
func measureDisjointness(ctx context.Context, r *routes.Routes, e *Endpoints) (*Disjointness, error) {
	g := r.Graph()
	var several []int
	for i := range g.Terminals() {
		if t := &g.Terminals()[i]; e.Is[i] && t.Count > 1 && t.Switch >= 0 {
			several = append(several, i)
		}
	}
	if len(several) == 0 {
		return nil, nil
	}
	type worker struct {
		*Siblings
		sum Disjointness
	}
	workers := make([]worker, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(several), func(number, i int) {
		x := &workers[number]
		if x.Siblings == nil {
			x.Siblings = NewSiblings(g)
		}
		t := &g.Terminals()[several[i]]
		x.Read(r, t)
		for _, s := range e.Sources {
			if int(s) != t.Switch {
				links, switches := x.Disjoint(s, t)
				x.sum.count(links, switches, t.Count, int64(e.On[s]))
			}
		}
	})
	d := &Disjointness{Ports: len(several)}
	for _, i := range several {
		d.LIDs = max(d.LIDs, g.Terminals()[i].Count)
	}
	d.Links, d.Switches = make([]int64, d.LIDs+1), make([]int64, d.LIDs+1)
	for _, x := range workers {
		d.Pairs += x.sum.Pairs
		for n := range x.sum.Links {
			d.Links[n] += x.sum.Links[n]
			d.Switches[n] += x.sum.Switches[n]
		}
	}
	return d, err
}

// count adds pairs with so many disjoint paths, of a port with so many LIDs.
func (d *Disjointness) count(links, switches, lids int, pairs int64) {
	d.Pairs += pairs
	d.Links, d.Switches = grow(d.Links, lids), grow(d.Switches, lids)
	d.Links[links] += pairs
	d.Switches[switches] += pairs
}

// Siblings follow the paths to all LIDs of one port.
type Siblings struct {
	Graph *graph.Graph
	Via   [][]int32 // by LID, then switch: the channel, or NoChannel

	marked   []lidSet // by channel: LIDs whose path from one switch takes it
	passed   []lidSet // by switch: LIDs whose path passes through it
	links    []int32  // channels to forget
	switches []int32  // switches to forget
	conflict [2][]lidSet
}

// NewSiblings makes Siblings without paths, for tables of g.
func NewSiblings(g *graph.Graph) *Siblings {
	return &Siblings{Graph: g, marked: make([]lidSet, len(g.Channels())), passed: make([]lidSet, len(g.Switches()))}
}

// Read reads the paths to the LIDs of t.
func (x *Siblings) Read(r *routes.Routes, t *graph.Terminal) {
	for len(x.Via) < t.Count {
		x.Via = append(x.Via, make([]int32, len(x.Graph.Switches())))
	}
	for s := range x.Graph.Switches() {
		row := r.Row(s)[t.LID:]
		for i := range t.Count {
			x.Via[i][s] = max(graph.NoChannel, x.Graph.Target(int32(s), row[i]).Channel())
		}
	}
}

// Disjoint returns how many paths from switch s to t are disjoint, in links and in switches.
func (x *Siblings) Disjoint(s int32, t *graph.Terminal) (links, switches int) {
	var arrive lidSet
	for k := range x.conflict {
		x.conflict[k] = append(x.conflict[k][:0], make([]lidSet, t.Count)...)
	}
	for i := range t.Count {
		if x.Mark(s, int32(t.Switch), i) {
			arrive.add(i)
		}
	}
	for i := range t.Count {
		at := s
		for steps := 0; at != int32(t.Switch) && steps < len(x.Graph.Switches()) && x.Via[i][at] >= 0; steps++ {
			c := x.Via[i][at]
			x.conflict[0][i].or(&x.marked[c])
			if at = x.Graph.ChannelTo(c); at != int32(t.Switch) {
				x.conflict[1][i].or(&x.passed[at])
			}
			x.conflict[1][i].or(&x.marked[c])
		}
	}
	x.Forget()
	budget := [2]int{maxSearch, maxSearch}
	return mostApart(arrive, x.conflict[0], &budget[0]), mostApart(arrive, x.conflict[1], &budget[1])
}

// Mark marks the path from switch s to switch home by LID i; false: it does not
// arrive there.
func (x *Siblings) Mark(s, home int32, i int) bool {
	at := s
	for range x.Graph.Switches() {
		if at == home {
			return true
		}
		c := x.Via[i][at]
		if c < 0 {
			return false
		}
		x.marked[c].add(i)
		x.links = append(x.links, c)
		if at = x.Graph.ChannelTo(c); at != home {
			x.passed[at].add(i)
			x.switches = append(x.switches, at)
		}
	}
	return false
}

// Unmark takes the marks of LID i from the path that Mark marked.
func (x *Siblings) Unmark(s, home int32, i int) {
	var one lidSet
	one.add(i)
	for range x.Graph.Switches() {
		c := x.Via[i][s]
		if s == home || c < 0 {
			return
		}
		x.marked[c].not(&one)
		s = x.Graph.ChannelTo(c)
		x.passed[s].not(&one)
	}
}

// Takes reports whether a marked path takes channel c.
func (x *Siblings) Takes(c int32) bool { return x.marked[c] != (lidSet{}) }

// Passes reports whether a marked path passes through switch s.
func (x *Siblings) Passes(s int32) bool { return x.passed[s] != (lidSet{}) }

// Forget takes all marks away.
func (x *Siblings) Forget() {
	for _, c := range x.links {
		x.marked[c] = lidSet{}
	}
	for _, s := range x.switches {
		x.passed[s] = lidSet{}
	}
	x.links, x.switches = x.links[:0], x.switches[:0]
}

// maxSearch bounds the search for disjoint paths. With more steps, what is found is a
// lower bound: paths are taken as they come.
const maxSearch = 1 << 12

// mostApart is how many of rest can be chosen such that no two are in conflict: a
// greatest independent set. A LID whose conflicts are all with each other too can be
// chosen at once, and nearly always is.
func mostApart(rest lidSet, conflict []lidSet, budget *int) int {
	n := 0
	for i := rest.first(); i >= 0; i = rest.first() {
		near := lidSet{conflict[i][0] & rest[0], conflict[i][1] & rest[1]}
		near.add(i)
		if *budget--; *budget > 0 && !conflictAll(near, conflict) {
			with, without := rest, rest
			with.not(&near)
			one := lidSet{}
			one.add(i)
			without.not(&one)
			return n + max(1+mostApart(with, conflict, budget), mostApart(without, conflict, budget))
		}
		n++
		rest.not(&near)
	}
	return n
}

// conflictAll reports whether all of set are in conflict with each other.
func conflictAll(set lidSet, conflict []lidSet) bool {
	left := set
	for i := left.first(); i >= 0; i = left.first() {
		one := lidSet{}
		one.add(i)
		left.not(&one)
		if missing := left; missing.size() > 0 {
			missing.not(&conflict[i])
			if missing.size() > 0 {
				return false
			}
		}
	}
	return true
}

// lidSet are some of the LIDs of a port, by offset: there are 128 at most.
type lidSet [2]uint64

func (s *lidSet) add(i int)     { s[i/64] |= 1 << (i % 64) }
func (s *lidSet) or(o *lidSet)  { s[0], s[1] = s[0]|o[0], s[1]|o[1] }
func (s *lidSet) not(o *lidSet) { s[0], s[1] = s[0]&^o[0], s[1]&^o[1] }
func (s *lidSet) size() int     { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }
func (s *lidSet) first() int { // -1: it is empty
	switch {
	case s[0] != 0:
		return bits.TrailingZeros64(s[0])
	case s[1] != 0:
		return 64 + bits.TrailingZeros64(s[1])
	}
	return -1
}
