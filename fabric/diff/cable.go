package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
				w.addGone(p, q)
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
			w.addNew(x, y)
		case p.Peer() == q:
		case x == y:
			w.addNew(x, y)
		case p.Peer() == nil && q.Peer() == nil && (c.unknown(sideOld, p) || c.unknown(sideOld, q)):
			c.Unread = append(c.Unread, "link "+linkName(x, y)+": unread in the older fabric")
		default:
			w.new[x.ID()], w.new[y.ID()] = int32(y.ID()), int32(x.ID())
		}
	}
	return w
}

// addGone reports a link of the older side that is gone.
func (w *wiring) addGone(p, q *fabric.Port) {
	x := ofLink(LinkGone, p, q)
	x.Before = rateOf(p)
	w.changes = append(w.changes, x)
}

// addNew reports a link of the newer side that is new.
func (w *wiring) addNew(p, q *fabric.Port) {
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

// moves reports the links that differ, path by path, then cycle by cycle.
//
// These links are a graph in which each port has at most one old link and one new link. So it
// consists of paths and cycles in which old and new links alternate. A path of one old and one
// new link is a cable of which one end has moved. A cycle is an exchange of the ends of its
// cables; of all moves that undo it, the report has the one that moves ends at one switch.
func (w *wiring) moves() {
	seen := make([]bool, len(w.ports))
	for id := range w.ports {
		if !seen[id] && (w.old[id] == none) != (w.new[id] == none) {
			w.path(w.follow(int32(id), w.old[id] != none, seen))
		}
	}
	for id := range w.ports {
		if !seen[id] && w.old[id] != none {
			ports, _ := w.follow(int32(id), true, seen)
			w.cycle(ports)
		}
	}
}

// follow returns the ports along old and new links by turns, from a port on; old: the
// first link is an old one. It ends where no link follows, or where it began.
func (w *wiring) follow(at int32, old bool, seen []bool) (ports []int32, first bool) {
	first = old
	for at != none && !seen[at] {
		seen[at] = true
		ports = append(ports, at)
		if old {
			at = w.old[at]
		} else {
			at = w.new[at]
		}
		old = !old
	}
	return ports, first
}

// path reports a path: pairs of an old and a new link are cables of which one end
// has moved.
func (w *wiring) path(ports []int32, old bool) {
	for len(ports) > 1 {
		switch {
		case len(ports) > 2 && old:
			w.addMoved(ports[1], ports[0], ports[2])
		case len(ports) > 2:
			w.addMoved(ports[1], ports[2], ports[0])
		case old:
			w.addGone(w.before[ports[0]], w.before[ports[1]])
		default:
			w.addNew(&w.ports[ports[0]], &w.ports[ports[1]])
		}
		if len(ports) == 2 {
			return
		}
		ports = ports[2:]
	}
}

// addMoved reports a cable that stays at one port, and moved from one to another.
func (w *wiring) addMoved(stays, from, to int32) {
	x := ofLink(LinkMoved, &w.ports[stays], &w.ports[from])
	x.Before, x.After = portName(&w.ports[from]), portName(&w.ports[to])
	x.Effect = "the end at " + portName(&w.ports[stays]) + " stayed"
	w.changes = append(w.changes, x)
}

// maxNamed is the number of ends that a text names.
const maxNamed = 8

// cycle reports cables whose ends are exchanged: cable i was from ports[2*i] to
// ports[2*i+1], and is now from ports[2*i+2] to ports[2*i+1].
func (w *wiring) cycle(ports []int32) {
	var ends, others []int32
	for i, p := range ports {
		if i%2 == 0 {
			ends = append(ends, p)
		} else {
			others = append(others, p)
		}
	}
	if w.rank(others) < w.rank(ends) {
		ends = others
	}
	// Begin at the lowest, whatever port was found first.
	at := slices.Index(ends, slices.Min(ends))
	ends = slices.Concat(ends[at:], ends[:at])
	x := ofPort(LinkSwapped, &w.ports[ends[0]])
	var names, before, after []string
	for i, p := range ends {
		names = append(names, portName(&w.ports[p]))
		far := portName(&w.ports[w.old[p]])
		now := portName(&w.ports[w.new[p]])
		before, after = append(before, names[i]+" - "+far), append(after, names[i]+" - "+now)
	}
	x.Subject = joinFirst(names, ", ")
	x.Before, x.After = joinFirst(before, ", "), joinFirst(after, ", ")
	if len(ends) == 2 {
		x.Effect = fmt.Sprintf("swap the cables at %s and %s", names[0], names[1])
	} else {
		var moves []string
		for i, p := range ends {
			// The cable that is at p now belongs where its other end was before.
			home := w.old[w.new[p]]
			moves = append(moves, names[i]+" to "+portName(&w.ports[home]))
		}
		x.Effect = fmt.Sprintf("exchange the cables of %d ports: move that at %s", len(ends), joinFirst(moves, ", at "))
	}
	w.changes = append(w.changes, x)
}

// rank is how easily ends of cables can be exchanged: 0 at one switch, 1 at
// switches, 2 else.
func (w *wiring) rank(ends []int32) int {
	first := w.ports[ends[0]].Node()
	rank := 0
	for _, p := range ends {
		switch n := w.ports[p].Node(); {
		case !n.IsSwitch():
			return 2
		case n != first:
			rank = 1
		}
	}
	return rank
}

// joinFirst joins the first names of a list, and counts the others.
func joinFirst(names []string, sep string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, sep)
	}
	return strings.Join(names[:maxNamed], sep) + " and " + strconv.Itoa(len(names)-maxNamed) + " more"
}
