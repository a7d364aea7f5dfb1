package order_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// sentRounds is a transport, and a log, that keep the blocks of forwarding tables that are
// sent, round by round.
type sentRounds struct {
	engine.Transport
	f   *fabric.Fabric
	of  func(n *fabric.Node) int
	s   *[]order.Blocks
	log *bytes.Buffer
}

func (t sentRounds) Send(d *engine.Datagram) error {
	if h := mad.ParseHeader(d.MAD[:]); h.Method == mad.MethodSet && h.Attribute == mad.AttrLinearForwardingTable.ID {
		b := order.Block{Switch: t.of(t.f.PortAt(mad.RouteOf(d.MAD[:])).Node()), Number: int(h.Modifier)}
		copy(b.Entries[:], d.MAD[h.Class.DataOffset():])
		r := &(*t.s)[len(*t.s)-1]
		r.Blocks = append(r.Blocks, b)
	}
	return t.Transport.Send(d)
}

func (sentRounds) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (sentRounds) BeforeWait(func() bool) bool            { return false }

// Write takes a line of the log: a round has ended.
func (t sentRounds) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(" read back")) {
		if bytes.Contains(line, []byte("waited")) {
			(*t.s)[len(*t.s)-1].Drain = time.Second
		}
		*t.s = append(*t.s, order.Blocks{})
	}
	return t.log.Write(line)
}

// virtual is the time of a bubble of synctest.
type virtual struct{}

func (virtual) Now() time.Time { return time.Now() }

func (virtual) Sleep(_ context.Context, d time.Duration) error {
	time.Sleep(d)
	return nil
}

// planMutations alter a plan. other is the certificate of another one.
var planMutations = []struct {
	name  string
	alter func(random *rand.Rand, p *change.Plan, other *certificate.Certificate)
}{
	{"unchanged", func(*rand.Rand, *change.Plan, *certificate.Certificate) {}},
	{"no certificate", func(_ *rand.Rand, p *change.Plan, _ *certificate.Certificate) { p.Certificate = nil }},
	{"one round", func(_ *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		var all certificate.Round
		for i, s := range p.Changes() {
			all.Writes = append(all.Writes, certificate.Write{Change: i, Data: s.New})
		}
		p.Certificate.Rounds = []certificate.Round{all}
	}},
	{"rounds reversed", func(_ *rand.Rand, p *change.Plan, _ *certificate.Certificate) { slices.Reverse(p.Certificate.Rounds) }},
	{"a write moved", func(random *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		rounds := p.Certificate.Rounds
		from, to := &rounds[random.IntN(len(rounds))], &rounds[random.IntN(len(rounds))]
		if len(from.Writes) > 0 {
			i := random.IntN(len(from.Writes))
			w := from.Writes[i]
			from.Writes = slices.Delete(from.Writes, i, i+1)
			to.Writes = append(to.Writes, w)
		}
	}},
	{"no waits", func(_ *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		for r := range p.Certificate.Rounds {
			p.Certificate.Rounds[r].Drain = 0
		}
	}},
	{"an entry of a round", func(random *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		if r := &p.Certificate.Rounds[random.IntN(len(p.Certificate.Rounds))]; len(r.Writes) > 0 {
			w := &r.Writes[random.IntN(len(r.Writes))]
			w.Data = bytes.Clone(w.Data)
			w.Data[1+random.IntN(20)] = uint8(1 + random.IntN(3))
		}
	}},
	{"an entry of the target", func(random *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		s := &p.Sets[random.IntN(len(p.Sets))]
		s.New = bytes.Clone(s.New)
		s.New[1+random.IntN(20)] = uint8(1 + random.IntN(3))
	}},
	{"the proof of another plan", func(_ *rand.Rand, p *change.Plan, other *certificate.Certificate) {
		p.Certificate.Ranks, p.Certificate.Orders = other.Ranks, other.Orders
	}},
	{"credit loops accepted, in one round", func(_ *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		p.Certificate.AcceptCreditLoops, p.Certificate.Orders = true, nil
		p.Certificate.Rounds = []certificate.Round{{Writes: slices.Concat(p.Certificate.Rounds[0].Writes)}}
	}},
	{"only the end is proven", func(_ *rand.Rand, p *change.Plan, _ *certificate.Certificate) {
		var all certificate.Round
		for i, s := range p.Changes() {
			all.Writes = append(all.Writes, certificate.Write{Change: i, Data: s.New})
		}
		p.Certificate = &certificate.Certificate{Lanes: 1, EndOnly: true, AcceptLost: true, Rounds: []certificate.Round{all}}
	}},
}

