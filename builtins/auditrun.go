package builtins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// AuditRun says what a run of audits is to do.
type AuditRun struct {
	Audits   *Audits
	Baseline *fabric.Fabric // nil: there is none
	Subnet   string         // the name that it is given; "": none
	// Known is a fabric that is not swept: nodes are asked by the LIDs that they have in
	// it, where they are still there. Nil: the fabric is swept.
	Known *fabric.Fabric
	Rails []Rail // of other ports of the host, that were audited before
	// Begin is told of the subnet as soon as it is known, and gives the acks. An
	// error ends the run. Nil: there are none.
	Begin func(fabric.Subnet) (audit.Acks, error)
	// Job names what perf_rates(over="last") keeps for the next run; LookOnly: it
	// compares with that, and leaves it as it is.
	Job      string
	LookOnly bool
	// Kept is what runs keep for the next one in memory, in place of the files of the
	// job. Nil: it is in files.
	Kept *audit.State
	// Once: what is found is told as it was read first, for it is soon read again.
	Once bool
	// NoPast: what runs of the job before have seen of ports is not judged, nor kept
	// where nothing else is.
	NoPast bool
	// Expected is told how many datagrams the audits will send beyond the sweep,
	// before they do. Nil: nobody wants to know.
	Expected func(n int)
}

// RunAudits runs audits on the fabric at hand: a file's, or what a sweep finds.
// What they find on a live fabric is read a second time before it is reported.
// Requests that get no answer are in the report's coverage; they do not count
// for the exit status of the session. The error is for what ends the run.
func (s *Session) RunAudits(ctx context.Context, o AuditRun) (*audit.Report, error) {
	r := &auditRun{Session: s, AuditRun: o, ctx: ctx, report: &audit.Report{}}
	for _, a := range o.Audits.List {
		r.report.Audits = append(r.report.Audits, a.Name)
	}
	r.report.Coverage.Begin(append([]string{sweepName}, r.report.Audits...)...)
	defer lang.StateOf[topology.Observer](s.Runtime).Begin(r.observe)()
	defer s.Runtime.Progress("")
	if clock := s.Clock; r.live() && r.env.Engine.Traits().Simulated {
		s.Clock = &hastyClock{Clock: clock}
		defer func() { s.Clock = clock }()
	}
	defer audits.DropRun(s.Runtime)
	err := finish(ctx, "audit", r.run)
	return r.report, err
}

// auditRun is a run under way.
type auditRun struct {
	*Session
	AuditRun
	ctx     context.Context
	report  *audit.Report
	acks    audit.Acks
	known   map[string]bool // IDs that the baseline has
	missed  []string        // what the latest sweep missed, in words
	current string          // the audit that runs; "": what it asks does not count
}

// live: there is a fabric to ask.
func (r *auditRun) live() bool { return r.env.Engine != nil }

func (r *auditRun) run() error {
	before := r.sent()
	r.report.Began = r.Clock.Now()
	defer func() { r.report.Ended = r.Clock.Now() }()
	sm := r.findSM()
	f, err := r.fabricAndBaseline()
	if err != nil {
		return err
	}
	r.cover(f)
	r.describe(f)
	if r.Begin != nil {
		if r.acks, err = r.Begin(r.report.Subnet); err != nil {
			return err
		}
	}
	if r.cut(f) {
		r.report.Notes = r.missed
		r.report.Datagrams = r.sent() - before
		return nil
	}
	if err := r.expect(f); err != nil {
		return err
	}
	audits.BeginRun(r.Runtime, audits.Job{Subnet: r.report.Subnet, Name: r.Job, LookOnly: r.LookOnly, Kept: r.Kept})
	found, err := r.runAll(f, r.fabrics(), starlark.None)
	if err != nil {
		return err
	}
	changed := ""
	if r.live() {
		if !r.Once {
			if found, err = r.again(found); err != nil {
				return err
			}
		}
		changed = r.compareSM(sm)
	}
	if found, err = r.ofRun(f, found, changed); err != nil {
		return err
	}
	r.report.Rates, r.report.Metrics = audits.RunRates(r.Runtime), audits.TakeMetrics(r.Runtime)
	r.keep(f, found)
	r.report.Notes = append(r.report.Notes, r.missed...)
	r.report.Settle(found, r.acks, func(id string) bool { return r.known[id] }, r.Clock.Now())
	r.report.Datagrams = r.sent() - before
	return nil
}

