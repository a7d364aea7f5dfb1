package order_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/repair"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// failure is a network that lost one of 15 links, by turns, and the tables in force.
type failure struct {
	g    *graph.Graph
	name string // of the engine
	live *routes.Routes
}

// failures returns the failures of a network whose tables an engine made; none where it does
// not apply.
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

// policy returns the policy of the engine, with a drain of so long at each switch; 0: packets
// may stay there for ever.
func (f *failure) policy(drain time.Duration) (p change.TargetPolicy, schedule func() (order.Input, *order.Schedule)) {
	var in order.Input
	var s *order.Schedule
	p = change.TargetPolicy{
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
		if err := check(f.g, in.Old, in.New, order.BlocksOf(in, s)); err != nil {
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
		{mesh, "nue", time.Second, counts{15, 12, 15, [4]int{12, 0, 3, 0}}},
		{mesh, "nue", 0, counts{15, 0, 8, [4]int{0, 0, 8, 0}}},
		{mesh, "updn", 0, counts{15, 6, 6, [4]int{0, 6, 0, 0}}},
		{random, "nue", time.Second, counts{15, 6, 15, [4]int{6, 0, 9, 0}}},
		{random, "nue", 0, counts{15, 0, 7, [4]int{0, 0, 4, 3}}},
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
			last := map[int]certificate.Write{}
			for _, round := range s.Rounds {
				for _, w := range round.Writes {
					last[w.Change] = w
				}
			}
			one.Rounds = []certificate.Round{{}}
			for _, change := range slices.Sorted(maps.Keys(last)) {
				one.Rounds[0].Writes = append(one.Rounds[0].Writes, last[change])
			}
			_, err = order.Prove(t.Context(), in, &one)
			wrong := check(f.g, in.Old, in.New, order.BlocksOf(in, &one))
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

// checker confirms schedules. It follows packets link by link through all that may be in
// force while the rounds are written, and shares nothing with the planner but the graph.
type checker struct {
	g     *graph.Graph
	waits map[[2]int32]bool // links: packets on the first may wait for the second
}

// inForce are the entries of all switches for a LID in each round: before and after it.
type inForce [][2][]uint8

// check is an error if some order of the writes of a round lets packets loop, loses those
// that arrive before and after, or lets links wait for each other in a circle.
func check(g *graph.Graph, old, new *routes.Routes, rounds []order.Blocks) error {
	c := &checker{g: g, waits: map[[2]int32]bool{}}
	for lid := mad.LID(1); lid <= old.Top(); lid++ {
		if t := g.TerminalByLID(lid); t >= 0 && g.Terminals()[t].Out > 0 {
			c.depend(inForce{{old.Column(lid), old.Column(lid)}})
		}
	}
	begun := c.circle()
	c.waits = map[[2]int32]bool{}
	first := 0 // round of the epoch
	for r := range max(1, len(rounds)) {
		if r < len(rounds)-1 && rounds[r].Drain == 0 {
			continue
		}
		for lid := mad.LID(1); lid <= old.Top(); lid++ {
			t := g.TerminalByLID(lid)
			if t < 0 || g.Terminals()[t].Switch < 0 {
				continue
			}
			entries := columns(old.Column(lid), lid, rounds)
			if first == 0 && fmt.Sprint(entries[len(entries)-1][1]) != fmt.Sprint(new.Column(lid)) {
				return fmt.Errorf("LID %d ends with other entries", lid)
			}
			entries = entries[first:min(r+1, len(entries))]
			for k := range entries {
				if err := c.arrive(entries[k], old.Column(lid), new.Column(lid), graph.ToTerminal(int32(t))); err != nil {
					return fmt.Errorf("LID %d, round %d: %w", lid, first+k, err)
				}
			}
			if g.Terminals()[t].Out > 0 {
				c.depend(entries)
			}
		}
		if !begun && c.circle() {
			return fmt.Errorf("links wait for each other by round %d", r)
		}
		c.waits, first = map[[2]int32]bool{}, r+1
	}
	return nil
}

// columns are the entries for a LID in each round.
func columns(now []uint8, lid mad.LID, rounds []order.Blocks) (list inForce) {
	for _, round := range rounds {
		after := append([]uint8(nil), now...)
		for _, b := range round.Blocks {
			if b.Number == int(lid)/mad.LFTBlock {
				after[b.Switch] = b.Entries[int(lid)%mad.LFTBlock]
			}
		}
		list = append(list, [2][]uint8{now, after})
		now = after
	}
	if len(list) == 0 {
		list = inForce{{now, now}}
	}
	return list
}

// arrive is an error if packets loop in a round that do not by the old entries, or do not
// arrive though they do by the old and by the new ones, whichever entry of the round each
// switch has.
func (c *checker) arrive(round [2][]uint8, old, new []uint8, to graph.Target) error {
	ends := func(s int32, entries []uint8) (arrives, loops bool) {
		for range entries {
			t := c.g.Target(s, entries[s])
			if !t.IsChannel() {
				return t == to, false
			}
			s = c.g.ChannelTo(t.Channel())
		}
		return false, true
	}
	for from := range int32(len(old)) {
		before, looped := ends(from, old)
		if looped {
			continue
		}
		onWay, fails, loops := map[int32]bool{}, false, false
		done := map[int32]bool{}
		var follow func(s int32)
		follow = func(s int32) {
			if loops = loops || onWay[s]; loops || done[s] {
				return
			}
			onWay[s], done[s] = true, true
			for _, entries := range round {
				if t := c.g.Target(s, entries[s]); t.IsChannel() {
					follow(c.g.ChannelTo(t.Channel()))
				} else {
					fails = fails || t != to
				}
			}
			onWay[s] = false
		}
		after, _ := ends(from, new)
		switch follow(from); {
		case loops:
			return fmt.Errorf("packets from switch %d loop", from)
		case fails && before && after:
			return fmt.Errorf("packets from switch %d are lost", from)
		}
	}
	return nil
}

// depend adds the waits of the packets of CAs to a LID: a packet is at a switch in a round,
// and goes on by an entry of that round or of a later one.
func (c *checker) depend(entries inForce) {
	type place struct {
		s, from int32
		round   int
	}
	seen := map[place]bool{}
	var queue []place
	visit := func(p place) {
		if !seen[p] {
			seen[p] = true
			queue = append(queue, p)
		}
	}
	for s, n := range c.g.Endpoints() {
		if n > 0 {
			visit(place{int32(s), -1, 0})
		}
	}
	for i := 0; i < len(queue); i++ {
		p := queue[i]
		for r := p.round; r < len(entries); r++ {
			for _, e := range entries[r] {
				t := c.g.Target(p.s, e[p.s])
				if !t.IsChannel() {
					continue
				}
				if p.from >= 0 {
					c.waits[[2]int32{p.from, t.Channel()}] = true
				}
				visit(place{c.g.ChannelTo(t.Channel()), t.Channel(), r})
			}
		}
	}
}

// circle reports whether links wait for each other in a circle: what waits for nothing is
// removed until nothing is left.
func (c *checker) circle() bool {
	left := map[int32]map[int32]bool{}
	for w := range c.waits {
		if left[w[0]] == nil {
			left[w[0]] = map[int32]bool{}
		}
		left[w[0]][w[1]] = true
	}
	for removed := true; removed; {
		removed = false
		for a, to := range left {
			for b := range to {
				if left[b] == nil {
					delete(to, b)
				}
			}
			if len(to) == 0 {
				delete(left, a)
				removed = true
			}
		}
	}
	return len(left) > 0
}
