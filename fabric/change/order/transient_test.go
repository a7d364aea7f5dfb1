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
	"fabsh/fabric/routing"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// model is a fabric as the checker sees it: it is made from the cables alone, and
// shares nothing with the planner.
type model struct {
	f        *fabric.Fabric
	switches []*fabric.Node
	number   map[*fabric.Node]int
	to       [][]int // by switch, then port: the switch behind it; -1-i: the host port of id i; none
	hosts    []host
}

// host is a port with a LID; of a switch it is port 0.
type host struct {
	id, at   int
	lid      mad.LID
	isSwitch bool
}

const none = 1 << 30

func newModel(g *graph.Graph, dead *fabric.Port) *model {
	m := &model{f: g.Fabric(), number: map[*fabric.Node]int{}}
	for _, n := range g.Switches() {
		m.number[n] = len(m.switches)
		m.switches = append(m.switches, n)
	}
	for _, n := range m.switches {
		ports := make([]int, n.NumPorts()+1)
		for i := range ports {
			ports[i] = none
			q := n.Port(i).Peer()
			switch {
			case i == 0:
				if lid := g.Terminals()[g.TerminalOf(n.Port(0))].LID; lid != 0 {
					ports[0] = -1 - n.Port(0).ID()
					m.hosts = append(m.hosts, host{n.Port(0).ID(), m.number[n], lid, true})
				}
			case q == nil || n.Port(i) == dead || q == dead:
			case q.Node().IsSwitch():
				ports[i] = m.number[q.Node()]
			default:
				ports[i] = -1 - q.ID()
				t := g.Terminals()[g.TerminalOf(q)]
				m.hosts = append(m.hosts, host{q.ID(), m.number[n], t.LID, false})
			}
		}
		m.to = append(m.to, ports)
	}
	return m
}

// tables are entries by switch, then LID.
type tables [][]uint8

func tablesOf(r *routes.Routes) tables {
	var t tables
	for s := range r.Graph().Switches() {
		t = append(t, append([]uint8(nil), r.Row(s)...))
	}
	return t
}

func (t tables) clone() tables {
	c := make(tables, len(t))
	for s := range t {
		c[s] = append([]uint8(nil), t[s]...)
	}
	return c
}

func (t tables) write(b Block) {
	for i, port := range b.Entries {
		if lid := b.Number*64 + i; lid < len(t[b.Switch]) {
			t[b.Switch][lid] = port
		} else if port != mad.NoPort {
			panic("an entry beyond the table")
		}
	}
}

// walk follows a packet, and says whether it arrives, or loops.
func (m *model) walk(t tables, at int, h host) (arrives, loops bool) {
	for range len(m.switches) + 1 {
		port := int(t[at][h.lid])
		if port >= len(m.to[at]) || m.to[at][port] == none {
			return false, false
		}
		if next := m.to[at][port]; next < 0 {
			return next == -1-h.id, false
		} else {
			at = next
		}
	}
	return false, true
}

// channel is a link out of a switch; wait is that packets on the first wait for the
// second.
type channel struct{ s, port int }
type wait struct{ a, b channel }

