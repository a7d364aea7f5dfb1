package apply_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/mad"
)

// TestPlannedEntries: a plan that was edited writes no entry that no table can have.
func TestPlannedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		first := r.cells[0]
		for _, c := range []struct {
			block, at int
			port      byte
			want      string
		}{
			{0, 5, 2, ""},
			{0, 5, mad.NoPort, ""},
			{0, 5, 77, "LID 5: no port 77; the switch has ports 0..4"},
			{0, 0, 1, "LID 0: not assigned to a port"},
			{768, 0, 1, "LID 49152: not assigned to a port"},
		} {
			after := slices.Clone(first.Old)
			after[c.at] = c.port
			p := &change.Plan{Sets: []change.Set{{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(c.block), Target: change.Target{GUID: first.Node}, Old: first.Old, New: after}}}
			cells, err := apply.Planned(p, r.f)
			if c.want == "" && (err != nil || len(cells) != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("entry %d of block %d to port %d: %v", c.at, c.block, c.port, err)
			}
		}
	})
}
