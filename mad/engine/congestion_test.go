package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLimit plays rounds, and states the limit after each. All answers of a
// round n are near, of f fair, of r far; 3 and 7: of so many in 4 or 8 they are
// far. Of l, where they are near, and of g, where they are fair, the last does
// not come, though the node lives; of s none does, of dead nodes. Capitals do
// not use the limit to the full. A dot is the time until it probes.
func TestLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		l      limit
		rounds string
		want   string
	}{
		{"opens", newLimit(4, 4, 32), "nnnnn", "8 16 32 32 32"},
		{"up to the most", newLimit(4, 4, 20), "fnnn", "8 16 20 20"},
		{"is not used", newLimit(4, 4, 32), "nNNn", "8 8 8 16"},
		{"a queue", newLimit(4, 4, 32), "nnrnfn", "8 16 8 9 10 11"},
		{"a long queue", newLimit(4, 4, 32), "nnnrrrrn", "8 16 32 16 8 4 4 5"},
		{"not used, but a queue", newLimit(4, 4, 32), "nnR", "8 16 8"},
		{"losses where there is no queue", newLimit(4, 4, 32), "nlnl", "8 16 32 32"},
		{"losses where there is a short one", newLimit(4, 4, 32), "nngn.nnn", "8 16 8 8 1 8 9"},
		{"silence", newLimit(4, 4, 32), "ssss", "8 16 32 32"},
		{"three quarters far", newLimit(4, 4, 32), "n3", "8 16"},
		{"seven eighths far", newLimit(4, 4, 32), "n7", "8 4"},
		{"a node", newLimit(2, 1, 8), "nnrrrrn", "4 8 4 2 1 1 2"},
		{"subnet administration", newLimit(4, 4, 4), "nrr.rrn", "4 4 4 4 4 4"},
		{"window 2", newLimit(4, 4, 2), "nrr.n", "2 2 2 2"},
		{"probes", newLimit(4, 4, 32), "nn.nnn", "8 16 1 32 32"},
		{"probes in a queue", newLimit(4, 4, 32), "nn.rrn", "8 16 1 8 9"},
	} {
		var got []string
		now := time.Duration(0)
		for _, round := range test.rounds {
			if round == '.' {
				now += probeEvery
				continue
			}
			l := &test.l
			l.full = round >= 'a' || round <= '9'
			size := l.n
			now++
			for i := range size {
				long, last := near, i == size-1
				switch strings.ToLower(string(round)) {
				case "f":
					long = fair
				case "r":
					long = far
				case "l":
					if last {
						l.answer(near, true, now, now)
						continue
					}
				case "g":
					if long = fair; last {
						l.answer(fair, true, now, now)
						continue
					}
				case "s":
					l.silence(now, now)
					continue
				case "3":
					if i%4 > 0 {
						long = far
					}
				case "7":
					if i%8 > 0 {
						long = far
					}
				}
				l.answer(far, false, l.began-1, now) // to a request of the round before
				l.answer(long, false, now, now)
			}
			got = append(got, fmt.Sprint(l.n))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: limits %s, want %s", test.name, text, test.want)
		}
	}
}
