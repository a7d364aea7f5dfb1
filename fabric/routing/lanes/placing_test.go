package lanes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// ringNetwork is a ring of n switches, each with a chord to the one opposite, and port 0 to itself.
func ringNetwork(n int) *Network {
	net := &Network{}
	reverse := map[[2]int32]int32{}
	for s := range n {
		net.Base, net.PortBase = append(net.Base, int32(len(net.To))), append(net.PortBase, int32(len(net.Target)))
		net.Target = append(net.Target, -2)
		for _, to := range []int{(s + 1) % n, (s + n - 1) % n, (s + n/2) % n} {
			c := int32(len(net.To))
			reverse[[2]int32{int32(s), int32(to)}] = c
			net.From, net.To, net.Target = append(net.From, int32(s)), append(net.To, int32(to)), append(net.Target, c)
		}
	}
	net.Base, net.PortBase = append(net.Base, int32(len(net.To))), append(net.PortBase, int32(len(net.Target)))
	for c := range net.To {
		net.Reverse = append(net.Reverse, reverse[[2]int32{net.To[c], net.From[c]}])
	}
	return net
}

// TestPlacing: with paths at random, paths that fit on no lane close a cycle with what Blocking
// returns, and with no less; Through finds the paths over each edge.
func TestPlacing(t *testing.T) {
	const n = 12
	blocked := 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := &Layering{Net: ringNetwork(n)}
		for s := range n {
			l.Sources, l.Dests = append(l.Sources, int32(s)), append(l.Dests, Dest{Index: s, Home: int32(s), End: -2})
			row := make([]uint8, n)
			for d := range row {
				ways := []uint8{1, 2} // the near way round; where both are, or by the chord, at random
				switch far := (d - s + n) % n; {
				case far == 0:
					ways = []uint8{0}
				case far < n/2:
					ways = ways[:1]
				case far > n/2:
					ways = ways[1:]
				default:
					ways = append(ways, 3)
				}
				row[d] = ways[random.IntN(len(ways))]
			}
			l.Rows = append(l.Rows, row)
		}
		p, err := l.Place(t.Context(), make([][]uint8, n), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		users := map[int32][]path{}
		for _, s := range l.Sources {
			for d := range l.Dests {
				trail, arrives := p.Trail(nil, s, d)
				if !arrives {
					t.Fatalf("no path from %d to %d", s, d)
				}
				for _, e := range trail {
					users[e] = append(users[e], path{int32(d), s})
				}
				if p.Add(0, trail) {
					continue
				}
				blocked++
				cycle := p.Blocking(0, trail)
				alone := l.newOrder()
				if !alone.add(cycle) || alone.add(trail) {
					t.Errorf("seed %d: %v closes no cycle with %v", seed, cycle, trail)
				}
				for i, e := range cycle {
					some := l.newOrder()
					if p.Paths(0, e) == 0 || slices.Contains(trail, e) || !some.add(slices.Delete(slices.Clone(cycle), i, i+1)) || !some.add(trail) {
						t.Errorf("seed %d: edge %d of %v is not needed for a cycle with %v", seed, e, cycle, trail)
					}
				}
			}
		}
		for e := range int32(len(l.count)) {
			var found []path
			p.Through(e, func(s int32, dest int) { found = append(found, path{int32(dest), s}) })
			slices.SortFunc(found, func(a, b path) int { return int(a.source-b.source)*n + int(a.dest-b.dest) })
			if !slices.Equal(found, users[e]) {
				t.Errorf("seed %d: over edge %d are %v, want %v", seed, e, found, users[e])
			}
		}
	}
	if blocked == 0 {
		t.Error("all paths fit")
	}
}
