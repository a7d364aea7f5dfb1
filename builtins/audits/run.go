// Package run runs audits on a fabric and makes their report.
//
//	run.go      a run, phase by phase
//	load.go     which audits run; options.go: their options
//	fabric.go   the fabric that is audited: of a file, or of a sweep
//	judge.go    runs the audits: those that may, together; part.go: one of them
//	observe.go  counts their requests in the coverage of the report
//	reread.go   re-reads findings before they are reported
//	manager.go  activity of the subnet manager during the run
//	status.go   the exit status
//
// The report is in fabric/audit; the values of findings and metrics in scripts are in
// builtins/audits.

package audits

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/plural"
	"go.starlark.net/starlark"
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
		r.Clock = &hastyClock{Clock: clock}
		defer func() { r.Clock = clock }()
	}
	defer dropRun(r)
	return report, lang.Finish(ctx, "audit", func() error {
		before := sent(env)
		report.Began = r.Clock.Now()
		defer func() { report.Ended, report.Datagrams = r.Clock.Now(), sent(env)-before }()
		return x.run(in, set.List)
	})
}

// hastyClock is the clock of a run on a simulated fabric, where nothing changes while audits
// wait: Sleep advances the clock and returns at once. Otherwise time passes, unlike with a
// lang.VirtualClock, because audits measure response times.
type hastyClock struct {
	lang.Clock
	ahead atomic.Int64 // nanoseconds
	whole *hastyClock  // of a part, the clock of the run, which the simulated subnet has
}

func (c *hastyClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *hastyClock) Uptime() (boot string, up time.Duration) {
	if clock, ok := c.Clock.(lang.UptimeClock); ok {
		boot, up = clock.Uptime()
	}
	return boot, up + time.Duration(c.ahead.Load())
}

func (c *hastyClock) Sleep(ctx context.Context, d time.Duration) error {
	ahead := c.ahead.Add(int64(max(0, d)))
	for c = c.whole; c != nil; c = c.whole {
		for was := c.ahead.Load(); was < ahead && !c.ahead.CompareAndSwap(was, ahead); was = c.ahead.Load() {
		}
	}
	return context.Cause(ctx)
}

// sent returns how many datagrams have been sent.
func sent(env *topology.Env) uint64 {
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

// run runs all phases, from the sweep to the report.
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
		case late(x.ctx) != nil:
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

// unjudged lists the checks that were not done: those that scripts named, those of audits that
// did not run, and those that need what the run did not have.
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

// settled returns the report as it would be with these findings.
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
