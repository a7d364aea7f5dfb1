package audits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	report := new(audit.Report)
	for _, a := range set.List {
		report.Audits = append(report.Audits, a.Name)
	}
	report.Coverage.Begin(append([]string{audit.Sweep}, report.Audits...)...)
	x := &auditRun{RunOptions: o, ctx: ctx, runtime: r, env: env, report: report}
	x.judge = judge{ctx: ctx, runtime: r, report: report, requests: &observer{coverage: &report.Coverage, details: new(details)}, deep: set.Deep, past: !o.NoPast, baseline: o.Baseline, rails: o.Rails}
	defer lang.StateOf[topology.Observer](r).Begin(x.judge.requests.observe)()
	defer r.Progress("")
	if clock := r.Clock; env.Engine != nil && env.Engine.Traits().Simulated {
		r.Clock = &advancingClock{Clock: clock}
		defer func() { r.Clock = clock }()
	}
	defer dropRun(r)
	return report, lang.Finish(ctx, "audit", func() error {
		before := datagramsSent(env)
		report.Began = r.Clock.Now()
		defer func() { report.Ended, report.Datagrams = r.Clock.Now(), datagramsSent(env)-before }()
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
	env     *topology.Env
	judge   judge
	report  *audit.Report
	acks    audit.Acks
	known   map[string]bool // IDs of findings of the baseline
	missed  []string        // what the latest sweep could not read, in words
}

// run executes all phases, from the sweep to the report.
func (x *auditRun) run(in *script.Interpreter, list []*Audit) error {
	manager := beginFindSM(x.ctx, x.env)
	f, err := x.readBoth(in, ofFabric(list))
	before := manager()
	if err != nil {
		return err
	}
	x.cover(f)
	if x.Begin != nil {
		if x.acks, err = x.Begin(x.report.Subnet); err != nil {
			return err
		}
	}
	if err := checkKept(x.runtime, x.report.Subnet); err != nil {
		x.report.Fail("state", fmt.Errorf("no acknowledgements, and no state of earlier runs: %w", err))
	}
	if isCut(f) {
		for _, a := range list {
			x.report.Fail(a.Name, audit.ErrCut)
		}
		x.report.Notes = x.missed
		return nil
	}
	if list, err = x.expect(f, list); err != nil {
		return err
	}
	beginRun(x.runtime, Job{Subnet: x.report.Subnet, Name: x.Job, ReadOnly: x.ReadOnly, Kept: x.Kept})
	found, err := x.judge.all(f, ofFabric(list), starlark.None)
	if err != nil {
		return err
	}
	changed := ""
	if x.env.Engine != nil {
		if !x.Once {
			if found, err = x.reread(ofFabric(list), found); err != nil {
				return err
			}
		}
		changed = compareSM(before, findSM(x.ctx, x.env), x.env.Engine.Traits().Simulated)
	}
	x.unjudged(f, list, &x.settled(found).Coverage)
	x.judge.requests.details.notes(x.report)
	if found, err = x.judgeRun(f, list, found, changed); err != nil {
		return err
	}
	found = audit.Merge(found)
	x.count(found)
	x.report.Rates, x.report.Metrics = runRates(x.runtime), takeMetrics(x.runtime)
	x.keep(f, found)
	x.report.Notes = append(x.report.Notes, x.missed...)
	x.report.Settle(found, x.acks, x.known, x.runtime.Clock.Now())
	return nil
}

// count sets the counts of acks that have none, if they can be kept.
func (x *auditRun) count(found []audit.Finding) {
	if x.Counted == nil {
		return
	}
	counts := x.acks.Uncounted(found, x.runtime.Clock.Now())
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
	t, release := x.judge.thread("audit")
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

// ofFabric returns the audits that judge the fabric; the others judge the run.
func ofFabric(list []*Audit) []*Audit {
	return slices.DeleteFunc(slices.Clone(list), (*Audit).ofRun)
}

// judgeRun adds the findings about the run itself. Without audits for that, changes during the
// run and counters that could not be compared are notes.
func (x *auditRun) judgeRun(f *topology.Fabric, list []*Audit, found []audit.Finding, changed string) ([]audit.Finding, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(a *Audit) bool { return !a.ofRun() })
	if len(list) == 0 {
		if changed != "" {
			x.report.Note("%s", changed)
		}
		if why := uncompared(x.runtime); why != "" && x.env.Host == nil { // else it is a check that was not done
			x.report.Note("counters were not judged: %s", why)
		}
		return found, nil
	}
	more, err := x.judge.all(f, list, wrapRun(x.runtime, x.settled(found), found, changed))
	return append(found, more...), err
}

// unjudged lists the checks that were not done: checks that scripts named, checks of audits that
// did not run, and checks that need information that the run did not have.
func (x *auditRun) unjudged(f *topology.Fabric, list []*Audit, coverage *audit.Coverage) {
	r := x.report
	r.Unjudged = takeUnjudged(x.runtime)
	named := map[[2]string]bool{}
	for _, u := range r.Unjudged {
		named[[2]string{u.Audit, u.Check}] = true
	}
	lacks := map[*audit.Need]string{}
	for _, a := range list {
		r.Checks += len(a.checks)
		failed := slices.IndexFunc(r.Failures, func(f audit.Failure) bool { return f.Audit == a.Name })
		if len(a.checks) == 0 && failed < 0 {
			r.Judged = append(r.Judged, a.Name)
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
				lack, ok := lacks[n]
				if !ok {
					if lack = n.Lack(f.Fabric, a.Name, coverage); n.Name == "counters" {
						lack = uncompared(x.runtime)
					}
					lacks[n] = lack
				}
				if lack != "" {
					judged = false
					r.Unjudged = append(r.Unjudged, audit.Unjudged{Audit: a.Name, Check: c.name, Needs: n.Doc, Lacked: lack, Answers: n.IsAttribute()})
				}
			}
			if judged {
				r.Judged = append(r.Judged, c.name)
			}
		}
	}
}

