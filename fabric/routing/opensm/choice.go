package opensm

import (
	"cmp"
	"math"
	"slices"
)

// chooseAll fills the tables of minhop, updn, dnup and dor, which differ in the matrix of hops:
// an entry that lies on a shortest path is kept, and others are chosen, port by port, by the
// number of LIDs that each port has so far (opensm osm_ucast_mgr.c, ucast_mgr_process_port;
// osm_switch.c, osm_switch_recommend_path).
func (r *routing) chooseAll(m *matrix, dor bool) error {
	c := &chooser{routing: r, hops: m, dor: dor}
	list := r.destinations(r.Order)
	most := 1
	for _, d := range list {
		most = max(most, d.count)
	}
	if r.lmc {
		c.used = make([][]usedNode, len(list)*len(r.Switches))
	}
	// Switches are independent of each other, except for random numbers: OpenSM takes all
	// destinations of a switch before the next.
	if r.random != nil {
		for s := range r.Switches {
			for offset := range most {
				for i := range list {
					c.choose(int32(s), i, &list[i], offset)
				}
			}
		}
		return nil
	}
	for offset := range most {
		for i := range list {
			if r.ctx.Err() != nil {
				return nil
			}
			for s := range r.Switches {
				c.choose(int32(s), i, &list[i], offset)
			}
			if offset < list[i].count && r.differs(int(list[i].lid)+offset) {
				return nil
			}
		}
	}
	return nil
}

// chooser chooses ports.
type chooser struct {
	*routing
	hops *matrix
	dor  bool
	used [][]usedNode // with LMC, by destination and switch: the next hops of its LIDs so far
	free []uint8      // the ports to choose from
}

// usedNode is a switch that LIDs of a port are forwarded to, and how many.
type usedNode struct {
	to        int32
	port      uint8 // with dor: the port there
	forwarded int
}

// choose fills the entry of switch s for one LID of destination number i.
func (c *chooser) choose(s int32, i int, d *destination, offset int) {
	if offset >= d.count {
		return
	}
	lid := int(d.lid) + offset
	var used *[]usedNode
	if c.used != nil {
		used = &c.used[i*len(c.Switches)+int(s)]
	}
	port := c.port(s, lid, d, offset, used)
	c.tables[s][lid] = port
	if port == noPort || d.isSwitch {
		return
	}
	place := c.base[s] + int32(port)
	c.counts[place]++
	if used != nil && port > 0 {
		l := c.Switches[s].Links[port]
		at := slices.IndexFunc(*used, func(u usedNode) bool { return l.Kind == ToSwitch && u.to == l.To && (!c.dor || u.port == l.Port) })
		if at < 0 {
			to := l.To
			if l.Kind != ToSwitch {
				to = -1 - to
			}
			*used = append(*used, usedNode{to: to, port: l.Port})
			at = len(*used) - 1
		}
		(*used)[at].forwarded++
	}
}

// port returns the port of switch s for a LID.
func (c *chooser) port(s int32, lid int, d *destination, offset int, used *[]usedNode) uint8 {
	w := c.network
	switch {
	case d.home < 0:
		return noPort
	case d.home == s:
		return d.port
	}
	c.hops.load(d.home)
	least := c.hops.least[s]
	if least == noPort {
		return noPort
	}
	hops := c.hops.hops[w.base[s]:w.base[s+1]]
	if c.old != nil && lid < len(c.old[s]) {
		if was := c.old[s][lid]; int(was) < len(hops) && hops[was] == least {
			return was
		}
	}
	counts := c.counts[w.base[s]:w.base[s+1]]
	if !c.dor && !c.Shifting && c.random == nil && used == nil {
		return leastCount(hops, least, counts)
	}
	start := 1
	if offset > 0 && !c.dor {
		if before := c.tables[s][lid-1]; before != noPort {
			start = int(before) + 1
		}
	}
	c.free = c.free[:0]
	first := int32(-1)
	for k := range hops {
		p := (start + k) % len(hops)
		if p == 0 || hops[p] != least {
			continue
		}
		to := w.Switches[s].Links[p].To
		if c.dor && first >= 0 && to != first {
			continue
		}
		if first < 0 {
			first = to
		}
		c.free = append(c.free, uint8(p))
	}
	if len(c.free) == 0 {
		return noPort
	}
	if c.Shifting {
		c.shift(counts)
	}
	switch {
	case c.random != nil && offset == 0:
		return c.scattered(counts)
	case used != nil:
		return c.spread(w.Switches[s].Links, counts, *used)
	}
	best := c.free[0]
	for _, p := range c.free[1:] {
		if counts[p] < counts[best] {
			best = p
		}
	}
	return best
}

