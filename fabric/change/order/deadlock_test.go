package order

import (
	"errors"
	"math/rand/v2"
	"testing"

	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// lossless simulates packets under credits: the link out of a switch has room for one
// packet at its end, where the next switch decides by its table how it goes on. A
// packet moves only where there is room, and is never dropped but where its port leads
// nowhere. Hosts take what comes.
type lossless struct {
	m      *model
	now    tables
	random *rand.Rand
	ports  int
	at     []*packet // by switch and port: that on the link out of it
	full   []int     // links with a packet
	lids   []mad.LID // to which packets are sent
}

type packet struct {
	lid  mad.LID
	next int // the link it waits for; -1: it arrives, or is dropped
}

func newLossless(m *model, old tables, lids []mad.LID, random *rand.Rand) *lossless {
	l := &lossless{lids: lids, m: m, now: old.clone(), random: random, ports: len(m.to[0])}
	l.at = make([]*packet, len(m.to)*l.ports)
	return l
}

// route is the link by which a packet at switch s goes on.
func (l *lossless) route(s int, lid mad.LID) int {
	port := int(l.now[s][lid])
	if port >= len(l.m.to[s]) || l.m.to[s][port] == none || l.m.to[s][port] < 0 {
		return -1
	}
	return s*l.ports + port
}

// enter puts a packet on a link with room.
func (l *lossless) enter(link int, lid mad.LID) {
	l.at[link] = &packet{lid, l.route(l.m.to[link/l.ports][link%l.ports], lid)}
	l.full = append(l.full, link)
}

// step moves a random packet, or sends one.
func (l *lossless) step() {
	if k := l.random.IntN(len(l.full) + 4); k < len(l.full) {
		link := l.full[k]
		p := l.at[link]
		if p.next >= 0 && l.at[p.next] != nil {
			return
		}
		l.full[k] = l.full[len(l.full)-1]
		l.full = l.full[:len(l.full)-1]
		l.at[link] = nil
		if p.next >= 0 {
			l.enter(p.next, p.lid)
		}
		return
	}
	from, to := l.m.hosts[l.random.IntN(len(l.m.hosts))], l.lids[l.random.IntN(len(l.lids))]
	if from.isSwitch || from.lid == to {
		return
	}
	if link := l.route(from.at, to); link >= 0 && l.at[link] == nil {
		l.enter(link, to)
	}
}

// deadlocked says whether packets wait for each other in a circle.
func (l *lossless) deadlocked() bool {
	for _, link := range l.full {
		at := link
		for range l.full {
			p := l.at[at]
			if p.next < 0 || l.at[p.next] == nil {
				at = -1
				break
			}
			at = p.next
		}
		if at >= 0 {
			return true
		}
	}
	return false
}

// drain moves packets until no link has one that was on its way before, or there is a
// deadlock. Others are not sent meanwhile: these would take no part in it.
func (l *lossless) drain() {
	for len(l.full) > 0 && !l.deadlocked() {
		for range 20 {
			link := l.random.IntN(len(l.full) + 1)
			if link == len(l.full) {
				continue
			}
			k := l.full[link]
			if p := l.at[k]; p.next < 0 || l.at[p.next] == nil {
				l.full[link] = l.full[len(l.full)-1]
				l.full = l.full[:len(l.full)-1]
				l.at[k] = nil
				if p.next >= 0 {
					l.enter(p.next, p.lid)
				}
			}
			if len(l.full) == 0 {
				break
			}
		}
	}
}

// run writes the rounds of a schedule, each in a random order, under traffic, and says
// whether packets deadlock.
func (l *lossless) run(schedule []Blocks) bool {
	for _, round := range schedule {
		for _, i := range l.random.Perm(len(round.Blocks)) {
			l.now.write(round.Blocks[i])
			for range l.random.IntN(60) {
				l.step()
			}
			if l.deadlocked() {
				return true
			}
		}
		if round.Drain > 0 {
			l.drain()
		}
	}
	for range 200 {
		l.step()
	}
	return l.deadlocked()
}

// loopAtOnce are the LIDs of the credit loop of a change that is written at once; nil:
// there is none.
func loopAtOnce(t *testing.T, in *Input) (s *Schedule, lids []mad.LID) {
	s = &Schedule{Rounds: []certificate.Round{{}}}
	for _, sd := range in.New.Diff(in.Old).Switches {
		for _, b := range sd.Blocks {
			s.Rounds[0].Writes = append(s.Rounds[0].Writes, in.Write(sd.Switch, b, blockOf(in.New.Row(sd.Switch), b)))
		}
	}
	h, err := newHistory(newNet(in.Old.Graph()), in, s)
	if err != nil {
		t.Fatal(err)
	}
	workers, err := h.followAll(t.Context(), h.epochs[0])
	if err != nil {
		t.Fatal(err)
	}
	r := new(Refusal)
	if errors.As(h.judgeCredit(t.Context(), h.epochs[0], workers, &Figures{}), &r) {
		for _, ways := range h.loop.ways {
			for _, w := range ways {
				lids = append(lids, w.lid)
			}
		}
	}
	return s, lids
}

// TestDeadlock: where the proof refuses an order, packets really deadlock; with the
// plan they do not.
func TestDeadlock(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	const most = 6000 // runs of a case
	for _, size := range []struct {
		large        bool
		tries, cases int
	}{{false, 3000, 19}, {true, 400, 27}} {
		cases, found := 0, 0
		for i, c := range hardCases(t, size.large, size.tries) {
			random := rand.New(rand.NewPCG(4, uint64(i)))
			atOnce, lids := loopAtOnce(t, &c.in)
			if lids == nil {
				continue
			}
			if cases == size.cases {
				break
			}
			cases++
			s, err := Plan(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			m := newModel(c.in.Old.Graph(), c.dead)
			old := tablesOf(c.in.Old)
			if err := m.check(old, tablesOf(c.in.New), BlocksOf(c.in, s), random, 1<<12); err != nil {
				t.Errorf("case %d: %v", i, err)
			}
			runs := 0
			for ; runs < most && !deadlocks(m, old, lids, random, BlocksOf(c.in, atOnce)); runs++ {
			}
			if runs < most {
				found++
			}
			for range 200 + runs/2 {
				if deadlocks(m, old, lids, random, BlocksOf(c.in, s)) {
					t.Errorf("case %d: packets deadlock with the plan", i)
					break
				}
			}
		}
		// The proof is sufficient: not each cycle comes about.
		if cases < size.cases || found < cases*8/10 {
			t.Errorf("large %v: %d of %d cases deadlock when they are written at once", size.large, found, cases)
		}
	}
}

// deadlocks runs a schedule once.
func deadlocks(m *model, old tables, lids []mad.LID, random *rand.Rand, s []Blocks) bool {
	l := newLossless(m, old, lids, random)
	for range 100 {
		l.step()
	}
	return l.run(s)
}
