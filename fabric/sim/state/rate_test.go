package state

import (
	"math"
	"math/rand/v2"
	"testing"
)

// even is the arbitration of a port with one lane.
var even = arbitration{low: 1, packet: 4096, limit: 4096}

// network makes ways through ports of a capacity, from the numbers of the ports.
type network struct {
	ports   []Port
	demands []float64
	ways    []way
}

// add adds a flow. own: it has an input port of its own at each hop.
func (n *network) add(demand, capacity float64, own bool, through ...int) {
	var w way
	var in *Port
	if own {
		in = new(Port)
	}
	for _, p := range through {
		w.hops = append(w.hops, hop{out: &n.ports[p], in: in, arbitration: even, capacity: capacity})
		if in = &n.ports[p]; own {
			in = new(Port)
		}
	}
	n.demands, n.ways = append(n.demands, demand), append(n.ways, w)
}

// check compares the rates with what a network can carry: no link more than its capacity,
// and each limited flow is limited by a link that is full.
func (n *network) check(t *testing.T, name string) {
	t.Helper()
	rates, limits := carriedRates(n.demands, n.ways)
	load := map[*Port]float64{}
	for i := range n.ways {
		for _, h := range n.ways[i].hops {
			load[h.out] += rates[i]
		}
	}
	for i, w := range n.ways {
		for _, h := range w.hops {
			if load[h.out] > h.capacity*(1+1e-6) {
				t.Fatalf("%s: a link carries %v of %v", name, load[h.out], h.capacity)
			}
		}
		switch l := limits[i]; {
		case l < 0 && math.Abs(rates[i]-n.demands[i]) > 1e-6*n.demands[i]:
			t.Fatalf("%s: flow %d has %v of %v without a limit", name, i, rates[i], n.demands[i])
		case l >= 0 && load[w.hops[l].out] < w.hops[l].capacity*(1-1e-6):
			t.Fatalf("%s: flow %d has %v of %v, limited by a link that carries %v of %v", name, i, rates[i], n.demands[i], load[w.hops[l].out], w.hops[l].capacity)
		}
	}
}

// maxMin is a max-min solver: the link with the least share for each of its flows settles
// them, again and again.
func (n *network) maxMin(capacity float64) []float64 {
	rates := make([]float64, len(n.ways))
	for i := range rates {
		rates[i] = -1
	}
	for range n.ways {
		left, open := map[*Port]float64{}, map[*Port]float64{}
		for i, w := range n.ways {
			for _, h := range w.hops {
				if rates[i] < 0 {
					open[h.out]++
				} else {
					left[h.out] -= rates[i]
				}
			}
		}
		best, least := -1, math.Inf(1)
		for i, w := range n.ways {
			if rates[i] >= 0 {
				continue
			}
			share := n.demands[i]
			for _, h := range w.hops {
				share = min(share, (capacity+left[h.out])/open[h.out])
			}
			if share < least {
				best, least = i, share
			}
		}
		if best >= 0 {
			rates[best] = least
		}
	}
	return rates
}

// random makes a network of flows between random ports.
func random(seed uint64, own bool) *network {
	r := rand.New(rand.NewPCG(seed, 1))
	n := &network{ports: make([]Port, 3+r.IntN(40))}
	for range 1 + r.IntN(80) {
		through := r.Perm(len(n.ports))[:1+r.IntN(min(8, len(n.ports)))]
		n.add(25*r.Float64(), 25, own, through...)
	}
	return n
}

// TestMaxMinNetworks: where each flow has an input port of its own, the rates are max-min
// fair on any network.
func TestMaxMinNetworks(t *testing.T) {
	for seed := range uint64(200) {
		n := random(seed, true)
		want := n.maxMin(25)
		rates, _ := carriedRates(n.demands, n.ways)
		for i := range want {
			if math.Abs(rates[i]-want[i]) > 1e-6 {
				t.Fatalf("seed %d, flow %d: %v, want %v", seed, i, rates[i], want[i])
			}
		}
	}
}

// TestNetworks: on networks where flows join and wait for each other in cycles, as on a
// ring, no link carries too much, and no limited flow has room.
func TestNetworks(t *testing.T) {
	for seed := range uint64(200) {
		random(seed, false).check(t, "random")
	}
	for _, size := range []int{10, 50} {
		ring, row := &network{ports: make([]Port, 2*size)}, &network{ports: make([]Port, 2*size)}
		for i := range size {
			around, along := []int{size + i}, []int{size + i}
			for j := range size / 2 {
				around = append(around, (i+j)%size)
			}
			for j := i; j < size; j++ {
				along = append(along, j)
			}
			ring.add(20+0.1*float64(i), 25, false, around...)
			row.add(20, 25, false, along...)
		}
		ring.check(t, "ring")
		row.check(t, "row")
		rates, _ := carriedRates(row.demands, row.ways)
		for i, want := size-1, 12.5; i > 0; i, want = i-1, want/2 {
			if math.Abs(rates[i]-want) > 1e-6 {
				t.Errorf("row of %d, sender %d: %v, want %v", size, i, rates[i], want)
			}
		}
	}
}
