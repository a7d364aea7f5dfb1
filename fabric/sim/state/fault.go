package state

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/mad"
)

// Faults are the random faults of a subnet: MADs that are lost, late or duplicated, and agents
// that answer BUSY. A FaultModel draws them for each MAD.
type Faults struct {
	subnet   *Subnet
	Settings atomic.Pointer[FaultSettings]
	lossy    bool // a port loses MADs; guarded by the subnet's lock
}

// NewFaults makes the faults of a subnet.
func NewFaults(s *Subnet, o FaultSettings) *Faults {
	f := &Faults{subnet: s}
	f.Settings.Store(&o)
	return f
}

// FaultSettings are the faults of all MADs. They are replaced as a whole.
type FaultSettings struct {
	Loss, Dup, Busy float64       // probabilities
	Delay, Jitter   time.Duration // from a request to its answer; random, added to Delay
	Seed            int64
	VL15            int // answers to SMPs that may wait for a program at a time; 0: any number
}

// change changes the faults of all MADs.
func (f *Faults) change(change func(*FaultSettings)) {
	f.subnet.Lock()
	defer f.subnet.Unlock()
	o := *f.Settings.Load()
	change(&o)
	f.Settings.Store(&o)
}

// active reports whether some MAD may have a fault.
func (o *FaultSettings) active() bool { return o.Loss > 0 || o.Dup > 0 || o.Busy > 0 || o.Jitter > 0 }

// SetLoss sets the probability that a MAD is lost, in each direction: of all MADs, or
// with a node the MADs that cross its ports; with a num of 0 or more, only that port.
func (f *Faults) SetLoss(p float64, node mad.GUID, num int) error {
	if p < 0 || p > 1 || p != p {
		return fmt.Errorf("invalid probability %v; want 0 to 1", p)
	}
	if node == 0 {
		f.change(func(o *FaultSettings) { o.Loss = p })
		return nil
	}
	return f.subnet.WithPort(node, max(0, num), func(at *Port) {
		ports := at.Node.Ports
		if num >= 0 {
			ports = ports[num : num+1]
		}
		for i := range ports {
			f.lose(&ports[i], Loss{Share: p})
		}
	})
}

// SetDelay sets the time from a request to its answer, and what is added to it at
// random.
func (f *Faults) SetDelay(delay, jitter time.Duration) error {
	if delay < 0 || jitter < 0 {
		return fmt.Errorf("invalid delay %v; want 0 or more", min(delay, jitter))
	}
	f.change(func(o *FaultSettings) { o.Delay, o.Jitter = delay, jitter })
	return nil
}

// SetBusy has the agents of a node answer BUSY to the next requests.
func (f *Faults) SetBusy(node mad.GUID, requests int) error {
	if requests < 0 {
		return fmt.Errorf("invalid number of requests %d; want 0 or more", requests)
	}
	return f.subnet.WithPort(node, 0, func(p *Port) { p.Node.Busy.Store(int64(requests)) })
}

// LosePackets has a port lose percent of the packets that come in, or of the requests
// of one attribute that end there.
func (f *Faults) LosePackets(at End, percent int, attr mad.AttributeID) error {
	f.subnet.Lock()
	defer f.subnet.Unlock()
	p, err := f.subnet.PortByIndex(at, 0)
	if err != nil {
		return err
	}
	f.lose(p, Loss{Share: float64(min(percent, 100)) / 100, Arriving: true, Attr: attr})
	return nil
}

// FaultModel draws the faults of the MADs of one conn. They follow from the seed,
// the content of the MAD, and how many MADs with this content there were before;
// not from the time and the transaction ID. So they do not depend on the order
// in which the program sends its requests.
type FaultModel struct {
	faults *Faults

	mu   sync.Mutex
	seen map[uint64]uint64 // number of MADs by content
}

// faultDraw are the faults of one MAD, and its delay.
type faultDraw struct {
	Lost, Duplicate, Busy bool
	Delay                 time.Duration
}

// NewModel returns the faults of the MADs of one program.
func (f *Faults) NewModel() *FaultModel {
	return &FaultModel{faults: f, seen: map[uint64]uint64{}}
}

