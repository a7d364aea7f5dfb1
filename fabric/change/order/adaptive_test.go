package order

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// adaptiveChange is a random change where some switches route adaptively: by the choices of
// an engine, some with others at random; what their tables have may be something else.
func adaptiveChange(t testing.TB, random *rand.Rand) (in Input, dead *fabric.Port, what string) {
	in, dead, what = change(t, random, 4+random.IntN(2))
	g := in.Old.Graph()
	updn := func() *routes.Routes {
		return compute(t, g, "updn", engines.Options{Adaptive: true, Roots: []int{random.IntN(len(g.Switches()))}})
	}
	r := updn()
	what += "; adaptively"
	if random.IntN(3) == 0 {
		what += ", by two roots"
		for s, other := range routes.ActiveSwitches(updn()) {
			if random.IntN(2) == 0 {
				r.SetAdaptive(s, other)
			}
		}
	}
	if random.IntN(2) == 0 { // the tables have the static ports
		what += ", its static ports"
		in.Old = r.StaticPart().UpTo(in.Old.Top())
	}
	if random.IntN(3) == 0 {
		in.New = in.Old.Clone()
		what += ", stays"
	}
	if random.IntN(4) == 0 {
		what += ", members at random"
		for range 2 {
			s := random.IntN(len(g.Switches()))
			ports := adaptive.PortSet(uint8(1+random.IntN(g.Switches()[s].NumPorts())), uint8(1+random.IntN(g.Switches()[s].NumPorts())))
			if err := r.SetChoices(s, []mad.LID{1 + mad.LID(random.IntN(int(r.Top())))}, ports); err != nil {
				t.Fatal(err)
			}
		}
	}
	in.Adaptive = make([]*adaptive.Switch, len(g.Switches()))
	in.Changes = in.differences()
	var disable []place
	first := map[int]int{} // by switch: the first block that changes
	for p := range in.differing() {
		if n, ok := first[p[0]]; !ok || p[1] < n {
			first[p[0]] = p[1]
		}
	}
	for s := range in.Adaptive {
		if random.IntN(4) == 0 {
			continue
		}
		in.Adaptive[s] = r.Adaptive(s)
		number, changes := first[s]
		if in.Adaptive[s].Active() && (changes || random.IntN(3) > 0) {
			disable = append(disable, place{s, number})
			if block := blockOf(in.Old.Row(s), 0); !changes {
				in.Changes = append(in.Changes, certificate.Change{Attr: mad.AttrLinearForwardingTable, Node: g.Switches()[s].GUID(), Old: block, New: block})
			}
		}
	}
	in.number()
	for _, p := range disable {
		in.Disable = append(in.Disable, in.of[p])
	}
	return in, dead, what
}

