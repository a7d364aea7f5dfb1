package picture

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
)

// TestFigures: a cell has the highest value of its links, and how many values are unknown.
func TestFigures(t *testing.T) {
	f := simulated(t, "pgft:m=2/4,w=1/2,p=1/3")
	m := newMatrix(f.NodeByName("leaf-1"), f.NodeByName("spine-1"))
	value := func(p *fabric.Port) (float64, bool) { return float64(p.Num()), p.Num() != 3 }
	want := [2]Figure{}
	for _, p := range m.Links[0][0] {
		for far, p := range []*fabric.Port{p, p.Peer()} {
			if v, known := value(p); known {
				want[far].Value = max(want[far].Value, v)
				want[far].Known++
			} else {
				want[far].Unknown++
			}
		}
	}
	for far, want := range want {
		if got := m.Figures(value, far == 1)[0][0]; got != want || got.Known+got.Unknown != 3 || want.Value == 0 {
			t.Errorf("far %d: %+v, want %+v", far, got, want)
		}
	}
}

// TestScale: whole numbers have classes of their own as long as there are few.
func TestScale(t *testing.T) {
	for _, test := range []struct {
		lowest, highest float64
		want            Scale
	}{{2, 4, Scale{2, 3, 4}}, {5, 5, Scale{5}}, {0, 15, Scale{0, 2, 4, 6, 8, 10, 12, 14}}} {
		if diff := cmp.Diff(test.want, Steps(test.lowest, test.highest)); diff != "" {
			t.Errorf("%g to %g: -want +got\n%s", test.lowest, test.highest, diff)
		}
	}
	if diff := cmp.Diff(Scale{1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75}, Even(1, 3)); diff != "" {
		t.Errorf("even: -want +got\n%s", diff)
	}
	for _, s := range []Scale{Steps(0.2, 0.5), Even(0.5, 0.5), Powers(0)} {
		if len(s) == 0 || s.Shade(0.5) >= shades || s.Text(len(s)-1) == "" {
			t.Errorf("%v is no scale", s)
		}
	}
	s := Powers(123)
	if s.Shade(0) == s.Shade(1) || s.Shade(1) == s.Shade(10) || s.Shade(99) == s.Shade(100) {
		t.Errorf("%v does not separate powers of ten", s)
	}
	if s.Text(0) != "0" || s.Text(1) != "above 0" || s.Text(2) != "from 10" {
		t.Errorf("classes are called %q, %q, %q", s.Text(0), s.Text(1), s.Text(2))
	}
}
