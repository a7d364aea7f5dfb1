package sim

import (
	"testing"

	"fabsh/mad"
)

// TestLMC: each port of a CA gets 2^LMC LIDs, the first a multiple of that, and no two
// ports share one; switches get one.
func TestLMC(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"fattree:k=4,lmc=0", "fattree:k=4,lmc=2", "ring:n=3,lmc=7", "ring:n=3,hosts=200,lmc=7"} {
		f, o, err := Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		s := New(f, o)
		of := map[mad.LID]bool{}
		for i := range s.state.Nodes {
			for _, p := range s.state.Nodes[i].EndPorts() {
				if p.LID == 0 { // there are no more LIDs
					if spec != "ring:n=3,hosts=200,lmc=7" {
						t.Errorf("%s: a port without a LID", spec)
					}
					continue
				}
				count := 1 << p.LMC
				if p.LMC != o.LMC && !s.state.Nodes[i].IsSwitch || p.LMC != 0 && s.state.Nodes[i].IsSwitch || int(p.LID)%count != 0 || int(p.LID)+count-1 > int(mad.MaxUnicastLID) {
					t.Errorf("%s: LID %d with LMC %d", spec, p.LID, p.LMC)
				}
				for j := range count {
					if lid := p.LID + mad.LID(j); of[lid] || s.state.LIDs[lid] != p {
						t.Errorf("%s: LID %d is another's", spec, lid)
					} else {
						of[lid] = true
					}
				}
			}
		}
	}
}
