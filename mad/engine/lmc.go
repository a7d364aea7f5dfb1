package engine

import (
	"iter"
	"sync/atomic"

	"fabsh/mad"
)

// lmcs are those of ports, as far as KnowLMCs has told. It is safe for concurrent use.
type lmcs struct{ known atomic.Pointer[lmcTable] }

// lmcTable is by LID; unknownLMC where nobody has told.
type lmcTable [mad.MaxUnicastLID + 1]uint8

const unknownLMC = 0xff

// MaxLMC is the largest LMC: the LIDs of one port differ in no more bits
// (IBA 14.2.5.6).
const MaxLMC = 7

// set replaces what is known.
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

// of is the LMC of the port with a LID; MaxLMC where that is not known.
func (l *lmcs) of(lid mad.LID) uint8 {
	if t := l.known.Load(); t != nil && lid <= mad.MaxUnicastLID && t[lid] != unknownLMC {
		return t[lid]
	}
	return MaxLMC
}

// KnowLMCs tells the engine which LIDs ports have, and replaces what it was told
// before: ports are pairs of a LID and an LMC. What answers for one port must then
// come from the LIDs of that port. Where ports claim the same LIDs the larger LMC
// counts.
func (e *Engine) KnowLMCs(ports iter.Seq2[mad.LID, uint8]) { e.lmcs.set(ports) }

// LMC returns the LMC of the port with a LID; MaxLMC where that is not known.
func (e *Engine) LMC(lid mad.LID) uint8 { return e.lmcs.of(lid) }
