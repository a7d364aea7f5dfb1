package builtins

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	remedyrun "fabsh/builtins/remedies"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/remedy"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// randomSpec is a small fabric, often with parts missing.
func randomSpec(r *rand.Rand) string {
	specs := []string{
		"fattree:k=4,levels=2", "fattree:k=4,levels=3,remove_links=8%", "fattree:k=8,levels=2,remove_links=15%", "pgft:m=4/4,w=1/2,p=1/3,remove_links=10%",
		"pgft:m=3/4/2,w=1/2/3,p=1/1/2", "ring:n=5,hosts=2", "mesh:dims=3/4,hosts=1", "torus:dims=3/3,hosts=2", "hyperx:dims=3/3,hosts=2,remove_links=10%",
		"dragonfly:a=4,p=2,h=1", "random:n=12,degree=3,hosts=2", "fattree:k=4,levels=2,rails=2",
	}
	return fmt.Sprintf("%s,seed=%d", specs[r.IntN(len(specs))], 1+r.IntN(1000))
}

// randomFindings are findings on random ports and links, as audits have them.
func randomFindings(r *rand.Rand, f *fabric.Fabric) (list []audit.Finding) {
	checks := []string{"ctr.ber", "ctr.fec.uncorrectable", "ctr.droprate", "ctr.rcv", "ctr.integrity", "ctr.downed", "link.flap", "env.temp", "link.width"}
	share := r.Float64()
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Num() == 0 || r.Float64() > share {
			continue
		}
		subject := audit.OfPort(p)
		if q := p.Peer(); q != nil && r.IntN(2) == 0 {
			subject = audit.OfLink(p, q)
		}
		list = append(list, audit.Finding{Audit: "counters", Check: checks[r.IntN(len(checks))], Subject: subject, Severity: audit.Severity(1 + r.IntN(4)), Message: "bad"})
	}
	return append(list, audit.Finding{Check: "ctr.ber", Subject: audit.OfGUID(mad.GUID(r.Uint64()), r.IntN(9), "gone\n\x1b"), Severity: audit.Error}, audit.Finding{Check: "rt.creditloop", Subject: audit.OfFabric(), Severity: audit.Critical})
}

// randomState is a past in which random links were bad, planned, or isolated.
func randomState(r *rand.Rand, f *fabric.Fabric, now time.Time) *remedy.State {
	s := new(remedy.State)
	for n := range r.IntN(8) {
		s.Add(&remedy.Entry{At: now.Add(time.Duration(n-8) * time.Hour), Kind: remedy.KindRun, Of: now.Add(time.Duration(n-8) * time.Hour)})
		for i := range f.Ports() {
			p := &f.Ports()[i]
			if p.Peer() == nil || p.Num() == 0 || r.IntN(3) > 0 {
				continue
			}
			e := remedy.Entry{At: now.Add(time.Duration(n-8) * time.Hour), Kind: remedy.KindDecision, Action: remedy.Isolate, Port: remedy.PlaceOf(p), Peer: remedy.PlaceOf(p.Peer()), Rule: "runs"}
			switch r.IntN(40) {
			case 0:
				e.Rule = ""
			case 1:
				e.Rule, e.Kind = "", remedy.KindApplied
			}
			s.Add(&e)
		}
	}
	for _, e := range s.Released(f, now) {
		s.Add(&e)
	}
	return s
}

// parts numbers the parts of f without the links that are down, by node.
func parts(f *fabric.Fabric, down map[*fabric.Port]bool) []int {
	part := make([]int, len(f.Nodes()))
	for i := range part {
		part[i] = i
	}
	find := func(i int) int {
		for part[i] != i {
			i = part[i]
		}
		return i
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil && !down[p] {
			a, b := find(p.Node().ID()), find(p.Peer().Node().ID())
			part[max(a, b)] = min(a, b)
		}
	}
	for i := range part {
		part[i] = find(i)
	}
	return part
}

