package picture

import (
	"testing"
)

// TestMatrix: a cable that is missing is where it belongs.
func TestMatrix(t *testing.T) {
	l := ladder(t, simulated(t, "fattree:k=4,levels=2,remove_links=1,seed=1"), LadderOptions{})
	list := l.Matrices
	total := 0
	for r, n := range list[0].Rows {
		for c, m := range list[0].Columns {
			want := 0
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node() == m {
					want++
				}
			}
			if got := len(list[0].Links[r][c]); got != want {
				t.Errorf("%s - %s: %d links, want %d", n.Name(), m.Name(), got, want)
			}
			total += want
		}
	}
	if total != 7 || list[0].uniform() {
		t.Errorf("%d links, uniform %t", total, list[0].uniform())
	}
}
