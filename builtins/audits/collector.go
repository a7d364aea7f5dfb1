package audits

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// collector is where findings go. It is the state that audits keep with a
// lang.Runtime.
type collector struct {
	audit   string // that runs
	found   audit.Collection
	metrics []audit.Metric
	index   map[string]int // of metrics, by name and labels
}

func collectorOf(r *lang.Runtime) *collector { return lang.StateOf[collector](r) }

func (c *collector) add(f audit.Finding) *findingValue {
	f.Audit = c.audit
	c.found.Add(f)
	return wrapFinding(f, nil)
}

// Begin says which audit runs from now on, and Take gives what was found and
// forgets it.
func Begin(r *lang.Runtime, name string) { collectorOf(r).audit = name }

// Apart has what is found and measured go elsewhere, until back: what was before is then
// as it was.
func Apart(r *lang.Runtime) (back func()) {
	of := collectorOf(r)
	before := *of
	*of = collector{audit: before.audit}
	return func() { *of = before }
}

// Wrap is a list of findings as scripts see them.
func Wrap(found []audit.Finding) starlark.Value {
	return &findings{lang.List(found, func(f audit.Finding) starlark.Value { return wrapFinding(f, nil) }), found}
}

// findings is a list of findings, which people see as the report shows them.
type findings struct {
	*starlark.List
	found []audit.Finding
}

// Display is the findings for people.
func (v *findings) Display() string { return findingsText(v.found) }

// Take is what was found since the last Take.
func Take(r *lang.Runtime) []audit.Finding {
	c := collectorOf(r)
	list := c.found.List()
	c.found = audit.Collection{}
	return list
}
