package engine

import "time"

// recorded is the policy of a recording, which knows at once what becomes of
// each attempt: Undelivered says when to try again, and when no more. There is
// nobody whom too many requests could harm, and nothing to wait for.
type recorded struct{}

// recordedTimeout is for ever: a recording tells of each loss.
const recordedTimeout = 24 * time.Hour

func (recorded) window(int) int { return numSlots }

func (recorded) congestionWindows(int, int) (class, destination congestionWindow) {
	unlimited := newCongestionWindow(numSlots, numSlots, numSlots)
	return unlimited, unlimited
}

func (recorded) setDeadlines(c *Call, now, _ time.Duration) {
	c.s.wait, c.s.giveUp, c.s.lastEnd = recordedTimeout, now+recordedTimeout, never
}

// retriesBusy: where the asker tried again, the recording has the later answer.
func (recorded) retriesBusy(*Call, time.Duration) bool { return false }

// undelivered has c sent again as often as was recorded; then d.Took says how
// long it took until the call was given up.
func (recorded) undelivered(c *Call, d *Datagram, now time.Duration) loss {
	if d.Took == 0 {
		return lossResent
	}
	c.s.started, c.s.firstSent, c.s.giveUp = now-d.Took, now-d.Took, now
	return lossFinal
}

// wholeRequests: a recorded request is compared as a whole.
func (recorded) wholeRequests() bool { return true }