// check is an error where a step of the schedule is not safe: all states of a round
// are tried where there are few, else some.
func (m *model) check(old, new tables, s *Schedule, random *rand.Rand, limit int) error {
	live := map[[2]int]bool{}
	looped := map[[2]int]bool{}
	for _, h := range m.hosts {
		for at := range m.switches {
			a, l := m.walk(old, at, h)
			b, _ := m.walk(new, at, h)
			live[[2]int{at, h.id}] = a && b
			looped[[2]int{at, h.id}] = l
		}
	}
	now := old.clone()
	begun := m.waits([]tables{old}, nil)
	oldCyclic := cyclic(begun)
	var states []tables // of the epoch, each after those that may come before it
	var sets []uint64   // the writes of each that are done; of its round
	var rounds []int
	for r, round := range s.Rounds {
		n := len(round.Blocks)
		var masks []uint64
		if n < 63 && 1<<n <= limit {
			for mask := range uint64(1) << n {
				masks = append(masks, mask)
			}
		} else {
			masks = []uint64{0}
			for range 2 {
				mask := uint64(0)
				for k, i := range random.Perm(min(n, 63)) {
					if mask |= 1 << i; k%16 == 15 || n < 16 {
						masks = append(masks, mask)
					}
				}
			}
		}
		for _, mask := range masks {
			t := now.clone()
			for i, b := range round.Blocks {
				if mask>>(i%63)&1 != 0 {
					t.write(b)
				}
			}
			for _, h := range m.hosts {
				for at := range m.switches {
					a, l := m.walk(t, at, h)
					if l && !looped[[2]int{at, h.id}] {
						return fmt.Errorf("round %d, writes %b: packets from switch %d to LID %d loop", r, mask, at, h.lid)
					}
					if !a && live[[2]int{at, h.id}] {
						return fmt.Errorf("round %d, writes %b: packets from switch %d to LID %d are lost", r, mask, at, h.lid)
					}
				}
			}
			states, sets, rounds = append(states, t), append(sets, mask), append(rounds, r)
		}
		for _, b := range round.Blocks {
			now.write(b)
		}
		if round.Drain > 0 || r == len(s.Rounds)-1 {
			later := func(i, j int) bool { return rounds[i] < rounds[j] || rounds[i] == rounds[j] && sets[i]&^sets[j] == 0 }
			states, sets, rounds = append(states, now.clone()), append(sets, 0), append(rounds, r+1)
			if !oldCyclic && cyclic(m.waits(states, later)) {
				return fmt.Errorf("a credit loop by round %d", r)
			}
			states, sets, rounds = nil, nil, nil
		}
	}
	for s := range now {
		for lid := range now[s] {
			if now[s][lid] != new[s][lid] {
				return fmt.Errorf("switch %d ends with another entry for LID %d", s, lid)
			}
		}
	}
	return nil
}

// waits are the dependencies in the states of an epoch: a packet is sent in one state,
// and on in that or a later one.
func (m *model) waits(states []tables, later func(i, j int) bool) map[wait]bool {
	found := map[wait]bool{}
	same := make([]bool, len(m.switches)) // in all states
	for s := range same {
		same[s] = !slices.ContainsFunc(states, func(t tables) bool { return !slices.Equal(t[s], states[0][s]) })
	}
	of := func(s int) []tables {
		if same[s] {
			return states[:1]
		}
		return states
	}
	for _, h := range m.hosts {
		if h.isSwitch {
			continue
		}
		// Where packets to the host come, by any entries.
		reached := make([]bool, len(m.switches))
		for _, from := range m.hosts {
			if !from.isSwitch && from.id != h.id {
				reached[from.at] = true
			}
		}
		for changed := true; changed; {
			changed = false
			for s := range reached {
				if !reached[s] {
					continue
				}
				for _, t := range of(s) {
					if p := int(t[s][h.lid]); p < len(m.to[s]) && m.to[s][p] >= 0 && m.to[s][p] != none && !reached[m.to[s][p]] {
						reached[m.to[s][p]], changed = true, true
					}
				}
			}
		}
		for u := range reached {
			if !reached[u] {
				continue
			}
			for i, t := range of(u) {
				p := int(t[u][h.lid])
				if p >= len(m.to[u]) || m.to[u][p] < 0 || m.to[u][p] == none {
					continue
				}
				s := m.to[u][p]
				for j, x := range of(s) {
					q := int(x[s][h.lid])
					if q >= len(m.to[s]) || m.to[s][q] < 0 || m.to[s][q] == none {
						continue
					}
					if i == j || same[u] || same[s] || later == nil || later(i, j) {
						found[wait{channel{u, p}, channel{s, q}}] = true
					}
				}
			}
		}
	}
	return found
}

// cyclic removes what waits for nothing until nothing is left, or a cycle.
func cyclic(waits map[wait]bool) bool {
	out := map[channel]int{}
	into := map[channel][]channel{}
	for w := range waits {
		out[w.a]++
		out[w.b] += 0
		into[w.b] = append(into[w.b], w.a)
	}
	var free []channel
	for c, n := range out {
		if n == 0 {
			free = append(free, c)
		}
	}
	for i := 0; i < len(free); i++ {
		for _, c := range into[free[i]] {
			if out[c]--; out[c] == 0 {
				free = append(free, c)
			}
		}
	}
	return len(free) < len(out)
}

