package audit

import (
	"iter"
	"math"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// BER is the judgement of a link's bit errors by a target, such as 1e-15: how
// many there were in a window, and how many the target allows.
type BER struct {
	Verdict BERVerdict
	Errors  uint64
	Allowed float64       // rate x seconds x target
	Window  time.Duration // 0: unknown
	Needs   time.Duration // from when on no error is enough to pass; 0: unknown
}

// BERVerdict is the outcome.
type BERVerdict string

// The outcomes. Unknown is never OK.
const (
	BEROK       BERVerdict = "ok"
	BERExceeded BERVerdict = "exceeded"
	BERTooShort BERVerdict = "window_too_short"
	BERUnknown  BERVerdict = "unknown" // the link's rate, or the errors, are unknown
)

const (
	// enough events that a target allows make the count itself the test.
	enough = 3
	// Below, the test is how likely so many events are at the target: less than
	// this is not chance. One event is never enough.
	unlikely = 1e-3
)

// JudgeBER judges errors of a link of bits per second in a window.
func JudgeBER(errors uint64, window time.Duration, bits, target float64) BER {
	b := BER{Errors: errors, Window: window, Allowed: bits * window.Seconds() * target}
	if seconds := enough / (bits * target); seconds < math.MaxInt64/float64(time.Second) {
		b.Needs = time.Duration(seconds * float64(time.Second))
	}
	switch {
	case !(bits > 0) || !(target > 0):
		return BER{Verdict: BERUnknown, Errors: errors, Window: window}
	case b.Allowed >= enough && float64(errors) <= b.Allowed:
		b.Verdict = BEROK
	case b.Allowed >= enough, errors > 1 && atLeast(errors, b.Allowed) < unlikely:
		b.Verdict = BERExceeded
	default:
		b.Verdict = BERTooShort
	}
	return b
}

// atLeast is the probability of n events or more where mean are expected
// (Poisson).
func atLeast(n uint64, mean float64) float64 {
	term, below := math.Exp(-mean), 0.0
	for k := uint64(0); k < n && k < 1000; k++ {
		below += term
		term *= mean / float64(k+1)
	}
	return max(0, 1-below)
}

// dataGbps is the data rate of a lane in Gb/s: the signalling rate without what
// the line code takes (IBA volume 2: 8b/10b up to QDR, 64b/66b up to EDR, then
// 64b/66b transcoded, with RS-FEC).
var dataGbps = map[string]float64{
	"sdr": 2, "ddr": 4, "qdr": 8, "fdr10": 10, "fdr": 14.0625 * 64 / 66, "edr": 25, "hdr": 50, "ndr": 100, "xdr": 200,
}

// LinkBits is the data rate of a link in bits per second; 0: unknown.
func LinkBits(width, speed string) float64 {
	return float64(mad.WidthLanes(width)) * dataGbps[speed] * 1e9
}

// PortRates is what a run read of the counters of a port. A port that did not answer has no
// Read.
type PortRates struct {
	Port     *fabric.Port
	Read     PortRead
	Since    *Comparison // with earlier reads
	TimedOut bool        // the agent timed out; else it refused to answer
}

// Answered reports whether the counters were read.
func (r *PortRates) Answered() bool { return r.Read.Known() }

// Windows are the windows to earlier reads, the newest first; one without rates if there is no
// earlier read; none of a port that did not answer.
func (r *PortRates) Windows() iter.Seq[Window] {
	if !r.Answered() {
		return func(func(Window) bool) {}
	}
	return r.Since.Windows(r.Read)
}

// Newest is the first of Windows. The port must have answered.
func (r *PortRates) Newest() Window { return r.Since.Newest(r.Read) }

// BER is the bit error rate of the port's link in the longest window that is known;
// false: no such window, or the link's rate is unknown.
func (r *PortRates) BER() (rate float64, window time.Duration, ok bool) {
	if r.Port.PhysicalState() != mad.PortPhysicalStateLinkUp { // then PortInfo says anything
		return 0, 0, false
	}
	bits := LinkBits(r.Port.Width(), r.Port.Speed())
	counter := CounterIndex("symbol_error_counter")
	for w := range r.Windows() {
		if one, known := w.BitErrorRate(bits); known && w.Rate(counter).Window > window {
			rate, window, ok = one, w.Rate(counter).Window, true
		}
	}
	return rate, window, ok
}
