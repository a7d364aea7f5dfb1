package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
					d = loadedDelay
				case "q":
					d = queuedDelay
				case "h":
					if d = queuedDelay; i > 0 && i != size/2 {
						bursts--
					}
				case "s":
					w.Unanswered(bursts, now, now)
					continue
				case "3":
					if i%4 > 0 {
						d = queuedDelay
					}
				case "7":
					if i%8 > 0 {
						d = queuedDelay
					}
				}
				w.Answered(queuedDelay, bursts, w.began-1, now) // to a request of the round before
				w.Answered(d, bursts, now, now)
			}
			got = append(got, fmt.Sprint(w.size))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: sizes %s, want %s", test.name, text, test.want)
		}
	}
}

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
		{"none", loadedDelay, []int{0, 0, 0, 0, 0, 0}, "up - - - up -"},
		{"a short queue", loadedDelay, []int{0, 3, 3, 3, 0, 0, 0, 0, 0, 0}, "up - - halve - - - - up -"},
		{"a shorter one", loadedDelay, []int{90, 90, 90, 30, 30, 30, 0, 0, 0, 0}, "up - halve - - halve - - - -"},
		{"random", loadedDelay, []int{50, 50, 50, 50, 50, 50, 50, 50, 50, 50}, "up - halve - - random - - up -"},
		{"random, and then a queue", loadedDelay, []int{50, 50, 50, 50, 50, 50, 50, 200, 200, 200, 200}, "up - halve - - random - - up - halve"},
		{"others in the queue", loadedDelay, []int{10, 10, 10, 60, 60, 60, 0, 0, 0}, "up - halve - - halve - - -"},
		{"too few to tell", loadedDelay, []int{2, 2, 2, 2, 2, 2, 0, 0, 0, 0}, "up - halve - - - halve - - -"},
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

// TestLossesForget: a loss found to be random is judged again later.
func TestLossesForget(t *testing.T) {
	var l lossDetector
	halved := 0
	for now := time.Duration(1); now*lossPeriod < 3*probeEvery; now++ {
		for range 900 {
			l.Add(l.period, loadedDelay, false)
		}
		for range 100 {
			l.Add(l.period-2, loadedDelay, true)
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

const (
	micro = time.Microsecond
	milli = time.Millisecond
)

// TestRTT: the estimate follows RFC 6298.
func TestRTT(t *testing.T) {
	var got rttEstimate
	var list []rttEstimate
	for _, rtt := range []time.Duration{800 * micro, 1600 * micro, 0} {
		got.Add(rtt)
		list = append(list, got)
	}
	want := []rttEstimate{{800 * micro, 400 * micro}, {900 * micro, 500 * micro}, {787500 + 1, 600 * micro}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(rttEstimate{}), cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < micro })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDelayOf: an RTT shows queueing by its distance from the base RTT.
func TestDelayOf(t *testing.T) {
	for _, test := range []struct {
		baseRTT, rtt time.Duration
		anew         bool
		want         queueDelay
		after        time.Duration
	}{
		{0, 30 * micro, false, baseDelay, 30 * micro},
		{30 * micro, 20 * micro, false, baseDelay, 20 * micro},
		{30 * micro, 80 * micro, false, baseDelay, 30 * micro},
		{30 * micro, 81 * micro, false, loadedDelay, 30 * micro},
		{30 * micro, 280 * micro, false, loadedDelay, 30 * micro},
		{30 * micro, 281 * micro, false, queuedDelay, 30 * micro},
		{600 * micro, 851 * micro, false, baseDelay, 600 * micro},
		{30 * micro, 281 * micro, true, baseDelay, 281 * micro},
		{200 * micro, 300 * micro, false, baseDelay, 200 * micro},
		{200 * micro, 301 * micro, false, loadedDelay, 200 * micro},
		{10 * milli, 15 * milli, false, baseDelay, 10 * milli},
		{10 * milli, 15001 * micro, false, queuedDelay, 10 * milli},
	} {
		baseRTT := test.baseRTT
		if got := queueDelayOf(test.rtt, test.anew, &baseRTT); got != test.want || baseRTT != test.after {
			t.Errorf("%v beside %v: %d, then %v; want %d, %v", test.rtt, test.baseRTT, got, baseRTT, test.want, test.after)
		}
	}
}
