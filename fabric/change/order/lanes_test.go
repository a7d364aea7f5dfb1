package order

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// randomLanes gives tables random service levels, and virtual lanes of a few.
func randomLanes(random *rand.Rand, r *routes.Routes) {
	g := r.Graph()
	r.SL = &routes.SL{Dest: make([]uint8, int(r.Top())+1)}
	for lid := range r.SL.Dest {
		r.SL.Dest[lid] = uint8(random.IntN(3))
	}
	r.SL2VL = routes.NewSL2VL(g)
	for s, n := range g.Switches() {
		for in := range n.NumPorts() + 1 {
			for out := range n.NumPorts() + 1 {
				var vls [16]uint8
				for sl := range vls {
					vls[sl] = uint8(random.IntN(3))
				}
				if err := r.SL2VL.Set(s, uint8(in), uint8(out), vls); err != nil {
					panic(err)
				}
			}
		}
	}
}

// TestLanes: with service levels and virtual lanes the dependencies of tables at rest are as
// verify.Tables counts them, by code of its own.
func TestLanes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	cyclic := 0
	for range 60 {
		g, err := graph.New(topology(t, "torus:dims=4/4,hosts=1"), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Old: compute(t, g, "minhop", engines.Options{Policy: engines.Hash, Seed: random.Uint64()})}
		randomLanes(random, in.Old)
		in.New = in.Old
		h, err := newHistory(newNet(in.Old.Graph()), &in, &Schedule{})
		if err != nil {
			t.Fatal(err)
		}
		deps, err := h.oldDependencies(t.Context(), betweenHosts)
		if err != nil {
			t.Fatal(err)
		}
		v, err := verify.Tables(t.Context(), in.Old, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		channels, edges := deps.Size()
		if deps.Acyclic() != v.Acyclic || channels != v.Channels || edges != v.Dependencies {
			t.Errorf("%d channels, %d dependencies, acyclic %v; Verify says %d, %d, %v", channels, edges, deps.Acyclic(), v.Channels, v.Dependencies, v.Acyclic)
		}
		if !v.Acyclic {
			cyclic++
		}
	}
	if cyclic == 0 || cyclic == 60 {
		t.Errorf("%d of 60 are cyclic: they tell nothing", cyclic)
	}
}

// lanesOf returns r with SL2VL whose lanes depend on the service level alone.
func lanesOf(t *testing.T, r *routes.Routes, lanes ...uint8) *routes.Routes {
	t.Helper()
	r = r.Clone()
	r.SL2VL = routes.NewSL2VL(r.Graph())
	var vls [mad.ServiceLevels]uint8
	copy(vls[:], lanes)
	for s, n := range r.Graph().Switches() {
		for in := range n.NumPorts() + 1 {
			for out := range n.NumPorts() + 1 {
				if err := r.SL2VL.Set(s, uint8(in), uint8(out), vls); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return r
}

// TestLanesChange: two classes of packets, each without a credit loop on a lane of its
// own, and with one where they share a lane.
func TestLanesChange(t *testing.T) {
	g, err := graph.New(topology(t, "ring:n=6,hosts=1"), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(8, 0))
	base := compute(t, g, "minhop", engines.Options{})
	base.SL = &routes.SL{Dest: make([]uint8, int(base.Top())+1)}
	for tries := 0; ; tries++ {
		for lid := range base.SL.Dest {
			base.SL.Dest[lid] = uint8(random.IntN(2))
		}
		if v, err := verify.Tables(t.Context(), lanesOf(t, base, 0, 1), verify.Options{}); err != nil || tries > 1000 {
			t.Fatal(err, tries)
		} else if v.Acyclic {
			break
		}
	}
	for _, c := range []struct {
		what     string
		old, new []uint8
		refused  bool
		oldCycle bool
	}{
		{"to a lane that is free", []uint8{0, 1}, []uint8{2, 1}, false, false},
		{"to one lane", []uint8{0, 1}, []uint8{0, 0}, true, false},
		{"from one lane", []uint8{0, 0}, []uint8{0, 1}, true, true},
		{"lanes change places", []uint8{0, 1}, []uint8{1, 0}, true, false},
	} {
		in := Input{Old: lanesOf(t, base, c.old...), New: lanesOf(t, base, c.new...), Drain: slices.Repeat([]time.Duration{time.Second}, 6)}
		s, err := Plan(t.Context(), in)
		r := new(Refusal)
		if c.oldCycle {
			if !errors.As(err, &r) || !strings.Contains(r.Hint, "a credit loop already") {
				t.Errorf("%s: %v, expected that the tables have a credit loop already", c.what, err)
			}
			in.AcceptCreditLoops = true
			if s, err = Plan(t.Context(), in); err != nil || s.Figures.Cycle == nil {
				t.Errorf("%s, accepted: %v", c.what, err)
				continue
			}
			c.refused = false
		}
		switch {
		case c.refused && (!errors.As(err, &r) || r.Cycle == nil):
			t.Errorf("%s: %v, expected a credit loop", c.what, err)
		case c.refused:
		case err != nil:
			t.Errorf("%s: %v", c.what, err)
		case len(s.Rounds) == 0 || !isLanes(in, s, 0) || s.Figures.OldCycle != c.oldCycle:
			t.Errorf("%s: %+v", c.what, s)
		}
	}
}

// isLanes reports whether a round consists of writes of SL2VL.
func isLanes(in Input, s *Schedule, round int) bool {
	return len(s.Rounds[round].Writes) > 0 && len(BlocksOf(in, s)[round].Blocks) == 0
}

// TestLanesLast: tables that need lanes of their own get others before the lanes go, and
// on the way back the lanes first: packets that are under way are gone between.
func TestLanesLast(t *testing.T) {
	g, err := graph.New(topology(t, "ring:n=6,hosts=1"), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(9, 0))
	base, tree := compute(t, g, "minhop", engines.Options{}), compute(t, g, "updn", engines.Options{})
	for tries := 0; ; tries++ {
		if tries > 3000 {
			t.Fatal("no case is found")
		}
		base.SL = &routes.SL{Dest: make([]uint8, int(base.Top())+1)}
		for lid := range base.SL.Dest {
			base.SL.Dest[lid] = uint8(random.IntN(2))
		}
		tree.SL = base.SL
		in := Input{Old: lanesOf(t, base, 0, 1), New: lanesOf(t, tree, 0, 0), Drain: slices.Repeat([]time.Duration{time.Second}, 6)}
		s, err := Plan(t.Context(), in)
		if err != nil || isLanes(in, s, 0) {
			continue
		}
		last := len(s.Rounds) - 1
		if !isLanes(in, s, last) || s.Rounds[last-1].Drain == 0 {
			t.Errorf("%+v", s.Rounds)
		}
		if _, err := Prove(t.Context(), in, s); err != nil {
			t.Error(err)
		}
		in.Old, in.New = in.New, in.Old
		if s, err = Plan(t.Context(), in); err != nil || !isLanes(in, s, 0) {
			t.Errorf("on the way back: %v", err)
		}
		return
	}
}
