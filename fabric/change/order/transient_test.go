package order

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// leadAstray gives entries that packets of no host meet other ports, as tables of OpenSM
// have them: packets between switches go down and up again, or back.
func leadAstray(r *routes.Routes, random *rand.Rand) {
	g := r.Graph()
	m := newModel(g, nil)
	for _, h := range m.hosts {
		met := make([]bool, len(m.switches))
		for _, from := range m.hosts {
			for at := from.at; !from.isSwitch && !met[at]; {
				met[at] = true
				if s, ok := m.behind(at, r.Row(at)[h.lid]); ok {
					at = s
				}
			}
		}
		for s, n := range m.switches {
			if !met[s] {
				r.Row(s)[h.lid] = uint8(1 + random.IntN(n.NumPorts()))
			}
		}
	}
}

// change is a random change of the tables of a small network.
func change(t testing.TB, random *rand.Rand, n int) (in Input, dead *fabric.Port, what string) {
	spec := fmt.Sprintf("random:n=%d,degree=%d,hosts=%d,remove_links=%d,seed=%d", n, 3+n%2, 1+random.IntN(2), random.IntN(3), random.IntN(1<<20))
	f := topology(t, spec)
	whole, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := whole.ChannelPort(random.IntN(len(whole.Channels())))
	cut, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
	if err != nil {
		t.Fatal(err)
	}
	roots := func() engines.Options { return engines.Options{Roots: []int{random.IntN(n)}, Seed: random.Uint64()} }
	what = []string{"link lost", "root changed", "engine changed", "link back", "switch back", "entries dropped", "unused entries"}[random.IntN(7)]
	switch what {
	case "link lost":
		old, o := compute(t, whole, "updn", roots()), roots()
		if random.IntN(2) == 0 {
			o.Keep = old
		}
		in.Old, in.New, dead = old.On(cut), compute(t, cut, "updn", o), lost
	case "root changed":
		in.Old, in.New = compute(t, whole, "updn", roots()), compute(t, whole, "updn", roots())
	case "engine changed":
		names := []string{"minhop", "updn", "nue", "sssp"}
		in.Old, in.New = compute(t, whole, names[random.IntN(4)], engines.Options{}), compute(t, whole, names[random.IntN(4)], engines.Options{})
	case "link back":
		old := compute(t, cut, "updn", roots())
		in.Old, in.New = old.On(whole), compute(t, whole, "updn", roots())
	case "switch back", "entries dropped":
		old := compute(t, whole, "updn", roots()).Clone()
		for lid := range old.Row(0) {
			if what == "switch back" || random.IntN(2) == 0 {
				old.Row(0)[lid] = mad.NoPort
			}
		}
		in.Old, in.New = old, compute(t, whole, "updn", roots())
		if what == "entries dropped" {
			in.Old, in.New = in.New, in.Old
			in.AcceptLost = true
		}
	case "unused entries":
		spec = fmt.Sprintf("fattree:k=4,levels=2,remove_links=%d,seed=%d", random.IntN(3), random.IntN(1<<20))
		g, err := graph.New(topology(t, spec), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in.Old, in.New, dead = compute(t, g, "minhop", engines.Options{Policy: engines.Scatter, Seed: random.Uint64()}), compute(t, g, "minhop", engines.Options{}), nil
		leadAstray(in.Old, random)
	}
	return in, dead, what + " of " + spec
}

func TestTransient(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	random := rand.New(rand.NewPCG(1, 0))
	planned, refused := map[string]int{}, map[string]int{}
	for i := range 3000 {
		in, dead, what := change(t, random, 4+random.IntN(3))
		drains := i%2 == 0
		if drains {
			in.Drain = make([]time.Duration, len(in.Old.Graph().Switches()))
			for s := range in.Drain {
				in.Drain[s] = time.Second
			}
		}
		kind := fmt.Sprintf("%.8s drains %v", what, drains)
		s, err := Plan(t.Context(), in)
		if r := new(Refusal); errors.As(err, &r) {
			refused[kind]++
			if err := exists(in, r); err != nil {
				t.Errorf("change %d, %s: %v: %v", i, what, r, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		planned[kind]++
		differ := in.differing()
		for _, round := range BlocksOf(in, s) {
			for _, b := range round.Blocks {
				if !differ[[2]int{b.Switch, b.Number}] {
					t.Errorf("change %d, %s: block %d of switch %d is written, and does not change in the end", i, what, b.Number, b.Switch)
				}
			}
		}
		if _, err := Prove(t.Context(), in, s); err != nil {
			t.Errorf("change %d, %s: %v", i, what, err)
		}
		m := newModel(in.Old.Graph(), dead)
		if err := m.check(tablesOf(in.Old), tablesOf(in.New), BlocksOf(in, s), random, 1<<10); err != nil {
			t.Errorf("change %d, %s: %v", i, what, err)
		}
	}
	for k, n := range planned {
		if strings.Contains(k, "true") && n < 9*refused[k] {
			t.Errorf("%s: %d planned, %d refused", k, n, refused[k])
		}
	}
}

// exists is an error where a credit loop has a link that no packet takes by the entries
// that the refusal names.
func exists(in Input, r *Refusal) error {
	for i, d := range r.Cycle {
		next := r.Cycle[(i+1)%len(r.Cycle)].Port
		for k, at := range []*fabric.Port{d.Port, next} {
			s := in.Old.Graph().SwitchOf(at.Node())
			v := []Version{d.First, d.Next}[k]
			old, new := in.Old.Row(s).Port(d.LID), in.New.Row(s).Port(d.LID)
			if port := uint8(at.Num()); (v == Old || v == Both) && port != old || (v == New || v == Both) && port != new {
				return fmt.Errorf("the %v entry for LID %d of %s is not %d", v, d.LID, at.Node().Label(), port)
			}
		}
		if d.Port.Peer().Node() != next.Node() {
			return fmt.Errorf("%s does not lead to %s", d.Port.Name(), next.Name())
		}
	}
	return nil
}

// TestProve: the proof says what the checker says, of any schedule.
func TestProve(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	random := rand.New(rand.NewPCG(2, 0))
	safe, unsafe, management := 0, map[string]int{}, map[bool]int{}
	for i := range 3000 {
		in, dead, what := change(t, random, 4+random.IntN(3))
		s := &Schedule{}
		in.Drain = slices.Repeat([]time.Duration{time.Second / 2}, len(in.Old.Graph().Switches()))
		rounds := 1 + random.IntN(4)
		for range rounds {
			s.Rounds = append(s.Rounds, certificate.Round{Drain: time.Duration(random.IntN(2)) * time.Second})
		}
		for _, sd := range in.New.Diff(in.Old).Switches {
			for _, b := range sd.Blocks {
				r := &s.Rounds[random.IntN(rounds)]
				r.Writes = append(r.Writes, in.Write(sd.Switch, b, blockOf(in.New.Row(sd.Switch), b)))
			}
		}
		fig, err := Prove(t.Context(), in, s)
		if r := new(Refusal); err != nil && (!errors.As(err, &r) || r.Round < 0) {
			if !errors.As(err, &r) {
				t.Fatal(err)
			}
			continue // pairs that the new tables do not connect
		}
		m := newModel(in.Old.Graph(), dead)
		wrong := m.check(tablesOf(in.Old), tablesOf(in.New), BlocksOf(in, s), random, 1<<10)
		if cyclic(m.waits([]tables{tablesOf(in.Old)}, nil)) {
			continue // the checker does not tell old loops from others
		}
		if (err == nil) != (wrong == nil) {
			t.Errorf("schedule %d, %s: the proof says %v, the checker %v", i, what, err, wrong)
		}
		if wrong == nil {
			safe++
			m.management = true
			if wrong = m.check(tablesOf(in.Old), tablesOf(in.New), BlocksOf(in, s), random, 1<<10); (fig.Management == nil) != (wrong == nil) && !cyclic(m.waits([]tables{tablesOf(in.Old)}, nil)) {
				t.Errorf("schedule %d, %s: with management packets the proof says %v, the checker %v", i, what, fig.Management, wrong)
			}
			management[wrong == nil]++
		} else {
			unsafe[fmt.Sprintf("%.40s", wrong.Error()[strings.LastIndex(wrong.Error(), " "):])]++
		}
	}
	if safe < 50 || len(unsafe) < 3 || len(management) < 2 {
		t.Errorf("%d safe schedules, %v with management packets, %v others: too few to tell", safe, management, unsafe)
	}
	t.Log(safe, unsafe, management)
}

// TestTransientTree: link failures, and other engines, in whole fat trees.
func TestTransientTree(t *testing.T) {
	specs := []string{"fattree:k=4,levels=3", "fattree:k=8,levels=2", "pgft:m=4/4/8,w=1/4/4,p=1/1/1"}
	if os.Getenv("FABSH_SOAK") != "" {
		specs = append(specs, "pgft:m=12/12/12,w=1/12/12,p=1/1/1", "pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	}
	random := rand.New(rand.NewPCG(6, 0))
	for _, spec := range specs {
		for _, what := range []string{"ftree", "updn", "minhop", "link back", "engine"} {
			whole, cut := graphs(t, spec, random.IntN(16))
			g, dead := whole, (*fabric.Port)(nil)
			in := Input{}
			switch what {
			case "link back":
				old := compute(t, cut, "ftree", engines.Options{})
				in.Old, in.New = old.On(whole), compute(t, whole, "ftree", engines.Options{Keep: old})
			case "engine":
				in.Old, in.New = compute(t, whole, "minhop", engines.Options{Policy: engines.LeastLoaded}), compute(t, whole, "ftree", engines.Options{})
			default:
				old := compute(t, whole, what, engines.Options{})
				g, dead = cut, lostPort(whole, cut)
				in.Old, in.New = old.On(cut), compute(t, cut, what, engines.Options{Keep: old})
			}
			s, err := Plan(t.Context(), in)
			if err != nil {
				t.Errorf("%s, %s: %v", spec, what, err)
				continue
			}
			limit := 16
			if len(g.Switches()) > 100 {
				limit = 4
			}
			if err := newModel(g, dead).check(tablesOf(in.Old), tablesOf(in.New), BlocksOf(in, s), random, limit); err != nil {
				t.Errorf("%s, %s: %v", spec, what, err)
			}
		}
	}
}

// lostPort is a port whose link the second graph lacks.
func lostPort(whole, cut *graph.Graph) *fabric.Port {
	for c := range whole.Channels() {
		if p := whole.ChannelPort(c); cut.ChannelOf(p) < 0 {
			return p
		}
	}
	return nil
}