// thread is one to run f's code on: what gets no answer is the report's, not the
// session's.
func (r *auditRun) thread(name string) (t *starlark.Thread, release func()) {
	return lang.NewThread(&lang.Fiber{Runtime: r.Runtime, Context: r.ctx, Sink: r.Runtime, Account: new(lang.Account)}, name)
}

// fabricAndBaseline is fabric, and runBaseline meanwhile: a sweep waits for answers.
func (r *auditRun) fabricAndBaseline() (f *topology.Fabric, err error) {
	if r.Baseline == nil {
		return r.fabric()
	}
	baseline, end := r.beside(r.Baseline)
	defer end()
	var sweep sync.WaitGroup
	var unswept error
	sweep.Go(func() {
		unswept = lang.Protect("audit", func() (err error) {
			f, err = r.fabric()
			return err
		})
	})
	defer sweep.Wait() // also where runBaseline panics
	err = r.runBaseline(baseline)
	sweep.Wait()
	return f, cmp.Or(unswept, err)
}

// fabric is that of the file, or what a sweep finds. Its problems are told by the
// report, not by warnings.
func (r *auditRun) fabric() (*topology.Fabric, error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: r.Runtime, Context: lang.AnySteps(r.ctx), Sink: lang.Discard{}, Account: new(lang.Account)}, "audit")
	defer release()
	switch {
	case !r.live():
		return topology.CurrentFabric(t)
	case r.Known == nil:
		return r.sweep(t)
	}
	f, moved, err := topology.Known(t, r.Known)
	if err != nil {
		return nil, err
	}
	if moved == "" {
		if len(r.report.Notes) == 0 {
			r.note("the fabric was not swept: what is new, or gone, is not known, and states are those of the file")
		}
		return f, nil
	}
	r.note("the fabric is swept: %s", moved)
	r.Known = nil
	return r.sweep(t)
}

func (r *auditRun) sweep(t *starlark.Thread) (*topology.Fabric, error) {
	f, err := topology.Sweep(t)
	if err == nil {
		lang.StateOf[topology.Observer](r.Runtime).Swept = f.Fabric
	}
	return f, err
}

// ErrCut is why audits do not run on a part of a fabric: nobody could tell what is
// not there from what was not asked.
var ErrCut = errors.New("the sweep was cut short, and a part of a fabric is not judged")

// cut: the sweep was ended before it was done. Then no audit runs.
func (r *auditRun) cut(f *topology.Fabric) bool {
	if !isCut(f) {
		return false
	}
	for _, a := range r.Audits.List {
		r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: ErrCut})
	}
	return true
}

func isCut(f *topology.Fabric) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemCut })
}

// describe says in the report what is audited.
func (r *auditRun) describe(f *topology.Fabric) {
	r.report.Fabric, r.report.Model = f.String(), f.Fabric
	r.report.Subnet = fabric.SubnetOf(f.Fabric, r.Subnet)
	if p := f.From(); p != nil && r.live() {
		r.report.Port = p.Name()
	}
}

// expect tells how many datagrams the audits will send. An audit that cannot say it is
// broken, and does not run.
func (r *auditRun) expect(f *topology.Fabric) error {
	if r.Expected == nil || !r.live() {
		return nil
	}
	t, release := r.thread("audit")
	defer release()
	total := 0
	var sound []*Audit
	for _, a := range r.Audits.List {
		n, err := a.expected(t, f, r.Audits.Deep)
		switch {
		case r.late() != nil:
			return nil // runAll tells it
		case err == nil:
			total += n
			sound = append(sound, a)
		case !lang.Catchable(lang.FiberOf(t), err):
			return err
		default:
			r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: err})
		}
	}
	if len(sound) < len(r.Audits.List) {
		all := *r.Audits
		all.List = sound
		r.Audits = &all
	}
	r.Expected(total)
	return nil
}

