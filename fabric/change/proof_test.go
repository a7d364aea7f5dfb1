package change_test

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sim"
	"fabsh/mad"
	madengine "fabsh/mad/engine"
)

// swept returns a simulated fabric with LIDs, as a sweep finds it, and its tables.
func swept(t testing.TB, spec string) *routes.Routes {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := madengine.New(conn, madengine.Options{})
	defer e.Close()
	if f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	live, failed, err := device.ReadRoutes(t.Context(), e, f)
	if err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	return live
}

func computed(t testing.TB, g *graph.Graph, name string, o engines.Options) *routes.Routes {
	t.Helper()
	r, err := engines.Compute(t.Context(), g, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// planOf is a plan from tables to others, with its certificate.
func planOf(t testing.TB, old, target *routes.Routes, tables change.Tables) *change.Plan {
	t.Helper()
	p := &change.Plan{From: "test", Base: change.FingerprintOf(old.Graph().Fabric(), nil)}
	for _, w := range writesOf(target, old) {
		s := certificate.Change{Attr: w.Attr, Modifier: w.Modifier, Node: w.Node, Name: old.Graph().Switches()[old.Graph().SwitchByGUID(w.Node)].Label(), Old: make([]byte, mad.LFTBlock), New: w.New}
		for i := range s.Old {
			s.Old[i] = old.Row(old.Graph().SwitchByGUID(w.Node)).Port(mad.LID(int(w.Modifier)*mad.LFTBlock + i))
		}
		p.Sets = append(p.Sets, s)
	}
	tables.Live = old
	if err := p.Certify(t.Context(), &tables); err != nil {
		t.Fatal(err)
	}
	return p
}

// reread is what a plan's file holds, after an edit.
func reread(t testing.TB, p *change.Plan, edit func(string) string) *change.Plan {
	t.Helper()
	text := fileOf(t, p)
	edited := edit(text)
	read, err := change.LoadPlan(strings.NewReader(edited), "x.plan")
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func same(text string) string { return text }

// TestCertify: what the planner finds safe has a certificate that holds, after it was
// written and read.
func TestCertify(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	random := rand.New(rand.NewPCG(5, 6))
	count := map[string]int{}
	for i := range 150 {
		n := 4 + random.IntN(5)
		live := swept(t, fmt.Sprintf("random:n=%d,degree=%d,hosts=%d,remove_links=%d,seed=%d", n, 3+n%2, 1+random.IntN(2), random.IntN(3), random.IntN(1<<20)))
		g := live.Graph()
		lost := g.ChannelPort(random.IntN(len(g.Channels())))
		cut, err := graph.New(g.Fabric(), graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
		if err != nil {
			t.Fatal(err)
		}
		old := computed(t, []*graph.Graph{g, cut}[random.IntN(2)], []string{"updn", "updn", "minhop"}[random.IntN(3)], engines.Options{Roots: []int{random.IntN(n)}}).On(g)
		target := computed(t, g, []string{"updn", "minhop", "nue", "dfsssp"}[random.IntN(4)], engines.Options{Roots: []int{random.IntN(n)}})
		if random.IntN(4) == 0 { // as of a switch that came back
			for lid := range old.Row(0) {
				old.WritableRow(0)[lid] = mad.NoPort
			}
		}
		p := planOf(t, old, target, change.Tables{AcceptCreditLoops: random.IntN(4) == 0})
		if !p.Report.OK {
			count["refused"]++
			if strings.Contains(p.Report.Reason, "certificate") {
				t.Errorf("change %d: %s", i, p.Report.Reason)
			}
			continue
		}
		if len(p.Sets) == 0 {
			continue
		}
		read := reread(t, p, same)
		if _, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old}); err != nil {
			t.Errorf("change %d: %v", i, err)
		}
		switch c := read.Certificate; {
		case c.AcceptCreditLoops:
			count["credit loop accepted"]++
			if p.Report.CreditLoop == "" || strings.Contains(p.Line(p.Report), "credit-loop-free") {
				t.Errorf("change %d: %s", i, p.Line(p.Report))
			}
		case len(c.Rounds) == 1:
			count["one round"]++
		case len(c.Orders) > 1:
			count["drains"]++
		default:
			count["rounds"]++
		}
	}
	t.Log(count)
	for _, kind := range []string{"refused", "credit loop accepted", "one round", "rounds", "drains"} {
		if count[kind] == 0 {
			t.Errorf("no case of %q: %v", kind, count)
		}
	}
}

// TestEditedPlans: a plan whose file was edited, or of another fabric, has no certificate
// that holds.
func TestEditedPlans(t *testing.T) {
	var old *routes.Routes
	var p *change.Plan
	for seed := range 500 {
		g := swept(t, fmt.Sprintf("random:n=6,degree=3,hosts=1,seed=%d", seed)).Graph()
		old = computed(t, g, "updn", engines.Options{Roots: []int{0}})
		p = planOf(t, old, computed(t, g, "updn", engines.Options{Roots: []int{2}}), change.Tables{})
		if p.Report.OK && len(p.Certificate.Rounds) > 1 {
			break
		}
	}
	if !p.Report.OK || len(p.Certificate.Rounds) == 1 {
		t.Fatal("no plan of several rounds")
	}
	g := old.Graph()
	c := p.Certificate
	numbers := func(packed []byte) (all []uint32) {
		for _, b := range inflated(t, packed) { // all are less than 128 here
			all = append(all, uint32(b))
		}
		return all
	}
	edited := func(packed []byte, edit func([]uint32) []uint32) []byte {
		return certificate.Pack(edit(numbers(packed)))
	}
	zero := func(all []uint32) []uint32 { all[slices.Index(all, slices.Max(all))] = 0; return all }
	tables := &change.Tables{Live: old}
	for _, test := range []struct {
		name string
		edit func(p *change.Plan, c *certificate.Certificate)
		want string
	}{
		{"an entry of a block", func(p *change.Plan, c *certificate.Certificate) {
			p.Sets[0].New = bytes.Clone(p.Sets[0].New)
			p.Sets[0].New[1] = 200 // no such port
		}, ""},
		{"the block before", func(p *change.Plan, c *certificate.Certificate) {
			p.Sets[0].Old = bytes.Clone(p.Sets[0].Old)
			p.Sets[0].Old[1] ^= 1
		}, "has changed since the plan was made"},
		{"swapped rounds", func(p *change.Plan, c *certificate.Certificate) {
			slices.Reverse(c.Rounds)
		}, ""},
		{"one round", func(p *change.Plan, c *certificate.Certificate) {
			all := certificate.Round{}
			for i := range p.Sets {
				all.Writes = append(all.Writes, certificate.Write{Change: i, Data: p.Sets[i].New})
			}
			c.Rounds = []certificate.Round{all}
		}, ""},
		{"a round less", func(p *change.Plan, c *certificate.Certificate) { c.Rounds = c.Rounds[1:] }, ""},
		{"no rounds", func(p *change.Plan, c *certificate.Certificate) {
			c.Rounds, c.Ranks, c.Orders = nil, certificate.Pack(nil), nil
		}, "differs from the plan"},
		{"a rank", func(p *change.Plan, c *certificate.Certificate) { c.Ranks = edited(c.Ranks, zero) }, "the rank does not decrease"},
		{"a LID less", func(p *change.Plan, c *certificate.Certificate) {
			c.Ranks = edited(c.Ranks, func(all []uint32) []uint32 { return all[len(g.Switches()):] })
		}, ""},
		{"the last LID", func(p *change.Plan, c *certificate.Certificate) {
			c.Ranks = edited(c.Ranks, func(all []uint32) []uint32 { return all[:len(all)-len(g.Switches())] })
		}, "too few ranks"},
		{"too many ranks", func(p *change.Plan, c *certificate.Certificate) {
			c.Ranks = edited(c.Ranks, func(all []uint32) []uint32 { return append(all, 1) })
		}, "too many ranks"},
		{"the order of channels", func(p *change.Plan, c *certificate.Certificate) { c.Orders[0] = edited(c.Orders[0], zero) }, "whose position is lower"},
		{"equal positions", func(p *change.Plan, c *certificate.Certificate) {
			c.Orders[0] = edited(c.Orders[0], func(all []uint32) []uint32 { clear(all); return all })
		}, "whose position is the same"},
		{"no order", func(p *change.Plan, c *certificate.Certificate) { c.Orders = nil }, "orders of channels"},
		{"a block twice in a round", func(p *change.Plan, c *certificate.Certificate) {
			c.Rounds[0].Writes = slices.Insert(slices.Clone(c.Rounds[0].Writes), 0, c.Rounds[0].Writes[0])
		}, "is written twice"},
		{"a change that is not there", func(p *change.Plan, c *certificate.Certificate) {
			c.Rounds[0].Writes = append(slices.Clone(c.Rounds[0].Writes), certificate.Write{Change: 1 << 19})
		}, "does not exist"},
		{"a short block", func(p *change.Plan, c *certificate.Certificate) {
			c.Rounds[0].Writes = slices.Clone(c.Rounds[0].Writes)
			c.Rounds[0].Writes[0].Data = []byte{1}
		}, "has 1 entries, want 64"},
		{"lanes", func(p *change.Plan, c *certificate.Certificate) { c.Lanes = 7 }, "7 lanes distinguished"},
		{"a short wait", func(p *change.Plan, c *certificate.Certificate) { c.Rounds[0].Drain = time.Millisecond }, "may still be in the switches (HOQLife)"},
		{"garbage", func(p *change.Plan, c *certificate.Certificate) { c.Ranks = []byte("garbage") }, "ranks: invalid"},
		{"no tables", func(p *change.Plan, c *certificate.Certificate) { p.Sets = nil }, "the plan changes no tables"},
	} {
		other, proof := *p, *c
		other.Sets, proof.Rounds, proof.Orders = slices.Clone(p.Sets), slices.Clone(c.Rounds), slices.Clone(c.Orders)
		other.Certificate = &proof
		test.edit(&other, &proof)
		_, err := other.CheckCertificate(t.Context(), tables)
		if failed := new(certificate.FailureError); !errors.As(err, &failed) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", test.name, err, test.want)
		}
	}
	if _, err := p.CheckCertificate(t.Context(), tables); err != nil {
		t.Errorf("unedited: %v", err)
	}
	p.Certificate = nil
	if _, err := p.CheckCertificate(t.Context(), tables); !errors.Is(err, change.ErrNoCertificate) {
		t.Errorf("without a certificate: %v", err)
	}
	p.Certificate = c
	for _, spec := range []string{"random:n=6,degree=3,hosts=1,seed=1000", "ring:n=6,hosts=1", "fattree:k=4"} {
		if _, err := p.CheckCertificate(t.Context(), &change.Tables{Live: swept(t, spec)}); err == nil {
			t.Errorf("it holds on %s", spec)
		}
	}
}

// TestCertifyLanes: where lanes matter, the certificate has a position for each, and is
// checked with the levels in use.
func TestCertifyLanes(t *testing.T) {
	g := swept(t, "dragonfly:p=1,a=4,h=1").Graph()
	old, target := computed(t, g, "nue", engines.Options{}), computed(t, g, "dragonfly", engines.Options{})
	but := routes.NewSL2VL(g) // all service levels but 1 on the lanes of 0
	for s, n := range g.Switches() {
		for in := range n.NumPorts() + 1 {
			for out := range n.NumPorts() + 1 {
				var all [mad.ServiceLevels]uint8
				for sl := range all {
					all[sl] = target.SL2VL.VL(s, uint8(in), uint8(out), 0)
				}
				all[1] = 0
				if err := but.Set(s, uint8(in), uint8(out), all); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	target.SL, target.SL2VL = nil, nil
	zero, one := &routes.SL{Dest: []uint8{}}, &routes.SL{Dest: slices.Repeat([]uint8{1}, int(g.Top())+1)}
	lanes := func(_ context.Context, r *routes.Routes) error { r.SL2VL = but; return nil }
	levels := func(levels *routes.SL) func(context.Context, *routes.Routes) (*routes.SL, string, error) {
		return func(context.Context, *routes.Routes) (*routes.SL, string, error) { return levels, "known", nil }
	}
	p := planOf(t, old, target, change.Tables{Lanes: lanes, Levels: levels(zero)})
	if !p.Report.OK || p.Certificate.Lanes != mad.DropVL {
		t.Fatalf("%s: want a certificate for lanes", p.Line(p.Report))
	}
	read := reread(t, p, same)
	if _, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old, Lanes: lanes, Levels: levels(zero)}); err != nil {
		t.Error(err)
	}
	for _, other := range []*routes.SL{one, nil} { // of SL 1 alone, or of any
		_, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old, Lanes: lanes, Levels: levels(other)})
		if failed := new(certificate.FailureError); !errors.As(err, &failed) {
			t.Errorf("with other service levels: %v", err)
		}
	}
	if _, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old}); err == nil {
		t.Error("it holds where lanes are unknown")
	}
}

// inflated are the bytes of numbers that were packed.
func inflated(t testing.TB, packed []byte) []byte {
	t.Helper()
	data, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// BenchmarkCertificate makes and checks the certificate of a change of most tables of
// 1,620 switches with 11,664 hosts, besides the order.
func BenchmarkCertificate(b *testing.B) {
	live := swept(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	target := computed(b, live.Graph(), "sssp", engines.Options{})
	p := planOf(b, live, target, change.Tables{})
	if !p.Report.OK {
		b.Fatal(p.Report.Reason)
	}
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Prove(b.Context(), &change.Tables{Live: live}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("certify", func(b *testing.B) {
		for b.Loop() {
			if err := p.Certify(b.Context(), &change.Tables{Live: live}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.CheckCertificate(b.Context(), &change.Tables{Live: live}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(p.Sets)), "blocks")
		b.ReportMetric(float64(len(p.Certificate.Ranks)+len(slices.Concat(p.Certificate.Orders...))), "bytes")
	})
}