// TestSent: of plans for random networks, some of which were altered, the rounds that are sent
// are safe in all interleavings, by a checker that shares nothing with the planner; or
// nothing is sent.
func TestSent(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	plans := 800
	if testing.Short() {
		plans = 60
	}
	count, several := map[string][3]int{}, 0 // own rounds sent, a new order, refused
	var other *certificate.Certificate
	for i := range plans {
		m := planMutations[i%len(planMutations)]
		synctest.Test(t, func(t *testing.T) {
			n := 4 + random.IntN(4)
			f, o, err := sim.Parse(fmt.Sprintf("random:n=%d,degree=%d,hosts=%d,remove_links=%d,seed=%d", n, 3+n%2, 1+random.IntN(2), random.IntN(3), random.IntN(1<<20)))
			if err != nil {
				t.Fatal(err)
			}
			subnet := sim.New(f, o)
			conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				t.Fatal(err)
			}
			sent := sentRounds{Transport: conn, s: &[]order.Blocks{{}}, log: &bytes.Buffer{}}
			setup := engine.New(conn, engine.Options{})
			swept, err := discover.Sweep(t.Context(), setup, discover.Options{})
			if err != nil {
				t.Fatal(err)
			}
			live, failed, err := device.ReadRoutes(t.Context(), setup, swept)
			if err != nil || len(failed) > 0 {
				t.Fatal(err, failed)
			}
			g := live.Graph()
			names := []string{"updn", "updn", "minhop", "nue"}
			old, err := engines.Compute(t.Context(), g, names[random.IntN(3)], engines.Options{Roots: []int{random.IntN(n)}})
			if err != nil {
				t.Fatal(err)
			}
			target, err := engines.Compute(t.Context(), g, names[random.IntN(4)], engines.Options{Roots: []int{random.IntN(n)}})
			if err != nil {
				t.Fatal(err)
			}
			for s, sw := range g.Switches() {
				for lid := mad.LID(1); lid <= old.Top(); lid++ {
					if err := subnet.Edit.LFT(sw.GUID(), lid, old.Row(s).Port(lid)); err != nil {
						t.Fatal(err)
					}
				}
			}
			sm, err := (&sa.Client{Engine: setup}).FindSM(t.Context(), swept)
			if err != nil {
				t.Fatal(err)
			}
			setup.Close()
			p := plannedFor(t, old, target, swept, sm)
			if p.Certificate == nil || len(p.Sets) == 0 {
				return
			}
			if len(p.Certificate.Rounds) > 1 {
				several++
			}
			if other == nil {
				other = p.Certificate
			}
			proof := *p.Certificate
			proof.Rounds = slices.Clone(proof.Rounds)
			for r := range proof.Rounds {
				proof.Rounds[r].Writes = slices.Clone(proof.Rounds[r].Writes)
			}
			p.Certificate = &proof
			m.alter(random, p, other)
			wanted := old.Clone()
			for _, s := range p.Changes() {
				copy(wanted.WritableRow(g.SwitchByGUID(s.Node))[int(s.Modifier)*mad.LFTBlock:], s.New)
			}
			if conn, err = subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1); err != nil {
				t.Fatal(err)
			}
			sent.Transport, sent.f, sent.of = conn, swept, g.SwitchOf
			e := engine.New(sent, engine.Options{Write: true})
			defer e.Close()
			h := &apply.Host{Engine: e, SA: &sa.Client{Engine: e}, Clock: virtual{}, Log: sent}
			outcome, err := h.Make(t.Context(), swept, p, &apply.ChangeOptions{Plan: "x.plan"})
			rounds := (*sent.s)[:len(*sent.s)-1] // without that after the last line of the log
			c := count[m.name]
			switch refused := new(order.Refusal); {
			case outcome == apply.Confirmed && err == nil:
				if wrong := check(g, old, wanted, rounds); wrong != nil {
					t.Errorf("plan %d, %s: sent, and not safe: %v\n%s", i, m.name, wrong, sent.log)
				}
				if strings.Contains(sent.log.String(), "a new order of") {
					c[1]++
				} else {
					c[0]++
				}
			case outcome == apply.Nothing && err == nil:
			case errors.As(err, &refused) || strings.Contains(err.Error(), "no port"):
				if c[2]++; len(rounds) > 0 || len((*sent.s)[0].Blocks) > 0 {
					t.Errorf("plan %d, %s: refused, and something was sent: %v", i, m.name, err)
				}
			default:
				t.Errorf("plan %d, %s: %v, %v\n%s", i, m.name, outcome, err, sent.log)
			}
			count[m.name] = c
		})
	}
	t.Logf("of plans, %d of several rounds, the rounds of the plan were sent, a new order, or nothing: %v", several, count)
	if c := count["unchanged"]; c[0] == 0 || c[1]+c[2] > 0 || count["only the end is proven"][0] > 0 || count["no certificate"][0] > 0 || several == 0 {
		t.Errorf("%v", count)
	}
}

// plannedFor is a plan from tables to others, with its certificate if there is one.
func plannedFor(t *testing.T, old, target *routes.Routes, f *fabric.Fabric, sm *sa.SM) *change.Plan {
	t.Helper()
	var sets []certificate.Change
	for _, sd := range target.Diff(old).Switches {
		for _, b := range sd.Blocks {
			s := certificate.Change{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: old.Graph().Switches()[sd.Switch].GUID(), Old: make([]byte, mad.LFTBlock), New: make([]byte, mad.LFTBlock)}
			for i := range s.Old {
				lid := mad.LID(b*mad.LFTBlock + i)
				s.Old[i], s.New[i] = old.Row(sd.Switch).Port(lid), target.Row(sd.Switch).Port(lid)
			}
			sets = append(sets, s)
		}
	}
	p, err := change.NewPlan("a test", sets, f, sm)
	if err == nil {
		err = p.Certify(t.Context(), &change.Tables{Live: old})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}
