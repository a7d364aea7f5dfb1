package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestNueBeside: half of the LIDs by one engine, the others by nue beside these: together
// they close no credit loop, and all that nue says it reaches is reached. With turns of
// its own, each half has none, and reaches all.
func TestNueBeside(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"torus:dims=3/4,hosts=1", "random:n=12,degree=3,hosts=1,remove_links=2,seed=2", "dragonfly:a=4,p=1,h=1", "fattree:k=4,levels=3,remove_links=3,seed=1"} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		all := g.LIDs(0)
		half := slices.DeleteFunc(slices.Clone(all), func(lid mad.LID) bool { return lid%2 == 0 })
		r := compute(t, g, "updn", engines.Options{})
		before := r.Clone()
		n, err := search.Nue(t.Context(), r, half, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := verified(t, r, verify.Options{})
		if !v.Acyclic || n == 0 && v.Unreachable > 0 || n > len(half)/2 {
			t.Errorf("%s, beside updn: acyclic %v, %d pairs unreachable, %d LIDs left out", spec, v.Acyclic, v.Unreachable, n)
		}
		for s := range g.Switches() {
			for _, lid := range all {
				if lid%2 == 0 && r.Row(s).Port(lid) != before.Row(s).Port(lid) {
					t.Fatalf("%s: LID %d, which nue was not given, has another port", spec, lid)
				}
			}
		}
		// A lane each: both reach all, and neither has a loop of its own.
		alone := routes.New(g, 0)
		if n, err := search.Nue(t.Context(), alone, half, []graph.Turn{}); n != 0 || err != nil {
			t.Errorf("%s, alone: %d LIDs left out, %v", spec, n, err)
		}
		if v := verified(t, alone, verify.Options{}); !v.Acyclic {
			t.Errorf("%s, alone: a credit loop:\n%s", spec, verify.FormatCycle(v.Cycle))
		}
		for _, lid := range half {
			for _, term := range g.Terminals() {
				if p, err := alone.Trace(term.LID, lid); err != nil || p.Broken != "" {
					t.Errorf("%s, alone: from LID %d to %d: %v, %s", spec, term.LID, lid, err, p.Broken)
				}
			}
		}
	}
}

// TestNueTurns: paths close no loop with turns that are given; turns that close one
// themselves are refused.
func TestNueTurns(t *testing.T) {
	t.Parallel()
	g := routingtest.Graph(t, "ring:n=4", graph.BuildOptions{})
	ring := func(n int) (turns []graph.Turn) { // around, as the names have it
		var at []int
		for i := range 4 {
			at = append(at, routingtest.SwitchNamed(t, g, fmt.Sprintf("switch-%d", i+1)))
		}
		for i := range n {
			turns = append(turns, graph.Turn{From: at[i], At: at[(i+1)%4], To: at[(i+2)%4]})
		}
		return turns
	}
	r := routes.New(g, 0)
	if _, err := search.Nue(t.Context(), r, nil, ring(4)); err == nil || !strings.Contains(err.Error(), "already close a credit loop") {
		t.Errorf("a ring of turns: %v", err)
	}
	n, err := search.Nue(t.Context(), r, nil, ring(3))
	if err != nil || n > 0 {
		t.Fatalf("three turns: %d LIDs left out, %v", n, err)
	}
	v := verified(t, r, verify.Options{})
	if !v.OK() {
		t.Errorf("three turns: %+v", v)
	}
	last := ring(4)[3]
	for _, term := range g.Terminals() {
		for _, from := range g.Terminals() {
			p, err := r.Trace(from.LID, term.LID)
			if err != nil {
				t.Fatal(err)
			}
			for i := 2; i < len(p.Hops); i++ {
				if (graph.Turn{From: p.Hops[i-2].Switch, At: p.Hops[i-1].Switch, To: p.Hops[i].Switch}) == last && from.Out > 0 && term.Out > 0 {
					t.Errorf("the fourth turn is taken from LID %d to %d", from.LID, term.LID)
				}
			}
		}
	}
	for _, bad := range []graph.Turn{{From: 0, At: 0, To: 1}, {From: 0, At: 2, To: 1}} {
		if _, err := search.TurnGraph(g, []graph.Turn{bad}); err == nil && channelTo(g, bad.From, bad.At) < 0 {
			t.Errorf("%v: no error", bad)
		}
	}
}

