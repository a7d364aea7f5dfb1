package change

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
)

// failure is a network that lost one of 15 links, by turns, and the tables in force.
type failure struct {
	g    *graph.Graph
	name string // of the engine
	live *routes.Routes
}

// failures are those of a network whose tables an engine made; none where it does not apply.
func failures(t testing.TB, spec, name string) (list []failure) {
	t.Helper()
	f := routingtest.Topology(t, spec)
	whole, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := engines.Compute(t.Context(), whole, name, engines.Options{})
	if err != nil {
		return nil
	}
	for i := range 15 {
		lost := whole.ChannelPort(i * len(whole.Channels()) / 15)
		g, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
		if err != nil {
			t.Fatal(err)
		}
		live := before.On(g)
		live.ForgetOrigin()
		list = append(list, failure{g, name, live})
	}
	return list
}

// policy is that of the engine, with a drain of so long at each switch; 0: packets may stay
// there for ever.
func (f *failure) policy(drain time.Duration) (p TargetPolicy, schedule func() (order.Input, *order.Schedule)) {
	var in order.Input
	var s *order.Schedule
	p = TargetPolicy{
		Live: f.live,
		Own: func(ctx context.Context) (*routes.Routes, error) {
			return engines.Compute(ctx, f.g, f.name, engines.Options{})
		},
		Keeping: func(ctx context.Context) (*routes.Routes, bool, error) {
			return repair.ComputeKeeping(ctx, f.g, f.name, engines.Options{}, f.live)
		},
		Prove: func(ctx context.Context, r *routes.Routes) (refusal string, err error) {
			in = order.Input{Old: f.live, New: r, Drain: slices.Repeat([]time.Duration{drain}, len(f.g.Switches()))}
			s, err = order.Plan(ctx, in)
			if refused := new(order.Refusal); errors.As(err, &refused) {
				return refused.Error(), nil
			}
			return "", err
		},
	}
	return p, func() (order.Input, *order.Schedule) { return in, s }
}

// counts are the changes of a corpus.
type counts struct {
	All    int
	Before int // proven to the policy's tables with entries kept, which were the only ones
	Proven int
	Kinds  [4]int // by what was chosen
}

// measure plans the changes after all failures, and confirms each plan.
func measure(t *testing.T, spec, name string, drain time.Duration) (n counts) {
	t.Helper()
	for i, f := range failures(t, spec, name) {
		p, schedule := f.policy(drain)
		c, err := p.Choose(t.Context())
		if errors.As(err, new(*engines.Precondition)) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n.All++
		if len(c.Refused) == 0 {
			n.Before++
		}
		if !c.Proven {
			continue
		}
		n.Proven++
		n.Kinds[c.Choice.Kind]++
		in, s := schedule()
		if in.New != c.Tables {
			t.Errorf("%s, %s, failure %d: the tables are not those that were proven last", spec, name, i)
		}
		if err := check(f.g, in.Old, in.New, s); err != nil {
			t.Errorf("%s, %s, failure %d, %v: %v", spec, name, i, c.Choice.Kind, err)
		}
	}
	return n
}

// corpus are small and medium networks of all kinds.
var corpus = []string{
	"mesh:dims=4/4,hosts=2", "torus:dims=4/4,hosts=2", "random:n=16,degree=4,hosts=2,seed=1", "random:n=24,degree=3,hosts=2,seed=2",
	"dragonfly:a=4,p=2,h=1", "hyperx:dims=4/4,hosts=2", "fattree:k=8,levels=2,remove_links=10%,seed=3", "fattree:k=4,levels=3,remove_links=4%,seed=4",
}

// TestCorpus: after one link was lost more changes are proven than to the policy's tables with
// entries kept alone, and none falsely. With FABSH_SOAK set all engines and networks are
// measured.
func TestCorpus(t *testing.T) {
	if os.Getenv("FABSH_SOAK") != "" {
		for _, drain := range []time.Duration{time.Second, 0} {
			for _, name := range engines.Names() {
				var sum counts
				for _, spec := range corpus {
					sum.add(measure(t, spec, name, drain))
				}
				t.Logf("%-10s drain %v: %+v", name, drain, sum)
			}
		}
	}
	const mesh, random = "mesh:dims=4/4,hosts=2", "random:n=16,degree=4,hosts=2,seed=1"
	for _, c := range []struct {
		spec, name string
		drain      time.Duration
		want       counts
	}{
		{mesh, "nue", time.Second, counts{15, 7, 13, [4]int{7, 0, 6, 0}}},
		{mesh, "nue", 0, counts{15, 3, 4, [4]int{3, 0, 1, 0}}},
		{mesh, "updn", 0, counts{15, 6, 6, [4]int{0, 6, 0, 0}}},
		{random, "nue", time.Second, counts{15, 2, 13, [4]int{2, 0, 11, 0}}},
		{random, "nue", 0, counts{15, 0, 11, [4]int{0, 0, 10, 1}}},
		{random, "updn", time.Second, counts{15, 11, 15, [4]int{0, 11, 4, 0}}},
		{random, "minhop", 0, counts{15, 0, 0, [4]int{0, 0, 0, 0}}},
	} {
		if testing.Short() && c.spec == random {
			continue // takes long with the race detector
		}
		if n := measure(t, c.spec, c.name, c.drain); n != c.want {
			t.Errorf("%s, %s, drain %v: %+v, expected %+v", c.spec, c.name, c.drain, n, c.want)
		}
	}
}

func (n *counts) add(o counts) {
	n.All, n.Before, n.Proven = n.All+o.All, n.Before+o.Before, n.Proven+o.Proven
	for k := range n.Kinds {
		n.Kinds[k] += o.Kinds[k]
	}
}

// TestChecker: the checker refuses what the proof refuses of schedules whose rounds are made
// one.
func TestChecker(t *testing.T) {
	refused := 0
	for _, spec := range []string{corpus[0], corpus[2]} {
		for i, f := range failures(t, spec, "nue") {
			p, schedule := f.policy(time.Second)
			c, err := p.Choose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			in, s := schedule()
			if !c.Proven || len(s.Rounds) < 2 {
				continue
			}
			one := *s
			last := map[[2]int]order.Block{}
			for _, round := range s.Rounds {
				for _, b := range round.Blocks {
					last[[2]int{b.Switch, b.Number}] = b
				}
			}
			one.Rounds = []order.Round{{}}
			for _, at := range slices.SortedFunc(maps.Keys(last), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
				one.Rounds[0].Blocks = append(one.Rounds[0].Blocks, last[at])
			}
			_, err = order.Prove(t.Context(), in, &one)
			wrong := check(f.g, in.Old, in.New, &one)
			if (err == nil) != (wrong == nil) {
				t.Errorf("%s, failure %d: the proof says %v, the checker %v", spec, i, err, wrong)
			}
			if wrong != nil {
				refused++
			}
		}
	}
	if refused < 5 {
		t.Errorf("%d are refused: too few to tell", refused)
	}
}
