package state

import (
	"fabsh/mad"
	"iter"
)

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
