package certificate

import (
	"math/rand/v2"
	"slices"

	"fabsh/mad"
)

// adapt gives some switches choices: the ports of several trees, some with others at random.
func (w *world) adapt(random *rand.Rand) {
	w.choices = make([][][]uint8, w.n)
	trees := [][][]uint8{w.old}
	for range random.IntN(2) {
		trees = append(trees, w.tables(random))
	}
	for s := range w.n {
		if random.IntN(3) == 0 {
			continue
		}
		for lid := range worldLIDs {
			var ports []uint8
			for _, t := range trees {
				ports = append(ports, t[s][lid])
			}
			if random.IntN(20) == 0 {
				ports = append(ports, []uint8{mad.NoPort, uint8(2 + random.IntN(w.n))}[random.IntN(2)])
			}
			slices.Sort(ports)
			w.choices[s] = append(w.choices[s], slices.Compact(ports))
		}
		if random.IntN(4) == 0 { // its table is out of date
			w.old[s] = slices.Clone(w.new[s])
			w.old[s][1+random.IntN(w.n)] = uint8(random.IntN(w.n + 2))
		}
	}
}

// firstWrites are the rounds that first write the tables of switches with choices.
func (w *world) firstWrites(sub *Subnet, c *Certificate) []int {
	first := slices.Repeat([]int{-1}, w.n)
	for s := range w.n {
		if w.choices != nil && w.choices[s] != nil {
			first[s] = forever
		}
	}
	for r, round := range c.Rounds {
		for _, b := range round.Blocks {
			if s := sub.Changes[b.Change].Node - 1; first[s] == forever {
				first[s] = r
			}
		}
	}
	return first
}

// changes reports whether packets to a LID may take other ports after the change.
func (w *world) changes(lid int) bool {
	for s := range w.n {
		if !slices.Equal(w.old[s], w.new[s]) && w.old[s][lid] != w.new[s][lid] || w.first[s] >= 0 && w.first[s] < forever && !slices.Equal(w.begun(s, lid), []uint8{w.new[s][lid]}) {
			return true
		}
	}
	return false
}

// portsIn are the ports by which a switch may send packets to a LID in a round.
func (w *world) portsIn(c *Certificate, states [][][]uint8, round, s, lid int) []uint8 {
	table := []uint8{states[round][s][lid], states[round+1][s][lid]}
	switch first := w.first[s]; {
	case first < 0 || len(c.Rounds) > 0 && first < round:
		return table
	case first > round || len(c.Rounds) == 0:
		return w.begun(s, lid)
	}
	return append(slices.Clone(w.begun(s, lid)), table...)
}

// newRing is a ring of four switches whose packets always arrive, by a shortest path: to the
// opposite switch they go either way, so only credit loops can be wrong.
func newRing(random *rand.Rand) *world {
	const n = 4
	w := &world{n: n, hoq: 10, linked: make([][]bool, n), choices: make([][][]uint8, n)}
	for s := range n {
		w.linked[s] = make([]bool, n)
		w.linked[s][(s+1)%n], w.linked[s][(s+3)%n] = true, true
	}
	shortest := func(s, lid int) (ports []uint8) {
		at := (lid - 1) % n // the switch of a LID: its own are 1 to 4, its host's 64 to 67
		if lid >= 64 {
			at = lid - 64
		}
		switch {
		case at == s && lid >= 64:
			return []uint8{1}
		case at == s:
			return []uint8{0}
		case (at-s+n)%n == 2:
			return []uint8{uint8(2 + (s+1)%n), uint8(2 + (s+3)%n)}
		}
		return []uint8{uint8(2 + at)}
	}
	for s := range n {
		old, new := slices.Repeat([]uint8{mad.NoPort}, worldLIDs), slices.Repeat([]uint8{mad.NoPort}, worldLIDs)
		var choices [][]uint8
		for lid := range worldLIDs {
			if lid == 0 || lid > n && lid < 64 || lid >= 64+n {
				choices = append(choices, []uint8{mad.NoPort})
				continue
			}
			ports := shortest(s, lid)
			old[lid], new[lid] = ports[random.IntN(len(ports))], ports[random.IntN(len(ports))]
			if random.IntN(3) > 0 {
				ports = ports[:1]
			}
			choices = append(choices, ports)
		}
		w.old, w.new = append(w.old, old), append(w.new, new)
		if random.IntN(4) > 0 {
			w.choices[s] = choices
		}
	}
	return w
}
