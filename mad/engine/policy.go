package engine

import (
	"time"
)

// policy is the differences between a fabric and a recording: how many requests may
// be outstanding, when one is sent again, and when it is abandoned.
type policy interface {
	// window returns how many requests of all classes may be outstanding, if the
	// options and the transport allow it.
	window(allowed int) int
	// congestionWindows returns the initial windows of a kind of classes, and of
	// each of its destinations, if all classes together have window.
	congestionWindows(kind, window int) (class, destination congestionWindow)
	// setDeadlines sets, at the first attempt of c, the deadlines of the attempt
	// and of the call.
	setDeadlines(c *Call, now, rto time.Duration)
	// retriesBusy reports whether c, which was answered BUSY, is sent again.
	retriesBusy(c *Call, now time.Duration) bool
	// undelivered returns the consequence for c, whose latest attempt the
	// transport returned as d.
	undelivered(c *Call, d *Datagram, now time.Duration) loss
	// wholeRequests reports whether the transport accepts a request of many
	// segments as one datagram.
	wholeRequests() bool
}

// loss is the consequence of an attempt that was not delivered.
type loss uint8

const (
	lossIgnored loss = iota // a transfer has its own retries
	lossAwaited             // nothing is resent: the attempt lasts its full time
	lossBackOff             // it is resent after a pause
	lossResent              // it is resent at once
	lossFinal               // the call ends as timed out
)

// minTransferTime is the least time that a transfer that makes progress may last;
// Linux also has 40 s (mad_rmpp.c, start_rmpp).
const minTransferTime = 40 * time.Second

func policyFor(t Traits) policy {
	if t.Recorded {
		return recorded{}
	}
	return &live{transportRMPP: t.RMPP}
}

// live is the policy of a fabric: windows by delay, attempts by RTO and timeout.
type live struct {
	transportRMPP bool // Traits.RMPP
}

func (l *live) window(allowed int) int { return allowed }

func (l *live) congestionWindows(kind, window int) (class, destination congestionWindow) {
	if kind == kindSA {
		return newCongestionWindow(windowSA, windowSA, min(windowSA, window)), newCongestionWindow(windowSA, windowSA, windowSA)
	}
	return newCongestionWindow(windowStart, windowStart, window), newCongestionWindow(windowDestinationStart, 1, windowDestination)
}

func (l *live) setDeadlines(c *Call, now, rto time.Duration) {
	s := &c.s
	s.giveUp = now + s.totalTimeout()
	s.busyEnd = s.giveUp
	s.lastEnd = now + max(minTransferTime, 10*s.totalTimeout())
	switch {
	case c.Payload != nil && l.transportRMPP:
		s.wait = s.totalTimeout() // the kernel repeats segments
	case s.reads && s.retries > 0 && !isTable(&c.MAD):
		s.wait = rto
	default:
		s.wait = s.timeout
	}
}

func (l *live) retriesBusy(c *Call, now time.Duration) bool { return now < c.s.busyEnd }

func (l *live) undelivered(c *Call, _ *Datagram, _ time.Duration) loss {
	switch s := &c.s; {
	case s.rx != nil || s.tx != nil && s.tx.Begun():
		return lossIgnored // not the first segment
	case !s.reads:
		return lossAwaited // it may have been executed
	case s.retries == 0 || s.undelivered >= 2*(s.retries+1)-1: // about as many attempts as silence gets
		return lossFinal
	}
	return lossBackOff
}

func (l *live) wholeRequests() bool { return l.transportRMPP }

// recorded is the policy of a recording, which has the result of each attempt at once:
// Undelivered means to try again, or to stop. Too many requests harm no one, and there
// is nothing to wait for.
type recorded struct{}

// recordedTimeout is unlimited: a recording reports each loss.
const recordedTimeout = 24 * time.Hour

func (recorded) window(int) int { return numSlots }

func (recorded) congestionWindows(int, int) (class, destination congestionWindow) {
	unlimited := newCongestionWindow(numSlots, numSlots, numSlots)
	return unlimited, unlimited
}

func (recorded) setDeadlines(c *Call, now, _ time.Duration) {
	c.s.wait, c.s.giveUp, c.s.lastEnd = recordedTimeout, now+recordedTimeout, never
}

// retriesBusy returns false: if the requester tried again, the recording has the later
// answer.
func (recorded) retriesBusy(*Call, time.Duration) bool { return false }

// undelivered sends c again as often as was recorded; then d.Took is the time until
// the call was abandoned.
func (recorded) undelivered(c *Call, d *Datagram, now time.Duration) loss {
	if d.Took == 0 {
		return lossResent
	}
	c.s.started, c.s.firstSent, c.s.giveUp = now-d.Took, now-d.Took, now
	return lossFinal
}

// wholeRequests returns true: a recorded request is compared as a whole.
func (recorded) wholeRequests() bool { return true }
