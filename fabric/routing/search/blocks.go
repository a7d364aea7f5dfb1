package search

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// blockSet is a set of blocks of forwarding tables: of a switch, the entries of LFTBlock LIDs. A
// table is written by blocks, so another change in one that changes already costs nothing.
type blockSet struct {
	each int // blocks of a switch
	in   []bool
	size int
}

func newBlockSet(r *routes.Routes) *blockSet {
	each := int(r.Top())/mad.LFTBlock + 1
	return &blockSet{each: each, in: make([]bool, each*len(r.Graph().Switches()))}
}

func (b *blockSet) clone() *blockSet {
	c := *b
	c.in = slices.Clone(b.in)
	return &c
}

// has reports whether the block of an entry is in the set. No set has none.
func (b *blockSet) has(s int, lid mad.LID) bool {
	return b != nil && b.in[s*b.each+int(lid)/mad.LFTBlock]
}

// add adds the block of an entry.
func (b *blockSet) add(s int, lid mad.LID) {
	if i := s*b.each + int(lid)/mad.LFTBlock; !b.in[i] {
		b.in[i] = true
		b.size++
	}
}

// addLost adds the blocks that change whatever is done: where an entry leads nowhere.
func (b *blockSet) addLost(a *addition, gaps []gap) {
	g := a.r.Graph()
	for _, x := range gaps {
		for s, port := range x.old {
			if port != routes.NoPort && g.Target(int32(s), port) == graph.NoTarget && a.connected.Distance(s, x.d) >= 0 {
				b.add(s, x.dest.LID)
			}
		}
	}
}

// addChanged adds those of the entries of gaps that differ from those before.
func (b *blockSet) addChanged(r *routes.Routes, gaps []gap) {
	for _, x := range gaps {
		for s, port := range r.Column(x.dest.LID) {
			if port != x.old[s] && port != routes.NoPort {
				b.add(s, x.dest.LID)
			}
		}
	}
}
