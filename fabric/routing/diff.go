package routing

import (
	"bytes"

	"fabsh/mad"
)

// Diff is what of the tables changes from one Routes to another.
type Diff struct {
	Switches []SwitchDiff // that change, by number
	Entries  int
	Blocks   int       // that would be written
	LIDs     []mad.LID // whose paths change somewhere
}

// SwitchDiff is what changes in the table of one switch.
type SwitchDiff struct {
	Switch  int // in the graph of the new tables
	Entries int
	Blocks  []int
}

// Diff compares r with what was before it. Where the graphs differ, switches
// are known again by their GUIDs, and all entries of a new one count.
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

// dropped is a block of LIDs beyond the end of a table.
var dropped = bytes.Repeat([]byte{NoPort}, block)

// block is block i of the table of switch s. Rows are filled up with NoPort.
func (r *Routes) block(s, i int) []byte {
	if (i+1)*block > r.stride {
		return dropped
	}
	return r.lft[s*r.stride+i*block:][:block]
}
