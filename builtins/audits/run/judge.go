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
	report   *audit.Report // for audits that fail
	requests *observer

	// What audits get.
	deep     bool
	past     bool
	baseline *fabric.Fabric
	rails    []Rail
}

// thread makes a thread for the code of audits: what gets no answer is the report's, not
// the session's.
func (j *judge) thread(name string) (t *starlark.Thread, release func()) {
	return lang.NewThread(&lang.Fiber{Runtime: j.runtime, Context: j.ctx, Sink: j.runtime, Account: new(lang.Account)}, name)
}

// all runs audits on f one after the other, and returns what they found. One that fails is
// among the failures of the report, and the others run; one that was stopped at the
// deadline is too, and so are those behind it. run is for audits that judge the run.
func (j *judge) all(f *topology.Fabric, list []*Audit, run starlark.Value) ([]audit.Finding, error) {
	own := starlark.StringDict{baselineOption: starlark.None, pastOption: starlark.None, deepOption: starlark.Bool(j.deep), railsOption: railValues(j.rails), runOption: run}
	if topology.EnvOf(j.runtime).Engine != nil && j.past && slices.ContainsFunc(list, func(a *Audit) bool { return slices.Contains(a.own, pastOption) }) {
		own[pastOption] = j.seen(f)
	}
	if j.baseline != nil {
		own[baselineOption] = topology.NewFabric(j.baseline)
	}
	audits.Take(j.runtime) // what the top levels of scripts found
	for _, a := range list {
		err := late(j.ctx)
		if err == nil {
			var ended error
			if err, ended = j.one(a, f, own); ended != nil {
				return nil, ended
			}
		}
		if err != nil {
			// Of what the standard set needs and the fabric has not, the report says nothing.
			skipped := !a.byName && (errors.Is(err, topology.ErrNoFabric) || errors.Is(err, topology.ErrNotInFile))
			j.report.Failures = append(j.report.Failures, audit.Failure{Audit: a.Name, Err: err, Skipped: skipped})
		}
	}
	return audits.Take(j.runtime), nil
}

// seen is what runs before have seen of the ports of f.
func (j *judge) seen(f *topology.Fabric) starlark.Value {
	t, release := j.thread("audit")
	defer release()
	v, err := audits.Past(t, f.Fabric)
	if err != nil {
		j.report.Note("what runs before have seen of ports is not known: %v", err)
	}
	return v
}

// one runs an audit. err is why it was not done, or not to its end; ended is why no other
// may run.
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
	case late != nil: // it just computed; what others found stands
		return late, nil
	case !lang.Catchable(lang.FiberOf(t), err):
		return nil, err
	}
	return err, nil
}

// late returns that the run was stopped at its deadline; nil: it was not.
func late(ctx context.Context) error {
	var late *lang.DeadlineError
	if !errors.As(context.Cause(ctx), &late) {
		return nil
	}
	return late
}

// ofRun reports whether the audit judges the run, when all others are done.
func (a *Audit) ofRun() bool { return slices.Contains(a.own, runOption) }

// railValues are rails as audits get them: dicts of port, prefix, and sm, the
// GUID of the master.
func railValues(rails []Rail) *starlark.List {
	return lang.List(rails, func(r Rail) starlark.Value {
		return lang.DictOf("port", starlark.String(r.Port), "prefix", topology.GUIDValue(mad.GUID(r.Subnet.Prefix)), "sm", topology.GUIDValue(r.Subnet.SM))
	})
}
