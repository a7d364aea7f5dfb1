package sim

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/mad"
)

// faultModel draws the faults of the MADs of one conn. They follow from the seed,
// the content of the MAD, and how many MADs with this content there were before;
// not from the time and the transaction ID. So they do not depend on the order
// in which the program sends its requests.
type faultModel struct {
	options *atomic.Pointer[faultOptions] // of the subnet

	mu   sync.Mutex
	seen map[uint64]uint64 // number of MADs by content
}

// faults are the faults of one MAD, and its delay.
type faults struct {
	lost, duplicate, busy bool
	delay                 time.Duration
}

// faultOptions are the faults of all MADs. They are replaced as a whole.
type faultOptions struct {
	Loss, Dup, Busy float64
	Delay, Jitter   time.Duration
	Seed            int64
	VL15            int
}

// changeFaults changes the faults of all MADs.
func (s *Subnet) changeFaults(change func(*faultOptions)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := *s.faults.Load()
	change(&o)
	s.faults.Store(&o)
}

// active: some MAD may have a fault.
func (o *faultOptions) active() bool { return o.Loss > 0 || o.Dup > 0 || o.Busy > 0 || o.Jitter > 0 }

func newFaultModel(options *atomic.Pointer[faultOptions]) *faultModel {
	return &faultModel{options: options, seen: map[uint64]uint64{}}
}

// draw draws the faults of p, to the subnet or back.
func (f *faultModel) draw(p *packet, back bool) faults {
	o := f.options.Load()
	if !o.active() {
		return faults{delay: o.Delay}
	}
	salt := uint64(p.LID)<<8 | uint64(p.QP&1)<<1
	if back {
		salt |= 1
	}
	d := f.chance(o.Seed, salt, &p.mad)
	drawn := faults{
		lost:      d.uniform() < o.Loss,
		duplicate: d.uniform() < o.Dup,
		busy:      d.uniform() < o.Busy,
	}
	// The sum of two that are allowed may be too large for a duration.
	drawn.delay = o.Delay + min(time.Duration(d.uniform()*float64(o.Jitter)), math.MaxInt64-o.Delay)
	return drawn
}

// chance is the chance of a MAD: by the seed, its content and the salt, and how many
// there were before.
func (f *faultModel) chance(seed int64, salt uint64, m *[mad.Size]byte) splitMix64 {
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

// maxSeen bounds what is remembered of MADs.
const maxSeen = 1 << 20

// splitMix64 is a random number generator that is cheap to seed for each MAD
// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
type splitMix64 struct{ state uint64 }

// uniform gives a number in [0, 1).
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
