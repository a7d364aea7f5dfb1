package state

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"time"

	"fabsh/mad"
)

// FaultModel draws the faults of the MADs of one conn. They follow from the seed,
// the content of the MAD, and how many MADs with this content there were before;
// not from the time and the transaction ID. So they do not depend on the order
// in which the program sends its requests.
type FaultModel struct {
	faults *Faults

	mu   sync.Mutex
	seen map[uint64]uint64 // number of MADs by content
}

// Outcome are the faults of one MAD, and its delay.
type faultOutcome struct {
	Lost, Duplicate, Busy bool
	Delay                 time.Duration
}

func (f *Faults) NewModel() *FaultModel {
	return &FaultModel{faults: f, seen: map[uint64]uint64{}}
}

// Draw draws the faults of p, to the subnet or back.
func (f *FaultModel) Draw(lid mad.LID, qp uint32, m *[mad.Size]byte, back bool) faultOutcome {
	o := f.faults.Settings.Load()
	if !o.active() {
		return faultOutcome{Delay: o.Delay}
	}
	salt := uint64(lid)<<8 | uint64(qp&1)<<1
	if back {
		salt |= 1
	}
	d := f.chance(o.Seed, salt, m)
	drawn := faultOutcome{
		Lost:      d.uniform() < o.Loss,
		Duplicate: d.uniform() < o.Dup,
		Busy:      d.uniform() < o.Busy,
	}
	// The sum of two that are allowed may be too large for a duration.
	drawn.Delay = o.Delay + min(time.Duration(d.uniform()*float64(o.Jitter)), math.MaxInt64-o.Delay)
	return drawn
}

// chance returns the random number of a MAD: determined by the seed, its content and the
// salt, and the number of earlier MADs with that content.
func (f *FaultModel) chance(seed int64, salt uint64, m *[mad.Size]byte) splitMix64 {
	content := digest(uint64(seed)^mix(salt), m)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.seen[content]
	if len(f.seen) >= maxSeen {
		clear(f.seen)
	}
	f.seen[content] = n + 1
	return splitMix64{content ^ mix(n)}
}

// maxSeen is the largest number of MADs that are remembered.
const maxSeen = 1 << 20

// splitMix64 is a random number generator that is cheap to seed for each MAD
// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
type splitMix64 struct{ state uint64 }

// uniform returns a number in [0, 1).
func (d *splitMix64) uniform() float64 { return float64(d.next()>>11) / (1 << 53) }

func (d *splitMix64) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	return mix(d.state)
}

// mix is the output function of splitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// digest hashes a MAD without its transaction ID, bytes 8 to 15.
func digest(seed uint64, m *[mad.Size]byte) uint64 {
	h := seed
	for i := 0; i < mad.Size; i += 8 {
		if i == 8 {
			continue
		}
		h = bits.RotateLeft64(h^binary.BigEndian.Uint64(m[i:]), 29) * 0x9e3779b97f4a7c15
	}
	return mix(h)
}
