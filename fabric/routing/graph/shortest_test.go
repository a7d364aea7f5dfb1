package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sim"
)

func newGraph(t testing.TB, spec string, weight func(*fabric.Port) int) *Graph {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(f, BuildOptions{Weight: weight})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// every is all paths without a switch twice, by trying all links, in order.
func every(g *Graph, from, to int) (found []SimplePath) {
	on := make([]bool, len(g.Switches()))
	var way []int32
	var follow func(at, cost int)
	follow = func(at, cost int) {
		if at == to {
			found = append(found, SimplePath{cost, slices.Clone(way)})
			return
		}
		on[at] = true
		for c, ch := range g.Channels() {
			if int(ch.From) == at && !on[ch.To] {
				way = append(way, int32(c))
				follow(int(ch.To), cost+int(ch.Weight))
				way = way[:len(way)-1]
			}
		}
		on[at] = false
	}
	follow(from, 0)
	slices.SortFunc(found, compare)
	return found
}

// TestShortest compares the paths with all that there are. Of equal cost, those may be
// others than the first.
func TestShortest(t *testing.T) {
	t.Parallel()
	specs := []string{"ring:n=5", "ring:n=3,hosts=1", "torus:dims=5,hosts=1,links=2", "mesh:dims=2/3,hosts=1", "fattree:k=4,levels=2"}
	for seed := range 4 {
		specs = append(specs, fmt.Sprintf("random:n=8,degree=3,hosts=1,remove_links=2,seed=%d", seed+1))
	}
	for _, spec := range specs {
		for _, weight := range []func(*fabric.Port) int{nil, func(p *fabric.Port) int { return 1 + (p.ID()*7+p.Num())%5 }} {
			g := newGraph(t, spec, weight)
			for _, ends := range [][2]int{{0, len(g.Switches()) - 1}, {1, 2}, {2, 0}} {
				want := every(g, ends[0], ends[1])
				for _, k := range []int{1, 2, 7, MaxPaths} {
					got, err := ShortestPaths(t.Context(), g, ends[0], ends[1], k)
					if err != nil {
						t.Fatal(err)
					}
					if len(got) != min(k, len(want)) || !slices.IsSortedFunc(got, compare) {
						t.Fatalf("%s, %v, k %d: %d paths, want %d of %d", spec, ends, k, len(got), k, len(want))
					}
					seen := map[string]bool{}
					for i, p := range got {
						if p.Cost != want[i].Cost {
							t.Errorf("%s, %v, k %d: path %d costs %d, want %d", spec, ends, k, i, p.Cost, want[i].Cost)
						}
						is := func(q SimplePath) bool { return cmp.Equal(p, q) }
						if !slices.ContainsFunc(want, is) || seen[fmt.Sprint(p)] {
							t.Errorf("%s, %v, k %d: path %d, %v, is none, or was there before", spec, ends, k, i, p)
						}
						seen[fmt.Sprint(p)] = true
					}
				}
			}
		}
	}
}

func TestShortestErrors(t *testing.T) {
	t.Parallel()
	g := newGraph(t, "ring:n=4", nil)
	for _, k := range []int{0, -1, MaxPaths + 1, 1_000_000_000} {
		if _, err := ShortestPaths(t.Context(), g, 0, 1, k); err == nil {
			t.Errorf("k %d: no error", k)
		}
	}
	if p, err := ShortestPaths(t.Context(), g, 1, 1, 3); err != nil || len(p) != 1 || len(p[0].Channels) != 0 {
		t.Errorf("to itself: %v, %v", p, err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := ShortestPaths(ctx, g, 0, 1, 3); !errors.Is(err, cause) {
		t.Errorf("when it is over: %v", err)
	}
	// Two switches, no cable.
	if p, err := ShortestPaths(t.Context(), newGraph(t, "ring:n=2,remove_links=1", nil), 0, 1, 3); err != nil || len(p) != 0 {
		t.Errorf("without a way: %v, %v", p, err)
	}
}

func BenchmarkShortest(b *testing.B) {
	g := newGraph(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1", nil)
	last := len(g.Switches()) - 1
	for _, k := range []int{18, 1000} {
		b.Run(fmt.Sprintf("ft11664/k=%d", k), func(b *testing.B) {
			for b.Loop() {
				if _, err := ShortestPaths(b.Context(), g, 0, last, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