// TestRemedyRandom: on random fabrics with random findings no plan splits the fabric, takes the
// last link of a host, makes the tables deadlock, or exceeds a budget. Some plans are applied
// beside the subnet manager, and the tables that it then makes are verified. 10,000 fabrics with
// FABSH_SOAK=1.
func TestRemedyRandom(t *testing.T) {
	fabrics, every := 200, 25
	switch {
	case os.Getenv("FABSH_SOAK") != "":
		fabrics = 10_000
	case testing.Short():
		fabrics = 15
	}
	planned, declined, applied, reverted := 0, map[string]int{}, 0, 0
	for i := range fabrics {
		r := rand.New(rand.NewPCG(uint64(i), 34))
		spec := randomSpec(r)
		var beside func(engine.Transport) engine.Transport
		if i%every == 0 { // changes respect its subnet manager
			beside = func(tr engine.Transport) engine.Transport { return foreign{tr} }
		}
		onSimWith(t, spec, nil, beside, func(o *SessionOptions) { o.OverrideSM = true }, func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
			if err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
			x := &randomCase{t: t, f: f, spec: fmt.Sprintf("fabric %d, %s", i, spec), swept: swept, state: randomState(r, swept, time.Now())}
			x.total, x.perDay, x.perSwitch = 1+r.IntN(12), 1+r.IntN(8), 1+r.IntN(4)
			x.uplinks = float64(r.IntN(5)) / 4
			x.decide(r)
			for _, d := range x.decisions {
				if d.Rule != "" {
					declined[d.Rule]++
				}
			}
			planned += len(x.down) / 2
			if len(x.down) > 0 && i%every == 0 {
				applied++
				if !x.apply() {
					reverted++
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d fabrics: %d links planned, %d plans applied, of which %d reverted, declined %v", fabrics, planned, applied, reverted, declined)
	for _, rule := range []string{"runs", "total", "per-day", "per-switch", "uplinks", "host", "manager", "split", "effect"} {
		if declined[rule] == 0 && fabrics >= 200 {
			t.Errorf("rule %s declined nothing", rule)
		}
	}
	if planned < fabrics/4 || applied == 0 && fabrics >= 200 {
		t.Errorf("%d links planned, %d plans applied", planned, applied)
	}
}

// randomCase is one fabric of TestRemedyRandom.
type randomCase struct {
	t                        *testing.T
	f                        *fixture
	spec                     string
	swept                    *fabric.Fabric
	state                    *remedy.State
	total, perDay, perSwitch int
	uplinks                  float64
	decisions                []remedy.Decision
	down                     map[*fabric.Port]bool
	loop                     bool // the tables had a credit loop before
}

// decide runs isolate, and checks its decisions.
func (x *randomCase) decide(r *rand.Rand) {
	t, ctx := x.t, x.t.Context()
	t.Helper()
	words := []string{"isolate", fmt.Sprintf("--runs=%d", 1+r.IntN(3)), "--per-tier=99", fmt.Sprintf("--total=%d", x.total), fmt.Sprintf("--per-day=%d", x.perDay), fmt.Sprintf("--per-switch=%d", x.perSwitch), fmt.Sprintf("--uplinks=%g", x.uplinks)}
	set, err := remedyrun.Load(ctx, x.f.Interpreter, words, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := set.Decide(ctx, x.f.Interpreter, &remedyrun.Input{Fabric: x.swept, Findings: randomFindings(r, x.swept), State: x.state, Of: time.Now()})
	if err != nil {
		t.Fatalf("%s: %v", x.spec, x.f.Explain(err))
	}
	x.decisions, x.down = o.Decisions, map[*fabric.Port]bool{}
	var ports []*fabric.Port
	fresh, used, at := 0, 0, map[mad.GUID]int{}
	pending := func(past *remedy.Past) bool { return past != nil && remedy.Pending(past.Planned, time.Now()) }
	day := 0
	for _, past := range x.state.Ports {
		if !past.Isolated.IsZero() || pending(past) {
			used++
		}
		if pending(past) || time.Since(past.Last) < 24*time.Hour {
			day++
		}
	}
	for _, d := range x.decisions {
		if d.Kind != remedy.Isolate || d.Rule != "" {
			continue
		}
		p := d.Port
		if x.down[p] {
			t.Fatalf("%s: %s twice", x.spec, d.Name)
		}
		x.down[p], x.down[p.Peer()] = true, true
		ports = append(ports, p)
		if !pending(x.state.Of(p)) {
			fresh++
			at[p.Node().GUID()]++
			at[p.Peer().Node().GUID()]++
		}
	}
	if len(ports) == 0 {
		return
	}
	if fresh > 0 && (used+fresh > x.total || day+fresh > x.perDay) {
		t.Errorf("%s: %d of %d planned, in a day %d of %d", x.spec, used+fresh, x.total, day+fresh, x.perDay)
	}
	for guid, n := range at {
		if nodes := x.swept.NodeByGUID(guid); nodes[0].IsSwitch() && n > x.perSwitch {
			t.Errorf("%s: %d links of %s; at most %d", x.spec, n, nodes[0].Label(), x.perSwitch)
		}
	}
	before, after, now := parts(x.swept, nil), parts(x.swept, x.down), map[int]int{}
	for i := range after {
		if part, known := now[before[i]]; known && part != after[i] && !x.replaced(i, after) {
			t.Errorf("%s: the plan splits the fabric at %s", x.spec, x.swept.Nodes()[i].Label())
			break
		} else if !known && !x.replaced(i, after) {
			now[before[i]] = after[i]
		}
	}
	live, err := audits.ReadRoutes(ctx, x.f.Runtime, x.swept, false)
	if err != nil {
		t.Fatal(err)
	}
	e, err := change.PredictEffect(ctx, live, ports, change.PredictOptions{Managed: true, PKeys: samePKeys})
	if err != nil || e.Refusal() != "" {
		t.Errorf("%s: effect: %v, %v", x.spec, e, err)
	}
	x.loop = e.LoopBefore
}

// replaced reports whether a node is an adapter that is alone in its part, and its host has another one
// that is not.
func (x *randomCase) replaced(i int, part []int) bool {
	nodes := x.swept.Nodes()
	host, _, _ := strings.Cut(nodes[i].Name(), " ")
	alone := func(i int) bool { return slices.Index(part, part[i]) == i && !slices.Contains(part[i+1:], part[i]) }
	if nodes[i].IsSwitch() || !alone(i) {
		return false
	}
	for j := range nodes {
		if name, _, _ := strings.Cut(nodes[j].Name(), " "); j != i && name == host && !nodes[j].IsSwitch() && !alone(j) {
			return true
		}
	}
	return false
}

// apply applies the plan beside the subnet manager, and verifies the tables that this makes. The
// prediction may be wrong; then change apply restores the link. It reports whether the change stays.
func (x *randomCase) apply() bool {
	t, ctx := x.t, x.t.Context()
	t.Helper()
	p, err := changes.OfSets(ctx, x.f.Runtime, remedy.Sets(x.decisions), "TestRemedyRandom") // not of a remedy: there is no log
	if err != nil || !p.Report.OK {
		t.Fatalf("%s: no plan: %v %+v", x.spec, err, p)
	}
	outcome, failed := changes.Make(ctx, x.f.Runtime, p, apply.ChangeOptions{})
	if outcome == apply.Unresolved {
		t.Fatalf("%s: not applied: %v, %v", x.spec, outcome, failed)
	}
	time.Sleep(time.Minute) // for the subnet manager
	now, err := topology.SweepQuietly(ctx, x.f.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := audits.ReadRoutes(ctx, x.f.Runtime, now, false)
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.Tables(ctx, tables, verify.Options{})
	if err != nil || v.Unreachable > 0 || !v.Acyclic && !x.loop {
		t.Errorf("%s: after the plan (%v, %v): %d unreachable, acyclic %t, %v", x.spec, outcome, failed, v.Unreachable, v.Acyclic, err)
	}
	return outcome == apply.Confirmed
}
