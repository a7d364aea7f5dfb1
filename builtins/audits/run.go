package audits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// RunOptions are the settings of a run of audits.
type RunOptions struct {
	Baseline *fabric.Fabric // may be nil
	Subnet   string         // a name for it; may be ""
	// Known is a fabric to use without a sweep: nodes are reached by their LIDs in it, if
	// they are still there. Nil: the fabric is swept.
	Known *fabric.Fabric
	Rails []Rail // of other ports of the host, that were audited before
	// AllPorts reports that the fabrics of all ports of the host are audited, each in a run.
	AllPorts bool
	// Begin receives the subnet once the sweep has found it, and returns the acks. An
	// error ends the run. Nil means no acks.
	Begin func(fabric.Subnet) (audit.Acks, error)
	// Counted keeps the counts, by pattern, of acks that had none. Nil: they are not kept, and
	// such an ack covers only what it names.
	Counted func(subnet fabric.Subnet, counts map[string]float64) error
	// Job names the state of perf_rates(over="last"). With ReadOnly, the run compares with
	// it without changing it.
	Job      string
	ReadOnly bool
	// Kept is the state of the job in memory, instead of in files; nil: in files.
	Kept *audit.State
	// Once reports findings without re-reading them, because the next run is soon.
	Once bool
	// NoPast ignores observations of ports in earlier runs of the job, and does not keep
	// them unless other state is kept.
	NoPast bool
	// Expected gets the number of datagrams that the audits will send after the sweep,
	// before they do. Nil: not counted.
	Expected func(n int)
}

// Run runs audits on the fabric of a file, or of a sweep. Findings on a live fabric are re-read
// before they are reported. Requests without an answer are in the report's coverage; they do
// not affect the exit status of the session. It returns an error if the run ends early.
func (set *Selection) Run(ctx context.Context, in *script.Interpreter, o RunOptions) (*audit.Report, error) {
	r, env := in.Runtime, topology.EnvOf(in.Runtime)
	report, clock := new(audit.Report), r.Clock
	if env.Engine != nil && env.Engine.Traits().Simulated && !script.PlaysScenario(r) {
		clock = &advancingClock{Clock: clock}
		env.SetSimClock(clock.Now)
		defer env.SetSimClock(func() time.Time { return r.Clock.Now() })
	}
	for _, a := range set.List {
		report.Audits = append(report.Audits, a.Name)
	}
	report.Coverage.Begin(append([]string{audit.Sweep}, report.Audits...)...)
	observed := topology.NewObserver()
	reported := set.newCollector()
	ctx = lang.WithRun(lang.WithRun(lang.WithClock(ctx, r, clock), r, observed), r, reported)
	x := &auditRun{RunOptions: o, ctx: ctx, runtime: r, clock: clock, env: env, report: report}
	x.judge = judge{ctx: ctx, runtime: r, clock: clock, observed: observed, reported: reported, report: report, requests: &observer{coverage: &report.Coverage, details: new(details)}, deep: set.Deep, past: !o.NoPast, baseline: o.Baseline, rails: o.Rails}
	defer r.Progress("")
	defer func() { x.job.release() }()
	return report, lang.Finish(ctx, "audit", func() error {
		before := datagramsSent(env)
		report.Began = clock.Now()
		defer func() { report.Ended, report.Datagrams = clock.Now(), datagramsSent(env)-before }()
		return x.run(in, set.List)
	})
}

// advancingClock is the clock of a run on a simulated fabric, where nothing changes while audits
// wait: Sleep advances the clock and returns at once. Otherwise time passes, unlike with a
// lang.VirtualClock, because audits measure response times.
type advancingClock struct {
	lang.Clock
	ahead atomic.Int64    // nanoseconds
	whole *advancingClock // of a part, the clock of the run, which is also the clock of the simulated subnet
}

