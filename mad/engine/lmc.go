package engine

import (
	"iter"
	"sync/atomic"

	"fabsh/mad"
)

// lmcs are the LMCs of ports, from KnowLMCs. It is safe for concurrent use.
type lmcs struct{ known atomic.Pointer[lmcTable] }

// lmcTable is by LID, with unknownLMC.
type lmcTable [mad.MaxUnicastLID + 1]uint8

const unknownLMC = 0xff

// MaxLMC is the largest LMC: the LIDs of one port differ in no more bits
// (IBA 14.2.5.6).
const MaxLMC = 7

// set replaces the known LMCs.
func (l *lmcs) set(ports iter.Seq2[mad.LID, uint8]) {
	t := new(lmcTable)
	for i := range t {
		t[i] = unknownLMC
	}
	for lid, lmc := range ports {
		lmc = min(lmc, MaxLMC)
		first := lid >> lmc << lmc
		for i := range mad.LID(1) << lmc {
			if at := first + i; at <= mad.MaxUnicastLID && (t[at] == unknownLMC || t[at] < lmc) {
				t[at] = lmc
			}
		}
	}
	l.known.Store(t)
}

// of returns the LMC of the port with a LID; MaxLMC if it is unknown.
func (l *lmcs) of(lid mad.LID) uint8 {
	if t := l.known.Load(); t != nil && lid <= mad.MaxUnicastLID && t[lid] != unknownLMC {
		return t[lid]
	}
	return MaxLMC
}

// KnowLMCs sets the LIDs of ports, and replaces those of the call before: ports are
// pairs of a LID and an LMC. Answers of a port must then come from the LIDs of that
// port. If ports claim the same LIDs the larger LMC counts.
func (e *Engine) KnowLMCs(ports iter.Seq2[mad.LID, uint8]) { e.lmcs.set(ports) }

// LMC returns the LMC of the port with a LID; MaxLMC if it is unknown.
func (e *Engine) LMC(lid mad.LID) uint8 { return e.lmcs.of(lid) }
