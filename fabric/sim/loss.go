package sim

import (
	"iter"

	"fabsh/mad"
)

// loss is what a port loses of the MADs that cross its link.
type loss struct {
	share    float64         // the probability that a MAD is lost
	arriving bool            // those that come in through the port; else those that leave through it, too
	attr     mad.AttributeID // only requests of that attribute, which end at the port; 0: all
}

// lose sets what a port loses.
func (s *Subnet) lose(p *port, l loss) {
	p.loss = nil
	if l.share > 0 {
		p.loss, s.lossy = &l, true
	}
}

// lossySalt is the salt of what is lost at a port.
const lossySalt = 4

// survives: request p, which went out to r.in or came back, was not lost on its way.
func (r *request) survives(f *faultModel, p *packet, back bool) bool {
	if !r.lossy || r.in == nil {
		return true
	}
	arrive := 1.0
	for at, in := range r.crossed(back) {
		if l := at.loss; l != nil && l.attr == 0 && (in || !l.arriving) {
			arrive *= 1 - l.share
		}
	}
	if l := r.in.loss; !back && l != nil && l.attr != 0 && l.attr == r.Attribute {
		arrive *= 1 - l.share
	}
	if arrive == 1 {
		return true
	}
	salt := uint64(lossySalt)
	if back {
		salt++
	}
	d := f.chance(f.options.Load().Seed, salt, &p.mad)
	return d.uniform() < arrive
}

// crossed are the ports that a request went through, or its answer; true: it came in
// through the port.
func (r *request) crossed(back bool) iter.Seq2[*port, bool] {
	from, to, lid := r.from, r.in, r.in.endPort().lid
	if back {
		from, to, lid = r.in, r.from, r.from.endPort().lid
	}
	return func(yield func(*port, bool) bool) {
		if r.Class == mad.ClassSubnDirected {
			at := r.turn
			for hop := int(r.mad[mad.HopCountOffset]); hop >= 1 && at != nil; hop-- {
				here := &at.node.ports[r.mad[mad.SMPReturnPathOffset+hop]]
				if here.peer == nil || !yield(here, !back) || !yield(here.peer, back) {
					return
				}
				at = here.peer
			}
			return
		}
		at := from
		for range maxLIDHops {
			out, arrived := at.nextHop(lid, at == from)
			if arrived || out == nil || out.peer == nil || at.endPort() == to.endPort() {
				return
			}
			if !yield(out, false) || !yield(out.peer, true) {
				return
			}
			at = out.peer
		}
	}
}
