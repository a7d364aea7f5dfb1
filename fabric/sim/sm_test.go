package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestSMInfoSet: what subnet managers in each state do when they are asked each thing
// by one in each state. "-" is a refusal, which changes nothing.
func TestSMInfoSet(t *testing.T) {
	const n, d, s, m = mad.SMStateNotActive, mad.SMStateDiscovering, mad.SMStateStandby, mad.SMStateMaster
	want := map[string]string{
		"not_active by master":   "- - - standby -",
		"discovering by master":  "discovering - - - -",
		"standby by master":      "master - not_active - discovering",
		"standby by standby":     "- standby - - -",
		"master by master":       "master - - - -",
		"the own one, by master": "master - - - -",
	}
	states := []mad.SMState{n, d, s, m}
	got := map[string]string{}
	ask := func(what string, prepare func() (*rig, any), asker mad.SMState) {
		var words []string
		for control := range uint32(7) {
			r, to := prepare()
			before := r.sminfo(to)
			data := make([]byte, state.SMPSize)
			info := mad.SMInfo{GUID: 1, Priority: 3, SMState: asker}
			info.Encode(data)
			status, _ := r.set(mad.AttrSMInfo, control, to, data)
			after := r.sminfo(to)
			switch {
			case status == mad.StatusOK && control >= 1 && control <= 5:
				words = append(words, after.SMState.String())
			case status != mad.StatusBadValue || before != after:
				t.Errorf("%s, %d: %v, from %+v to %+v", what, control, status, before, after)
			case control >= 1 && control <= 5:
				words = append(words, "-")
			}
		}
		if text := strings.Join(words, " "); text != "- - - - -" {
			got[what] = text
		}
	}
	for _, asker := range states {
		for _, state := range states {
			ask(fmt.Sprintf("%v by %v", state, asker), func() (*rig, any) {
				r := newRig(t, small)
				if err := r.SM.Add(r.named("node-0003 HCA-1").GUID(), 1, mad.SMInfo{GUID: 7, Priority: 5, SMState: state}); err != nil {
					t.Fatal(err)
				}
				return r, r.lid("node-0003 HCA-1")
			}, asker)
		}
		ask(fmt.Sprintf("the own one, by %v", asker), func() (*rig, any) { return newRig(t, small), mad.DirectedRoute{0} }, asker)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func (r *rig) sminfo(to any) (info mad.SMInfo) {
	_, data := r.get(mad.AttrSMInfo, 0, to)
	info.Decode(data)
	return info
}
