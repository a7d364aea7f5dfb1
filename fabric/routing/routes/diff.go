package routes

import (
	"bytes"

	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// Diff is what changes in the tables from one Routes to another.
type Diff struct {
	Switches []SwitchDiff // those with changes, by number
	Entries  int          // with another static port, or other choices
	Choices  int          // of these, those with other choices of adaptive routing
	Blocks   int          // that would be written
	LIDs     []mad.LID    // those with a change on some switch
}

// SwitchDiff is what changes in the table of one switch.
type SwitchDiff struct {
	Switch  int // in the graph of the new tables
	Entries int
	Choices int
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
		var differ func(lid mad.LID) bool
		if r.AdaptiveKnown() || old.AdaptiveKnown() {
			differ = adaptive.Differ(old.Adaptive(s), r.Adaptive(s))
		}
		for i := range blocks {
			x, y := old.Block(s, i), r.Block(s, i)
			same := bytes.Equal(x, y)
			if same && differ == nil {
				continue
			}
			if !same {
				sd.Blocks = append(sd.Blocks, i)
			}
			for j := range y {
				choices := differ != nil && differ(mad.LID(i*block+j))
				if choices {
					sd.Choices++
				}
				if x[j] != y[j] || choices {
					sd.Entries++
					changed[i*block+j] = true
				}
			}
		}
		if sd.Entries > 0 {
			d.Switches = append(d.Switches, sd)
			d.Entries += sd.Entries
			d.Choices += sd.Choices
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
