package engine

import (
	"math"
	"time"
)

// lossDetector distinguishes the losses of a queue too short to show in the RTT from random
// loss: a smaller window reduces the first, but not the second.
//
// Requests are counted by the period in which they were first sent. A loss is known
// an RTO later, when another attempt is answered. If RTTs are long and losses exceed
// the known random loss, the window is halved, on trial: when the first period of the
// trial is complete, its loss is compared with that of the period before.
type lossDetector struct {
	periods [lossPeriods]lossCount
	period  uint8 // its number; it is periods[period%lossPeriods]
	began   time.Duration
	onTrial bool
	trial   uint8         // its first period
	random  lossCount     // the random loss found by a trial
	found   time.Duration // when
}

// shortestRTO is the least time after which a request is presumed lost and sent again.
const shortestRTO = 100 * time.Millisecond

// All is known of a period when two more are over: shortestRTO, after which most lost
// requests are sent again, and some time for the answer.
const (
	lossPeriods = 4
	lossPeriod  = shortestRTO * 9 / 16
)

// lossVerdict is what follows from the recent losses.
type lossVerdict uint8

const (
	lossUndecided lossVerdict = iota // no change
	noLoss                           // the window may become larger, by one
	queueLoss                        // the window has to be halved, on trial
	randomLoss                       // the trial found no queue
)

// Add counts a request that was first sent in the period given: delay is that of
// the answer; lost: another attempt was answered.
func (l *lossDetector) Add(period uint8, d queueDelay, lost bool) {
	if l.period-period < lossPeriods {
		l.periods[period%lossPeriods].add(d, lost)
	}
}

// Period returns the number of the current period.
func (l *lossDetector) Period() uint8 { return l.period }

// Judge ends the period if it is over, and returns the verdict.
func (l *lossDetector) Judge(now time.Duration) lossVerdict {
	if now-l.began < lossPeriod {
		return lossUndecided
	}
	if now-l.found >= probeEvery {
		l.random = lossCount{} // it may change
	}
	verdict := l.verdict()
	l.period++
	l.began = now
	l.periods[l.period%lossPeriods] = lossCount{}
	switch verdict {
	case queueLoss:
		l.onTrial, l.trial = true, l.period
	case randomLoss:
		l.found = now
	}
	return verdict
}

func (l *lossDetector) verdict() lossVerdict {
	if l.onTrial {
		if l.period-l.trial < 2 {
			return lossUndecided
		}
		l.onTrial = false
		return l.compare(&l.periods[(l.trial-1)%lossPeriods], &l.periods[l.trial%lossPeriods])
	}
	var late lossCount
	for _, n := range l.periods {
		late.base += n.base
		late.arrived += n.arrived
		late.lost += n.lost
	}
	switch {
	case late.isLoaded() && late.exceeds(&l.random):
		return queueLoss
	case l.period%4 == 0: // not sooner than Losses are known
		return noLoss
	}
	return lossUndecided
}

// compare the period before the trial with the first one of it.
func (l *lossDetector) compare(before, during *lossCount) lossVerdict {
	switch {
	case during.lost == 0:
	case before.exceeds(during), during.exceeds(before): // of a queue that others use too there may be more
		return queueLoss
	case during.lost >= 8: // fewer are too few to decide
		l.random = *during
		return randomLoss
	}
	return lossUndecided
}

// lossCount is what became of the first attempts of requests.
type lossCount struct {
	arrived, lost uint32
	base          uint32 // of arrived: with a base RTT
}

func (n *lossCount) add(d queueDelay, lost bool) {
	if lost {
		n.lost++
		return
	}
	n.arrived++
	if d == baseDelay {
		n.base++
	}
}

// isLoaded reports whether half of the RTTs are longer than the base RTT.
func (n *lossCount) isLoaded() bool { return 2*n.base < n.arrived }

// exceeds reports whether the odds of a loss are higher than those of m, by more than
// chance (two standard deviations). Odds, not probabilities: a queue that is
// much too short loses nearly all, whatever the window.
func (n *lossCount) exceeds(m *lossCount) bool {
	expected := float64(n.arrived) * float64(m.lost) / float64(m.arrived+1)
	return float64(n.lost) > 1.4*expected+2*math.Sqrt(expected)
}
