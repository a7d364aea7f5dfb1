package builtins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// AuditRun says what a run of audits is to do.
type AuditRun struct {
	Audits   *Audits
	Baseline *fabric.Fabric // nil: there is none
	Subnet   string         // the name that it is given; "": none
	// Begin is told of the subnet as soon as it is known, and gives the acks. An
	// error ends the run. Nil: there are none.
	Begin func(audit.Subnet) (audit.Acks, error)
	// Expected is told how many datagrams the audits will send beyond the sweep,
	// before they do. Nil: nobody wants to know.
	Expected func(n int)
}

// rereadAfter is how long after the first reading what was found is read again:
// a link that trains, or a subnet manager that hands over, has done so by then
// (OpenSM polls its master every 10 s, opensm osm_subnet.c sminfo_polling_timeout).
const rereadAfter = 10 * time.Second

// RunAudits runs audits on the fabric at hand: a file's, or what a sweep finds.
// What they find on a live fabric is read a second time before it is reported.
// Requests that get no answer are in the report's coverage; they do not count
// for the exit status of the session. The error is for what ends the run.
func (s *Session) RunAudits(ctx context.Context, o AuditRun) (*audit.Report, error) {
	r := &auditRun{Session: s, AuditRun: o, ctx: ctx, report: &audit.Report{}}
	for _, a := range o.Audits.List {
		r.report.Audits = append(r.report.Audits, a.Name)
	}
	observer := lang.StateOf[topology.Observer](s.Runtime)
	observer.Tell = r.observe
	defer func() { observer.Tell = nil }()
	defer s.Runtime.Progress("")
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
	sm := r.findSM()
	f, err := r.fabric()
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
	if err := r.runBaseline(); err != nil {
		return err
	}
	if r.cut(f) {
		r.report.Notes = r.missed
		r.report.Datagrams = r.sent() - before
		return nil
	}
	if err := r.expect(f); err != nil {
		return err
	}
	found, err := r.runAll(f, r.Audits.List)
	if err != nil {
		return err
	}
	if r.live() {
		if found, err = r.again(found); err != nil {
			return err
		}
		r.compareSM(sm)
	}
	r.report.Notes = append(r.missed, r.report.Notes...)
	r.report.Settle(found, r.acks, func(id string) bool { return r.known[id] }, r.Clock.Now())
	r.report.Datagrams = r.sent() - before
	return nil
}

// thread is one to run f's code on: what gets no answer is the report's, not the
// session's.
func (r *auditRun) thread(name string) (t *starlark.Thread, release func()) {
	return lang.NewThread(&lang.Fiber{Runtime: r.Runtime, Context: r.ctx, Sink: r.Runtime, Account: new(lang.Account)}, name)
}

// fabric is that of the file, or what a sweep finds. Its problems are told by the
// report, not by warnings.
func (r *auditRun) fabric() (*topology.Fabric, error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: r.Runtime, Context: r.ctx, Sink: silence{}, Account: new(lang.Account)}, "audit")
	defer release()
	if !r.live() {
		return topology.CurrentFabric(t)
	}
	return topology.Sweep(t)
}

// errCut is why audits do not run on a part of a fabric: nobody could tell what is
// not there from what was not asked.
var errCut = errors.New("the sweep was cut short, and a part of a fabric is not judged")

// cut: the sweep was ended before it was done. Then no audit runs.
func (r *auditRun) cut(f *topology.Fabric) bool {
	if !isCut(f) {
		return false
	}
	for _, a := range r.Audits.List {
		r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: errCut})
	}
	return true
}

func isCut(f *topology.Fabric) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemCut })
}

// describe says in the report what is audited.
func (r *auditRun) describe(f *topology.Fabric) {
	r.report.Fabric = f.String()
	r.report.Subnet = audit.SubnetOf(f.Fabric, r.Subnet)
	if p := f.From(); p != nil && r.live() {
		r.report.Port = p.Name()
	}
}

// expect tells how many datagrams the audits will send.
func (r *auditRun) expect(f *topology.Fabric) error {
	if r.Expected == nil || !r.live() {
		return nil
	}
	t, release := r.thread("audit")
	defer release()
	total := 0
	for _, a := range r.Audits.List {
		n, err := a.expected(t, f)
		if err != nil {
			return err
		}
		total += n
	}
	r.Expected(total)
	return nil
}

// runAll runs audits one after the other. One that fails is among the failures
// of the report, and the others run.
func (r *auditRun) runAll(f *topology.Fabric, list []*Audit) ([]audit.Finding, error) {
	baseline := starlark.Value(starlark.None)
	if r.Baseline != nil {
		baseline = topology.NewFabric(r.Baseline)
	}
	audits.Take(r.Runtime) // what the top levels of scripts found
	for _, a := range list {
		if err := r.runOne(a, f, baseline); err != nil {
			return nil, err
		}
	}
	return audits.Take(r.Runtime), nil
}

