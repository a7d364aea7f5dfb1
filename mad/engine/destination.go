package engine

import (
	"fabsh/mad"
)

import "time"

// destination is a node as one kind of class knows it. It admits a few calls
// at a time; the others wait here, out of the way of other destinations.
type destination struct {
	key   destKey
	kind  *classWindow
	limit limit // of those admitted, neither answered nor sent a second time
	open  int
	held  callList
	trips trips
	least time.Duration // the shortest round trip
}

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
		k.hops = c.MAD[mad.HopCountOffset]
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
func (e *Engine) destination(c *Call) *destination {
	w := &e.windows[kindOf(mad.Class(c.MAD[mad.ClassOffset]))]
	k := keyOf(c)
	d := w.destLookup[k]
	if d == nil {
		if len(e.dests) >= e.maxDests {
			e.forgetDestinations()
		}
		d = &destination{key: k, kind: w, limit: w.perNode}
		w.destLookup[k] = d
		e.dests = append(e.dests, d)
	}
	return d
}

// forgetDestinations drops those from which nothing is expected.
func (e *Engine) forgetDestinations() {
	used := e.dests[:0]
	for _, d := range e.dests {
		if d.open > 0 {
			used = append(used, d)
		} else {
			delete(d.kind.destLookup, d.key)
		}
	}
	clear(e.dests[len(used):])
	e.dests = used
	e.maxDests = max(e.maxDests, 2*len(used)) // so that this is done seldom
}
