package audits

import (
	"errors"
	"slices"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// observer counts the requests of audits.
type observer struct {
	coverage *audit.Coverage
	audit    string // the audit that they belong to; "" if requests do not count
	state    *topology.Observer
	details  *details
}

// details counts requests of detail() without an answer.
type details struct {
	rows  []detail
	index map[detail]int // by audit and attribute
}

type detail struct {
	audit, attribute string
	n                int
}

func (d *details) count(audit, attribute string) {
	key := detail{audit, attribute, 0}
	i, ok := d.index[key]
	if !ok {
		if d.index == nil {
			d.index = map[detail]int{}
		}
		i = len(d.rows)
		d.index[key] = i
		d.rows = append(d.rows, key)
	}
	d.rows[i].n++
}

// forget drops those of an audit, which runs again.
func (d *details) forget(audit string) {
	for i := range d.rows {
		if d.rows[i].audit == audit {
			d.rows[i].n = 0
		}
	}
}

// notes adds a note for each attribute, by audit.
func (d *details) notes(r *audit.Report) {
	rows := slices.Clone(d.rows)
	slices.SortStableFunc(rows, func(a, b detail) int {
		return slices.Index(r.Audits, a.audit) - slices.Index(r.Audits, b.audit)
	})
	for _, x := range rows {
		if x.n > 0 {
			r.Note("%s of %s: no answer to %s; only details of findings are missing", x.attribute, x.audit, plural.Count(x.n, "request", "requests"))
		}
	}
}

// observe counts a request of the audit that runs.
func (o *observer) observe(a *mad.Attribute, t *topology.Target, err error) {
	if o.audit == "" || errors.Is(err, topology.ErrNoFabric) || errors.Is(err, engine.ErrUnsupported) { // no request was sent
		return
	}
	outcome := outcomeOf(err)
	if o.state.Detail > 0 && (outcome == audit.TimedOut || outcome == audit.Failed) {
		o.details.count(o.audit, a.Name)
		return
	}
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
	var unsupported *device.UnsupportedError
	var register *datagrams.RegisterError
	switch {
	case err == nil:
		return audit.Answered
	case errors.As(err, &unsupported), errors.Is(err, engine.ErrUnsupported), errors.As(err, &register) && register.Unsupported(), errors.Is(err, topology.ErrNotInFile), errors.Is(err, engine.ErrCut):
		return audit.Unsupported
	case engine.Unanswered(err):
		return audit.TimedOut
	case errors.As(err, &me) && me.Err == nil && (me.Status == mad.StatusBadMethodAttribute || me.Status == mad.StatusBadMethod):
		return audit.Unsupported
	}
	return audit.Failed
}