func (r *auditRun) runOne(a *Audit, f *topology.Fabric, baseline starlark.Value) error {
	r.Runtime.Progress("audit " + a.Name)
	t, release := r.thread(a.script)
	defer release()
	audits.Begin(r.Runtime, a.Name)
	r.current = a.Name
	err := lang.Protect(a.script, func() error {
		_, err := starlark.Call(t, a.fn, starlark.Tuple{f}, a.arguments(baseline))
		return err
	})
	r.current = ""
	audits.Begin(r.Runtime, "")
	switch {
	case err == nil:
	case !lang.Catchable(lang.FiberOf(t), err):
		return err
	default:
		skipped := !a.byName && errors.Is(err, topology.ErrNoFabric)
		r.report.Failures = append(r.report.Failures, audit.Failure{Audit: a.Name, Err: err, Skipped: skipped})
	}
	return nil
}

// runBaseline finds out what the baseline has already. Nothing is asked: a
// baseline is a file.
func (r *auditRun) runBaseline() error {
	if r.Baseline == nil {
		return nil
	}
	env := *r.env
	defer func() { *r.env = env }()
	was := topology.NewFabric(r.Baseline)
	r.env.Engine, r.env.Absent, r.env.Loaded, r.env.Current = nil, nil, r.Baseline, was
	report := r.report
	defer func() { r.report = report }()
	r.report = &audit.Report{}
	found, err := r.runAll(was, r.Audits.List)
	if err != nil {
		return err
	}
	r.known = map[string]bool{}
	for i := range found {
		r.known[found[i].ID()] = true
	}
	return nil
}

// again reads what was found a second time, and keeps what is still there: a link
// that trains, or a subnet manager that hands over, is no fault.
func (r *auditRun) again(found []audit.Finding) ([]audit.Finding, error) {
	var doubtful []*Audit
	for _, a := range r.Audits.List {
		if slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Audit == a.Name && r.isNews(&f) }) {
			doubtful = append(doubtful, a)
		}
	}
	if len(doubtful) == 0 {
		return found, nil
	}
	r.Runtime.Progress("reading again what was found")
	if err := r.wait(); err != nil {
		return r.once(found, err)
	}
	f, err := r.fabric()
	if err != nil {
		return r.once(found, err)
	}
	if isCut(f) {
		return r.once(found, errCut)
	}
	r.report.Coverage.Forget(sweepName)
	r.cover(f)
	r.describe(f)
	isDoubtful := func(name string) bool {
		return slices.ContainsFunc(doubtful, func(a *Audit) bool { return a.Name == name })
	}
	r.report.Failures = slices.DeleteFunc(r.report.Failures, func(x audit.Failure) bool { return isDoubtful(x.Audit) })
	for _, a := range doubtful {
		r.report.Coverage.Forget(a.Name)
	}
	second, err := r.runAll(f, doubtful)
	if err != nil {
		return nil, err
	}
	still := map[string]audit.Finding{}
	for _, x := range second {
		still[x.ID()] = x
	}
	var all audit.Collection
	gone := 0
	for _, x := range found {
		id := x.ID()
		y, ok := still[id]
		delete(still, id)
		switch {
		case ok:
			all.Add(y)
		case !isDoubtful(x.Audit):
			all.Add(x)
		default:
			gone++
		}
	}
	if gone > 0 {
		r.note("%s gone at the second reading, so not told", counted(gone, "finding was", "findings were"))
	}
	if n := len(still); n > 0 {
		r.note("%s new at the second reading, so not told before the next run reads it again", counted(n, "finding was", "findings were"))
	}
	return all.List(), nil
}

// isNews: f would be told.
func (r *auditRun) isNews(f *audit.Finding) bool {
	_, acked := r.acks.Of(f, r.Clock.Now())
	return !acked && !r.known[f.ID()]
}

// once keeps what was found, though it could not be read again because of err.
func (r *auditRun) once(found []audit.Finding, err error) ([]audit.Finding, error) {
	if r.ctx.Err() != nil {
		return nil, err
	}
	r.note("what was found was read only once: %v", err)
	r.report.Coverage.Count(sweepName, mad.AttrNodeInfo.Name, audit.OfFabric(), audit.TimedOut, 1)
	return found, nil
}

// wait waits for the second reading; not where nothing changes by itself. The
// session's deadline ends it.
func (r *auditRun) wait() error {
	if r.env.Engine.Traits().Simulated {
		return nil
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	e := r.env.Engine
	halted, _ := e.Halted()
	go func() {
		select {
		case <-halted:
			_, why := e.Halted()
			cancel(why)
		case <-ctx.Done():
		}
	}()
	return r.Clock.Sleep(ctx, rereadAfter)
}

func (r *auditRun) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}

func counted(n int, one, many string) string { return fabric.Plural(n, one, many) }

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
