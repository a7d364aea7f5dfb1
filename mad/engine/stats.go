package engine

import "time"

// Stats are the counts of an engine since its start.
type Stats struct {
	Counts
	SMP ClassStats // subnet management
	SA  ClassStats // subnet administration
	GMP ClassStats // performance management and all others
}

// Counts are of all classes.
type Counts struct {
	Sent        uint64 // datagrams passed to the transport, including retries, RMPP ACKs and ReportResps
	Answered    uint64 // calls that got a response, whatever its status
	Retried     uint64 // requests sent again
	TimedOut    uint64 // calls that ended without an answer
	Late        uint64 // responses to calls that had timed out or been cancelled
	Duplicate   uint64 // further responses to calls that had been answered
	Foreign     uint64 // responses without a request of ours, or from another address; forged Reports and traps
	Busy        uint64 // responses with status BUSY
	Undelivered uint64 // requests that the transport returned
	Unsolicited uint64 // requests of others: traps, Reports
	Dropped     uint64 // of those, dropped because they came faster than they were read
	Refused     uint64 // calls not sent: read-only, or refused by the transport
	Cancelled   uint64 // calls ended by Cancel after they had been sent
}

// ClassStats are of one kind of management class.
type ClassStats struct {
	Window int // the congestion window: requests that may be outstanding, now
	// RoundTrips measured, and their quantiles: half of them, 90 % and 99 % took at
	// most this long. The buckets of the histogram make that up to a quarter too
	// long.
	RoundTrips    uint64
	P50, P90, P99 time.Duration
	Max           time.Duration
}

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := e.calls.counts
	e.listeners.addTo(&counts)
	classes := &e.calls.flow.classes
	return Stats{counts, classes[kindSMP].stats(), classes[kindSA].stats(), classes[kindGMP].stats()}
}

func (w *classFlow) stats() ClassStats {
	h := &w.histogram
	return ClassStats{
		Window:     w.window.Size(),
		RoundTrips: h.n,
		P50:        h.quantile(0.5),
		P90:        h.quantile(0.9),
		P99:        h.quantile(0.99),
		Max:        h.max,
	}
}