func (c *advancingClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *advancingClock) Uptime() (boot string, up time.Duration) {
	if clock, ok := c.Clock.(lang.UptimeClock); ok {
		boot, up = clock.Uptime()
	}
	return boot, up + time.Duration(c.ahead.Load())
}

func (c *advancingClock) Sleep(ctx context.Context, d time.Duration) error {
	ahead := c.ahead.Add(int64(max(0, d)))
	for c = c.whole; c != nil; c = c.whole {
		for was := c.ahead.Load(); was < ahead && !c.ahead.CompareAndSwap(was, ahead); was = c.ahead.Load() {
		}
	}
	return context.Cause(ctx)
}

// datagramsSent returns how many datagrams have been sent.
func datagramsSent(env *topology.Env) uint64 {
	if env.Engine == nil {
		return 0
	}
	return env.Engine.Stats().Sent
}

// auditRun is a run of audits.
type auditRun struct {
	RunOptions
	ctx     context.Context
	runtime *lang.Runtime
	clock   lang.Clock
	env     *topology.Env
	judge   judge
	report  *audit.Report
	job     *jobRun // nil before the first audit
	acks    audit.Acks
	known   map[string]bool // IDs of findings of the baseline
	missed  []string        // what the latest sweep could not read, in words
}

// run executes all phases, from the sweep to the report.
func (x *auditRun) run(in *script.Interpreter, list []*Audit) error {
	manager := beginFindSM(x.ctx, x.env)
	f, err := x.readBoth(in, ofFabric(list))
	if err != nil {
		return err
	}
	before := manager()
	x.cover(f)
	if x.Begin != nil {
		if x.acks, err = x.Begin(x.report.Subnet); err != nil {
			return err
		}
	}
	if err := checkKept(x.env.State, x.report.Subnet); err != nil {
		x.report.Fail("state", fmt.Errorf("no acknowledgements, and no state of earlier runs: %w", err))
	}
	if isCut(f) {
		for _, a := range list {
			x.report.Fail(a.Name, audit.ErrCut)
		}
		x.report.Notes = x.missed
		return nil
	}
	all := list
	if list, err = x.expect(f, x.managed(f, list)); err != nil {
		return err
	}
	x.job = &jobRun{Job: Job{Subnet: x.report.Subnet, Name: x.Job, ReadOnly: x.ReadOnly, Kept: x.Kept}, dir: x.env.State}
	x.judge.reported.job = x.job
	found, err := x.judge.all(f, ofFabric(list), starlark.None)
	if err != nil {
		return err
	}
	found = managedFindings(f, list, found)
	changed := ""
	if x.env.Engine != nil {
		if !x.Once {
			if found, err = x.reread(ofFabric(list), found); err != nil {
				return err
			}
		}
		changed = compareSM(before, findSM(x.ctx, x.env), x.env.Engine.Traits().Simulated)
	}
	x.unjudged(f, all, found, &x.settled(found).Coverage)
	x.judge.requests.details.notes(x.report)
	if found, err = x.judgeRun(f, list, found, changed); err != nil {
		return err
	}
	found = audit.Merge(found)
	x.count(found)
	x.report.Rates, x.report.Metrics = x.job.rates, x.judge.reported.metrics.list
	x.keep(f, found)
	x.report.Notes = append(x.report.Notes, x.missed...)
	if note := x.env.Unswept(f.Fabric); note != "" && !x.AllPorts {
		x.report.Note("%s", note)
	}
	x.report.Settle(found, x.acks, x.known, x.clock.Now())
	return nil
}

// count sets the counts of acks that have none, if they can be kept.
func (x *auditRun) count(found []audit.Finding) {
	if x.Counted == nil {
		return
	}
	counts := x.acks.Uncounted(found, x.clock.Now())
	if len(counts) == 0 {
		return
	}
	if err := x.Counted(x.report.Subnet, counts); err != nil {
		x.runtime.WarnOnce("the counts of acknowledgements are not recorded: %v", err)
		return
	}
	x.acks.SetCounts(counts)
}

