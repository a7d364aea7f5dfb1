package certificate

import "slices"

// deadlocks reports whether a cycle with a dependency arises that the old tables do not have.
func (w *world) deadlocks(c *Certificate, states [][][]uint8, first, last int) bool {
	old := w.waits(&Certificate{}, [][][]uint8{w.old, w.old}, 0, 0)
	waits := w.waits(c, states, first, last)
	for a, of := range waits {
		for b := range of {
			if old[a][b] {
				continue
			}
			seen := map[hop]bool{b: true}
			for queue := []hop{b}; len(queue) > 0; queue = queue[1:] {
				for next := range waits[queue[0]] {
					if next == a {
						return true
					}
					if !seen[next] {
						seen[next] = true
						queue = append(queue, next)
					}
				}
			}
		}
	}
	return false
}

// waits follows packets through the rounds from first to last: each entry they meet is
// that before or after the round in which they meet it, and rounds only go on.
func (w *world) waits(c *Certificate, states [][][]uint8, first, last int) map[hop]map[hop]bool {
	waits := map[hop]map[hop]bool{}
	// Between two drains both lanes count throughout where SL2VL is written.
	lanesAt := slices.IndexFunc(c.Rounds, func(r Round) bool { return r.Lanes })
	within := lanesAt >= first && lanesAt <= last
	type packet struct {
		at    hop
		round int
	}
	for from := range w.n {
		for lid := 64; lid < 64+w.n; lid++ {
			if lid == 64+from {
				continue
			}
			for sl := range uint8(2) {
				if w.lanes && w.sl[from][lid]>>sl&1 == 0 {
					continue
				}
				seen := map[packet]bool{}
				var queue []packet
				forward := func(s int, in uint8, came *hop, at int) {
					for r := at; r <= last; r++ {
						for _, port := range w.portsIn(c, states, r, s, lid) {
							if next := w.next(s, port, lid); next < 0 || next == arrived {
								continue
							}
							vls := []uint8{0}
							if w.lanes {
								vls = nil
								if lanesAt < 0 || within || r < lanesAt {
									vls = append(vls, w.oldVL[s][in][port][sl])
								}
								if within || lanesAt >= 0 && r > lanesAt {
									new := w.newVL[s][in][port][sl]
									if in > 1 { // those do not change
										new = w.oldVL[s][in][port][sl]
									}
									vls = append(vls, new)
								}
							}
							for _, vl := range vls {
								to := hop{s, port, vl}
								if came != nil {
									if waits[*came] == nil {
										waits[*came] = map[hop]bool{}
									}
									waits[*came][to] = true
								}
								if p := (packet{to, r}); !seen[p] {
									seen[p] = true
									queue = append(queue, p)
								}
							}
						}
					}
				}
				forward(from, 1, nil, first)
				for i := 0; i < len(queue); i++ {
					p := queue[i]
					forward(int(p.at.port)-2, uint8(2+p.at.s), &p.at, p.round)
				}
			}
		}
	}
	return waits
}
