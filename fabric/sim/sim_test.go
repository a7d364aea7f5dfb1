package sim

import (
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

func mustParse(t testing.TB, spec string) (*fabric.Fabric, Options) {
	t.Helper()
	f, o, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

// TestReachable walks the tables between all pairs of end ports.
func TestReachable(t *testing.T) {
	for _, spec := range []string{"", "fattree:k=8,levels=3", "fattree:k=4,levels=4", "fattree:k=4,levels=1", "ring:n=1", "ring:n=2", "ring:n=9,hosts=3",
		"pgft:m=4/4/8,w=1/2/4,p=1/2/1", "pgft:m=3/3,w=1/2,p=2/1"} {
		t.Run(spec, func(t *testing.T) {
			f, o := mustParse(t, spec)
			s := New(f, o)
			t.Log(f)
			for from := 1; from < len(s.lids) && s.lids[from] != nil; from++ {
				for to := 1; to < len(s.lids) && s.lids[to] != nil; to++ {
					if at := route(s.lids[from], mad.LID(to), false); at == nil || at.home() != s.lids[to] {
						t.Fatalf("LID %d (%s) does not reach LID %d (%s)", from, s.lids[from].node.label, to, s.lids[to].node.label)
					}
				}
			}
		})
	}
}
