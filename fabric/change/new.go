package change

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// NewPlan makes a plan of Sets that were recorded. f is the current fabric after the last
// of them, and sm its subnet manager, nil without one: targets get their names and
// routes from f. The error is a *RefusalError if f does not identify a target.
func NewPlan(from string, sets []Set, f *fabric.Fabric, sm *sa.SM) (*Plan, error) {
	p := &Plan{From: from, Base: FingerprintOf(f, sm), Sets: slices.Clone(sets)}
	for i := range p.Sets {
		if err := p.Sets[i].Target.find(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// RefusalError is the reason why there is no plan, or why it must not be applied.
type RefusalError struct{ Reason string }

func (e *RefusalError) Error() string { return e.Reason }

func refusal(format string, args ...any) error {
	return &RefusalError{fmt.Sprintf(format, args...)}
}

// find gives t the name and the route that the node has in f.
func (t *Target) find(f *fabric.Fabric) error {
	nodes := f.NodeByGUID(t.GUID)
	switch len(nodes) {
	case 0:
		return refusal("node %v: to be changed, but not found by the sweep", t.GUID)
	case 1:
	default:
		return refusal("GUID %[2]v: not unique: %[1]d nodes have it", len(nodes), t.GUID)
	}
	n := nodes[0]
	t.Name = n.Name()
	route := n.Route()
	if p := n.Port(t.Port); p != nil && !n.IsSwitch() {
		route = p.Route()
	}
	if route != nil {
		t.Routes = []mad.DirectedRoute{route}
	}
	return nil
}

// Settled returns an error if f, which the plan's script read, differs from the fabric
// that p was made from. LIDs that p itself sets do not count.
func (p *Plan) Settled(f *fabric.Fabric) error {
	then := FingerprintOf(f, nil)
	then.Manager = p.Base.Manager
	if p.setsLIDs() {
		return nil
	}
	if since := then.Since(&p.Base); len(since) > 0 {
		return refusal("the fabric has changed since discover(): %s; discover and plan again", first(since))
	}
	return nil
}

func (p *Plan) setsLIDs() bool {
	return slices.ContainsFunc(p.Sets, func(s Set) bool {
		return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Name == "lid" || f.Name == "lmc" })
	})
}

// first returns the first of some texts, and how many more there are.
func first(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%s, and %d more", texts[0], len(texts)-1)
}
