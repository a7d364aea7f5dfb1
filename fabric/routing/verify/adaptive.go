package verify

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Adaptive is what is known of adaptive routing in the switches.
type Adaptive uint8

const (
	AdaptiveUndetermined Adaptive = iota // nothing could be read on it
	AdaptiveOff
	AdaptiveOn      // all switches route adaptively; as an option: packets take other paths than the tables say
	AdaptiveMinimal // or, at each switch, any port of a shortest path
	AdaptiveUpDown  // or any port of a path that goes up and then down
	AdaptiveMixed   // some switches do
	AdaptiveUnknown // it is on, or may be, but what switches do is unknown
)

// Word is "off", "on", "mixed" or "unknown"; "": not determined, or a choice was assumed.
func (a Adaptive) Word() string {
	switch a {
	case AdaptiveOff:
		return "off"
	case AdaptiveOn:
		return "on"
	case AdaptiveMixed:
		return "mixed"
	case AdaptiveUnknown:
		return "unknown"
	}
	return ""
}

// AdaptiveWords are the ports that switches may choose from, by name.
func AdaptiveWords() []string { return []string{"minimal", "updown"} }

// ParseAdaptive is the Adaptive of one of AdaptiveWords.
func ParseAdaptive(word string) (Adaptive, error) {
	i := slices.Index(AdaptiveWords(), word)
	if i < 0 {
		return 0, fmt.Errorf("unknown set of ports %q; supported: %s", word, strings.Join(AdaptiveWords(), ", "))
	}
	return AdaptiveMinimal + Adaptive(i), nil
}

// Among is the ports that switches choose from: "minimal ports"; "" where the tables
// alone are judged.
func (a Adaptive) Among() string {
	switch a {
	case AdaptiveMinimal:
		return "minimal ports"
	case AdaptiveUpDown:
		return "legal up/down ports"
	}
	return ""
}

// note is the remark of a verdict on it, if any.
func (a Adaptive) note() string {
	switch a {
	case AdaptiveUndetermined:
		return "adaptive routing not determined"
	case AdaptiveUnknown:
		return "adaptive routing: packets take other paths than those of the tables; the verdict is unknown"
	}
	return ""
}

// AdaptiveOf is what the tables have on adaptive routing, with the reason where it is
// unknown.
func AdaptiveOf(r *routes.Routes) (Adaptive, string) {
	if !r.AdaptiveKnown() {
		return AdaptiveUndetermined, ""
	}
	on, off := 0, 0
	var reasons []string
	for s, n := range r.Graph().Switches() {
		switch a := r.Adaptive(s); {
		case a != nil && a.Unknown != "":
			reasons = append(reasons, fmt.Sprintf("%s: %s", n.Label(), a.Unknown))
		case a.Active():
			on++
		default:
			off++
		}
	}
	switch {
	case len(reasons) > 3:
		return AdaptiveUnknown, strings.Join(reasons[:2], "; ") + "; and " + plural.Count(len(reasons)-2, "more switch", "more switches")
	case len(reasons) > 0:
		return AdaptiveUnknown, strings.Join(reasons, "; ")
	case on == 0:
		return AdaptiveOff, ""
	case off > 0:
		return AdaptiveMixed, fmt.Sprintf("%s %s adaptively, %d statically", plural.Count(on, "switch", "switches"), verb(on), off)
	}
	return AdaptiveOn, ""
}

// verb is the verb for n switches.
func verb(n int) string {
	if n == 1 {
		return "routes"
	}
	return "route"
}

// assumedChoices are the ports from which switches are assumed to choose, where tables do not
// have their choices, all of them at once: next hops to the switch of a destination, and the
// entry of the table. What any choice, packet
// by packet, can make a packet wait for is an edge of one channel dependency graph, so
// where that has no cycle no choice can deadlock (Duato, "A new theory of deadlock-free
// adaptive routing in wormhole networks", 1993, has a weaker condition, for networks
// with escape lanes). Virtual lanes are ignored: a cycle over lanes is a cycle of channels
// too.
//
// Time: O(N) for each switch with endpoints, O(S) for each LID, and O(C) for each
// switch or LID with paths of its own.
type assumedChoices struct {
	v    *verification
	hops *graph.Hops
	note string           // on hops
	next []graph.NextHops // by switch
	// Channels out of a switch are bits of words; the words of switch s begin at
	// first[s].
	first []int32
	of    [][]uint64 // by neighbour: the channels to it, of its switch's words
}