// Draw draws the faults of p, to the subnet or back.
func (f *FaultModel) Draw(lid mad.LID, qp uint32, m *[mad.Size]byte, back bool) faultDraw {
	o := f.faults.Settings.Load()
	if !o.active() {
		return faultDraw{Delay: o.Delay}
	}
	salt := uint64(lid)<<8 | uint64(qp&1)<<1
	if back {
		salt |= 1
	}
	d := f.chance(o.Seed, salt, m)
	drawn := faultDraw{
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
	content := madDigest(uint64(seed)^splitMix(salt), m)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.seen[content]
	if len(f.seen) >= maxSeenMADs {
		clear(f.seen)
	}
	f.seen[content] = n + 1
	return splitMix64{content ^ splitMix(n)}
}

// maxSeenMADs is the largest number of MADs that are remembered.
const maxSeenMADs = 1 << 20

// splitMix64 is a random number generator that is cheap to seed for each MAD
// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
type splitMix64 struct{ state uint64 }

// uniform returns a number in [0, 1).
func (d *splitMix64) uniform() float64 { return float64(d.next()>>11) / (1 << 53) }

func (d *splitMix64) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	return splitMix(d.state)
}

// splitMix is the output function of splitMix64.
func splitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// madDigest hashes a MAD without its transaction ID, bytes 8 to 15.
func madDigest(seed uint64, m *[mad.Size]byte) uint64 {
	h := seed
	for i := 0; i < mad.Size; i += 8 {
		if i == 8 {
			continue
		}
		h = bits.RotateLeft64(h^binary.BigEndian.Uint64(m[i:]), 29) * 0x9e3779b97f4a7c15
	}
	return splitMix(h)
}

// lose sets what a port loses.
func (f *Faults) lose(p *Port, l Loss) {
	p.Loss = nil
	if l.Share > 0 {
		p.Loss, f.lossy = &l, true
	}
}

// lossySalt is the salt of losses at a port.
const lossySalt = 4

// FaultRoute is the path of a request through the subnet.
type FaultRoute struct {
	From *Port // where the request was sent
	In   *Port // where it arrived; nil: it did not arrive
	Turn *Port // of a directed route: where its directed part ended
}

// Survives reports whether request m, which takes the route, or with back its answer, is
// not lost at a port on the way. drawn is the MAD that determines the random choice.
func (f *FaultModel) Survives(r FaultRoute, h mad.Header, m []byte, drawn *[mad.Size]byte, back bool) bool {
	if !f.faults.lossy || r.In == nil {
		return true
	}
	arrive := 1.0
	for at, in := range r.crossed(h, m, back) {
		if l := at.Loss; l != nil && l.Attr == 0 && (in || !l.Arriving) {
			arrive *= 1 - l.Share
		}
	}
	if l := r.In.Loss; !back && l != nil && l.Attr != 0 && l.Attr == h.Attribute {
		arrive *= 1 - l.Share
	}
	if arrive == 1 {
		return true
	}
	salt := uint64(lossySalt)
	if back {
		salt++
	}
	d := f.chance(f.faults.Settings.Load().Seed, salt, drawn)
	return d.uniform() < arrive
}

// crossed returns the ports that a request went through, or its answer; true: it came in
// through the port.
func (r FaultRoute) crossed(h mad.Header, m []byte, back bool) iter.Seq2[*Port, bool] {
	from, to, lid := r.From, r.In, r.In.EndPort().LID
	if back {
		from, to, lid = r.In, r.From, r.From.EndPort().LID
	}
	return func(yield func(*Port, bool) bool) {
		if h.Class == mad.ClassSubnDirected {
			at := r.Turn
			for hop := int(m[mad.HopCountOffset]); hop >= 1 && at != nil; hop-- {
				here := &at.Node.Ports[m[mad.SMPReturnPathOffset+hop]]
				if here.Peer == nil || !yield(here, !back) || !yield(here.Peer, back) {
					return
				}
				at = here.Peer
			}
			return
		}
		at := from
		for range MaxLIDHops {
			out, arrived := at.NextHop(lid, at == from)
			if arrived || out == nil || out.Peer == nil || at.EndPort() == to.EndPort() {
				return
			}
			if !yield(out, false) || !yield(out.Peer, true) {
				return
			}
			at = out.Peer
		}
	}
}
