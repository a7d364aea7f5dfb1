package datagrams

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// targetRequest is about the targets of a call: what has become of each.
type targetRequest struct {
	c       *lang.Call
	class   mad.Class
	local   *engine.Port
	targets []topology.Target
	many    bool
	values  []starlark.Value // nil of a target that is not done
}

// askTargets resolves the argument `target` for requests of a class.
func askTargets(c *lang.Call, class mad.Class) (*targetRequest, error) {
	r := &topology.Resolver{C: c}
	targets, many, err := r.Targets(c.Value("target"))
	if err != nil {
		return nil, err
	}
	local, err := r.LocalPort()
	if err != nil {
		return nil, err
	}
	a := &targetRequest{c: c, class: class, local: local, targets: targets, many: many, values: make([]starlark.Value, len(targets))}
	lids := make([]mad.LID, len(targets))
	for i := range targets {
		t := &targets[i]
		lids[i] = t.LID
		if class.Family() == mad.ClassSubn {
			err = t.Reachable()
		} else {
			err = t.NeedsLID()
		}
		if err != nil {
			a.values[i] = lang.NewFailure(topology.FailedRequest(c, t, err))
		}
	}
	if class.Family() == mad.ClassSubn {
		return a, nil
	}
	return a, topology.ServiceLevels(c, local, lids)
}

// send sends a request, which put writes, to all targets that are not done,
// and waits for the answers.
func (a *targetRequest) send(put func(i int, call *engine.Call)) ([]engine.Call, error) {
	calls := make([]engine.Call, len(a.targets))
	var open []*engine.Call
	client := topology.EnvOf(a.c.Runtime()).SA
	for i := range a.targets {
		if a.values[i] != nil {
			continue
		}
		put(i, &calls[i])
		if a.class.Family() == mad.ClassSubn {
			a.targets[i].AddressSMP(&calls[i]) // reachable, says ask
		} else if err := client.PutGMP(&calls[i], a.local, a.targets[i].LID); err != nil {
			return nil, err
		}
		open = append(open, &calls[i])
	}
	return calls, topology.SendProbes(a.c, open)
}

// answered: target i is not done, and err is nil. Otherwise it is done now.
func (a *targetRequest) answered(i int, err error) bool {
	if a.values[i] != nil {
		return false
	}
	if err != nil {
		topology.CountUnanswered(a.c, err)
		a.values[i] = lang.NewFailure(topology.FailedRequest(a.c, &a.targets[i], err))
	}
	return err == nil
}

func (a *targetRequest) results() (starlark.Value, error) { return topology.Results(a.values, a.many) }
