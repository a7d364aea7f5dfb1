package sim

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"time"

	"fabsh/mad"
)

// faultModel draws the faults of the MADs of one conn. They follow from the seed,
// the content of the MAD, and how many MADs with this content there were before;
// not from the time and the transaction ID. So they do not depend on the order
// in which the program sends its requests.
type faultModel struct {
	Options
	active bool // some MAD may have a fault

	mu   sync.Mutex
	seen map[uint64]uint64 // number of MADs by content
}

// faults are the faults of one MAD, and its delay.
type faults struct {
	lost, duplicate, busy bool
	delay                 time.Duration
}

func newFaultModel(o Options) *faultModel {
	return &faultModel{Options: o, seen: map[uint64]uint64{},
		active: o.Loss > 0 || o.Dup > 0 || o.Busy > 0 || o.Jitter > 0}
}

// draw draws the faults of p, to the subnet or back.
func (f *faultModel) draw(p *packet, back bool) faults {
	if !f.active {
		return faults{delay: f.Delay}
	}
	salt := uint64(p.LID)<<8 | uint64(p.QP&1)<<1
	if back {
		salt |= 1
	}
	content := digest(uint64(f.Seed)^mix(salt), &p.mad)
	f.mu.Lock()
	n := f.seen[content]
	f.seen[content] = n + 1
	f.mu.Unlock()

	d := splitMix64{content ^ mix(n)}
	return faults{
		lost:      d.uniform() < f.Loss,
		duplicate: d.uniform() < f.Dup,
		busy:      d.uniform() < f.Busy,
		delay:     f.Delay + time.Duration(d.uniform()*float64(f.Jitter)),
	}
}

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
