package tenant_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/sim"
	"fabsh/fabric/tenant"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// world is what is true of a subnet; some of it is hidden from the judgment.
type world struct {
	f       *fabric.Fabric
	r       *routes.Routes
	file    *tenant.File
	members *tenant.Members
	tables  map[*fabric.Port][]uint16
	virtual map[mad.GUID][]uint16
	checks  map[*fabric.Port]tenant.Directions
	groups  []tenant.Group
	hidden  map[*fabric.Port]bool
	veiled  map[mad.GUID]bool // virtual ports whose tables are unknown
	unknown bool              // groups and paths are hidden
	notes   []string
}

// swept is the simulated fabric of that name, as a sweep reads it.
func swept(t *testing.T, spec string) *fabric.Fabric {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(transport, engine.Options{})
	defer e.Close()
	if f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// newWorld returns an isolated subnet: each tenant is a full member of its partition, and a limited one of the default partition.
func newWorld(t *testing.T, f *fabric.Fabric, r *routes.Routes, x *rand.Rand) *world {
	t.Helper()
	w := &world{f: f, r: r, tables: map[*fabric.Port][]uint16{}, virtual: map[mad.GUID][]uint16{}, checks: map[*fabric.Port]tenant.Directions{}, hidden: map[*fabric.Port]bool{}, veiled: map[mad.GUID]bool{}}
	w.file = &tenant.File{Tenants: []tenant.Tenant{{Name: "red"}, {Name: "blue"}, {Name: "green"}}}
	for _, p := range f.EndPorts() {
		w.tables[p] = []uint16{0xffff}
		if p.Node().IsSwitch() {
			continue
		}
		n := x.IntN(4)
		if n == 3 {
			continue // of no tenant
		}
		w.tables[p] = []uint16{0x7fff, 0, uint16(0x8010 + n)}
		w.file.Tenants[n].GUIDs = append(w.file.Tenants[n].GUIDs, p.GUID())
		q := p.Peer()
		w.tables[q] = []uint16{0x7fff, uint16(0x8010 + n)}
		w.checks[q] = tenant.Directions{Inbound: x.IntN(4) > 0, Outbound: x.IntN(4) > 0}
	}
	var err error
	if w.members, err = w.file.On(f); err != nil {
		t.Fatal(err)
	}
	return w
}

// mutate changes the subnet in one way.
func (w *world) mutate(x *rand.Rand) {
	if len(w.members.List) == 0 {
		return
	}
	m := &w.members.List[x.IntN(len(w.members.List))]
	key := uint16(0x10 + x.IntN(3))
	if x.IntN(2) == 0 {
		key |= tenant.FullMember
	}
	table := func() []uint16 {
		if m.Virtual != 0 {
			return w.virtual[m.Virtual]
		}
		return w.tables[m.Port]
	}
	q := m.Port.Peer()
	note := func(format string, args ...any) { w.notes = append(w.notes, fmt.Sprintf(format, args...)) }
	switch what := max(x.IntN(12)-3, 0); what {
	case 0: // a key is added
		note("%s gets 0x%04x", m.String(), key)
		t := append(slices.Clone(table()), key)
		if m.Virtual != 0 {
			w.virtual[m.Virtual] = t
		} else {
			w.tables[m.Port] = t
		}
		if x.IntN(2) == 0 {
			w.tables[q] = append(slices.Clone(w.tables[q]), key)
		}
	case 1: // limited made full
		note("%s is a full member of all", m.String())
		for i := range table() {
			if table()[i] != 0 {
				table()[i] |= tenant.FullMember
			}
		}
	case 2: // enforcement
		d := tenant.Directions{Inbound: x.IntN(2) == 0, Outbound: x.IntN(2) == 0}
		note("%s checks %v", q.Name(), d)
		w.checks[q] = d
	case 3: // a virtual port of another tenant, whose table may be unknown
		g := mad.GUID(0x1000 + len(w.virtual))
		to := x.IntN(len(w.file.Tenants))
		w.virtual[g] = []uint16{0x7fff, uint16(0x8010 + to)}
		if x.IntN(3) == 0 {
			w.virtual[g] = append(w.virtual[g], key)
		}
		w.veiled[g] = x.IntN(2) == 0
		if x.IntN(2) == 0 {
			w.tables[q] = append(slices.Clone(w.tables[q]), w.virtual[g]...)
		}
		w.members.List = append(w.members.List, tenant.Member{Port: m.Port, Virtual: g, Tenant: to})
		slices.SortStableFunc(w.members.List, func(a, b tenant.Member) int { return a.Tenant - b.Tenant })
		note("virtual port %v of tenant %d at %s: %x, unknown %v", g, to, q.Name(), w.virtual[g], w.veiled[g])
	case 4: // a group is joined
		o := w.members.List[x.IntN(len(w.members.List))]
		w.groups = append(w.groups, tenant.Group{MGID: fmt.Sprintf("ff12::%d", len(w.groups)), Key: key, Members: []*fabric.Port{m.Port, o.Port}})
		note("%s and %s join a group of 0x%04x", m.Port.Name(), o.Port.Name(), key)
	case 5: // no path to it
		note("no path to %s", m.Port.Name())
		for s := range w.r.Graph().Switches() {
			w.r.EditRow(s)[m.Port.LID()] = mad.NoPort
		}
	case 6: // a table is not read
		p := m.Port
		if x.IntN(2) == 0 {
			p = q
		}
		note("%s was not read", p.Name())
		w.hidden[p] = true
	case 7: // paths or groups are unknown
		note("groups are unknown")
		w.unknown = true
	case 8: // the switch port has no keys
		note("%s has no keys", q.Name())
		w.tables[q] = []uint16{0x7fff}
	}
}

// facts are what the judgment knows.
func (w *world) facts() *tenant.Facts {
	f := &tenant.Facts{Tables: map[*fabric.Port][]uint16{}, Virtual: map[mad.GUID][]uint16{}, Checks: w.checks, Routes: w.r, Groups: append([]tenant.Group{}, w.groups...)}
	for p, t := range w.tables {
		if !w.hidden[p] {
			f.Tables[p] = t
		}
	}
	for g, t := range w.virtual {
		if !w.veiled[g] {
			f.Virtual[g] = t
		}
	}
	if w.unknown {
		f.Groups = nil
	}
	return f
}

// accepted enumerates the rules of the specification for packets of one member to another: each P_Key of the sender against each of
// the receiver (IBA 10.9.3), the switch ports at both ends, and the way through the forwarding tables hop by hop.
func (w *world) accepted(a, b *tenant.Member) bool {
	keys := func(m *tenant.Member) []uint16 {
		if m.Virtual != 0 {
			return w.virtual[m.Virtual]
		}
		return w.tables[m.Port]
	}
	for _, packet := range keys(a) {
		for _, entry := range keys(b) {
			if packet%0x8000 == 0 || packet%0x8000 != entry%0x8000 || packet < 0x8000 && entry < 0x8000 {
				continue
			}
			has := func(q *fabric.Port) bool {
				return slices.ContainsFunc(w.tables[q], func(k uint16) bool { return k%0x8000 == packet%0x8000 })
			}
			if w.checks[a.Port.Peer()].Inbound && !has(a.Port.Peer()) || w.checks[b.Port.Peer()].Outbound && !has(b.Port.Peer()) {
				continue
			}
			if w.arrives(a.Port, b.Port) {
				return true
			}
			for _, g := range w.groups {
				if g.Key%0x8000 == packet%0x8000 && slices.Contains(g.Members, b.Port) {
					return true
				}
			}
		}
	}
	return false
}

// arrives follows the tables, with the ports of the fabric only.
func (w *world) arrives(a, b *fabric.Port) bool {
	if a == b {
		return true
	}
	at := a.Peer()
	for range 64 {
		if at == b {
			return true
		}
		if !at.Node().IsSwitch() {
			return false
		}
		out := w.r.Row(w.r.Graph().SwitchOf(at.Node())).Port(b.LID())
		p := at.Node().Port(int(out))
		if out == mad.NoPort || p == nil || p.Peer() == nil {
			return false
		}
		at = p.Peer()
	}
	return false
}

// TestMutations: of random changes of isolated subnets, no pair that reaches is called isolated, none that is isolated reaches,
// and nothing is unknown where everything was read. FABSH_SOAK runs 1,000 of each network.
func TestMutations(t *testing.T) {
	n := 150
	if os.Getenv("FABSH_SOAK") != "" {
		n = 1000
	}
	compute := routingtest.Computing(engines.Compute)
	for _, net := range []string{"fattree:k=4,levels=2", "ring:n=5"} {
		f := swept(t, net)
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tables := compute(t, g, "minhop", engines.Options{})
		counts := map[string]int{}
		for seed := range n {
			x := rand.New(rand.NewPCG(uint64(seed), 55))
			w := newWorld(t, f, tables.Clone(), x)
			judged := func() {
				r, err := tenant.Judge(context.Background(), w.members, w.facts())
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Pairs) != 6 {
					t.Fatalf("%d pairs", len(r.Pairs))
				}
				for _, p := range r.Pairs {
					reaches := false
					for i := range w.members.List {
						for k := range w.members.List {
							a, b := &w.members.List[i], &w.members.List[k]
							reaches = reaches || a.Tenant == p.From && b.Tenant == p.To && w.accepted(a, b)
						}
					}
					blind := w.unknown || len(w.hidden) > 0 || slices.Contains(slices.Collect(maps.Values(w.veiled)), true) || len(w.members.Of(p.From)) == 0 || len(w.members.Of(p.To)) == 0
					counts[p.Verdict.String()]++
					switch {
					case p.Verdict == tenant.Isolated && reaches:
						t.Errorf("%s, seed %d: false isolation: %s\n%s", net, seed, p.Reason, strings.Join(w.notes, "\n"))
					case p.Verdict == tenant.Reaches && !reaches:
						t.Errorf("%s, seed %d: false alarm: %s\n%s", net, seed, p.Reason, strings.Join(w.notes, "\n"))
					case p.Verdict == tenant.Unknown && !blind:
						t.Errorf("%s, seed %d: unknown, though all is known: %s\n%s", net, seed, p.Reason, strings.Join(w.notes, "\n"))
					}
				}
			}
			judged()
			for range 1 + x.IntN(4) {
				w.mutate(x)
				judged()
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%s: %v", net, counts)
		for _, v := range []string{"isolated", "reaches", "unknown"} {
			if counts[v] == 0 {
				t.Errorf("%s: no pair %s", net, v)
			}
		}
	}
}
