package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The links that differ are a graph in which each port has at most one old link
// and one new link. So it falls apart into paths and cycles in which old and new
// links alternate. A path of one old and one new link is a cable of which one end
// has moved. A cycle is an exchange of the ends of its cables; of all moves that
// undo it, the report has that which moves ends at one switch.

// moves reports the links that differ, path by path, then cycle by cycle.
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

// follow are the ports along old and new links by turns, from a port on; old: the
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
			w.moved(ports[1], ports[0], ports[2])
		case len(ports) > 2:
			w.moved(ports[1], ports[2], ports[0])
		case old:
			w.gone(w.before[ports[0]], w.before[ports[1]])
		default:
			w.come(&w.ports[ports[0]], &w.ports[ports[1]])
		}
		if len(ports) == 2 {
			return
		}
		ports = ports[2:]
	}
}

// moved reports a cable that stays at one port, and moved from one to another.
func (w *wiring) moved(stays, from, to int32) {
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
	x.Subject = listed(names, ", ")
	x.Before, x.After = listed(before, ", "), listed(after, ", ")
	if len(ends) == 2 {
		x.Effect = fmt.Sprintf("swap the cables at %s and %s", names[0], names[1])
	} else {
		var moves []string
		for i, p := range ends {
			// The cable that is at p now belongs where its other end was before.
			home := w.old[w.new[p]]
			moves = append(moves, names[i]+" to "+portName(&w.ports[home]))
		}
		x.Effect = fmt.Sprintf("exchange the cables of %d ports: move that at %s", len(ends), listed(moves, ", at "))
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

// listed joins the first names of a list, and counts the others.
func listed(names []string, sep string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, sep)
	}
	return strings.Join(names[:maxNamed], sep) + " and " + strconv.Itoa(len(names)-maxNamed) + " more"
}
