package audits

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
	"go.starlark.net/starlark"
)

// Rail is a subnet that was audited from another port of the host.
type Rail struct {
	Port   string // of the host: "mlx5_0/1"
	Subnet fabric.Subnet
}

// judge runs audits.
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

// mostTogether is how many audits run at the same time: some wait for answers, while others
// compute. More would need more memory.
const mostTogether = 2

// thread makes a thread for code that belongs to no audit. Requests without an answer count for
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
		own[pastOption] = j.seen(f)
	}
	if j.baseline != nil {
		own[baselineOption] = topology.NewFabric(j.baseline)
	}
	for _, v := range own { // audits share it
		v.Freeze()
	}
	Take(j.runtime) // drops findings of the top levels of scripts
	if err := j.run(list, f, own); err != nil {
		return nil, err
	}
	return Take(j.runtime), nil
}

// run runs audits: first those that may run together, at the same time, then the others one by
// one. Those that send most begin first, so that none runs alone at the end. It returns an error
// if no other may run.
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

// seen returns the observations of the ports of f in earlier runs.
func (j *judge) seen(f *topology.Fabric) starlark.Value {
	t, release := j.thread("audit")
	defer release()
	v, err := Past(t, f.Fabric)
	if err != nil {
		j.report.Note("observations of ports in earlier runs are unknown: %v", err)
	}
	return v
}

// late returns the error of a run that was stopped at its deadline, else nil.
func late(ctx context.Context) error {
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
