package run

import (
	"context"
	"errors"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
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

	// Arguments of audits.
	deep     bool
	past     bool
	baseline *fabric.Fabric
	rails    []Rail
}

// thread makes a thread for the code of audits. Requests without an answer count for the
// report, not for the session.
func (j *judge) thread(name string) (t *starlark.Thread, release func()) {
	return lang.NewThread(&lang.Fiber{Runtime: j.runtime, Context: j.ctx, Sink: j.runtime, Account: new(lang.Account)}, name)
}

// all runs audits on f one after the other, and returns their findings. An audit that fails,
// is stopped at the deadline, or does not start because of that, is among the failures of the
// report; the others run. run is for audits that judge the run.
func (j *judge) all(f *topology.Fabric, list []*Audit, run starlark.Value) ([]audit.Finding, error) {
	own := starlark.StringDict{baselineOption: starlark.None, pastOption: starlark.None, deepOption: starlark.Bool(j.deep), railsOption: railValues(j.rails), runOption: run}
	if topology.EnvOf(j.runtime).Engine != nil && j.past && slices.ContainsFunc(list, func(a *Audit) bool { return slices.Contains(a.own, pastOption) }) {
		own[pastOption] = j.seen(f)
	}
	if j.baseline != nil {
		own[baselineOption] = topology.NewFabric(j.baseline)
	}
	audits.Take(j.runtime) // drops findings of the top levels of scripts
	for _, a := range list {
		err := late(j.ctx)
		if err == nil {
			var ended error
			if err, ended = j.one(a, f, own); ended != nil {
				return nil, ended
			}
		}
		if err != nil {
			// The report omits audits of the standard set that need what the fabric does not have.
			skipped := !a.byName && (errors.Is(err, topology.ErrNoFabric) || errors.Is(err, topology.ErrNotInFile))
			j.report.Failures = append(j.report.Failures, audit.Failure{Audit: a.Name, Err: err, Skipped: skipped})
		}
	}
	return audits.Take(j.runtime), nil
}

// seen returns the observations of the ports of f in earlier runs.
func (j *judge) seen(f *topology.Fabric) starlark.Value {
	t, release := j.thread("audit")
	defer release()
	v, err := audits.Past(t, f.Fabric)
	if err != nil {
		j.report.Note("observations of ports in earlier runs are unknown: %v", err)
	}
	return v
}

// one runs an audit. err is why it did not run or finish; ended is why no other may run.
func (j *judge) one(a *Audit, f *topology.Fabric, own starlark.StringDict) (err, ended error) {
	j.runtime.Progress("audit " + a.Name)
	t, release := j.thread(a.script)
	defer release()
	audits.Begin(j.runtime, a.Name)
	j.requests.audit = a.Name
	err = lang.Protect(a.script, func() error {
		_, err := starlark.Call(t, a.entry.Fn, starlark.Tuple{f}, a.arguments(own))
		return notExit(err)
	})
	j.requests.audit = ""
	audits.Begin(j.runtime, "")
	switch late := late(j.ctx); {
	case err == nil:
		return nil, nil
	case late != nil: // it only computed; the findings of others remain
		return late, nil
	case !lang.Catchable(lang.FiberOf(t), err):
		return nil, err
	}
	return err, nil
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