// expect counts the datagrams that the audits will send. It reports audits whose count fails as
// failed, and returns the others.
func (x *auditRun) expect(f *topology.Fabric, list []*Audit) (sound []*Audit, err error) {
	if x.Expected == nil || x.env.Engine == nil {
		return list, nil
	}
	counting := x.judge
	counting.ctx = lang.WithRun(x.ctx, x.runtime, &collector{metrics: new(measurements), job: x.judge.reported.job}) // the run drops its reports
	t, release := counting.thread("audit")
	defer release()
	total := 0
	for _, a := range list {
		n, err := a.expected(t, f, x.judge.deep)
		switch {
		case deadlineError(x.ctx) != nil:
			return list, nil // judge reports it
		case err == nil:
			a.count = n
			total += n
			sound = append(sound, a)
		case !lang.Catchable(lang.FiberOf(t), err):
			return nil, err
		default:
			x.report.Fail(a.Name, err)
		}
	}
	x.Expected(total)
	return sound, nil
}

// managed returns the audits that can judge f: without a subnet manager, audits that need LIDs or
// the subnet administrator fail.
func (x *auditRun) managed(f *topology.Fabric, list []*Audit) []*Audit {
	why := f.Unmanaged()
	if why == "" {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(a *Audit) bool {
		if a.manager {
			x.report.Fail(a.Name, fmt.Errorf("%s: %w", why, audit.ErrUnmanaged))
		}
		return a.manager
	})
}

// managedFindings returns the findings of checks that can be judged: without a subnet manager, not
// those of checks that need one, such as of each link that it has not activated.
func managedFindings(f *topology.Fabric, list []*Audit, found []audit.Finding) []audit.Finding {
	if f.Unmanaged() == "" {
		return found
	}
	return slices.DeleteFunc(found, func(x audit.Finding) bool {
		return slices.ContainsFunc(list, func(a *Audit) bool {
			return a.Name == x.Audit && slices.ContainsFunc(a.checks, func(c check) bool {
				return c.name == x.Check && slices.ContainsFunc(c.needs, func(n *audit.Need) bool { return n.Name == audit.Manager })
			})
		})
	})
}

// ofFabric returns the audits that judge the fabric; the others judge the run.
func ofFabric(list []*Audit) []*Audit {
	return slices.DeleteFunc(slices.Clone(list), (*Audit).ofRun)
}

// judgeRun adds the findings about the run itself. Without audits for that, changes during the
// run and counters that could not be compared are notes.
func (x *auditRun) judgeRun(f *topology.Fabric, list []*Audit, found []audit.Finding, changed string) ([]audit.Finding, error) {
	if text := ibdiagnetFindings(f.Fabric); text != "" {
		x.report.Note("%s", text)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(a *Audit) bool { return !a.ofRun() })
	if len(list) == 0 {
		if changed != "" {
			x.report.Note("%s", changed)
		}
		if why := x.job.uncompared(); why != "" && x.env.Host == nil { // else it is a check that was not done
			x.report.Note("counters were not judged: %s", why)
		}
		return found, nil
	}
	more, err := x.judge.all(f, list, wrapRun(x.job, x.settled(found), found, changed))
	return append(found, more...), err
}

// ibdiagnetFindings counts the errors and warnings of ibdiagnet that came with a file, by event; "":
// none.
func ibdiagnetFindings(f *fabric.Fabric) string {
	events, counts := map[string]int{}, map[string]int{}
	for _, s := range f.Sections() {
		kind, _, _ := strings.Cut(s.Name, "_")
		event := slices.Index(s.Columns, "EventName")
		if kind != "ERRORS" && kind != "WARNINGS" || event < 0 {
			continue
		}
		counts[kind] += len(s.Rows)
		for _, row := range s.Rows {
			events[row[event]]++
		}
	}
	if len(events) == 0 {
		return ""
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(events)) {
		if len(names) == maxEvents {
			names = append(names, "...")
			break
		}
		names = append(names, fmt.Sprintf("%s %d", fabric.Clip(name), events[name]))
	}
	return fmt.Sprintf("ibdiagnet itself reported %s and %s: %s; fabsh report ibdiagnet shows them",
		plural.Count(counts["ERRORS"], "error", "errors"), plural.Count(counts["WARNINGS"], "warning", "warnings"), strings.Join(names, ", "))
}

