package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLosses plays periods in which 1,000 requests are sent, and states what is
// said at the end of each: nothing (-), up, halve or random. What was lost is known
// two periods later. RTTs are long, but for the case that says otherwise.
func TestLosses(t *testing.T) {
	words := []string{"-", "up", "halve", "random"}
	for _, test := range []struct {
		name string
		d    queueDelay
		lost []int // of the requests of each period
		want string
	}{
		{"none", Loaded, []int{0, 0, 0, 0, 0, 0}, "up - - - up -"},
		{"a short queue", Loaded, []int{0, 3, 3, 3, 0, 0, 0, 0, 0, 0}, "up - - halve - - - - up -"},
		{"a shorter one", Loaded, []int{90, 90, 90, 30, 30, 30, 0, 0, 0, 0}, "up - halve - - halve - - - -"},
		{"random", Loaded, []int{50, 50, 50, 50, 50, 50, 50, 50, 50, 50}, "up - halve - - random - - up -"},
		{"random, and then a queue", Loaded, []int{50, 50, 50, 50, 50, 50, 50, 200, 200, 200, 200}, "up - halve - - random - - up - halve"},
		{"others in the queue", Loaded, []int{10, 10, 10, 60, 60, 60, 0, 0, 0}, "up - halve - - halve - - -"},
		{"too few to tell", Loaded, []int{2, 2, 2, 2, 2, 2, 0, 0, 0, 0}, "up - halve - - - halve - - -"},
		{"where there is no queue", baseDelay, []int{50, 50, 50, 50, 50}, "up - - - up"},
	} {
		var l lossDetector
		var got []string
		for now, lost := range test.lost {
			for range 1000 - lost {
				l.Add(l.period, test.d, false)
			}
			if now >= 2 {
				for range test.lost[now-2] {
					l.Add(l.period-2, test.d, true)
				}
			}
			got = append(got, words[l.Judge(time.Duration(now+1)*lossPeriod)])
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
}

// TestLossesForget: what was random is judged anew.
func TestLossesForget(t *testing.T) {
	var l lossDetector
	halved := 0
	for now := time.Duration(1); now*lossPeriod < 3*probeEvery; now++ {
		for range 900 {
			l.Add(l.period, Loaded, false)
		}
		for range 100 {
			l.Add(l.period-2, Loaded, true)
		}
		if l.Judge(now*lossPeriod) == queueLoss {
			halved++
		}
	}
	if halved != 3 {
		t.Errorf("%d trials in %v, want one each %v", halved, 3*probeEvery, probeEvery)
	}
}

// TestCongestionCeiling: what Losses make of a window.
func TestCongestionCeiling(t *testing.T) {
	w := newCongestionWindow(4, 4, 32)
	now := time.Duration(0)
	round := func() {
		w.full = true
		now++
		for range w.size {
			w.Answered(baseDelay, uint64(now), now, now)
		}
	}
	var got []string
	for _, step := range []func(){round, round, round, w.Limit, round, w.Raise, round, round, w.Limit, w.Limit, w.Limit, w.Unlimit, round, round} {
		step()
		got = append(got, fmt.Sprint(w.size))
	}
	if text, want := strings.Join(got, " "), "8 16 32 16 16 16 17 17 8 4 4 4 8 16"; text != want {
		t.Errorf("sizes %s, want %s", text, want)
	}
}