// assumedWalk is the memory of a worker.
type assumedWalk struct {
	home    int      // the switch that mask is for, or -1
	mask    []uint64 // by first: the channels to choose from
	wider   []uint64 // mask, with the entries of one LID
	reached []bool   // by switch: packets pass through
	others  []bool   // by switch: packets to one LID pass through
	stack   []int32
}

// adaptiveHops are the next hops to choose from, and a note on them.
func adaptiveHops(ctx context.Context, r *routes.Routes, a Adaptive) (h *graph.Hops, note string, err error) {
	g := r.Graph()
	if a == AdaptiveMinimal {
		h, err = graph.AllHops(ctx, g)
		return h, "", err
	}
	var ranks *graph.Ranks
	switch l := graph.FindLevels(g); {
	case r.Origin() != nil && r.Origin().UpDownRanks() != nil:
		ranks, note = r.Origin().UpDownRanks(), "as in the tables"
	case l.Check() == nil:
		ranks, note = l.Ranks(), "away from the CAs, by the levels of a fat tree"
	default:
		roots, err := graph.FindRoots(ctx, g, "histogram")
		if err != nil {
			if roots, err = graph.Center(ctx, g); err != nil {
				return nil, "", err
			}
		}
		names := make([]string, 0, 5)
		for _, s := range roots[:min(len(roots), 4)] {
			names = append(names, g.Switches()[s].Label())
		}
		if len(roots) > 4 {
			names = append(names, fmt.Sprintf("and %d more", len(roots)-4))
		}
		ranks, note = graph.RanksFrom(g, roots), "towards "+strings.Join(names, ", ")
	}
	h, err = graph.UpDown(ctx, g, ranks)
	return h, "up, for the legal up/down ports, is " + note, err
}