// runAll runs audits one after the other. One that fails is among the failures
// of the report, and the others run; one that was stopped at the deadline is too, and so
// are those behind it.
func (r *auditRun) runAll(f *topology.Fabric, list []*Audit, run starlark.Value) ([]audit.Finding, error) {
	own := starlark.StringDict{baselineOption: starlark.None, pastOption: starlark.None, deepOption: starlark.Bool(r.Audits.Deep), railsOption: railValues(r.Rails), runOption: run}
	if r.live() {
		own[pastOption] = r.past(f, list)
	}
	if r.Baseline != nil {
		own[baselineOption] = topology.NewFabric(r.Baseline)
	}
	audits.Take(r.Runtime) // what the top levels of scripts found
	for _, a := range list {
		if late := r.late(); late != nil {
			r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: late})
		} else if err := r.runOne(a, f, own); err != nil {
			return nil, err
		}
	}
	return audits.Take(r.Runtime), nil
}

// past is what runs before have seen, for those of the audits that ask for it.
func (r *auditRun) past(f *topology.Fabric, list []*Audit) starlark.Value {
	if r.NoPast || !slices.ContainsFunc(list, func(a *Audit) bool { return slices.Contains(a.own, pastOption) }) {
		return starlark.None
	}
	t, release := r.thread("audit")
	defer release()
	v, err := audits.Past(t, f.Fabric)
	if err != nil {
		r.note("what runs before have seen of ports is not known: %v", err)
	}
	return v
}

func (r *auditRun) runOne(a *Audit, f *topology.Fabric, own starlark.StringDict) error {
	r.Runtime.Progress("audit " + a.Name)
	t, release := r.thread(a.script)
	defer release()
	audits.Begin(r.Runtime, a.Name)
	r.current = a.Name
	err := lang.Protect(a.script, func() error {
		_, err := starlark.Call(t, a.fn, starlark.Tuple{f}, a.arguments(own))
		return notExit(err)
	})
	r.current = ""
	audits.Begin(r.Runtime, "")
	switch late := r.late(); {
	case err == nil:
	case late != nil: // it just computed; what others found stands
		r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: late})
	case !lang.Catchable(lang.FiberOf(t), err):
		return err
	default:
		skipped := !a.byName && (errors.Is(err, topology.ErrNoFabric) || errors.Is(err, topology.ErrNotInFile))
		r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: err, Skipped: skipped})
	}
	return nil
}

// notExit is err of an audit's code: exit() would end the other audits, and the report.
func notExit(err error) error {
	return lang.NotExit(err, "and so no audit: what finding() says makes the exit status")
}

// late is that the run was stopped at its deadline; nil: it was not.
func (r *auditRun) late() error {
	var late *lang.DeadlineError
	if !errors.As(context.Cause(r.ctx), &late) {
		return nil
	}
	return late
}

// runBaseline finds out what the baseline has already. Nothing is asked: a
// baseline is a file, which s reads.
func (r *auditRun) runBaseline(s *Session) error {
	b := &auditRun{Session: s, AuditRun: r.AuditRun, ctx: r.ctx, report: &audit.Report{}}
	found, err := b.runAll(s.env.Current, b.fabrics(), starlark.None)
	r.Join(s.Runtime)
	if err = cmp.Or(err, r.late()); err != nil { // what it has is not known
		return err
	}
	r.known = map[string]bool{}
	for i := range found {
		r.known[found[i].ID()] = true
	}
	return nil
}

func (r *auditRun) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

// sent is how many datagrams have been sent.
func (r *auditRun) sent() uint64 {
	if !r.live() {
		return 0
	}
	return r.env.Engine.Stats().Sent
}

// AuditStatus is the exit status of a run: of failOn or worse, findings make it
// 1; what was not answered or not done, 3; a broken audit, 2.
func (s *Session) AuditStatus(r *audit.Report, failOn audit.Severity) int {
	status := lang.StatusClean
	if r.Worst() >= failOn {
		status = lang.StatusFindings
	}
	if !r.Complete() {
		status = lang.StatusFabric
	}
	for _, f := range r.Failures {
		if !f.Skipped && !fabricFailure(f.Err) {
			status = lang.StatusUsage
		}
	}
	return status
}
