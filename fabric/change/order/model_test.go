package order

import (
	"fmt"
	"math/rand/v2"

	"fabsh/fabric"
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
	// management adds the waits of packets of hosts to switches, and of their answers.
	management bool
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

// behind is the switch that a port leads to; false: it leads to none.
func (m *model) behind(s int, port uint8) (to int, ok bool) {
	if int(port) >= len(m.to[s]) || m.to[s][port] < 0 || m.to[s][port] == none {
		return 0, false
	}
	return m.to[s][port], true
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
func (m *model) check(old, new tables, schedule []Blocks, random *rand.Rand, limit int) error {
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
	var states []tables // of the epoch, each after the states that may come before it
	var sets []uint64   // the writes of each that are done; of its round
	var rounds []int
	for r, round := range schedule {
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
		if round.Drain > 0 || r == len(schedule)-1 {
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
	for _, h := range m.hosts {
		if h.isSwitch && !m.management {
			continue
		}
		// In which states packets to the host come where, going from state to state.
		follows := func(i, j int) bool { return i == j || later == nil || later(i, j) }
		reached := make([][]bool, len(m.switches))
		for u := range reached {
			reached[u] = make([]bool, len(states))
		}
		for _, from := range m.hosts {
			if from.id != h.id && (!from.isSwitch || !h.isSwitch && m.management) {
				for i := range states {
					reached[from.at][i] = true
				}
			}
		}
		for changed := true; changed; {
			changed = false
			for u := range reached {
				for i, t := range states {
					s, ok := m.behind(u, t[u][h.lid])
					if !ok || !reached[u][i] {
						continue
					}
					for j := range states {
						if follows(i, j) && !reached[s][j] {
							reached[s][j], changed = true, true
						}
					}
				}
			}
		}
		for u := range reached {
			for i, t := range states {
				s, ok := m.behind(u, t[u][h.lid])
				if !ok || !reached[u][i] {
					continue
				}
				for j, x := range states {
					if _, ok := m.behind(s, x[s][h.lid]); ok && follows(i, j) {
						found[wait{channel{u, int(t[u][h.lid])}, channel{s, int(x[s][h.lid])}}] = true
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