// maxEvents is how many events of ibdiagnet a note names.
const maxEvents = 20

// unjudged lists the checks that were not done: checks that scripts named, checks of audits that
// did not run, and checks that need information that the run did not have.
func (x *auditRun) unjudged(f *topology.Fabric, list []*Audit, found []audit.Finding, coverage *audit.Coverage) {
	r := x.report
	r.Unjudged = slices.Clone(x.judge.reported.skipped)
	named := map[[2]string]bool{}
	for _, u := range r.Unjudged {
		named[[2]string{u.Audit, u.Check}] = true
	}
	type lack struct {
		text string
		some bool // the run has a part of the need
	}
	lacks := map[*audit.Need]lack{}
	for _, a := range list {
		r.Checks += len(a.checks)
		failed := slices.IndexFunc(r.Failures, func(f audit.Failure) bool { return f.Audit == a.Name })
		some := slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Audit == a.Name })
		if len(a.checks) == 0 && failed < 0 {
			if lack := coverage.Unsupported(a.Name); lack != "" && !some {
				r.Unjudged = append(r.Unjudged, audit.Unjudged{Audit: a.Name, Check: a.Name, Needs: "answers", Lacked: lack})
			} else {
				r.Judged = append(r.Judged, a.Name)
			}
		}
		for _, c := range a.checks {
			if named[[2]string{a.Name, c.name}] {
				continue
			}
			if failed >= 0 {
				r.Unjudged = append(r.Unjudged, audit.Unjudged{Audit: a.Name, Check: c.name, Needs: "the audit", Lacked: r.Failures[failed].Why()})
				continue
			}
			judged := true
			for _, n := range c.needs {
				lacking, ok := lacks[n]
				if !ok {
					if lacking.text, lacking.some = n.Lack(f.Fabric, a.Name, coverage); n.Name == "counters" {
						lacking.text = x.job.uncompared()
					}
					lacks[n] = lacking
				}
				if lacking.text != "" {
					judged, some = false, some || lacking.some
					r.Unjudged = append(r.Unjudged, audit.Unjudged{Audit: a.Name, Check: c.name, Needs: n.Doc, Lacked: lacking.text, Answers: n.IsAttribute()})
				}
			}
			if judged {
				r.Judged = append(r.Judged, c.name)
			}
		}
		if failed < 0 {
			r.SetIdle(a.Name, len(a.checks), a.byName, some)
		}
	}
}

// settled returns the report that the run would have with these findings.
func (x *auditRun) settled(found []audit.Finding) *audit.Report {
	report := &audit.Report{Coverage: x.report.Coverage.Clone(), Failures: x.report.Failures}
	report.Settle(slices.Clone(found), x.acks, x.known, x.clock.Now())
	return report
}

// keep ends the run, and keeps its reads and findings for the next one.
func (x *auditRun) keep(f *topology.Fabric, found []audit.Finding) {
	gone, err := x.job.end(x.clock, f.Fabric, found, x.settled(found).Answered(), x.report.Unjudged)
	if err != nil {
		x.report.Fail("state", err)
	}
	warnUnstored(x.runtime, x.job.state)
	// Findings about a run are not changes of the fabric.
	gone = slices.DeleteFunc(gone, func(f audit.Finding) bool { return strings.HasPrefix(f.Check, "audit.") })
	if len(gone) == 0 {
		return
	}
	var names []string
	for _, f := range gone[:min(len(gone), 3)] {
		names = append(names, f.Check+" "+f.Subject.Name())
	}
	if len(gone) > 3 {
		names = append(names, "...")
	}
	x.report.Note("%s gone since the previous run: %s", plural.Count(len(gone), "finding is", "findings are"), strings.Join(names, ", "))
}

