package graph

import (
	"math/bits"
	"slices"
)

// tops finds the switches at the top of what Check takes for a fat tree: those of the highest
// level that join two leaves which no lower switch joins. Distance alone puts a leaf whose
// compute nodes are missing, or not there yet, as high as a spine, or higher. So a switch is not at
// the top if another joins all leaves that it does, and at least as many more. Nil: nothing joins
// leaves.
//
// Time: O(N*D/64) for D leaves, and O(D*S*D/64) where the highest level joins nothing new.
func (l *Levels) tops() []int {
	c := newCover(l)
	for level := l.Height - 1; level > 0; level-- {
		var found []int
		most := 0
		joined := make([][]uint64, len(c.leaves))
		for s, at := range l.Level {
			if at == level && c.joinsMore(s, joined) {
				found = append(found, s)
				most = max(most, c.count(s))
			}
		}
		if len(found) > 0 {
			return slices.DeleteFunc(slices.Clone(found), func(s int) bool {
				twice := 2 * c.count(s)
				return twice <= most && slices.ContainsFunc(found, func(t int) bool { return twice <= c.count(t) && c.hasAll(t, s) })
			})
		}
	}
	return nil
}

// cover has the leaves that switches reach by going down.
type cover struct {
	l      *Levels
	leaves []int
	words  int
	below  []uint64 // words for each switch: a bit for each leaf
}

func newCover(l *Levels) *cover {
	c := &cover{l: l}
	byLevel := make([][]int, l.Height)
	for s, level := range l.Level {
		if level >= 0 {
			byLevel[level] = append(byLevel[level], s)
		}
	}
	c.leaves = byLevel[0]
	c.words = (len(c.leaves) + 63) / 64
	c.below = make([]uint64, c.words*len(l.Level))
	for i, s := range c.leaves {
		c.of(s)[i/64] |= 1 << (i % 64)
	}
	for level, switches := range byLevel[1:] {
		for _, s := range switches {
			into := c.of(s)
			for _, n := range l.g.Neighbours(s) {
				if l.Level[n.To] == level {
					add(into, c.of(int(n.To)))
				}
			}
		}
	}
	return c
}

// of are the leaves below s.
func (c *cover) of(s int) []uint64 { return c.below[s*c.words:][:c.words] }

func (c *cover) count(s int) (n int) {
	for _, word := range c.of(s) {
		n += bits.OnesCount64(word)
	}
	return n
}

// hasAll reports whether all leaves below t are below s.
func (c *cover) hasAll(s, t int) bool {
	above := c.of(s)
	for i, word := range c.of(t) {
		if word&^above[i] != 0 {
			return false
		}
	}
	return true
}

// joinsMore reports whether two of the leaves below s are below no switch of a lower level. joined
// has, by leaf, those that such switches join with it; nil: unknown yet.
func (c *cover) joinsMore(s int, joined [][]uint64) bool {
	own := c.of(s)
	for i := range c.leaves {
		if own[i/64]>>(i%64)&1 == 0 {
			continue
		}
		if joined[i] == nil {
			joined[i] = make([]uint64, c.words)
			for t, level := range c.l.Level {
				if below := c.of(t); 0 <= level && level < c.l.Level[s] && below[i/64]>>(i%64)&1 != 0 {
					add(joined[i], below)
				}
			}
		}
		for w, word := range own {
			if word&^joined[i][w] != 0 {
				return true
			}
		}
	}
	return false
}

// add adds the bits of b to a.
func add(a, b []uint64) {
	for i, word := range b {
		a[i] |= word
	}
}
