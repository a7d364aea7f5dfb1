package engine

import (
	"time"

	"fabsh/mad"
)

// destination is a node for one kind of classes. It admits a few calls at a time;
// the others are held here, so that they do not delay other destinations.
type destination struct {
	key     destKey
	class   *classFlow
	window  congestionWindow // of admitted calls
	open    int              // admitted calls: neither answered nor sent a second time
	held    callList
	rtt     rttEstimate
	baseRTT time.Duration
	calls   int // that use it, from Start to the end
	place   int // in flow.dests
}

// rto returns the class's RTO, or d's own if that is longer; 0 if it is unknown.
func (d *destination) rto() time.Duration { return max(d.class.rtt.RTO(), d.rtt.RTO()) }

// destKey identifies a destination: LID or directed route, or GID.
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

// maxDestinations is the number of remembered destinations, unless more are in use:
// more than a subnet has LIDs.
const maxDestinations = 1 << 16

// destination returns c's destination, new or existing, until release.
func (f *flow) destination(c *Call) *destination {
	w := &f.classes[kindOf(mad.Class(c.MAD[mad.ClassOffset]))]
	k := keyOf(c)
	if w.last == nil || w.last.key != k { // most calls come in runs
		w.last = w.dests[k]
	}
	if w.last == nil {
		if len(f.dests) >= f.maxDests {
			f.forgetDestinations()
		}
		w.last = f.newDestination(w, k)
	}
	w.last.calls++
	return w.last
}

func (f *flow) newDestination(w *classFlow, k destKey) *destination {
	var d *destination
	if last := len(f.spare) - 1; last >= 0 {
		d, f.spare = f.spare[last], f.spare[:last]
	} else {
		d = new(destination)
	}
	*d = destination{key: k, class: w, window: w.perDestination, place: len(f.dests)}
	w.dests[k] = d
	f.dests = append(f.dests, d)
	return d
}

// release ends the use of d by a call. A destination that no call uses and that has
// learned nothing is not kept: a sweep sends once along each route.
func (f *flow) release(d *destination) {
	if d.calls--; d.calls > 0 || d.hasLearned() {
		return
	}
	f.forget(d)
	last := f.dests[len(f.dests)-1]
	last.place = d.place
	f.dests[d.place] = last
	f.dests[len(f.dests)-1] = nil
	f.dests = f.dests[:len(f.dests)-1]
	f.spare = append(f.spare, d)
}

// hasLearned reports whether d's window has another size than that of a new
// destination, or its RTTs are longer than those of its class.
func (d *destination) hasLearned() bool {
	start := &d.class.perDestination
	return d.window.Differs(start) || d.rtt.RTO() > max(d.class.rtt.RTO(), minLeaveAfter)
}

// forget removes d from the known destinations.
func (f *flow) forget(d *destination) {
	delete(d.class.dests, d.key)
	if d.class.last == d {
		d.class.last = nil
	}
}

// forgetDestinations drops the destinations without calls.
func (f *flow) forgetDestinations() {
	used := f.dests[:0]
	for _, d := range f.dests {
		if d.calls > 0 {
			d.place = len(used)
			used = append(used, d)
		} else {
			f.forget(d)
		}
	}
	clear(f.dests[len(used):])
	f.dests = used
	f.maxDests = max(f.maxDests, 2*len(used)) // so that this is rare
}