// TestAdaptiveTransient: no state between adaptive and static switches loops, loses packets
// or deadlocks, whichever ports the switches choose.
func TestAdaptiveTransient(t *testing.T) {
	routingtest.ResultsOnly(t)
	const changes = 1000
	random := rand.New(rand.NewPCG(2, 0))
	planned, refused := 0, map[string]int{}
	disabled, waits := 0, 0
	for i := range changes {
		in, dead, what := adaptiveChange(t, random)
		if i%2 == 0 {
			in.Drain = slices.Repeat([]time.Duration{time.Second}, len(in.Adaptive))
		}
		s, err := Plan(t.Context(), in)
		if r := new(Refusal); errors.As(err, &r) {
			for _, kind := range []string{"loop", "dropped", "deadlock", "none in the new tables"} {
				if strings.Contains(r.Reason, kind) {
					refused[kind]++
				}
			}
			if err := newChooser(&in, dead).excuses(&in, r); err != nil {
				t.Errorf("change %d, %s: %v: %v", i, what, r, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		planned++
		if len(in.Disable) > 0 {
			disabled++
			if s.Rounds[0].Drain > 0 {
				waits++
			}
		}
		if _, err := Prove(t.Context(), in, s); err != nil {
			t.Errorf("change %d, %s: %v", i, what, err)
		}
		if err := newChooser(&in, dead).check(&in, s); err != nil {
			t.Errorf("change %d, %s: %v", i, what, err)
		}
	}
	t.Logf("%d planned, %d with adaptive routing to disable, %d with a drain after that; refused: %v", planned, disabled, waits, refused)
	if planned < changes/10 || disabled < changes/20 || len(refused) < 4 {
		t.Error("too few of a kind")
	}
}

// chooser follows packets by all ports that switches may choose, one path after the other.
type chooser struct {
	*model
	choices [][]adaptive.Ports // by switch, LID; nil: the switch follows its table
	before  state
}

func newChooser(in *Input, dead *fabric.Port) *chooser {
	g := in.Old.Graph()
	c := &chooser{model: newModel(g, dead), choices: make([][]adaptive.Ports, len(g.Switches()))}
	for s, a := range in.Adaptive {
		if !a.Active() {
			continue
		}
		for lid := range mad.LID(len(in.Old.Row(s))) {
			var all adaptive.Ports
			for in := range uint8(g.Switches()[s].NumPorts() + 1) {
				for sl := range uint8(16) {
					for t := adaptive.RC; t <= adaptive.DC; t++ {
						ports := a.Choose(adaptive.Packet{In: in, SL: sl, LID: lid, Transport: t}, routes.Down(g, s)).Ports
						if ports.Empty() {
							ports.Add(mad.NoPort)
						}
						all = all.Union(ports)
					}
				}
			}
			c.choices[s] = append(c.choices[s], all)
		}
	}
	c.before = c.begun(in)
	return c
}

// state is what is in force: tables, and by switch whether it follows its choices.
type state struct {
	t        tables
	adaptive []bool
}

func (x *state) clone() state { return state{x.t.clone(), slices.Clone(x.adaptive)} }

// ports returns the ports by which switch s may send packets to a LID.
func (c *chooser) ports(x *state, s int, lid mad.LID) (list []uint8) {
	if !x.adaptive[s] {
		return []uint8{x.t[s][lid]}
	}
	return slices.Collect(c.choices[s][lid].All())
}

// fate follows a packet along each path in turn: it may fail, or loop other than before the
// change; on holds the switches of the path and by which ports they send.
func (c *chooser) fate(x *state, at int, h host, on []channel) (fails, loops bool) {
	if i := slices.IndexFunc(on, func(v channel) bool { return v.s == at }); i >= 0 {
		return true, slices.ContainsFunc(on[i:], func(v channel) bool {
			return !slices.Contains(c.ports(&c.before, v.s, h.lid), uint8(v.port))
		})
	}
	for _, port := range c.ports(x, at, h.lid) {
		switch next := c.next(at, port); {
		case next == none:
			fails = true
		case next < 0:
			fails = fails || next != -1-h.id
		default:
			f, l := c.fate(x, next, h, append(slices.Clone(on), channel{at, int(port)}))
			fails, loops = fails || f, loops || l
		}
	}
	return fails, loops
}

func (c *chooser) next(s int, port uint8) int {
	if int(port) >= len(c.to[s]) {
		return none
	}
	return c.to[s][port]
}

// begun and ended are the states before and after a change.
func (c *chooser) begun(in *Input) state {
	x := state{tablesOf(in.Old), make([]bool, len(c.switches))}
	for s := range c.choices {
		x.adaptive[s] = c.choices[s] != nil
	}
	return x
}

func (c *chooser) ended(in *Input) state {
	x := c.begun(in)
	x.t = tablesOf(in.New)
	for _, i := range in.Disable {
		x.adaptive[in.at[i].s] = false
	}
	return x
}

// check is an error where a state that a schedule may pass through is not safe. All are
// tried: each set of the writes of a round, with each set of the switches that it writes
// first still routing adaptively although they are written.
func (c *chooser) check(in *Input, s *Schedule) error {
	before, after := c.begun(in), c.ended(in)
	live := map[[2]int]bool{}
	for _, h := range c.hosts {
		for at := range c.switches {
			was, _ := c.fate(&before, at, h, nil)
			is, _ := c.fate(&after, at, h, nil)
			live[[2]int{at, h.id}] = !was && !is
		}
	}
	oldCyclic := cyclic(c.waits([]state{before}, nil))
	now := before.clone()
	var states []state
	var key [][3]uint64 // by state: round, writes that are done, switches that still choose
	later := func(i, j int) bool {
		a, b := key[i], key[j]
		return a[0] < b[0] || a[0] == b[0] && a[1]&^b[1] == 0 && b[2]&^a[2] == 0
	}
	schedule := BlocksOf(*in, s)
	for r, round := range schedule {
		turning := []int{}
		for _, b := range round.Blocks {
			if now.adaptive[b.Switch] && !slices.Contains(turning, b.Switch) {
				turning = append(turning, b.Switch)
			}
		}
		for mask := range uint64(1) << len(round.Blocks) {
			written := now.clone()
			touched := map[int]bool{}
			for i, b := range round.Blocks {
				if mask>>i&1 != 0 {
					written.t.write(b)
					touched[b.Switch] = true
				}
			}
			for still := range uint64(1) << len(turning) {
				x := state{written.t, slices.Clone(now.adaptive)}
				possible := true
				for i, sw := range turning {
					x.adaptive[sw] = still>>i&1 != 0
					possible = possible && (x.adaptive[sw] || touched[sw])
				}
				if !possible {
					continue
				}
				for _, h := range c.hosts {
					for at := range c.switches {
						fails, loops := c.fate(&x, at, h, nil)
						if loops {
							return fmt.Errorf("round %d, writes %b, choosing %b: packets from switch %d to LID %d loop", r, mask, still, at, h.lid)
						}
						if fails && live[[2]int{at, h.id}] {
							return fmt.Errorf("round %d, writes %b, choosing %b: packets from switch %d to LID %d are lost", r, mask, still, at, h.lid)
						}
					}
				}
				states, key = append(states, x), append(key, [3]uint64{uint64(r), mask, still})
			}
		}
		for _, b := range round.Blocks {
			now.t.write(b)
			now.adaptive[b.Switch] = false
		}
		if round.Drain > 0 || r == len(s.Rounds)-1 {
			if !oldCyclic && cyclic(c.waits(states, later)) {
				return fmt.Errorf("a credit loop by round %d", r)
			}
			states, key = nil, nil
		}
	}
	if fmt.Sprint(now) != fmt.Sprint(after) {
		return fmt.Errorf("ends with %v, want %v", now, after)
	}
	return nil
}

// waits is model.waits of states with choices.
func (c *chooser) waits(states []state, later func(i, j int) bool) map[wait]bool {
	found := map[wait]bool{}
	type place struct {
		at   channel
		time int
	}
	for _, h := range c.hosts {
		if h.isSwitch {
			continue
		}
		seen := map[place]bool{}
		var queue []place
		leave := func(from *channel, s, i int) {
			for j := range states {
				if i != j && (later == nil || i >= 0 && !later(i, j)) {
					continue
				}
				for _, port := range c.ports(&states[j], s, h.lid) {
					if to := c.next(s, port); to < 0 || to == none {
						continue
					}
					p := place{channel{s, int(port)}, j}
					if from != nil {
						found[wait{*from, p.at}] = true
					}
					if !seen[p] {
						seen[p] = true
						queue = append(queue, p)
					}
				}
			}
		}
		for _, from := range c.hosts {
			if from.id != h.id && !from.isSwitch {
				for i := range states {
					leave(nil, from.at, i)
				}
			}
		}
		for len(queue) > 0 {
			p := queue[0]
			queue = queue[1:]
			leave(&p.at, c.next(p.at.s, uint8(p.at.port)), p.time)
		}
	}
	return found
}

// excuses is an error unless the change, with all its writes in one round, is not safe.
func (c *chooser) excuses(in *Input, r *Refusal) error {
	before := c.begun(in)
	if r.Round < 0 || r.Cycle != nil && cyclic(c.waits([]state{before}, nil)) {
		return nil
	}
	s := &Schedule{Rounds: []certificate.Round{in.disable(), {}}}
	for p := range in.differing() {
		s.Rounds[1].Writes = append(s.Rounds[1].Writes, in.Write(p[0], p[1], blockOf(in.New.Row(p[0]), p[1])))
	}
	if c.check(in, s) == nil {
		return errors.New("all writes in one round are safe")
	}
	return nil
}
