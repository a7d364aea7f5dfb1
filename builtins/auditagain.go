package builtins

import (
	"context"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// rereadAfter is how long after the first reading what was found is read again:
// a link that trains, or a subnet manager that hands over, has done so by then
// (OpenSM polls its master every 10 s, opensm osm_subnet.c sminfo_polling_timeout).
const rereadAfter = 10 * time.Second

// again reads what was found a second time, and keeps what is still there: a link
// that trains, or a subnet manager that hands over, is no fault. What has happened
// stays so.
func (r *auditRun) again(found []audit.Finding) ([]audit.Finding, error) {
	var doubtful []*Audit
	for _, a := range r.fabrics() {
		if slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Audit == a.Name && r.isNews(&f) }) && !a.events {
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
		return r.once(found, ErrCut)
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
	second, err := r.runAll(f, doubtful, starlark.None)
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
		r.note("%s gone at the second reading, so not told", fabric.Plural(gone, "finding was", "findings were"))
	}
	if n := len(still); n > 0 {
		r.note("%s new at the second reading, so not told before the next run reads it again", fabric.Plural(n, "finding was", "findings were"))
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
	if r.ctx.Err() != nil && r.late() == nil {
		return nil, err
	}
	r.note("what was found was read only once: %v", err)
	r.report.Coverage.Count(sweepName, mad.AttrNodeInfo.Name, audit.OfFabric(), audit.TimedOut, 1)
	return found, nil
}

// wait waits for the second reading. The session's deadline ends it.
func (r *auditRun) wait() error {
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
