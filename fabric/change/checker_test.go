package change

import (
	"fmt"

	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// checker confirms schedules. It follows packets link by link through all that may be in
// force while the rounds are written, and shares nothing with the planner but the graph.
type checker struct {
	g     *graph.Graph
	waits map[[2]int32]bool // links: packets on the first may wait for the second
}

// inForce are the entries of all switches for a LID in each round: before and after it.
type inForce [][2][]uint8

// check is an error if some order of the writes of a round lets packets loop, loses those
// that arrive before and after, or lets links wait for each other in a circle.
func check(g *graph.Graph, old, new *routes.Routes, s *order.Schedule) error {
	c := &checker{g: g, waits: map[[2]int32]bool{}}
	for lid := mad.LID(1); lid <= old.Top(); lid++ {
		if t := g.TerminalByLID(lid); t >= 0 && g.Terminals()[t].Out > 0 {
			c.depend(inForce{{old.Column(lid), old.Column(lid)}})
		}
	}
	begun := c.circle()
	c.waits = map[[2]int32]bool{}
	first := 0 // round of the epoch
	for r := range max(1, len(s.Rounds)) {
		if r < len(s.Rounds)-1 && s.Rounds[r].Drain == 0 {
			continue
		}
		for lid := mad.LID(1); lid <= old.Top(); lid++ {
			t := g.TerminalByLID(lid)
			if t < 0 || g.Terminals()[t].Switch < 0 {
				continue
			}
			entries := columns(old.Column(lid), lid, s)
			if first == 0 && fmt.Sprint(entries[len(entries)-1][1]) != fmt.Sprint(new.Column(lid)) {
				return fmt.Errorf("LID %d ends with other entries", lid)
			}
			entries = entries[first:min(r+1, len(entries))]
			for k := range entries {
				if err := c.arrive(entries[k], old.Column(lid), new.Column(lid), graph.ToTerminal(int32(t))); err != nil {
					return fmt.Errorf("LID %d, round %d: %w", lid, first+k, err)
				}
			}
			if g.Terminals()[t].Out > 0 {
				c.depend(entries)
			}
		}
		if !begun && c.circle() {
			return fmt.Errorf("links wait for each other by round %d", r)
		}
		c.waits, first = map[[2]int32]bool{}, r+1
	}
	return nil
}

// columns are the entries for a LID in each round.
func columns(now []uint8, lid mad.LID, s *order.Schedule) (list inForce) {
	for _, round := range s.Rounds {
		after := append([]uint8(nil), now...)
		for _, b := range round.Blocks {
			if b.Number == int(lid)/mad.LFTBlock {
				after[b.Switch] = b.Entries[int(lid)%mad.LFTBlock]
			}
		}
		list = append(list, [2][]uint8{now, after})
		now = after
	}
	if len(list) == 0 {
		list = inForce{{now, now}}
	}
	return list
}

// arrive is an error if packets loop in a round that do not by the old entries, or do not
// arrive though they do by the old and by the new ones, whichever entry of the round each
// switch has.
func (c *checker) arrive(round [2][]uint8, old, new []uint8, to graph.Target) error {
	ends := func(s int32, entries []uint8) (arrives, loops bool) {
		for range entries {
			t := c.g.Target(s, entries[s])
			if !t.IsChannel() {
				return t == to, false
			}
			s = c.g.ChannelTo(t.Channel())
		}
		return false, true
	}
	for from := range int32(len(old)) {
		before, looped := ends(from, old)
		if looped {
			continue
		}
		onWay, fails, loops := map[int32]bool{}, false, false
		done := map[int32]bool{}
		var follow func(s int32)
		follow = func(s int32) {
			if loops = loops || onWay[s]; loops || done[s] {
				return
			}
			onWay[s], done[s] = true, true
			for _, entries := range round {
				if t := c.g.Target(s, entries[s]); t.IsChannel() {
					follow(c.g.ChannelTo(t.Channel()))
				} else {
					fails = fails || t != to
				}
			}
			onWay[s] = false
		}
		after, _ := ends(from, new)
		switch follow(from); {
		case loops:
			return fmt.Errorf("packets from switch %d loop", from)
		case fails && before && after:
			return fmt.Errorf("packets from switch %d are lost", from)
		}
	}
	return nil
}

// depend adds the waits of the packets of CAs to a LID: a packet is at a switch in a round,
// and goes on by an entry of that round or of a later one.
func (c *checker) depend(entries inForce) {
	type place struct {
		s, from int32
		round   int
	}
	seen := map[place]bool{}
	var queue []place
	visit := func(p place) {
		if !seen[p] {
			seen[p] = true
			queue = append(queue, p)
		}
	}
	for s, n := range c.g.Endpoints() {
		if n > 0 {
			visit(place{int32(s), -1, 0})
		}
	}
	for i := 0; i < len(queue); i++ {
		p := queue[i]
		for r := p.round; r < len(entries); r++ {
			for _, e := range entries[r] {
				t := c.g.Target(p.s, e[p.s])
				if !t.IsChannel() {
					continue
				}
				if p.from >= 0 {
					c.waits[[2]int32{p.from, t.Channel()}] = true
				}
				visit(place{c.g.ChannelTo(t.Channel()), t.Channel(), r})
			}
		}
	}
}

// circle reports whether links wait for each other in a circle: what waits for nothing is
// removed until nothing is left.
func (c *checker) circle() bool {
	left := map[int32]map[int32]bool{}
	for w := range c.waits {
		if left[w[0]] == nil {
			left[w[0]] = map[int32]bool{}
		}
		left[w[0]][w[1]] = true
	}
	for removed := true; removed; {
		removed = false
		for a, to := range left {
			for b := range to {
				if left[b] == nil {
					delete(to, b)
				}
			}
			if len(to) == 0 {
				delete(left, a)
				removed = true
			}
		}
	}
	return len(left) > 0
}
