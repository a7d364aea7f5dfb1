package run

import (
	"errors"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/table"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// observer counts the requests of audits.
type observer struct {
	coverage *audit.Coverage
	audit    string // the audit that runs; "" if requests do not count
}

// observe counts a request of the audit that runs.
func (o *observer) observe(a *mad.Attribute, t *topology.Target, err error) {
	if o.audit == "" || errors.Is(err, topology.ErrNoFabric) {
		return
	}
	outcome := outcomeOf(err)
	s := audit.OfFabric()
	if t.Node != nil && (outcome == audit.TimedOut || outcome == audit.Failed) { // else the subject is not needed
		s = audit.OfNode(t.Node)
		if t.Port != topology.NoPortGiven {
			if p := t.Node.Port(t.Port); p != nil {
				s = audit.OfPort(p)
			}
		}
	}
	o.coverage.Count(o.audit, a.Name, s, outcome, 1)
}

// outcomeOf returns the outcome of a request.
func outcomeOf(err error) audit.Outcome {
	var me *engine.Error
	var unsupported *table.UnsupportedError
	var register *datagrams.RegisterError
	switch {
	case err == nil:
		return audit.Answered
	case errors.As(err, &unsupported), errors.As(err, &register) && register.Unsupported(), errors.Is(err, topology.ErrNotInFile):
		return audit.Unsupported
	case engine.Unanswered(err):
		return audit.TimedOut
	case errors.As(err, &me) && me.Err == nil && (me.Status == mad.StatusBadMethodAttribute || me.Status == mad.StatusBadMethod):
		return audit.Unsupported
	}
	return audit.Failed
}
