package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// Observer is told of each request for an attribute that a script makes, when its
// end is known: whom it was for, and why there is no answer, nil where there is
// one. What catch hides it is told all the same. It is the state that topology
// keeps with a lang.Runtime; Tell is nil where nobody wants to know.
type Observer struct {
	Tell func(a *mad.Attribute, t *Target, err error)
	// Swept is the fabric that a run of audits has just swept; nil: none.
	Swept *fabric.Fabric

	silent map[kind]*silence // while Tell is there: see SendOptional
}

// Begin: from now on tell is told, and nobody is known to be silent. end ends it.
func (o *Observer) Begin(tell func(a *mad.Attribute, t *Target, err error)) (end func()) {
	*o = Observer{Tell: tell}
	return func() { *o = Observer{} }
}

// JustSwept: what f says of its nodes was read a moment ago.
func JustSwept(c *lang.Call, f *fabric.Fabric) bool {
	return lang.StateOf[Observer](c.Runtime()).Swept == f
}

// Observe tells what came of the requests to targets: values are the results,
// failures in their places.
func Observe(c *lang.Call, a *mad.Attribute, targets []Target, values []starlark.Value) {
	tell := lang.StateOf[Observer](c.Runtime()).Tell
	if tell == nil {
		return
	}
	for i := range targets {
		var err error
		if f, ok := values[i].(*lang.Failure); ok {
			err = f.Err
		}
		tell(a, &targets[i], err)
	}
}

// ObserveOne is Observe of one request. t is nil where the subnet administrator
// was asked.
func ObserveOne(c *lang.Call, a *mad.Attribute, t *Target, err error) {
	if tell := lang.StateOf[Observer](c.Runtime()).Tell; tell != nil {
		if t == nil {
			t = &Target{Port: NoPortGiven}
		}
		tell(a, t, err)
	}
}
