package routes

import (
	"bytes"

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
	old = old.SeenOn(r.graph)
	blocks := max(r.stride, old.stride) / block
	changed := make([]bool, blocks*block)
	d := &Diff{}
	for s := range r.graph.Switches() {
		sd := SwitchDiff{Switch: s}
		for i := range blocks {
			x, y := old.Block(s, i), r.Block(s, i)
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
