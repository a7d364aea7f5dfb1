package audits

import (
	"context"
	"slices"
	"time"

	"fabsh/fabric/audit"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
	"go.starlark.net/starlark"
)

// rereadAfter is when findings are re-read: by then, links have trained and subnet managers
// have handed over (OpenSM polls its master every 10 s, opensm osm_subnet.c
// sminfo_polling_timeout).
const rereadAfter = 10 * time.Second

// reread re-reads the findings, and keeps those that persist: a link that trains, or a subnet
// manager that hands over, is not a fault. Past events are not re-read.
func (x *auditRun) reread(list []*Audit, found []audit.Finding) ([]audit.Finding, error) {
	list = doubtful(list, x.settled(found).Findings)
	if len(list) == 0 {
		return found, nil
	}
	x.runtime.Progress("re-reading findings")
	if err := sleep(x.ctx, x.env.Engine, x.runtime.Clock.Sleep); err != nil {
		return x.readOnce(found, err)
	}
	f, err := x.read()
	if err == nil && isCut(f) {
		err = audit.ErrCut
	}
	if err != nil {
		return x.readOnce(found, err)
	}
	x.report.Coverage.Forget(audit.Sweep)
	x.cover(f)
	again := map[string]bool{}
	for _, a := range list {
		again[a.Name] = true
		x.report.Coverage.Forget(a.Name)
		x.judge.requests.details.forget(a.Name)
		forgetUnjudged(x.runtime, a.Name)
	}
	x.report.Failures = slices.DeleteFunc(x.report.Failures, func(f audit.Failure) bool { return again[f.Audit] })
	second, err := x.judge.all(f, list, starlark.None)
	if err != nil {
		return nil, err
	}
	kept, gone, fresh := audit.Confirm(found, second, again)
	if gone > 0 {
		x.report.Note("%s did not persist on re-read; not reported", plural.Count(gone, "finding", "findings"))
	}
	if fresh > 0 {
		x.report.Note("%s new on re-read; not reported until the next run confirms it", plural.Count(fresh, "finding", "findings"))
	}
	return kept, nil
}

// doubtful returns the audits to run again: those with new findings that are not past events.
func doubtful(list []*Audit, news []audit.Finding) []*Audit {
	of := map[string]bool{}
	for i := range news {
		of[news[i].Audit] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(a *Audit) bool { return a.events || !of[a.Name] })
}

// readOnce keeps the findings, which could not be re-read because of err.
func (x *auditRun) readOnce(found []audit.Finding, err error) ([]audit.Finding, error) {
	if x.ctx.Err() != nil && late(x.ctx) == nil {
		return nil, err
	}
	x.report.Note("findings were read only once: %v", err)
	x.report.Coverage.Count(audit.Sweep, mad.AttrNodeInfo.Name, audit.OfFabric(), audit.TimedOut, 1)
	return found, nil
}

// sleep waits until the re-read. The halt of the engine, at the session's deadline, ends it.
func sleep(ctx context.Context, e *engine.Engine, sleep func(context.Context, time.Duration) error) error {
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
