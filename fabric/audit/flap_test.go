package audit

import (
	"testing"
	"time"
)

// TestJudgeDowns: two link-downs in 24 hours are a flap; what may have been earlier does not count.
func TestJudgeDowns(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(from, to time.Duration, n uint64) Downs { return Downs{now.Add(-from), now.Add(-to), n} }
	const h = time.Hour
	for _, test := range []struct {
		name  string
		list  []Downs
		want  LinkDowns
		flaps bool
		ber   bool
	}{
		{"unknown", nil, LinkDowns{}, false, true},
		{"never down", []Downs{ago(h, 0, 0)}, LinkDowns{0, h, h, false}, false, true},
		{"once", []Downs{ago(h, 0, 0), ago(3*h, h, 1)}, LinkDowns{1, 3 * h, h, true}, false, false},
		{"once, and up for long", []Downs{ago(3*h, 0, 0), ago(4*h, 3*h, 1)}, LinkDowns{1, 4 * h, 3 * h, true}, false, true},
		{"twice, in any order", []Downs{ago(24*h, 20*h, 1), ago(h, 0, 1)}, LinkDowns{2, 24 * h, 0, true}, true, false},
		{"perhaps earlier", []Downs{ago(h, 0, 1), ago(25*h, h, 5)}, LinkDowns{1, h, 0, true}, false, false},
		{"earlier", []Downs{ago(h, 0, 0), ago(30*h, 25*h, 5)}, LinkDowns{0, h, h, false}, false, true},
		{"no interval", []Downs{ago(0, h, 9)}, LinkDowns{}, false, true},
	} {
		got := JudgeDowns(test.list, now)
		if got != test.want || got.Flaps() != test.flaps || got.Settled() != test.ber {
			t.Errorf("%s: got %+v, flaps %v, settled %v", test.name, got, got.Flaps(), got.Settled())
		}
	}
}