// channelTo is a channel between two switches, or -1.
func channelTo(g *graph.Graph, s, to int) int {
	for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
		if int(g.ChannelTo(c)) == to {
			return int(c)
		}
	}
	return -1
}

// TestUpDownTurns: paths go down and up again only where a turn is allowed, whichever
// next hops are chosen, and only pairs that can have a path have one.
func TestUpDownTurns(t *testing.T) {
	t.Parallel()
	more := 0
	for seed := range 6 {
		spec := fmt.Sprintf("fattree:k=8,levels=2,remove_links=%d,seed=%d", 12+seed%3, seed+1)
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		ranks := graph.RanksFrom(g, []int{routingtest.SwitchNamed(t, g, "spine-1"), routingtest.SwitchNamed(t, g, "spine-2"), routingtest.SwitchNamed(t, g, "spine-3"), routingtest.SwitchNamed(t, g, "spine-4")})
		var turns []graph.Turn // down and up again, at every third leaf
		for at := range g.Switches() {
			for _, from := range g.Neighbours(at) {
				for _, to := range g.Neighbours(at) {
					if at%3 == 0 && from.To != to.To && ranks.Up(at, int(from.To)) && ranks.Up(at, int(to.To)) {
						turns = append(turns, graph.Turn{From: int(from.To), At: at, To: int(to.To)})
					}
				}
			}
		}
		plain, err := graph.UpDown(t.Context(), g, ranks)
		if err != nil {
			t.Fatal(err)
		}
		h, err := graph.UpDownTurns(t.Context(), g, ranks, turns)
		if err != nil {
			t.Fatal(err)
		}
		r := routes.New(g, 0)
		if err := engines.Assign(t.Context(), r, h, engines.AssignOptions{}); err != nil {
			t.Fatal(err)
		}
		for s := range g.Switches() {
			for d := range g.Switches() {
				if plain.Distance(s, d) >= 0 && plain.Distance(s, d) != h.Distance(s, d) {
					t.Errorf("%s: %d to %d was %d, and is %d", spec, s, d, plain.Distance(s, d), h.Distance(s, d))
				}
				if plain.Distance(s, d) < 0 && h.Distance(s, d) >= 0 {
					more++
				}
				if got, want := h.Distance(s, d) >= 0, plain.Distance(s, d) >= 0 || reaches(g, s, d, ranks, turns); got && !want {
					t.Errorf("%s: %d to %d has a path, and cannot", spec, s, d)
				}
				if h.Distance(s, d) <= 0 {
					continue
				}
				for _, out := range h.Next(s, d) { // of any next hop, any next hop may follow
					at := int(g.Channels()[g.Target(int32(s), out)].To)
					for _, out := range h.Next(at, d) {
						turn := graph.Turn{From: s, At: at, To: int(g.Channels()[g.Target(int32(at), out)].To)}
						if !ranks.Up(s, at) && ranks.Up(at, turn.To) && !slices.Contains(turns, turn) {
							t.Errorf("%s: %d to %d may turn at %v", spec, s, d, turn)
						}
					}
				}
				p, err := r.Trace(g.Terminals()[g.Dests()[g.FirstDest(s)].Terminal].LID, g.Dests()[g.FirstDest(d)].LID)
				if err != nil || p.Broken != "" || len(p.Hops)-1 != h.Distance(s, d) {
					t.Errorf("%s: %d to %d: %v, %s, %d hops, want %d", spec, s, d, err, p.Broken, len(p.Hops)-1, h.Distance(s, d))
				}
			}
		}
	}
	if more < 30 {
		t.Errorf("turns give %d pairs a path", more)
	}
}

// reaches says whether a packet can go from s to d, up and down and up again where turns
// allow it.
func reaches(g *graph.Graph, s, d int, ranks *graph.Ranks, turns []graph.Turn) bool {
	type state struct{ from, at int }
	seen := map[state]bool{}
	queue := []state{{-1, s}}
	for ; len(queue) > 0; queue = queue[1:] {
		x := queue[0]
		if x.at == d {
			return true
		}
		for _, n := range g.Neighbours(x.at) {
			next := state{x.at, int(n.To)}
			ok := x.from < 0 || ranks.Up(x.from, x.at) || !ranks.Up(x.at, int(n.To)) || slices.Contains(turns, graph.Turn{From: x.from, At: x.at, To: int(n.To)})
			if ok && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return false
}