// graph is the graph of all that packets may wait for.
func (x *assumedChoices) graph(ctx context.Context, r *routes.Routes) (*DependencyGraph, error) {
	v := x.v
	graphs := make([]*DependencyGraph, v.g.Workers())
	walks := make([]assumedWalk, v.g.Workers())
	for _, t := range []*routes.Routes{r, v.o.Union} {
		if t == nil {
			continue
		}
		err := EachDest(ctx, t, v.g.Workers(), v.Wanted, func(worker int, w *Walk, lid mad.LID) {
			c := &walks[worker]
			if graphs[worker] == nil {
				graphs[worker] = NewDependencyGraph(v.g, 1)
				*c = x.newWalk()
			}
			if home := v.g.Terminals()[v.g.TerminalByLID(lid)].Switch; home >= 0 {
				x.follow(graphs[worker], c, home, w.Column(lid))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	d := NewDependencyGraph(v.g, 1)
	for _, part := range graphs {
		if part != nil {
			d.Union(part)
		}
	}
	return d, nil
}

// assumeChoices finds the choices to assume for tables r.
func (v *verification) assumeChoices(ctx context.Context, r *routes.Routes) (*assumedChoices, error) {
	g := v.g
	h, note, err := adaptiveHops(ctx, r, v.o.Adaptive)
	if err != nil {
		return nil, err
	}
	x := &assumedChoices{v: v, hops: h, note: note, next: make([]graph.NextHops, len(g.Switches())), first: make([]int32, 0, len(g.Switches())+1)}
	words := int32(0)
	for s := range g.Switches() {
		x.first = append(x.first, words)
		n := (g.FirstChannel(s+1) - g.FirstChannel(s) + 63) / 64
		words += n
		for _, to := range g.Neighbours(s) {
			set := make([]uint64, n)
			for _, p := range to.Ports {
				c := g.Target(int32(s), p).Channel() - g.FirstChannel(s)
				set[c/64] |= 1 << (c % 64)
			}
			x.of = append(x.of, set)
		}
	}
	x.first = append(x.first, words)
	return x, graph.Each(ctx, g.Workers(), len(g.Switches()), func(_, s int) { x.next[s].Load(h, s) })
}

func (x *assumedChoices) newWalk() assumedWalk {
	n := len(x.v.g.Switches())
	return assumedWalk{home: -1, mask: make([]uint64, x.first[n]), reached: make([]bool, n), others: make([]bool, n)}
}

// follow adds what packets to a LID on switch home, whose entries are ports, may wait
// for.
func (x *assumedChoices) follow(d *DependencyGraph, c *assumedWalk, home int, ports []uint8) {
	g := x.v.g
	if c.home != home {
		c.home = home
		for s := range g.Switches() {
			x.chooseAt(c.mask[x.first[s]:x.first[s+1]], s, home)
		}
		x.spread(d, c, c.mask, c.reached, home)
	}
	// Entries that are not next hops make other paths, for this LID alone.
	differ := false
	for s := range g.Switches() {
		if s == home || !c.reached[s] {
			continue
		}
		if ch := g.Target(int32(s), ports[s]).Channel(); ch >= 0 {
			bit := ch - g.FirstChannel(s)
			if c.mask[x.first[s]+bit/64]>>(bit%64)&1 == 0 {
				differ = true
				break
			}
		}
	}
	if !differ {
		return
	}
	c.wider = append(c.wider[:0], c.mask...)
	for s := range g.Switches() {
		if ch := g.Target(int32(s), ports[s]).Channel(); ch >= 0 && s != home {
			bit := ch - g.FirstChannel(s)
			c.wider[x.first[s]+bit/64] |= 1 << (bit % 64)
		}
	}
	x.spread(d, c, c.wider, c.others, home)
}

// chooseAt fills in the channels of the next hops of switch s to switch home.
func (x *assumedChoices) chooseAt(mask []uint64, s, home int) {
	clear(mask)
	base := x.v.g.FirstNeighbour(s)
	for i := range x.next[s].Neighbours(home) {
		for w, more := range x.of[int(base)+i] {
			mask[w] |= more
		}
	}
}

// spread adds the dependencies of all paths to switch home from switches with
// endpoints, where mask are the channels that packets may take.
func (x *assumedChoices) spread(d *DependencyGraph, c *assumedWalk, mask []uint64, reached []bool, home int) {
	g := x.v.g
	clear(reached)
	reached[home] = true
	visit := func(s int32) {
		if !reached[s] {
			reached[s] = true
			c.stack = append(c.stack, s)
		}
	}
	for _, s := range x.v.Sources {
		visit(s)
	}
	for len(c.stack) > 0 {
		s := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		base := g.FirstChannel(int(s))
		for i, word := range mask[x.first[s]:x.first[s+1]] {
			for ; word != 0; word &= word - 1 {
				ch := base + int32(i*64+bits.TrailingZeros64(word))
				d.Use(ch)
				to := g.ChannelTo(ch)
				if int(to) == home {
					continue
				}
				d.AddAll(ch, mask[x.first[to]:x.first[to+1]])
				visit(to)
			}
		}
	}
}

// examples are, for each channel of a cycle, a LID that packets on it go to, with the
// next channel of the cycle to follow.
func (x *assumedChoices) examples(r *routes.Routes, cycle []int32) []mad.LID {
	g := x.v.g
	found := make([]mad.LID, len(cycle))
	c := x.newWalk()
	scratch := NewDependencyGraph(g, 1)
	ports := make([]uint8, len(g.Switches()))
	left := len(cycle)
	for _, t := range []*routes.Routes{r, x.v.o.Union} {
		for lid := 0; t != nil && lid < len(x.v.Wanted) && left > 0; lid++ {
			if !x.v.Wanted[lid] || g.Terminals()[g.TerminalByLID(mad.LID(lid))].Switch < 0 {
				continue
			}
			for s := range ports {
				ports[s] = t.Row(s)[lid]
			}
			scratch.Clear()
			c.home = -1
			x.follow(scratch, &c, g.Terminals()[g.TerminalByLID(mad.LID(lid))].Switch, ports)
			for i, ch := range cycle {
				if found[i] == 0 && scratch.Has(ch, cycle[(i+1)%len(cycle)]) {
					found[i] = mad.LID(lid)
					left--
				}
			}
		}
	}
	return found
}

// judgeChoices looks for a credit loop that some choice of the switches makes.
func (v *verification) judgeChoices(s *Verdict, r *routes.Routes) {
	s.Channels, s.Dependencies = v.chosen.Size()
	cycle := v.chosen.Cycle()
	s.Acyclic = cycle == nil
	for i, lid := range v.choices.examples(r, cycle) {
		s.Cycle = append(s.Cycle, CycleChannel{Port: v.g.ChannelPort(int(cycle[i])), LID: lid})
	}
	if !s.Acyclic && v.vls > 1 {
		s.Notes = append(s.Notes, "adaptive routing: virtual lanes were ignored; a loop of links may not be a loop of lanes")
	}
	if v.choices.note != "" {
		s.Notes = append(s.Notes, v.choices.note)
	}
}
