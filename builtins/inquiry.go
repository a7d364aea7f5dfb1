package builtins

import (
	"go.starlark.net/starlark"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// inquiry is about the targets of a call: what has become of each.
type inquiry struct {
	c       *call
	class   mad.Class
	local   *engine.Port
	targets []target
	many    bool
	values  []starlark.Value // nil of a target that is not done
}

// ask resolves the argument `target` for requests of a class.
func (c *call) ask(class mad.Class) (*inquiry, error) {
	r := &resolver{c: c}
	targets, many, err := r.targets(c.Value("target"))
	if err != nil {
		return nil, err
	}
	local, err := r.localPort()
	if err != nil {
		return nil, err
	}
	a := &inquiry{c: c, class: class, local: local, targets: targets, many: many, values: make([]starlark.Value, len(targets))}
	lids := make([]mad.LID, len(targets))
	for i := range targets {
		t := &targets[i]
		lids[i] = t.lid
		if class.Family() == mad.ClassSubn {
			err = t.reachable()
		} else {
			err = t.needsLID()
		}
		if err != nil {
			a.values[i] = newFailure(c.failed(t, err))
		}
	}
	if class.Family() == mad.ClassSubn {
		return a, nil
	}
	return a, c.serviceLevels(local, lids)
}

// send sends a request, which put writes, to all targets that are not done,
// and waits for the answers.
func (a *inquiry) send(put func(i int, call *engine.Call)) ([]engine.Call, error) {
	calls := make([]engine.Call, len(a.targets))
	var open []*engine.Call
	for i := range a.targets {
		if a.values[i] != nil {
			continue
		}
		put(i, &calls[i])
		if a.class.Family() == mad.ClassSubn {
			a.targets[i].addressSMP(&calls[i]) // reachable, says ask
		} else {
			a.c.session().sa.PutGMP(&calls[i], a.local, a.targets[i].lid) // a P_Key error came from ask
		}
		open = append(open, &calls[i])
	}
	return calls, a.c.probe(open)
}

// answered: target i is not done, and err is nil. Otherwise it is done now.
func (a *inquiry) answered(i int, err error) bool {
	if a.values[i] != nil {
		return false
	}
	if err != nil {
		a.c.count(err)
		a.values[i] = newFailure(a.c.failed(&a.targets[i], err))
	}
	return err == nil
}

func (a *inquiry) results() (starlark.Value, error) { return results(a.values, a.many) }
