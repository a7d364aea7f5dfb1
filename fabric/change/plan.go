// Package change describes an intended change of a subnet: as a value and as a file, with the
// tables that it leads to, its predicted effect, and the proof of a safe order of its writes.
//
// A Recorder records Sets instead of sending them; NewPlan makes a Plan of them. Plan.Prove
// finds an order of the writes and returns a Report, Plan.Certify also a certificate, and
// Plan.CheckCertificate checks it. Tables are the input of these proofs: what is in force,
// and what is known of lanes, service levels and adaptive routing. PredictEffect predicts
// what links that go down do to paths. A TargetPolicy chooses the tables that a change leads
// to: the first of several to which the change is proven. Package change/apply applies plans.
//
// Rules: a plan contains no keys. LoadPlan trusts nothing in a file, and whoever applies a
// plan reads the fabric again, and checks the certificate of what is sent: a plan is stale if
// the Fingerprint of the fabric differs. This package sends no Set.
//
// A Recorder is safe for concurrent use; Baseline and Predictor are immutable. All else is
// not safe for concurrent use.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
package change

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Plan is an intended change of a subnet: its Sets, in the order in which they were
// requested, and the fabric that they were made from. It holds no keys.
//
// When it is applied, current values are read again. The rounds of its certificate are sent
// if this holds then; if not, only the new bytes are taken from it.
type Plan struct {
	// From is the origin: "maintenance.star", "--routes ftree".
	From string
	Base Fingerprint
	Sets []certificate.Change
	// Target are the tables that the Sets make, if their paths have their own service
	// levels or virtual lanes; nil: none do. A file does not contain them.
	Target *routes.Routes
	// Choice is which of a policy's tables it leads to; nil: there was no choice.
	Choice *Choice
	// Static reports that static routing was requested: the plan disables adaptive routing at
	// the switches whose forwarding tables it writes, where it is on. Disables are these
	// switches.
	Static   bool
	Disables []Switch
	// Report is the result of the proof when the plan was made, in this process; nil:
	// none. For a plan read from a file it is the report in the file, marked Recorded;
	// nothing relies on it.
	Report, Recorded *Report
	// Certificate is the proof of the rounds of forwarding tables and SL2VL; nil: there is
	// no proof. If the plan was read from a file, it is not checked: see CheckCertificate.
	Certificate *certificate.Certificate
}

// NewPlan makes a plan of Sets that were recorded. f is the current fabric after the last
// of them, and sm its subnet manager, nil without one: targets get their names and
// routes from f. The error is a *RefusalError if f does not identify a target.
func NewPlan(from string, sets []certificate.Change, f *fabric.Fabric, sm *sa.SM) (*Plan, error) {
	p := &Plan{From: from, Base: FingerprintOf(f, sm), Sets: slices.Clone(sets)}
	for i := range p.Sets {
		if err := find(&p.Sets[i], f); err != nil {
			return nil, err
		}
	}
	return p, nil
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
		return refusal("the fabric has changed since discover(): %s; discover and plan again", firstOf(since))
	}
	return nil
}

// RefusalError reports why there is no plan, or why it must not be applied.
type RefusalError struct{ Reason string }

func (e *RefusalError) Error() string { return e.Reason }

// Changes returns what p changes in the end, in the order of the first Set of each place: from
// the value before the first Set to the value after the last. Without those that end as they
// began, except where the write disables adaptive routing, and fields that request an action.
// Certificates number these changes.
func (p *Plan) Changes() []certificate.Change {
	at := map[certificate.Place]int{}
	var all []certificate.Change
	for i := range p.Sets {
		s := &p.Sets[i]
		if n, seen := at[s.Place()]; seen {
			all[n] = all[n].Then(s)
			continue
		}
		at[s.Place()] = len(all)
		all = append(all, *s)
	}
	disables := map[mad.GUID]bool{}
	for _, s := range p.Disables {
		disables[s.GUID] = true
	}
	kept := all[:0]
	for _, c := range all {
		if c, nothing := c.Effective(); !nothing || c.Rewrites() && disables[c.Node] {
			kept = append(kept, c)
		}
	}
	return kept
}

// String describes in one line how much the plan writes.
func (p *Plan) String() string {
	nodes := map[mad.GUID]bool{}
	changes := p.Changes()
	for _, c := range changes {
		nodes[c.Node] = true
	}
	return fmt.Sprintf("plan: %d of %s change something, on %s", len(changes), plural.Count(len(p.Sets), "Set", "Sets"), plural.Count(len(nodes), "node", "nodes"))
}

func (p *Plan) setsLIDs() bool {
	return slices.ContainsFunc(p.Sets, func(s certificate.Change) bool {
		return slices.Contains(s.Fields, "lid") || slices.Contains(s.Fields, "lmc")
	})
}

// firstOf returns the first of some texts, and how many more there are.
func firstOf(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%s, and %d more", texts[0], len(texts)-1)
}

func refusal(format string, args ...any) error {
	return &RefusalError{fmt.Sprintf(format, args...)}
}

// find gives s the name and the route that its node has in f.
func find(s *certificate.Change, f *fabric.Fabric) error {
	nodes := f.NodeByGUID(s.Node)
	switch len(nodes) {
	case 0:
		return refusal("node %v: to be changed, but not found by the sweep", s.Node)
	case 1:
	default:
		return refusal("GUID %[2]v: not unique: %[1]d nodes have it", len(nodes), s.Node)
	}
	n := nodes[0]
	s.Name = n.Name()
	route := n.Route()
	if p := n.Port(s.Port); p != nil && !n.IsSwitch() {
		route = p.Route()
	}
	if route != nil {
		s.Routes = []mad.DirectedRoute{route}
	}
	return nil
}
