package engine

import "time"

// policy is what differs between a fabric and a recording of one: how many
// requests may be outstanding, when one is sent again, and when it is given up.
type policy interface {
	// window is how many requests of all classes may be outstanding, where the
	// options and the transport allow so many.
	window(allowed int) int
	// congestionWindows are those that a kind of classes begins with, and each
	// of its destinations, where all classes together have window.
	congestionWindows(kind, window int) (class, destination congestionWindow)
	// setDeadlines says, at the first attempt of c, how long it lasts and how
	// long the call.
	setDeadlines(c *Call, now, rto time.Duration)
	// retriesBusy: c, which was answered BUSY, is to be sent again.
	retriesBusy(c *Call, now time.Duration) bool
	// undelivered says what follows for c, whose latest attempt the transport
	// gave back as d.
	undelivered(c *Call, d *Datagram, now time.Duration) loss
	// wholeRequests: the transport takes a request of many segments as one
	// datagram.
	wholeRequests() bool
}

// loss is what follows from an attempt that was not delivered.
type loss uint8

const (
	lossIgnored loss = iota // a transfer has its own retries
	lossAwaited             // nothing is resent: the attempt lasts its full time
	lossBackOff             // it is resent after a pause
	lossResent              // it is resent at once
	lossFinal               // the call ends as timed out
)

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
		s.wait = s.totalTimeout() // the kernel sends segments again
	case s.reads && s.retries > 0 && !isTable(&c.MAD):
		s.wait = rto
	default:
		s.wait = s.timeout
	}
}

func (l *live) retriesBusy(c *Call, now time.Duration) bool { return now < c.s.busyEnd }

func (l *live) undelivered(c *Call, _ *Datagram, _ time.Duration) loss {
	switch s := &c.s; {
	case s.rx != nil || s.tx != nil && (s.tx.acked > 0 || s.tx.sent > 1):
		return lossIgnored // it was not the first segment
	case !s.reads:
		return lossAwaited // it may have been carried out
	case s.retries == 0 || s.undelivered >= 2*(s.retries+1)-1: // about as many attempts as silence gets
		return lossFinal
	}
	return lossBackOff
}

func (l *live) wholeRequests() bool { return l.transportRMPP }
