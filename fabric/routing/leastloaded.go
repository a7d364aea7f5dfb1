package routing

import "sync/atomic"

// filler deals LIDs to the ports of a switch, to one with the least load each,
// and to those in their order. It looks for the least load only when all have
// more than it was.
type filler struct {
	loads []int32
	ports []uint8
	at    int
	level int32
}

func (f *filler) start(ports []uint8) {
	f.ports, f.at, f.level = ports, 0, -1
	if len(ports) > 0 {
		f.level = f.lowest()
	}
}

func (f *filler) lowest() int32 {
	low := f.loads[f.ports[0]]
	for _, p := range f.ports[1:] {
		low = min(low, f.loads[p])
	}
	return low
}

func (f *filler) next(weight int32) uint8 {
	for {
		for f.at < len(f.ports) {
			p := f.ports[f.at]
			f.at++
			if f.loads[p] <= f.level {
				f.loads[p] += weight
				return p
			}
		}
		f.at, f.level = 0, f.lowest()
	}
}

// counts: the policy goes by loads.
func (a *assigner) counts() bool { return a.Policy == LeastLoaded || a.Policy == Scatter }

// comesThrough: packets for dests[i] come through s.
func (a *assigner) comesThrough(s, i int) bool {
	return a.passes == nil || a.sources[s] || atomic.LoadUint64(&a.passes[s*a.words+i/64])>>(i%64)&1 != 0
}

// mark says to the switch behind port that packets for dests[i] come.
func (a *assigner) mark(s, i int, port uint8) {
	if a.passes == nil {
		return
	}
	g := a.routes.graph
	to := int(g.channels[g.target(int32(s), port)].To)
	word := &a.passes[to*a.words+i/64]
	if bit := uint64(1) << (i % 64); atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}