// change is a random change of the tables of a small network.
func change(t testing.TB, random *rand.Rand, n int) (in Input, dead *fabric.Port, what string) {
	spec := fmt.Sprintf("random:n=%d,degree=%d,hosts=%d,remove_links=%d,seed=%d", n, 3+n%2, 1+random.IntN(2), random.IntN(3), random.IntN(1<<20))
	f := topology(t, spec)
	whole, err := graph.New(f, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := whole.ChannelPort(random.IntN(len(whole.Channels())))
	cut, err := graph.New(f, graph.Options{Exclude: func(p *fabric.Port) bool { return p == lost }})
	if err != nil {
		t.Fatal(err)
	}
	roots := func() routing.Options { return routing.Options{Roots: []int{random.IntN(n)}, Seed: random.Uint64()} }
	what = []string{"link lost", "root changed", "engine changed", "link back", "switch back", "entries dropped"}[random.IntN(6)]
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
		engines := []string{"minhop", "updn", "nue", "sssp"}
		in.Old, in.New = compute(t, whole, engines[random.IntN(4)], routing.Options{}), compute(t, whole, engines[random.IntN(4)], routing.Options{})
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
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		planned[kind]++
		if _, err := Prove(t.Context(), in, s); err != nil {
			t.Errorf("change %d, %s: %v", i, what, err)
		}
		m := newModel(in.Old.Graph(), dead)
		if err := m.check(tablesOf(in.Old), tablesOf(in.New), s, random, 1<<10); err != nil {
			t.Errorf("change %d, %s: %v", i, what, err)
		}
	}
	for k, n := range planned {
		if strings.Contains(k, "true") && n < 9*refused[k] {
			t.Errorf("%s: %d planned, %d refused", k, n, refused[k])
		}
	}
}

// TestProve: the proof says what the checker says, of any schedule.
func TestProve(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	random := rand.New(rand.NewPCG(2, 0))
	safe, unsafe := 0, map[string]int{}
	for i := range 3000 {
		in, dead, what := change(t, random, 4+random.IntN(3))
		s := &Schedule{}
		in.tops(s)
		in.Drain = slices.Repeat([]time.Duration{time.Second / 2}, len(in.Old.Graph().Switches()))
		rounds := 1 + random.IntN(4)
		for range rounds {
			s.Rounds = append(s.Rounds, Round{Drain: time.Duration(random.IntN(2)) * time.Second})
		}
		for _, sd := range in.New.Diff(in.Old).Switches {
			for _, b := range sd.Blocks {
				w := Block{Switch: sd.Switch, Number: b}
				fillBlock(&w.Entries, in.New.Row(sd.Switch), b)
				r := &s.Rounds[random.IntN(rounds)]
				r.Blocks = append(r.Blocks, w)
			}
		}
		_, err := Prove(t.Context(), in, s)
		if r := new(Refusal); err != nil && (!errors.As(err, &r) || r.Round < 0) {
			if !errors.As(err, &r) {
				t.Fatal(err)
			}
			continue // pairs that the new tables do not connect
		}
		m := newModel(in.Old.Graph(), dead)
		wrong := m.check(tablesOf(in.Old), tablesOf(in.New), s, random, 1<<10)
		if cyclic(m.waits([]tables{tablesOf(in.Old)}, nil)) {
			continue // the checker does not tell old loops from others
		}
		if (err == nil) != (wrong == nil) {
			t.Errorf("schedule %d, %s: the proof says %v, the checker %v", i, what, err, wrong)
		}
		if wrong == nil {
			safe++
		} else {
			unsafe[fmt.Sprintf("%.40s", wrong.Error()[strings.LastIndex(wrong.Error(), " "):])]++
		}
	}
	t.Log(safe, unsafe)
	if safe < 50 || len(unsafe) < 3 {
		t.Errorf("%d safe schedules, %v others: too few to tell", safe, unsafe)
	}
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
				old := compute(t, cut, "ftree", routing.Options{})
				in.Old, in.New = old.On(whole), compute(t, whole, "ftree", routing.Options{Keep: old})
			case "engine":
				in.Old, in.New = compute(t, whole, "minhop", routing.Options{Policy: routing.LeastLoaded}), compute(t, whole, "ftree", routing.Options{})
			default:
				old := compute(t, whole, what, routing.Options{})
				g, dead = cut, lostPort(whole, cut)
				in.Old, in.New = old.On(cut), compute(t, cut, what, routing.Options{Keep: old})
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
			if err := newModel(g, dead).check(tablesOf(in.Old), tablesOf(in.New), s, random, limit); err != nil {
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