// leastCount returns the first port of least count among those with the least hops.
func leastCount(hops []uint8, least uint8, counts []uint32) uint8 {
	best, fewest := noPort, uint32(math.MaxUint32)
	for p := 1; p < len(hops); p++ {
		if hops[p] == least && counts[p] < fewest {
			best, fewest = p, counts[p]
		}
	}
	return uint8(best)
}

// shift rotates the ports by their mean count.
func (c *chooser) shift(counts []uint32) {
	sum := uint32(0)
	for _, p := range c.free {
		sum += counts[p]
	}
	n := len(c.free)
	begin := int(sum/uint32(n)) % n
	c.free = append(c.free, c.free[:begin]...)[begin:]
}

// scattered returns a random one of the ports of least count.
func (c *chooser) scattered(counts []uint32) uint8 {
	least := slices.MinFunc(c.free, func(a, b uint8) int { return int(counts[a]) - int(counts[b]) })
	equal := 0
	for _, p := range c.free {
		if counts[p] == counts[least] {
			equal++
		}
	}
	pick := int(c.random.next()) % equal
	for _, p := range c.free {
		if counts[p] == counts[least] {
			if pick == 0 {
				return p
			}
			pick--
		}
	}
	return least
}

// spread returns the port for one of several LIDs of a destination: of the ports to a system
// that its LIDs do not use yet, else to such a switch, the one of least count; else the
// one of least count, of equal ones that to the switch that has the fewest of its LIDs.
func (c *chooser) spread(links []Link, counts []uint32, used []usedNode) uint8 {
	var best, system, node uint8
	fewest := math.MaxInt
	for _, p := range c.free {
		known, sameSystem := c.find(links[p], used)
		if c.dor && known == nil {
			known = &usedNode{}
		}
		switch {
		case c.dor:
		case !sameSystem && (system == 0 || counts[p] < counts[system]):
			system, fewest = p, 0
		case sameSystem && known == nil && (node == 0 || counts[p] < counts[node]):
			node, fewest = p, 0
		}
		switch {
		case best == 0 || counts[p] < counts[best]:
			best = p
			if known != nil {
				fewest = min(fewest, known.forwarded)
			}
		case known != nil && counts[p] == counts[best] && known.forwarded < fewest:
			best, fewest = p, known.forwarded
		}
	}
	return cmp.Or(system, node, best)
}

// find returns the use of the switch behind a link, nil without, and reports whether some
// switch of its system is used.
func (c *chooser) find(l Link, used []usedNode) (known *usedNode, sameSystem bool) {
	for i := range used {
		u := &used[i]
		if u.to < 0 {
			continue
		}
		if u.to == l.To && (!c.dor || u.port == l.Port) {
			known = u
		}
		sameSystem = sameSystem || c.Switches[u.to].System == c.Switches[l.To].System
	}
	return known, sameSystem
}

// random is glibc's random(), an additive feedback generator (glibc stdlib/random_r.c).
type random struct {
	state [34]uint32
	at    int
}

func newRandom(seed uint32) *random {
	r := &random{}
	word := int64(int32(seed))
	r.state[0] = uint32(word)
	for i := 1; i < 31; i++ {
		if word = 16807 * word % 2147483647; word < 0 {
			word += 2147483647
		}
		r.state[i] = uint32(word)
	}
	copy(r.state[31:], r.state[:3])
	for range 310 {
		r.next()
	}
	return r
}

// next returns the next number, at most 2^31-1.
func (r *random) next() uint32 {
	// state is a ring of the last 34 numbers.
	const size = 34
	i := (r.at + size) % size
	sum := r.state[(i+size-3)%size] + r.state[(i+size-31)%size]
	r.state[i] = sum
	r.at = (r.at + 1) % size
	return sum >> 1
}
