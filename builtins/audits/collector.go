package audits

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
)

// collector collects findings and metrics. It is the state that audits keep with a
// lang.Runtime.
type collector struct {
	audit   string // the one that runs
	found   audit.Collection
	skipped []audit.Unjudged // by not_judged()
	metrics []audit.Metric
	index   map[string]int // of metrics, by name and labels
}

func collectorOf(r *lang.Runtime) *collector { return lang.StateOf[collector](r) }

func (c *collector) add(f audit.Finding) *findingValue {
	f.Audit = c.audit
	c.found.Add(f)
	return wrapFinding(f, nil)
}

// Apart collects findings and metrics separately until back is called, which drops them and
// restores the earlier ones.
func Apart(r *lang.Runtime) (back func()) {
	of := collectorOf(r)
	before := *of
	*of = collector{audit: before.audit}
	return func() { *of = before }
}

// Part returns a runtime for one of several audits that run together: it collects its own
// findings and metrics until join is called, which adds them to those of r.
func Part(r *lang.Runtime, clock lang.Clock, name string, o *topology.Observer) (part *lang.Runtime, join func()) {
	own := &collector{audit: name}
	part = r.Part(clock, own, o)
	return part, func() {
		c := collectorOf(r)
		c.found.Join(&own.found)
		c.skipped = append(c.skipped, own.skipped...)
		before := c.audit
		c.audit = name
		for i := range own.metrics {
			c.measured(&own.metrics[i]) // it fails only outside of audits
		}
		c.audit = before
		r.Join(part)
	}
}

// Wrap returns findings as a list for scripts.
func Wrap(found []audit.Finding) starlark.Value {
	return &findings{lang.List(found, func(f audit.Finding) starlark.Value { return wrapFinding(f, nil) }), found}
}

// findings is a list of findings, displayed as in a report.
type findings struct {
	*starlark.List
	found []audit.Finding
}

// Display returns the findings as text.
func (v *findings) Display() string { return findingsText(v.found, false) }

// Take returns the findings since the last Take.
func Take(r *lang.Runtime) []audit.Finding {
	c := collectorOf(r)
	list := c.found.List()
	c.found = audit.Collection{}
	return list
}
