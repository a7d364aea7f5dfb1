package audit

import (
	"iter"
	"time"

	"fabsh/mad"
)

// Comparison compares a read with earlier ones. Windows of ports are made when they are needed:
// with many earlier reads they would take more memory than the reads.
type Comparison struct {
	earlier []earlierRead // the newest first
}

// earlierRead is a read that another is compared with.
type earlierRead struct {
	read  *Read
	gap   time.Duration // to the begin of the other read
	index []int32       // by port of the other read: its index in this one; -1: it was not read
	falls []fall        // by port of the other read; nil: none fell
}

// fall is what happened to the counters of a port between two reads.
type fall uint8

const (
	notFallen  fall = iota
	portFallen      // a counter has a lower value
	nodeFallen      // and so it is at all ports of its node that had counted something, of which there are several
)

// Add compares r with an earlier read too, older than those before. Ports are the same where
// they have the same key.
//
// If the clock was set back since a read, the age of older ones is unknown, and they are left
// out.
func (c *Comparison) Add(r, earlier *Read) {
	for i := range c.earlier {
		if c.earlier[i].read.table == earlier.table {
			c.add(r, earlier, c.earlier[i].index)
			return
		}
	}
	index := make([]int32, len(r.table.ids))
	for i := range index {
		index[i] = -1
		if p := earlier.Port(r.port(i).Key()); p.Known() {
			index[i] = p.at
		}
	}
	c.add(r, earlier, index)
}

// AddPorts is Add for ports of two reads, those of one index being the same.
func (c *Comparison) AddPorts(r, earlier *Read, ports, before []PortRead) {
	index := make([]int32, len(r.table.ids))
	for i := range index {
		index[i] = -1
	}
	for i, p := range ports {
		if p.Known() && before[i].Known() {
			index[p.at] = before[i].at
		}
	}
	c.add(r, earlier, index)
}

func (c *Comparison) add(r, earlier *Read, index []int32) {
	if n := len(c.earlier); n > 0 && c.earlier[n-1].gap <= 0 {
		return
	}
	e := earlierRead{read: earlier, gap: r.Began.Sub(earlier.Began), index: index}
	type node struct{ ports, fell int }
	nodes := map[mad.GUID]node{}
	for i, at := range index {
		if at < 0 || !earlier.port(int(at)).counted() {
			continue
		}
		n := nodes[r.table.ids[i].node]
		if n.ports++; fallen(earlier.port(int(at)), r.port(i)) {
			if e.falls == nil {
				e.falls = make([]fall, len(index))
			}
			e.falls[i] = portFallen
			n.fell++
		}
		nodes[r.table.ids[i].node] = n
	}
	for i, f := range e.falls {
		if n := nodes[r.table.ids[i].node]; f != notFallen && n.fell == n.ports && n.ports > 1 {
			e.falls[i] = nodeFallen
		}
	}
	c.earlier = append(c.earlier, e)
}

// Gaps are the times from the begin of the earlier reads to that of the read.
func (c *Comparison) Gaps() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := range c.earlier {
			if !yield(c.earlier[i].gap) {
				return
			}
		}
	}
}

// fallen reports whether a counter has a lower value than before.
func fallen(before, after PortRead) bool {
	for _, counter := range after.kind().layout.counters {
		v, s := after.value(counter)
		if old, from := before.value(counter); from != nil && from.set == s.set && v < old {
			return true
		}
	}
	return false
}

// Windows are the windows of a port of the read, the newest first; one without rates, if there
// is no earlier read of the port.
func (c *Comparison) Windows(p PortRead) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		found := false
		for i := range c.earlier {
			e := &c.earlier[i]
			at := e.index[p.at]
			if at < 0 {
				continue
			}
			w := Window{before: e.read.port(int(at)), after: p, gap: e.gap}
			if e.falls != nil {
				w.fall = e.falls[p.at]
			}
			if found = true; !yield(w) {
				return
			}
		}
		if !found {
			yield(Window{after: p})
		}
	}
}

// Newest is the first of the windows of a port.
func (c *Comparison) Newest(p PortRead) (newest Window) {
	for w := range c.Windows(p) {
		return w
	}
	return newest
}