// Rail is a subnet that was audited from another port of the host.
type Rail struct {
	Port   string // of the host: "mlx5_0/1"
	Subnet fabric.Subnet
}

// judge runs the audits of a run.
type judge struct {
	ctx      context.Context
	runtime  *lang.Runtime
	clock    lang.Clock
	observed *topology.Observer // of the run; nil: requests are not counted
	reported *collector
	report   *audit.Report // gets the audits that fail
	requests *observer
	stopped  bool // an audit ended so that no other may run; see lang.Fiber.Exclusive

	// Arguments of audits.
	deep     bool
	past     bool
	baseline *fabric.Fabric
	rails    []Rail
}

// mostTogether is the largest number of audits that run at the same time: some wait for answers,
// while others compute. More would need more memory.
const mostTogether = 2

// thread returns a thread for code that belongs to no audit. Requests without an answer count for
// the report, not for the session.
func (j *judge) thread(name string) (t *starlark.Thread, release func()) {
	return lang.NewThread(&lang.Fiber{Runtime: j.runtime, Context: j.ctx, Sink: j.runtime, Account: new(lang.Account)}, name)
}

// all runs audits on f, in their order, and returns their findings. An audit that fails, is
// stopped at the deadline, or does not start because of that, is among the failures of the
// report; the others run. run is for audits that judge the run.
func (j *judge) all(f *topology.Fabric, list []*Audit, run starlark.Value) ([]audit.Finding, error) {
	own := starlark.StringDict{baselineOption: starlark.None, pastOption: starlark.None, deepOption: starlark.Bool(j.deep), railsOption: railValues(j.rails), runOption: run, trustedOption: starlark.True}
	if e := topology.EnvOf(j.runtime).Engine; e != nil { // who made a file may have had the SM_Key
		keys := e.Options().Keys
		own[trustedOption] = starlark.Bool(keys != nil && keys.SA != 0)
	}
	if topology.EnvOf(j.runtime).Engine != nil && j.past && slices.ContainsFunc(list, func(a *Audit) bool { return slices.Contains(a.own, pastOption) }) {
		own[pastOption] = j.pastOf(f)
	}
	if j.baseline != nil {
		own[baselineOption] = topology.NewFabric(j.baseline)
	}
	for _, v := range own { // audits share it
		v.Freeze()
	}
	if err := j.run(list, f, own); err != nil {
		return nil, err
	}
	return j.reported.takeFindings(), nil
}

// run runs audits: first the audits that may run together, at the same time, then the others one
// by one. Audits that send most begin first, so that none runs alone at the end. It returns an error
// if no other audit may run.
func (j *judge) run(list []*Audit, f *topology.Fabric, own starlark.StringDict) error {
	var together []*auditPart
	for _, a := range list {
		if a.together {
			together = append(together, j.part(a))
		}
	}
	order := slices.SortedStableFunc(slices.Values(together), func(p, q *auditPart) int { return cmp.Compare(q.audit.count, p.audit.count) })
	fibers := make([]*lang.Fiber, len(order))
	for i, p := range order {
		fibers[i] = p.fiber
	}
	lang.RunTogether(fibers, mostTogether, func(i int) { order[i].run(f, own) })
	for _, a := range list {
		var p *auditPart
		if a.together {
			p, together = together[0], together[1:]
		} else {
			p = j.part(a)
			p.fiber.Sink = j.runtime // no other part prints
			p.run(f, own)
		}
		if p.ended != nil {
			return p.ended
		}
		j.join(p)
		if p.err != nil {
			// The report omits audits of the standard set that need what the fabric does not have.
			skipped := !p.audit.byName && (errors.Is(p.err, topology.ErrNoFabric) || errors.Is(p.err, topology.ErrNotInFile))
			j.report.Failures = append(j.report.Failures, audit.Failure{Audit: p.audit.Name, Err: p.err, Skipped: skipped})
		}
	}
	return nil
}

