package engine

import (
	"time"

	"fabsh/mad"
)

// destination is a node as one kind of classes knows it. It admits a few calls
// at a time; the others are held here, out of the way of other destinations.
type destination struct {
	key     destKey
	class   *classFlow
	window  congestionWindow // of admitted calls
	open    int              // admitted calls: neither answered nor sent a second time
	held    callList
	rtt     rttEstimator
	baseRTT time.Duration
}

// rto is the class's RTO, or d's own if that is longer; 0: none is known yet.
func (d *destination) rto() time.Duration { return max(d.class.rtt.rto(), d.rtt.rto()) }

// destKey tells destinations apart: LID or directed route, or GID.
type destKey struct {
	lid   mad.LID
	hops  uint8
	route [mad.MaxHops]uint8
	gid   mad.GID
}

func keyOf(c *Call) (k destKey) {
	k.lid = c.s.to.LID
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		k.hops = min(c.MAD[mad.HopCountOffset], mad.MaxHops)
		copy(k.route[:k.hops], c.MAD[mad.SMPInitialPathOffset+1:])
	}
	if c.s.to.HasGRH {
		k.gid = c.s.to.GID
	}
	return k
}

// maxDestinations are remembered, if no more are in use: more than a subnet
// has LIDs.
const maxDestinations = 1 << 16

// destination finds or makes c's destination.
func (f *flow) destination(c *Call) *destination {
	w := &f.classes[kindOf(mad.Class(c.MAD[mad.ClassOffset]))]
	k := keyOf(c)
	d := w.dests[k]
	if d == nil {
		if len(f.dests) >= f.maxDests {
			f.forgetDestinations()
		}
		d = &destination{key: k, class: w, window: w.perDestination}
		w.dests[k] = d
		f.dests = append(f.dests, d)
	}
	return d
}

// forgetDestinations drops those from which nothing is expected.
func (f *flow) forgetDestinations() {
	used := f.dests[:0]
	for _, d := range f.dests {
		if d.open > 0 {
			used = append(used, d)
		} else {
			delete(d.class.dests, d.key)
		}
	}
	clear(f.dests[len(used):])
	f.dests = used
	f.maxDests = max(f.maxDests, 2*len(used)) // so that this is done seldom
}
