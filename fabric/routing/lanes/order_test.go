package lanes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomNetwork has cables between random switches, some of them with more links than a word has bits.
func randomNetwork(random *rand.Rand, switches, cables int) *Network {
	n := &Network{}
	out := make([][]int32, switches) // the cable of each channel, twice its number, or one more
	for cable := range cables {
		a, b := random.IntN(switches), random.IntN(switches-1)
		if random.IntN(2) == 0 {
			a = 0
		}
		if b >= a {
			b++
		}
		out[a], out[b] = append(out[a], int32(2*cable)), append(out[b], int32(2*cable+1))
	}
	place, from := make([]int32, 2*cables), make([]int32, 2*cables)
	for s, list := range out {
		n.Base = append(n.Base, int32(len(n.From)))
		for _, x := range list {
			place[x], from[x] = int32(len(n.From)), int32(s)
			n.From = append(n.From, int32(s))
		}
	}
	n.Base = append(n.Base, int32(len(n.From)))
	for _, x := range slices.Concat(out...) {
		n.To, n.Reverse = append(n.To, from[x^1]), append(n.Reverse, place[x^1])
	}
	return n
}

// reaches reports whether edges lead from a vertex to another, by depth-first search.
func reaches(edges map[[2]int32]int, from, to int32) bool {
	met := map[int32]bool{}
	var visit func(v int32) bool
	visit = func(v int32) bool {
		if v == to {
			return true
		}
		met[v] = true
		for e := range edges {
			if e[0] == v && !met[e[1]] && visit(e[1]) {
				return true
			}
		}
		return false
	}
	return visit(from)
}

// TestOrder: edges come and go at random; only edges that close a cycle are refused. The positions
// are a topological order all the time, and the bits agree with the counts.
func TestOrder(t *testing.T) {
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 0))
		n := randomNetwork(random, 3+random.IntN(5), 10+random.IntN(90))
		l := &Layering{Net: n}
		if seed%2 > 0 {
			for range n.To {
				l.Shift = append(l.Shift, uint8(random.IntN(2)))
			}
		}
		l.prepare()
		o := l.newOrder()
		o.volatile = seed%3 > 0
		edges := map[[2]int32]int{}
		var added []int32
		for range 300 {
			if o.volatile && len(added) > 0 && random.IntN(3) == 0 {
				i := random.IntN(len(added))
				v, w := o.ends(added[i])
				o.remove(added[i : i+1])
				if edges[[2]int32{v, w}]--; edges[[2]int32{v, w}] == 0 {
					delete(edges, [2]int32{v, w})
				}
				added = slices.Delete(added, i, i+1)
				continue
			}
			c := int32(random.IntN(len(n.To)))
			first := n.Base[n.To[c]]
			e := l.edge(c, random.Int32N(l.shifts), first+random.Int32N(n.Base[n.To[c]+1]-first))
			v, w := o.ends(e)
			got, want := o.add([]int32{e}), !reaches(edges, w, v)
			if got != want {
				t.Fatalf("seed %d: edge from %d to %d among %d: %v, want %v", seed, v, w, len(edges), got, want)
			}
			if got {
				edges[[2]int32{v, w}]++
				added = append(added, e)
			}
			for x := range edges {
				if o.sorted.Position[x[0]] >= o.sorted.Position[x[1]] || o.sorted.Vertex[o.sorted.Position[x[0]]] != x[0] {
					t.Fatalf("seed %d: the edge from %d to %d leads backward", seed, x[0], x[1])
				}
			}
		}
		var found int
		for v := range int32(len(o.sorted.Position)) {
			for w := range int32(len(o.sorted.Position)) {
				if n.To[v/l.shifts] != n.From[w/l.shifts] {
					continue
				}
				has := o.out.has(v, o.placeOut(w))
				if _, want := edges[[2]int32{v, w}]; has != want || o.in.has(w, o.placeIn(v)) != want {
					t.Fatalf("seed %d: edge from %d to %d: %v, want %v", seed, v, w, has, want)
				}
				if has {
					found++
				}
			}
		}
		if !o.sort() || found != len(edges) {
			t.Errorf("seed %d: %d of %d edges, or a cycle", seed, found, len(edges))
		}
	}
}

func (b *bitRows) has(row, bit int32) bool { return b.words[b.start[row]+bit/64]>>(bit%64)&1 != 0 }