// pastOf returns the observations of the ports of f in earlier runs.
func (j *judge) pastOf(f *topology.Fabric) starlark.Value {
	t, release := j.thread("audit")
	defer release()
	v, err := j.reported.job.past(t, f.Fabric)
	if err != nil {
		j.report.Note("observations of ports in earlier runs are unknown: %v", err)
	}
	return v
}

// deadlineError returns the error of a run that was stopped at its deadline, else nil.
func deadlineError(ctx context.Context) error {
	var late *lang.DeadlineError
	if !errors.As(context.Cause(ctx), &late) {
		return nil
	}
	return late
}

// ofRun reports whether the audit judges the run, after all others.
func (a *Audit) ofRun() bool { return slices.Contains(a.own, runOption) }

// railValues returns rails for audits: dicts of port, prefix, and sm, the GUID of the master.
func railValues(rails []Rail) *starlark.List {
	return lang.List(rails, func(r Rail) starlark.Value {
		return lang.DictOf("port", starlark.String(r.Port), "prefix", topology.GUIDValue(mad.GUID(r.Subnet.Prefix)), "sm", topology.GUIDValue(r.Subnet.SM))
	})
}

// auditPart is an audit within a run. It has its own findings, output and counts of requests,
// because others may run at the same time.
type auditPart struct {
	audit  *Audit
	judge  *judge
	fiber  *lang.Fiber
	output output
	found  *collector // what it reports

	err   error // why it did not run or finish
	ended error // why no other may run
}

// part returns a part of the run for an audit.
func (j *judge) part(a *Audit) *auditPart {
	p := &auditPart{audit: a, judge: j, found: j.reported.part(a.Name)}
	ctx := lang.WithRun(j.ctx, j.runtime, p.found)
	if j.observed != nil {
		observed := j.observed.Part()
		observed.Report = (&observer{coverage: j.requests.coverage, details: j.requests.details, audit: a.Name, state: observed}).observe
		ctx = lang.WithRun(ctx, j.runtime, observed)
	}
	clock := j.clock
	if whole, ok := clock.(*advancingClock); ok { // the sleeps of others are not its own
		clock = whole.part()
	}
	p.fiber = &lang.Fiber{Runtime: j.runtime, Context: lang.WithClock(ctx, j.runtime, clock), Sink: &p.output, Account: new(lang.Account)}
	return p
}

// run runs the audit.
func (p *auditPart) run(f *topology.Fabric, own starlark.StringDict) {
	j, a := p.judge, p.audit
	stopped := false
	p.fiber.Exclusive(func() {
		if stopped = j.stopped; !stopped && deadlineError(j.ctx) == nil {
			j.runtime.Progress("audit " + a.Name)
		}
	})
	if p.err = deadlineError(j.ctx); p.err != nil || stopped {
		return
	}
	t, release := lang.NewThread(p.fiber, a.script)
	defer release()
	err := lang.Protect(a.script, func() error {
		_, err := starlark.Call(t, a.Entry.Fn, starlark.Tuple{f}, a.arguments(own))
		return notExit(err)
	})
	switch late := deadlineError(j.ctx); {
	case err == nil:
	case late != nil: // it only computed; the findings of others remain
		p.err = late
	case !lang.Catchable(p.fiber, err):
		p.ended = err
		p.fiber.Exclusive(func() { j.stopped = true })
	default:
		p.err = err
	}
}

