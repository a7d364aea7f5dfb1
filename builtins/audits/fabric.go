package audits

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/plural"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// readBoth reads the fabric, and judges the baseline at the same time: a sweep mostly waits.
func (x *auditRun) readBoth(in *script.Interpreter, list []*Audit) (f *topology.Fabric, err error) {
	if x.Baseline == nil {
		return x.read()
	}
	beside := in.Beside()
	facts := x.env.Facts.Beside()
	facts.Loaded, facts.Names = x.Baseline, nil
	env := topology.EnvOf(beside.Runtime)
	env.Open(facts)
	defer env.Unload()
	var sweep sync.WaitGroup
	var unswept error
	sweep.Go(func() {
		unswept = lang.Protect("audit", func() (err error) {
			f, err = x.read()
			return err
		})
	})
	defer sweep.Wait() // also where an audit of the baseline panics
	known, err := judgeBaseline(x.judge, beside.Runtime, list)
	sweep.Wait()
	x.runtime.Join(beside.Runtime)
	x.known = known
	return f, cmp.Or(unswept, err)
}

// judgeBaseline returns the IDs of the findings of a baseline, the fabric of r, and the IDs for
// which these findings stand. No request is sent. j is the judge of the run.
func judgeBaseline(j judge, r *lang.Runtime, list []*Audit) (map[string]bool, error) {
	j.ctx = lang.WithClock(j.ctx, r, j.clock)
	j.runtime, j.report, j.requests, j.observed, j.reported = r, new(audit.Report), nil, nil, &collector{metrics: new(measurements)}
	found, err := j.all(topology.EnvOf(r).Current, list, starlark.None)
	if err = cmp.Or(err, deadlineError(j.ctx)); err != nil { // its findings are unknown
		return nil, err
	}
	known := map[string]bool{}
	audit.IDs(found, known)
	return known, nil
}

// read returns the fabric of the file; or Known, if its nodes are still there; or the fabric of a
// sweep. Its problems are in the report, not in warnings.
func (x *auditRun) read() (*topology.Fabric, error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: x.runtime, Context: lang.AnySteps(x.ctx), Sink: lang.Discard{}, Account: new(lang.Account)}, "audit")
	defer release()
	if x.env.Engine == nil {
		return topology.CurrentFabric(t)
	}
	if x.Known != nil {
		f, moved, err := topology.Known(t, x.Known)
		if err != nil {
			return nil, err
		}
		if moved == "" {
			if len(x.report.Notes) == 0 {
				x.report.Note("the fabric was not swept: new and missing nodes and links are unknown, and states are those of the file")
			}
			return f, nil
		}
		x.report.Note("the fabric is swept: %s", moved)
		x.Known = nil
	}
	f, err := topology.Sweep(t)
	if err == nil {
		x.judge.observed.Swept = f.Fabric
	}
	return f, err
}

// isCut reports whether the sweep ended early.
func isCut(f *topology.Fabric) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemCut })
}

// cover counts the requests of the sweep, and sets the fabric and subnet of the report.
func (x *auditRun) cover(f *topology.Fabric) {
	live := x.env.Engine != nil
	if h := x.env.Host; h != nil {
		x.missed = nil
		x.report.Fabric = h.String()                                         // Model is nil: it would be metrics of a fabric
		x.report.Subnet = fabric.Subnet{Given: cmp.Or(x.Subnet, h.Subnet())} // its ports may be in several
		return
	}
	if x.missed = nil; x.Known == nil {
		x.missed = x.report.Coverage.CountSweep(f.Fabric, live)
	}
	x.report.Fabric, x.report.Model = f.String(), f.Fabric
	x.report.Subnet = fabric.SubnetOf(f.Fabric, x.Subnet)
	if p := f.From(); p != nil && live {
		x.report.Port = p.Name()
	}
}

// RunAcks returns the acks of a subnet below a directory of states; none, if the directory is of
// another subnet, which the report of the run notes. It warns of invalid lines.
func RunAcks(r *lang.Runtime, dir string, subnet fabric.Subnet) audit.Acks {
	if dir == "" || audit.CheckSubnet(dir, subnet) != nil {
		return nil
	}
	acks, bad := audit.ReadAcks(audit.AckFile(dir, subnet), r.Clock.Now())
	for _, err := range bad {
		r.WarnOnce("%v", err)
	}
	return acks
}

// rereadAfter is the time until findings are re-read: by then, links have trained and subnet managers
// have handed over (OpenSM polls its master every 10 s, opensm osm_subnet.c
// sminfo_polling_timeout).
const rereadAfter = 10 * time.Second

