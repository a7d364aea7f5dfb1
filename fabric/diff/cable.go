package diff

import (
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// cables reports links between nodes that both sides have.
func (c *comparison) cables() {
	w := c.wiring()
	w.moves()
	c.Changes = append(c.Changes, w.changes...)
}

// wiring are the links that differ, between ports of the newer side, by port id.
// Links of nodes that only one side has are not among them.
type wiring struct {
	*comparison
	ports   []fabric.Port // of the newer side
	old     []int32       // the port at the other end before; none
	new     []int32       // and now; both have the value none where they are equal
	before  map[int32]*fabric.Port
	changes []*Change
}

// wiring compares the links of both sides.
func (c *comparison) wiring() *wiring {
	w := &wiring{comparison: c, ports: c.fabrics[sideNew].Ports(), before: map[int32]*fabric.Port{}}
	w.old = slices.Repeat([]int32{none}, len(w.ports))
	w.new = slices.Clone(w.old)
	for i := range c.fabrics[sideOld].Ports() {
		p := &c.fabrics[sideOld].Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || c.node(sideOld, p.Node()) == nil || c.node(sideOld, q.Node()) == nil {
			continue
		}
		x, y := c.port(sideOld, p), c.port(sideOld, q)
		switch {
		case x == nil || y == nil || p == q || x == y: // the port no longer exists; a loopback plug
			if p != q || x == nil || x.Peer() != x {
				w.gone(p, q)
			}
		case x.Peer() == y:
			w.rates(p, x)
		case x.Peer() == nil && y.Peer() == nil && (c.unknown(sideNew, x) || c.unknown(sideNew, y)):
			c.Unread = append(c.Unread, "link "+linkName(p, q)+": unread in the newer fabric")
		default:
			w.old[x.ID()], w.old[y.ID()] = int32(y.ID()), int32(x.ID())
			w.before[int32(x.ID())], w.before[int32(y.ID())] = p, q
		}
	}
	for i := range w.ports {
		x := &w.ports[i]
		y := x.Peer()
		if y == nil || y.ID() < x.ID() || c.node(sideNew, x.Node()) == nil || c.node(sideNew, y.Node()) == nil {
			continue
		}
		p, q := c.port(sideNew, x), c.port(sideNew, y)
		switch {
		case p == nil || q == nil:
			w.come(x, y)
		case p.Peer() == q:
		case x == y:
			w.come(x, y)
		case p.Peer() == nil && q.Peer() == nil && (c.unknown(sideOld, p) || c.unknown(sideOld, q)):
			c.Unread = append(c.Unread, "link "+linkName(x, y)+": unread in the older fabric")
		default:
			w.new[x.ID()], w.new[y.ID()] = int32(y.ID()), int32(x.ID())
		}
	}
	return w
}

// gone reports a link of the older side that went.
func (w *wiring) gone(p, q *fabric.Port) {
	x := ofLink(LinkGone, p, q)
	x.Before = rateOf(p)
	w.changes = append(w.changes, x)
}

// come reports a link of the newer side that came.
func (w *wiring) come(p, q *fabric.Port) {
	x := ofLink(LinkNew, p, q)
	x.After = rateOf(p)
	w.changes = append(w.changes, x)
}

// rates compares the width and the speed of a link, at the end p, now x, or, where
// these are equal, at the other one. While a link is down they mean nothing.
func (w *wiring) rates(p, x *fabric.Port) {
	for _, r := range []struct {
		kind string
		of   func(*fabric.Port) string
	}{{LinkWidth, (*fabric.Port).Width}, {LinkSpeed, (*fabric.Port).Speed}} {
		for _, end := range [2][2]*fabric.Port{{p, x}, {p.Peer(), x.Peer()}} {
			before, after := r.of(end[0]), r.of(end[1])
			if before == after || before == "" || after == "" || end[0].State() == mad.PortStateDown || end[1].State() == mad.PortStateDown {
				continue
			}
			l := ofLink(r.kind, x, x.Peer())
			l.Before, l.After = before, after
			w.changes = append(w.changes, l)
			break
		}
	}
}

// rateOf is the width and speed of a link: "4x hdr"; "link" where they are unknown.
func rateOf(p *fabric.Port) string {
	switch width, speed := p.Width(), p.Speed(); {
	case p.State() == mad.PortStateDown:
		return "down"
	case width == "" || speed == "":
		return "link"
	default:
		return width + " " + speed
	}
}
