package opensm_test

import (
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/routing/opensm"
	"fabsh/mad"
)

// TestManySwitchesOfAnIndex: ftree fails, and ends, where more switches follow each other than there
// are indices: on a ring with hosts at every second switch.
func TestManySwitchesOfAnIndex(t *testing.T) {
	const n = 600
	w := &opensm.Network{SM: n + 1}
	for i := range int32(n) {
		w.Switches = append(w.Switches, opensm.Switch{GUID: mad.GUID(i + 1), LID: mad.LID(i + 1), Links: []opensm.Link{
			{}, {Kind: opensm.ToSwitch, Port: 2, To: (i + 1) % n}, {Kind: opensm.ToSwitch, Port: 1, To: (i + n - 1) % n}, {},
		}})
		if i%2 == 0 {
			w.Switches[i].Links[3] = opensm.Link{Kind: opensm.ToEnd, Port: 1, To: int32(len(w.Ends))}
			w.Ends = append(w.Ends, opensm.End{Node: mad.GUID(n + i + 1), GUID: mad.GUID(n + i + 1), Num: 1, LID: mad.LID(n + 1 + len(w.Ends)), Count: 1, Switch: i, Port: 3})
		}
	}
	r, err := opensm.Compute(t.Context(), w, nil, opensm.Settings{Engines: []string{opensm.FTree}})
	if err != nil || r.Engine != opensm.MinHop || !slices.ContainsFunc(r.Failed, func(s string) bool { return strings.HasPrefix(s, opensm.FTree+": more than 255 switches") }) {
		t.Errorf("%+v, %v", r, err)
	}
}
