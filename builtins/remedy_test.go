package builtins

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	remedyrun "fabsh/builtins/remedies"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/remedy"
	"fabsh/mad"
)

// operator runs audits and remedies on a simulated subnet in virtual time, and applies what
// they plan.
type operator struct {
	*bench
	dir   string       // of state
	kept  *audit.State // of the audits
	words []string     // remedies, and their options
	began time.Time
	log   *remedy.Log
}

// operate runs fn with an operator of a subnet.
func operate(t *testing.T, spec string, fn func(o *operator), words ...string) {
	t.Helper()
	dir := t.TempDir()
	onSim(t, spec, nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		o := &operator{bench: &bench{t: t, subnet: f.Env.Sim, fabric: swept, f: f}, dir: dir, kept: new(audit.State), words: words, began: time.Now()}
		o.audit()
		fn(o)
	})
}

// audit audits the counters since the previous run.
func (o *operator) audit() *audit.Report {
	return audited(o.t, o.f, audits.RunOptions{Kept: o.kept, Once: true}, "counters", "--over=last")
}

// run runs the remedies, and applies their plan. It checks that no host loses its last path.
func (o *operator) run() []remedy.Decision {
	t, ctx := o.t, o.t.Context()
	t.Helper()
	report := o.audit()
	path := remedy.LogFile(o.dir, report.Subnet)
	log, err := remedy.Open(path, o.dir, report.Model, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	set, err := remedyrun.Load(ctx, o.f.Interpreter, o.words, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := set.Decide(ctx, o.f.Interpreter, &remedyrun.Input{Fabric: report.Model, Findings: report.Findings, State: &log.State, Of: report.Ended, Judged: []string{"ctr.ber"}})
	if err != nil {
		t.Fatal(o.f.Explain(err))
	}
	if err := log.Keep(o.dir, report.Model, outcome.Decisions, outcome.Now, outcome.Of); err != nil {
		t.Fatal(err)
	}
	if len(remedy.Sets(outcome.Decisions)) > 0 {
		o.apply(set, path, outcome.Decisions)
	}
	if o.log, err = remedy.Current(path, o.dir); err != nil {
		t.Fatal(err)
	}
	if len(remedy.Sets(outcome.Decisions)) > 0 {
		o.connected()
	}
	return outcome.Decisions
}

// apply applies the plan of decisions, with a journal as change apply has it on a live fabric.
func (o *operator) apply(set *remedyrun.Selection, path string, decisions []remedy.Decision) {
	t, ctx := o.t, o.t.Context()
	t.Helper()
	p, err := changes.OfSets(ctx, o.f.Runtime, remedy.Sets(decisions), remedy.Origin+set.Names())
	if err != nil {
		t.Fatal(err)
	}
	if !p.Report.OK {
		t.Fatalf("the plan of %v is not ok: %s", decisions, p.Report.Reason)
	}
	if err := remedy.Record(o.dir); err != nil {
		t.Fatal(err)
	}
	var cells []*certificate.Change
	for i := range p.Sets {
		s := &p.Sets[i]
		c := *s
		c.LID = 1
		cells = append(cells, &c)
	}
	j, err := apply.NewJournal(apply.JournalIn(filepath.Dir(path)), &apply.Begin{Summary: p.From, Cells: cells}, o.f.Runtime.Clock)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	outcome, err := changes.Make(ctx, o.f.Runtime, p, apply.ChangeOptions{})
	if err != nil || outcome != apply.Confirmed {
		t.Fatalf("the plan is not applied: %v, %v", outcome, err)
	}
	if err := j.Append(apply.Record{Kind: apply.KindConfirmed}); err != nil {
		t.Fatal(err)
	}
}

// port returns the port in the fabric as it was at first.
func (o *operator) port(name string) *fabric.Port {
	o.t.Helper()
	node, num, _ := strings.Cut(name, "/")
	n := 0
	fmt.Sscan(num, &n)
	return o.fabric.NodeByName(node)[0].Port(n)
}

// now returns the fabric.
func (o *operator) now() *fabric.Fabric {
	o.t.Helper()
	f, err := topology.SweepQuietly(o.t.Context(), o.f.Runtime)
	if err != nil {
		o.t.Fatal(err)
	}
	return f
}

// connected checks that all hosts have a path to each other.
func (o *operator) connected() {
	o.t.Helper()
	f := o.now()
	down := map[*fabric.Port]bool{}
	for i := range o.fabric.Ports() {
		p := &o.fabric.Ports()[i]
		if p.Peer() == nil || p.Num() == 0 {
			continue
		}
		if q := remedy.PlaceOf(p).In(f); q == nil || q.Peer() == nil {
			down[p], down[p.Peer()] = true, true
		}
	}
	kept, err := change.KeepPorts(o.t.Context(), o.fabric, down, samePKeys, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	if text := change.CutOff(o.fabric, down, kept); text != "" {
		o.t.Fatalf("at %v: %s", o.hour(), text)
	}
}

// samePKeys has the default partition alone, which simulated ports have.
func samePKeys(_ context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
	tables := map[*fabric.Port][]uint16{}
	for _, p := range ports {
		tables[p] = []uint16{0xffff}
	}
	return tables, nil
}

func (o *operator) hour() time.Duration { return time.Since(o.began).Truncate(time.Hour) }

// fails counts events at both ends of the link of a port, unless it is down.
func (o *operator) fails(p *fabric.Port, counter string, n uint64) {
	o.t.Helper()
	if o.log != nil {
		if past := o.log.State.Of(p); past != nil && !past.Isolated.IsZero() {
			return
		}
	}
	o.count(p, counter, n)
	o.count(p.Peer(), counter, n)
}

// summary returns the log in short: hour, what, and why it was declined.
func (o *operator) summary() string {
	var b strings.Builder
	for _, e := range o.log.Entries {
		word := string(e.Kind)
		switch {
		case e.Kind == remedy.KindRun:
			continue
		case e.Kind == remedy.KindDecision && e.Rule != "":
			word = "declined " + e.Rule
		case e.Kind == remedy.KindDecision && e.Kept:
			word = "kept"
		case e.Kind == remedy.KindDecision:
			word = "planned"
		}
		fmt.Fprintf(&b, "%d h %s %s %s\n", int(e.At.Sub(o.began).Hours()), e.Action, e.Name, word)
	}
	return b.String()
}

// once checks that no link is isolated twice without being enabled between.
func (o *operator) once() {
	o.t.Helper()
	isolated := map[remedy.Place]bool{}
	for _, e := range o.log.Entries {
		switch {
		case e.Kind == remedy.KindApplied && e.Action == remedy.Isolate && isolated[e.Port]:
			o.t.Errorf("%s was isolated twice", e.Name)
		case e.Kind == remedy.KindApplied:
			isolated[e.Port] = e.Action == remedy.Isolate
		}
	}
}

// TestRemedyFlap: a link that goes down each hour for a week is isolated once it was bad in
// three runs, tested after a day, and isolated again as soon as two reads in its test show that it
// fails; then after two days.
func TestRemedyFlap(t *testing.T) {
	operate(t, "fattree:k=4", func(o *operator) {
		p := o.port("leaf-1/3")
		hours := 7 * 24
		if testing.Short() {
			hours = 80 // nothing happens later
		}
		for range hours {
			time.Sleep(time.Hour)
			o.fails(p, "LinkDownedCounter", 1)
			o.run()
		}
		if m := o.log.Metrics(o.now())[0]; m.Name != "fabsh_isolated_ports" || m.Value != 1 {
			t.Errorf("%s is %g", m.Name, m.Value)
		}
		const want = `1 h isolate leaf-1/3 - spine-1/1 declined runs
2 h isolate leaf-1/3 - spine-1/1 declined runs
3 h isolate leaf-1/3 - spine-1/1 planned
3 h ticket leaf-1/3 - spine-1/1 planned
3 h isolate leaf-1/3 - spine-1/1 applied
27 h restore leaf-1/3 planned
27 h restore leaf-1/3 - spine-1/1 applied
29 h isolate leaf-1/3 - spine-1/1 planned
29 h isolate leaf-1/3 - spine-1/1 applied
77 h restore leaf-1/3 planned
77 h restore leaf-1/3 - spine-1/1 applied
79 h isolate leaf-1/3 - spine-1/1 planned
79 h isolate leaf-1/3 - spine-1/1 applied
`
		if diff := cmp.Diff(want, o.summary()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		o.once()
	}, "isolate", "restore", "--uplinks=0.5")
}

// TestRemedyRepaired: a link is repaired, tested, and stays; when the fault returns, one run is
// enough, and it is tested again only after the next repair.
func TestRemedyRepaired(t *testing.T) {
	operate(t, "fattree:k=4", func(o *operator) {
		p := o.port("leaf-2/4")
		write(t, o.f.fs, "/work/repaired", p.Name()+" 2999-01-01T00:00:00Z\n") // not repaired yet
		for hour := 1; hour <= 80; hour++ {
			time.Sleep(time.Hour)
			if hour <= 10 || hour >= 40 && hour < 60 {
				o.fails(p, "SymbolErrorCounter", 1000)
			}
			switch hour {
			case 20:
				write(t, o.f.fs, "/work/repaired", "# by day\n"+p.Name()+" "+time.Now().Format(time.RFC3339)+"\n")
			case 60:
				write(t, o.f.fs, "/work/repaired", p.Peer().Name()+" "+time.Now().Format(time.RFC3339)+"\n")
			}
			o.run()
		}
		name := p.Name() + " - " + p.Peer().Name()
		want := strings.ReplaceAll(`1 h isolate LINK declined runs
2 h isolate LINK declined runs
3 h isolate LINK planned
3 h ticket LINK planned
3 h isolate LINK applied
20 h restore spine-2/2 planned
20 h restore LINK applied
23 h restore LINK kept
40 h isolate LINK planned
40 h ticket LINK planned
40 h isolate LINK applied
60 h restore spine-2/2 planned
60 h restore LINK applied
63 h restore LINK kept
`, "LINK", name)
		if diff := cmp.Diff(want, o.summary()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		o.once()
	}, "isolate", "restore", "--repaired=/work/repaired", "--after=0", "--uplinks=0.5")
}

// TestRemedyForeign: a port that another enables is no longer fabsh's, and one that another
// disables is never enabled, also if fabsh had isolated it before.
func TestRemedyForeign(t *testing.T) {
	operate(t, "fattree:k=4", func(o *operator) {
		do := func(code string) {
			o.t.Helper()
			if out, explained, exit := o.f.run(code); exit != 0 {
				o.t.Fatal(exit, out, explained, o.f.stderr.String())
			}
		}
		p, hours := o.port("leaf-1/3"), 80
		if testing.Short() {
			hours = 14
		}
		for hour := 1; hour <= hours; hour++ {
			time.Sleep(time.Hour)
			if hour <= 3 {
				o.fails(p, "SymbolErrorCounter", 1000)
			}
			switch hour {
			case 9:
				do(`port_enable([n for n in discover().switches if n.name == "leaf-1"][0].ports[3])`)
			case 12:
				for _, leaf := range []string{"leaf-1", "leaf-3"} {
					do(`port_disable([n for n in discover().switches if n.name == "` + leaf + `"][0].ports[3])`)
				}
			}
			o.run()
		}
		const want = `1 h isolate leaf-1/3 - spine-1/1 declined runs
2 h isolate leaf-1/3 - spine-1/1 declined runs
3 h isolate leaf-1/3 - spine-1/1 planned
3 h ticket leaf-1/3 - spine-1/1 planned
3 h isolate leaf-1/3 - spine-1/1 applied
9 h  leaf-1/3 - spine-1/1 released
`
		// That it went down at 3 h, as it was disabled, is not a fault.
		if diff := cmp.Diff(want, o.summary()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		f := o.now()
		for _, name := range []string{"leaf-1/3", "leaf-3/3"} {
			if q := remedy.PlaceOf(o.port(name)).In(f); q.PhysicalState() != mad.PortPhysicalStateDisabled {
				t.Errorf("%s is %v", name, q.PhysicalState())
			}
		}
		for i, want := range []float64{0, 2} { // two ports are disabled, and neither by a remedy
			if m := o.log.Metrics(f)[i]; m.Value != want {
				t.Errorf("%s is %g, want %g", m.Name, m.Value, want)
			}
		}
	}, "isolate", "restore", "--uplinks=0.5")
}

// TestRemedyDeclined: a link of a host that runs a job, and one outside of the maintenance
// windows, are declined by these rules, and then judged by the others.
func TestRemedyDeclined(t *testing.T) {
	operate(t, "fattree:k=4", func(o *operator) {
		write(t, o.f.fs, "/work/busy", "# running\nnode-[0003-0004]\n(null)\n")
		host := o.fabric.NodeByName("node-0003 HCA-1")[0].Port(1)
		for hour := 1; hour <= 28; hour++ { // from Saturday, 00:00, on
			time.Sleep(time.Hour)
			switch hour {
			case 2, 24, 26, 28:
				o.fails(host, "SymbolErrorCounter", 1000)
				o.fails(o.port("leaf-3/3"), "SymbolErrorCounter", 1000)
			}
			if hour == 25 {
				write(t, o.f.fs, "/work/busy", "")
			}
			if hour == 2 || hour == 24 || hour == 26 || hour == 28 {
				o.run()
			} else {
				o.audit()
			}
		}
		const want = `2 h isolate leaf-2/1 - node-0003 HCA-1/1 declined window
2 h isolate leaf-3/3 - spine-1/3 declined window
24 h isolate leaf-2/1 - node-0003 HCA-1/1 declined busy
24 h isolate leaf-3/3 - spine-1/3 planned
24 h ticket leaf-3/3 - spine-1/3 planned
24 h isolate leaf-3/3 - spine-1/3 applied
26 h isolate leaf-2/1 - node-0003 HCA-1/1 declined host
26 h ticket leaf-2/1 - node-0003 HCA-1/1 planned
28 h isolate leaf-2/1 - node-0003 HCA-1/1 declined host
`
		if diff := cmp.Diff(want, o.summary()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}, "isolate", "--runs=1", "--of=1", "--uplinks=0.5", "--busy=/work/busy", "--window=Sun 00:00-24:00")
}

// TestRemedyHosts: links that no rule permits to isolate, the only ones of hosts, do not use up
// the budget of others.
func TestRemedyHosts(t *testing.T) {
	operate(t, "fattree:k=4", func(o *operator) {
		for range 5 {
			time.Sleep(time.Hour)
			for _, name := range []string{"leaf-1/2", "leaf-2/1", "leaf-2/2", "leaf-3/1", "leaf-3/2", "leaf-4/3"} {
				o.fails(o.port(name), "SymbolErrorCounter", 1000)
			}
			o.run()
		}
		if past := o.log.State.Of(o.port("leaf-4/3")); past == nil || past.Isolated.IsZero() {
			t.Errorf("leaf-4/3 is not isolated\n%s", o.summary())
		}
	}, "isolate", "--runs=1", "--uplinks=0.5", "--per-day=2")
}

// TestRemedyRails: a bad link of a host that has an adapter at each of two leaves is isolated, once its host
// runs no job, and its last one is not; after a repair it is tested and stays.
func TestRemedyRails(t *testing.T) {
	operate(t, "fattree:k=4,rails=2", func(o *operator) {
		write(t, o.f.fs, "/work/busy", "node-0002\n")
		write(t, o.f.fs, "/work/repaired", "")
		first, second := o.port("node-0002 HCA-1/1").Peer(), o.port("node-0002 HCA-2/1").Peer()
		for hour := 1; hour <= 16; hour++ {
			time.Sleep(time.Hour)
			if hour < 5 {
				o.fails(first, "SymbolErrorCounter", 1000)
			}
			if hour > 3 && hour < 8 {
				o.fails(second, "SymbolErrorCounter", 1000)
			}
			switch hour {
			case 2:
				write(t, o.f.fs, "/work/busy", "node-0001\n")
			case 10:
				write(t, o.f.fs, "/work/repaired", first.Name()+" "+time.Now().Format(time.RFC3339)+"\n")
			}
			o.run()
		}
		const want = `1 h isolate leaf-1/2 - node-0002 HCA-1/1 declined busy
2 h isolate leaf-1/2 - node-0002 HCA-1/1 planned
2 h ticket leaf-1/2 - node-0002 HCA-1/1 planned
2 h isolate leaf-1/2 - node-0002 HCA-1/1 applied
4 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
4 h ticket leaf-2/2 - node-0002 HCA-2/1 planned
5 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
6 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
7 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
8 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
9 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
10 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
10 h restore leaf-1/2 planned
10 h restore leaf-1/2 - node-0002 HCA-1/1 applied
11 h isolate leaf-2/2 - node-0002 HCA-2/1 declined host
13 h restore leaf-1/2 - node-0002 HCA-1/1 kept
`
		if diff := cmp.Diff(want, o.summary()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		o.once()
	}, "isolate", "restore", "--runs=1", "--of=1", "--busy=/work/busy", "--repaired=/work/repaired", "--after=0")
}

// TestRemedyUplinks: the uplinks of a leaf fail one after the other, and the leaf keeps its
// share of them.
func TestRemedyUplinks(t *testing.T) {
	operate(t, "fattree:k=8", func(o *operator) {
		var up []*fabric.Port
		for p := range o.fabric.NodeByName("leaf-2")[0].Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				up = append(up, p)
			}
		}
		for hour := range 4 * len(up) {
			time.Sleep(time.Hour)
			for _, p := range up[:min(len(up), 1+hour/3)] {
				o.fails(p, "SymbolErrorCounter", 1000)
			}
			o.run()
		}
		applied, rules := 0, map[string]int{}
		for _, e := range o.log.Entries {
			if e.Kind == remedy.KindApplied {
				applied++
			}
			if e.Rule != "" {
				rules[e.Rule]++
			}
		}
		if applied != 2 || len(up) != 4 || rules["uplinks"] == 0 || rules["runs"] == 0 || len(rules) != 2 {
			t.Errorf("%d of %d uplinks were isolated, and declined %v; want 2 of 4, by runs and uplinks\n%s", applied, len(up), rules, o.summary())
		}
		o.once()
	}, "isolate", "--uplinks=0.5", "--per-switch=9", "--per-tier=9")
}

// TestRemedyBatch: forty cables of a batch are bad, and the budgets hold: so many a day, at a
// switch, and in all.
func TestRemedyBatch(t *testing.T) {
	operate(t, "fattree:k=8,levels=3", func(o *operator) {
		var batch []*fabric.Port
		switches := o.fabric.OfType(mad.NodeTypeSwitch)
		for i := range switches {
			for p := range switches[i].Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() && p.ID() < q.ID() && (p.ID()+q.ID())%5 < 2 && len(batch) < 40 {
					batch = append(batch, p)
				}
			}
		}
		if len(batch) != 40 {
			t.Fatalf("%d cables", len(batch))
		}
		perRun, want := map[time.Duration]int{}, map[time.Duration]int{18 * time.Hour: 3, 42 * time.Hour: 3, 66 * time.Hour: 3, 90 * time.Hour: 1}
		runs, by := 16, "per-switch per-tier runs total uplinks"
		if testing.Short() {
			runs, by, want = 7, "per-switch per-tier runs uplinks", map[time.Duration]int{18 * time.Hour: 3, 42 * time.Hour: 3}
		}
		for range runs {
			time.Sleep(6 * time.Hour)
			for _, p := range batch {
				o.count(p, "SymbolErrorCounter", 100_000)
			}
			for _, d := range o.run() {
				if d.Kind == remedy.Isolate && d.Rule == "" {
					perRun[o.hour()]++
				}
			}
			o.budgets(10, 5, 2)
		}
		if diff := cmp.Diff(want, perRun); diff != "" {
			t.Errorf("isolated by hour: -want +got\n%s", diff)
		}
		rules := map[string]bool{}
		for _, e := range o.log.Entries {
			if e.Rule != "" {
				rules[e.Rule] = true
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(rules)), " "); got != by {
			t.Errorf("declined by %s", got)
		}
		o.once()
	}, "isolate")
}

// budgets checks the log for the most links that are isolated, in a day, and at a switch.
func (o *operator) budgets(total, perDay, perSwitch int) {
	o.t.Helper()
	day, at := 0, map[mad.GUID]int{}
	for _, e := range o.log.Entries {
		if e.Kind == remedy.KindApplied && time.Since(e.At) < 24*time.Hour {
			day++
		}
	}
	isolated := o.log.State.Isolated(o.now())
	for _, past := range isolated {
		at[past.Port.GUID]++
		at[past.Peer.GUID]++
	}
	if len(isolated) > total || day > perDay || slices.Max(append(slices.Collect(maps.Values(at)), 0)) > perSwitch {
		o.t.Fatalf("at %v: %d links are isolated, %d in a day, at switches %v", o.hour(), len(isolated), day, at)
	}
}

// TestRemedyPast: what the shipped remedies decide by the past of links, and by files.
func TestRemedyPast(t *testing.T) {
	operate(t, "fattree:k=8", func(o *operator) {
		t := o.t
		p, q, host := o.port("leaf-1/5"), o.port("leaf-1/6"), o.port("leaf-2/1")
		ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
		past := func(x remedy.Past) *remedy.State {
			x.Port, x.Peer, x.Name = remedy.PlaceOf(p), remedy.PlaceOf(p.Peer()), "x"
			return &remedy.State{Runs: []time.Time{ago(3 * time.Hour), ago(2 * time.Hour), ago(time.Hour)}, Ports: []*remedy.Past{&x}}
		}
		bad := func(p, q *fabric.Port) []audit.Finding {
			return []audit.Finding{{Check: "ctr.ber", Subject: audit.OfLink(p, q), Severity: audit.Error, Message: "bad"}}
		}
		write(t, o.f.fs, "/work/busy", "NODE-0005.cluster.example\n")
		for _, test := range []struct {
			name, words string
			state       *remedy.State
			findings    []audit.Finding
			want        string
		}{
			{"planned, and fewer runs", "isolate", past(remedy.Past{Planned: ago(time.Hour)}), bad(p, p.Peer()), "isolate -"},
			{"planned, and few uplinks", "isolate --uplinks=0.8", past(remedy.Past{Planned: ago(time.Hour)}), bad(p, p.Peer()), "isolate uplinks, ticket -"},
			{"planned, and all budgets spent", "isolate --per-day=1", past(remedy.Past{Planned: ago(time.Hour)}), bad(p, p.Peer()), "isolate -"},
			{"planned before the clock was set back", "isolate --runs=1 --per-day=0", past(remedy.Past{Planned: ago(-time.Hour)}), bad(p, p.Peer()), "isolate per-day, ticket -"},
			{"isolated", "isolate --runs=1 --total=1", past(remedy.Past{Isolated: ago(72 * time.Hour), Last: ago(72 * time.Hour)}), bad(q, q.Peer()), "isolate total, ticket -"},
			{"to be enabled", "isolate --runs=1 --total=1", past(remedy.Past{Isolated: ago(72 * time.Hour), Last: ago(72 * time.Hour), Restoring: ago(time.Hour)}), bad(q, q.Peer()), "isolate total, ticket -"},
			{"in its test", "isolate --runs=1 --total=1", past(remedy.Past{Testing: ago(time.Hour), Last: ago(72 * time.Hour)}), bad(q, q.Peer()), "isolate -, ticket -"},
			{"the cable was moved", "isolate --runs=1", new(remedy.State), bad(p, o.port("spine-2/2")), ""},
			{"busy", "isolate --runs=1 --busy=/work/busy", new(remedy.State), bad(host, host.Peer()), "isolate busy"},
		} {
			set, err := remedyrun.Load(t.Context(), o.f.Interpreter, strings.Fields(test.words), nil)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := set.Decide(t.Context(), o.f.Interpreter, &remedyrun.Input{Fabric: o.fabric, Findings: test.findings, State: test.state, Of: time.Now()})
			if err != nil {
				t.Fatal(o.f.Explain(err))
			}
			var got []string
			for _, d := range outcome.Decisions {
				rule := d.Rule
				if rule == "" {
					rule = "-"
				}
				got = append(got, string(d.Kind)+" "+rule)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.name, diff)
			}
		}
	})
}

// TestRemedyRepair: a bad link gets one step of repair at a time, and the next after one was done:
// not within its test, unless the errors are newer than the step; an isolated link is tested after
// a step.
func TestRemedyRepair(t *testing.T) {
	operate(t, "fattree:k=4", func(o *operator) {
		p := o.port("leaf-2/4")
		path := ""
		proposed := func() string {
			var words []string
			for _, d := range o.run() {
				word := string(d.Step)
				if d.Step == "" {
					word = string(d.Kind)
				}
				if d.Rule != "" {
					word += " " + d.Rule
				}
				words = append(words, word)
			}
			path = remedy.LogFile(o.dir, fabric.SubnetOf(o.now(), ""))
			return strings.Join(words, ", ")
		}
		done := func(step remedy.Step) {
			if err := remedy.AddStep(path, o.now().NodeByName("leaf-2")[0].Port(4), step, "me", "", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range []struct {
			wait time.Duration
			step remedy.Step // done before
			bad  bool
			want string
		}{
			{time.Hour, "", false, ""},
			{time.Hour, "", true, "reset"},
			{time.Hour, "", true, "reset week"},
			{10 * time.Minute, remedy.StepReset, false, "ticket"},
			{10 * time.Minute, "", true, "reseat"},             // errors of the last 10 minutes
			{2 * time.Hour, remedy.StepReseat, true, "clean"},  // in the test
			{10 * time.Minute, remedy.StepClean, true, "swap"}, // the test of clean: errors at once
			{8 * 24 * time.Hour, "", true, "reset"},
		} {
			if x.step != "" {
				done(x.step)
				time.Sleep(time.Minute)
				o.run() // the next window begins after the step
			}
			time.Sleep(x.wait)
			if x.bad {
				o.fails(p, "SymbolErrorCounter", 1000)
			}
			if got := proposed(); got != x.want {
				t.Errorf("%d: proposed %q, want %q", i, got, x.want)
			}
		}
	}, "repair", "restore")
	operate(t, "fattree:k=4", func(o *operator) {
		p := o.port("leaf-2/4")
		for range 2 {
			time.Sleep(time.Hour)
			o.fails(p, "SymbolErrorCounter", 1000)
			o.run()
		}
		path := remedy.LogFile(o.dir, fabric.SubnetOf(o.now(), ""))
		if past := o.log.State.Of(p); past == nil || past.Isolated.IsZero() {
			t.Fatalf("not isolated\n%s", o.summary())
		}
		time.Sleep(time.Hour)
		if err := remedy.AddStep(path, o.now().NodeByName("leaf-2")[0].Port(4), remedy.StepReseat, "me", "", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		list := o.run()
		if len(list) != 1 || list[0].Kind != remedy.Restore || !strings.HasPrefix(list[0].Reason, "reseat was done 10 min ago; test of 126 min: no link down") {
			t.Errorf("got %v", list)
		}
	}, "isolate", "restore", "--runs=1", "--after=0", "--uplinks=0.5")
}