// reread re-reads the findings, and keeps the findings that persist: a link that trains, or a subnet
// manager that hands over, is not a fault. Past events are not re-read.
func (x *auditRun) reread(list []*Audit, found []audit.Finding) ([]audit.Finding, error) {
	list = auditsToRepeat(list, x.settled(found).Findings)
	if len(list) == 0 {
		return found, nil
	}
	x.runtime.Progress("re-reading findings")
	if err := sleepBeforeReread(x.ctx, x.env.Engine, x.clock.Sleep); err != nil {
		return x.keepUnconfirmed(found, err)
	}
	f, err := x.read()
	if err == nil && isCut(f) {
		err = audit.ErrCut
	}
	if err != nil {
		return x.keepUnconfirmed(found, err)
	}
	x.report.Coverage.Forget(audit.Sweep)
	x.cover(f)
	again := map[string]bool{}
	for _, a := range list {
		again[a.Name] = true
		x.report.Coverage.Forget(a.Name)
		x.judge.requests.details.forget(a.Name)
		x.judge.reported.forget(a.Name)
	}
	x.report.Failures = slices.DeleteFunc(x.report.Failures, func(f audit.Failure) bool { return again[f.Audit] })
	second, err := x.judge.all(f, list, starlark.None)
	if err != nil {
		return nil, err
	}
	kept, gone, fresh := audit.Confirm(found, managedFindings(f, list, second), again)
	if gone > 0 {
		x.report.Note("%s did not persist on re-read; not reported", plural.Count(gone, "finding", "findings"))
	}
	if fresh > 0 {
		x.report.Note("%s new on re-read; not reported until the next run confirms it", plural.Count(fresh, "finding", "findings"))
	}
	return kept, nil
}

// auditsToRepeat returns the audits to run again, which have new findings that are not past events.
func auditsToRepeat(list []*Audit, news []audit.Finding) []*Audit {
	of := map[string]bool{}
	for i := range news {
		of[news[i].Audit] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(a *Audit) bool { return a.events || !of[a.Name] })
}

// keepUnconfirmed keeps the findings, which could not be re-read because of err.
func (x *auditRun) keepUnconfirmed(found []audit.Finding, err error) ([]audit.Finding, error) {
	if x.ctx.Err() != nil && deadlineError(x.ctx) == nil {
		return nil, err
	}
	x.report.Note("findings were read only once: %v", err)
	x.report.Coverage.Count(audit.Sweep, mad.AttrNodeInfo.Name, audit.OfFabric(), audit.TimedOut, 1)
	return found, nil
}

// sleepBeforeReread waits until the re-read. The halt of the engine, at the session's deadline, ends it.
func sleepBeforeReread(ctx context.Context, e *engine.Engine, sleep func(context.Context, time.Duration) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	halted, _ := e.Halted()
	go func() {
		select {
		case <-halted:
			_, why := e.Halted()
			cancel(why)
		case <-ctx.Done():
		}
	}()
	return sleep(ctx, rereadAfter)
}

// findSM returns the current subnet manager, nil if unknown.
func findSM(ctx context.Context, env *topology.Env) *sa.SM { return beginFindSM(ctx, env)() }

// beginFindSM starts findSM, so that others can send meanwhile; wait waits for its result.
func beginFindSM(ctx context.Context, env *topology.Env) (wait func() *sa.SM) {
	if env.Engine == nil {
		return func() *sa.SM { return nil }
	}
	client, f := env.SA, env.Fabric()
	found := make(chan *sa.SM, 1)
	go func() {
		sm, err := client.FindSM(ctx, f)
		if err != nil {
			sm = nil
		}
		found <- sm
	}()
	return func() *sa.SM { return <-found }
}

// ownAnswers is the largest increase of the ActCount of a subnet manager by requests of fabsh:
// OpenSM counts the SMPs that it has sent, with its answers to SMInfo.
const ownAnswers = 4

// compareSM returns the activity of the subnet manager between two reads, in words; "" if none
// is known. A simulated one counts sweeps.
func compareSM(before, now *sa.SM, simulated bool) string {
	if before == nil || now == nil || before.Info == nil || now.Info == nil {
		return ""
	}
	allowed := uint32(ownAnswers)
	if simulated {
		allowed = 0
	}
	switch n := now.Info.ActCount - before.Info.ActCount; {
	case now.Info.GUID != before.Info.GUID:
		return fmt.Sprintf("the subnet manager changed during the run: from %v to %v", before, now)
	case n > allowed && n < 1<<31:
		return fmt.Sprintf("the subnet manager was active during the run (ActCount increased by %d): it may have swept", n)
	}
	return ""
}