// join adds the findings and the output of the audit to the run.
func (j *judge) join(p *auditPart) {
	j.reported.join(p.found)
	for _, l := range p.output {
		j.runtime.Emit(l.stream, l.text)
	}
}

// output is the text that an audit has printed while others ran.
type output []struct {
	stream lang.Stream
	text   string
}

// Emit keeps text.
func (o *output) Emit(stream lang.Stream, text string) error {
	*o = append(*o, struct {
		stream lang.Stream
		text   string
	}{stream, text})
	return nil
}

// part returns a clock for one of several audits that run together.
func (c *advancingClock) part() *advancingClock {
	p := &advancingClock{Clock: c.Clock, whole: c}
	p.ahead.Store(c.ahead.Load())
	return p
}

// observer counts the requests of audits.
type observer struct {
	coverage *audit.Coverage
	audit    string // the audit that they belong to
	state    *topology.Observer
	details  *details
}

// details counts requests of detail() without an answer.
type details struct {
	rows  []detail
	index map[detail]int // by audit and attribute
}

// detail has the number of such requests of an audit for an attribute.
type detail struct {
	audit, attribute string
	n                int
}

// count counts a request.
func (d *details) count(audit, attribute string) {
	key := detail{audit, attribute, 0}
	i, ok := d.index[key]
	if !ok {
		if d.index == nil {
			d.index = map[detail]int{}
		}
		i = len(d.rows)
		d.index[key] = i
		d.rows = append(d.rows, key)
	}
	d.rows[i].n++
}

// forget drops the requests of an audit, because it runs again.
func (d *details) forget(audit string) {
	for i := range d.rows {
		if d.rows[i].audit == audit {
			d.rows[i].n = 0
		}
	}
}

// notes adds a note for each attribute, by audit.
func (d *details) notes(r *audit.Report) {
	rows := slices.Clone(d.rows)
	slices.SortStableFunc(rows, func(a, b detail) int {
		return slices.Index(r.Audits, a.audit) - slices.Index(r.Audits, b.audit)
	})
	for _, x := range rows {
		if x.n > 0 {
			r.Note("%s of %s: no answer to %s; only details of findings are missing", x.attribute, x.audit, plural.Count(x.n, "request", "requests"))
		}
	}
}

// observe counts a request of the audit that runs.
func (o *observer) observe(a *mad.Attribute, t *topology.Target, err error) {
	if errors.Is(err, topology.ErrNoFabric) || errors.Is(err, engine.ErrUnsupported) { // no request was sent
		return
	}
	outcome := outcomeOf(err)
	if o.state.Detail > 0 && (outcome == audit.TimedOut || outcome == audit.Failed) {
		o.details.count(o.audit, a.Name)
		return
	}
	s := audit.OfFabric()
	if t.Node != nil && (outcome == audit.TimedOut || outcome == audit.Failed) { // else the subject is not needed
		s = audit.OfNode(t.Node)
		if t.Port != topology.NoPortGiven {
			if p := t.Node.Port(t.Port); p != nil {
				s = audit.OfPort(p)
			}
		}
	}
	o.coverage.Count(o.audit, a.Name, s, outcome, 1)
}

// outcomeOf returns the outcome of a request.
func outcomeOf(err error) audit.Outcome {
	var me *engine.Error
	var unsupported *device.UnsupportedError
	var register *datagrams.RegisterError
	switch {
	case err == nil:
		return audit.Answered
	case errors.As(err, &unsupported), errors.Is(err, engine.ErrUnsupported), errors.As(err, &register) && register.Unsupported(), errors.Is(err, topology.ErrNotInFile), errors.Is(err, engine.ErrCut):
		return audit.Unsupported
	case engine.Unanswered(err):
		return audit.TimedOut
	case errors.As(err, &me) && me.Err == nil && (me.Status == mad.StatusBadMethodAttribute || me.Status == mad.StatusBadMethod):
		return audit.Unsupported
	}
	return audit.Failed
}
