package engines

import "sync/atomic"

// leastLoaded gives LIDs to the ports of a switch: each to a port with the least
// load, in the order of the ports. It looks for the least load again only when no
// port has it, so with equal weights a LID takes O(1) time, amortised.
type leastLoaded struct {
	loads []int32 // by port
	ports []uint8 // to choose from
	at    int     // the next of them to try
	level int32   // the least load when at was last 0
}

// reset starts again with ports.
func (l *leastLoaded) reset(ports []uint8) {
	l.ports, l.at, l.level = ports, 0, -1
	if len(ports) > 0 {
		l.level = l.lowest()
	}
}

func (l *leastLoaded) lowest() int32 {
	low := l.loads[l.ports[0]]
	for _, p := range l.ports[1:] {
		low = min(low, l.loads[p])
	}
	return low
}

// next is the port for a LID of this weight, which is added to its load.
func (l *leastLoaded) next(weight int32) uint8 {
	for {
		for l.at < len(l.ports) {
			p := l.ports[l.at]
			l.at++
			if l.loads[p] <= l.level {
				l.loads[p] += weight
				return p
			}
		}
		l.at, l.level = 0, l.lowest()
	}
}

// byLoad reports whether the policy depends on loads.
func (a *assigner) byLoad() bool { return a.Policy == LeastLoaded || a.Policy == Scatter }

// passesThrough reports whether packets for dests[i] pass through switch s.
func (a *assigner) passesThrough(s, i int) bool {
	return a.transit == nil || a.endpoints[s] > 0 || atomic.LoadUint64(&a.transit[s*a.words+i/64])>>(i%64)&1 != 0
}

// markTransit notes that packets for dests[i] pass through the switch behind port.
func (a *assigner) markTransit(s, i int, port uint8) {
	if a.transit == nil {
		return
	}
	g := a.routes.Graph()
	to := int(g.Channels()[g.Target(int32(s), port)].To)
	word := &a.transit[to*a.words+i/64]
	if bit := uint64(1) << (i % 64); atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}
