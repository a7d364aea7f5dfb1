package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestCongestionWindow plays rounds, and states the size after each. The delay of
// all answers of a round b is base, of l loaded, of q queued; 3 and 7: of so many
// in 4 or 8 it is queued; of h as well, but all come in two bursts. Of s no answer
// comes, for the nodes are dead. Capitals do not use the window to the full. A dot is the time until it
// probes.
func TestCongestionWindow(t *testing.T) {
	for _, test := range []struct {
		name   string
		w      congestionWindow
		rounds string
		want   string
	}{
		{"opens", newCongestionWindow(4, 4, 32), "bbbbb", "8 16 32 32 32"},
		{"up to the most", newCongestionWindow(4, 4, 20), "lbbb", "8 16 20 20"},
		{"is not used", newCongestionWindow(4, 4, 32), "bBBb", "8 8 8 16"},
		{"a queue", newCongestionWindow(4, 4, 32), "bbqblb", "8 16 8 9 10 11"},
		{"a long queue", newCongestionWindow(4, 4, 32), "bbbqqqqb", "8 16 32 16 8 4 4 5"},
		{"not used, but a queue", newCongestionWindow(4, 4, 32), "bbQ", "8 16 8"},
		{"processors that take turns", newCongestionWindow(4, 4, 32), "bhhq", "8 16 32 16"},
		{"silence", newCongestionWindow(4, 4, 32), "ssss", "8 16 32 32"},
		{"three quarters queued", newCongestionWindow(4, 4, 32), "b3", "8 16"},
		{"seven eighths queued", newCongestionWindow(4, 4, 32), "b7", "8 4"},
		{"a node", newCongestionWindow(2, 1, 8), "bbqqqqb", "4 8 4 2 1 1 2"},
		{"subnet administration", newCongestionWindow(4, 4, 4), "bqq.qqb", "4 4 4 4 4 4"},
		{"window 2", newCongestionWindow(4, 4, 2), "bqq.b", "2 2 2 2"},
		{"probes", newCongestionWindow(4, 4, 32), "bb.bbb", "8 16 1 4 8"},
		{"probes in a queue", newCongestionWindow(4, 4, 32), "bbq.bbbb", "8 16 8 1 4 8 9"},
	} {
		var got []string
		now, bursts := time.Duration(0), uint64(0)
		for _, round := range test.rounds {
			if round == '.' {
				now += probeEvery
				continue
			}
			w := &test.w
			w.full = round >= 'a' || round <= '9'
			size := w.size
			now++
			for i := range size {
				d := baseDelay
				bursts++
				switch strings.ToLower(string(round)) {
				case "l":
					d = Loaded
				case "q":
					d = Queued
				case "h":
					if d = Queued; i > 0 && i != size/2 {
						bursts--
					}
				case "s":
					w.Unanswered(bursts, now, now)
					continue
				case "3":
					if i%4 > 0 {
						d = Queued
					}
				case "7":
					if i%8 > 0 {
						d = Queued
					}
				}
				w.Answered(Queued, bursts, w.began-1, now) // to a request of the round before
				w.Answered(d, bursts, now, now)
			}
			got = append(got, fmt.Sprint(w.size))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: sizes %s, want %s", test.name, text, test.want)
		}
	}
}
