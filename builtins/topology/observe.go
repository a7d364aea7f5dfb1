package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// Observer receives the result of each request for an attribute by a script: its target,
// and the error, or nil if it was answered. It also sees failures that catch()
// suppresses. It is the state that topology keeps with a lang.Runtime; Report is nil
// if there is no observer.
type Observer struct {
	Report func(a *mad.Attribute, t *Target, err error)
	// Detail is above 0 during detail(): the requests only add detail to findings.
	Detail int
	// Swept is the fabric that the current run of audits has swept; nil: none.
	Swept *fabric.Fabric

	silent map[kind]*silence // while Report is set; see SendOptional
}

// Begin makes report the observer and forgets which devices do not answer. end removes
// the observer.
func (o *Observer) Begin(report func(a *mad.Attribute, t *Target, err error)) (end func()) {
	*o = Observer{Report: report, silent: map[kind]*silence{}}
	return func() { *o = Observer{} }
}

// Part returns an observer for one of several audits of a run, without Report.
func (o *Observer) Part() *Observer { return &Observer{Swept: o.Swept, silent: o.silent} }

// JustSwept reports whether the current run of audits has swept f.
func JustSwept(c *lang.Call, f *fabric.Fabric) bool {
	return lang.StateOf[Observer](c.Runtime()).Swept == f
}

// Observe reports the results of the requests to targets: values are the results, with
// failures in their places.
func Observe(c *lang.Call, a *mad.Attribute, targets []Target, values []starlark.Value) {
	report := lang.StateOf[Observer](c.Runtime()).Report
	if report == nil {
		return
	}
	for i := range targets {
		var err error
		if f, ok := values[i].(*lang.Failure); ok {
			err = f.Err
		}
		report(a, &targets[i], err)
	}
}

// ObserveOne is Observe for one request. t is nil for a request to the subnet
// administrator.
func ObserveOne(c *lang.Call, a *mad.Attribute, t *Target, err error) {
	if report := lang.StateOf[Observer](c.Runtime()).Report; report != nil {
		if t == nil {
			t = &Target{Port: NoPortGiven}
		}
		report(a, t, err)
	}
}