// settled returns the report that the run would have with these findings.
func (x *auditRun) settled(found []audit.Finding) *audit.Report {
	report := &audit.Report{Coverage: x.report.Coverage.Clone(), Failures: x.report.Failures}
	report.Settle(slices.Clone(found), x.acks, x.known, x.runtime.Clock.Now())
	return report
}

// keep ends the run, and keeps its reads and findings for the next one.
func (x *auditRun) keep(f *topology.Fabric, found []audit.Finding) {
	gone, err := endRun(x.runtime, f.Fabric, found, x.settled(found).Answered(), x.report.Unjudged)
	if err != nil {
		x.report.Fail("state", err)
	}
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
	own := starlark.StringDict{baselineOption: starlark.None, pastOption: starlark.None, deepOption: starlark.Bool(j.deep), railsOption: railValues(j.rails), runOption: run}
	if topology.EnvOf(j.runtime).Engine != nil && j.past && slices.ContainsFunc(list, func(a *Audit) bool { return slices.Contains(a.own, pastOption) }) {
		own[pastOption] = j.pastOf(f)
	}
	if j.baseline != nil {
		own[baselineOption] = topology.NewFabric(j.baseline)
	}
	for _, v := range own { // audits share it
		v.Freeze()
	}
	TakeFindings(j.runtime) // drops findings of the top levels of scripts
	if err := j.run(list, f, own); err != nil {
		return nil, err
	}
	return TakeFindings(j.runtime), nil
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
		p.join()
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
	v, err := pastRuns(t, f.Fabric)
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
	audit   *Audit
	judge   *judge
	fiber   *lang.Fiber
	output  output
	collect func() // adds its findings to the findings of the run

	err   error // why it did not run or finish
	ended error // why no other may run
}

// part returns a part of the run for an audit.
func (j *judge) part(a *Audit) *auditPart {
	p := &auditPart{audit: a, judge: j}
	whole := lang.StateOf[topology.Observer](j.runtime)
	observed := whole.Part()
	if whole.Report != nil {
		observed.Report = (&observer{coverage: j.requests.coverage, details: j.requests.details, audit: a.Name, state: observed}).observe
	}
	p.fiber = &lang.Fiber{Context: j.ctx, Sink: &p.output, Account: new(lang.Account)}
	clock := j.runtime.Clock
	if whole, ok := clock.(*advancingClock); ok { // the sleeps of others are not its own
		clock = whole.part()
	}
	p.fiber.Runtime, p.collect = partRuntime(j.runtime, clock, a.Name, observed)
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
func (p *auditPart) join() {
	p.collect()
	for _, l := range p.output {
		p.judge.runtime.Emit(l.stream, l.text)
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
	audit    string // the audit that they belong to; "" if requests do not count
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
	if o.audit == "" || errors.Is(err, topology.ErrNoFabric) || errors.Is(err, engine.ErrUnsupported) { // no request was sent
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
