package datagrams

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// targetRequest is a request of a class to the targets of a call, with the result of
// each.
type targetRequest struct {
	c       *lang.Call
	class   mad.Class
	local   *engine.Port
	targets []topology.Target
	many    bool
	values  []starlark.Value // nil for a target that is not done
	// addressed, if not nil, is called last for an addressed request, and may change it.
	addressed func(call *engine.Call) error
	// file means that nothing is sent: the answers are in the file that the session reads.
}

// resolve resolves the targets in the argument target, and the service levels of the
// paths to them.
func (a *targetRequest) resolve(target starlark.Value) (err error) {
	r := &topology.Resolver{Call: a.c}
	if a.targets, a.many, err = r.Targets(target); err != nil {
		return err
	}
	if a.local, err = r.LocalPort(); err != nil {
		return err
	}
	a.values = make([]starlark.Value, len(a.targets))
	lids := make([]mad.LID, len(a.targets))
	for i := range a.targets {
		t := &a.targets[i]
		lids[i] = t.LID
		if a.class.Family() == mad.ClassSubn {
			err = t.Reachable()
		} else {
			err = t.NeedsLID()
		}
		if err != nil {
			a.values[i] = lang.NewFailure(topology.FailedRequest(a.c, t, err))
		}
	}
	if a.class.Family() == mad.ClassSubn { // SMPs use VL 15, which has no service levels
		return nil
	}
	return topology.LearnPaths(a.c, a.local, lids)
}

// send sends a request, which put writes, to all targets that are not done,
// and waits for the answers.
func (a *targetRequest) send(put func(i int, call *engine.Call)) ([]engine.Call, error) {
	calls := make([]engine.Call, len(a.targets))
	var open []*engine.Call
	var targets []*topology.Target // of open
	client := topology.EnvOf(a.c.Runtime()).SA
	for i := range a.targets {
		if a.values[i] != nil {
			continue
		}
		put(i, &calls[i])
		if a.class.Family() == mad.ClassSubn {
			a.targets[i].AddressSMP(&calls[i]) // resolve has checked that it is reachable
		} else if err := client.PutGMP(&calls[i], a.local, a.targets[i].LID); err != nil {
			return nil, err
		}
		if a.addressed != nil {
			if err := a.addressed(&calls[i]); err != nil {
				return nil, err
			}
		}
		calls[i].Guard = a.targets[i].Dest().Guard
		open, targets = append(open, &calls[i]), append(targets, &a.targets[i])
	}
	switch a.class.Family() {
	case mad.ClassSubn, mad.ClassSubnAdm, mad.ClassPerf:
		return calls, topology.SendProbes(a.c, open)
	}
	return calls, topology.SendOptional(a.c, a.class, targets, open)
}

// answered reports whether target i is not done and err is nil. If err is not nil, the
// target is then done.
func (a *targetRequest) answered(i int, err error) bool {
	if a.values[i] != nil {
		return false
	}
	if err != nil {
		a.values[i] = topology.Failed(a.c, &a.targets[i], err)
	}
	return err == nil
}

// results returns the result of the builtin.
func (a *targetRequest) results() (starlark.Value, error) { return topology.Results(a.values, a.many) }
