package remedy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
)

// Step is a step of the repair ladder of a link, which a ticket proposes.
type Step string

// The steps of the ladder, from the least effort to the most.
const (
	StepReset   Step = "reset"   // train the link again, and clear its counters
	StepReseat  Step = "reseat"  // pull out and plug in both ends
	StepClean   Step = "clean"   // clean the fibre and the modules
	StepSwap    Step = "swap"    // replace the modules of both ends, or a cable with fixed ends
	StepReplace Step = "replace" // replace the fibre, then the adapter or switch
	StepSupport Step = "support" // contact the vendor
)

// Steps returns the steps of the ladder in their order.
func Steps() []Step {
	return []Step{StepReset, StepReseat, StepClean, StepSwap, StepReplace, StepSupport}
}

// ParseStep returns the step of a name.
func ParseStep(name string) (Step, error) {
	if s := Step(name); slices.Contains(Steps(), s) {
		return s, nil
	}
	var names []string
	for _, s := range Steps() {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("unknown step %.40q%s; supported: %s", name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
}

// PastStep is a step that was proposed for a link or port, or done there.
type PastStep struct {
	Port Place  `json:"port"`
	Peer Place  `json:"peer,omitzero" optional:"the other end is unknown"`
	Name string `json:"name"` // of the link when the step was last proposed or done
	Step Step   `json:"step"`
	// Proposed is when a ticket last proposed it, and Done when it was last done; zero: never.
	Proposed time.Time `json:"proposed,omitzero" optional:"it was not proposed"`
	Done     time.Time `json:"done,omitzero" optional:"it was not done"`
}

// stepAgain is how long a step that was proposed or done is not proposed again: UFM's
// pdr_deterministic_plugin counts resets of a port for a week.
const stepAgain = 7 * 24 * time.Hour

// StepsOf returns the steps for the link of p, or for p without one, in the order in which they
// were first recorded.
func (s *State) StepsOf(p *fabric.Port) (list []*PastStep) {
	port, peer := PlaceOf(p), Place{}
	if p.Peer() != nil {
		peer = PlaceOf(p.Peer())
	}
	for _, x := range s.Steps {
		if x.of(port, peer) {
			list = append(list, x)
		}
	}
	return list
}

// of reports whether x is of the link with these ends; peer may be the zero Place. A link that is moved to
// another port at one end is another one.
func (x *PastStep) of(port, peer Place) bool {
	switch {
	case x.Port == port:
		return x.Peer == peer || x.Peer == (Place{}) || peer == (Place{})
	case x.Peer == port:
		return x.Port == peer || peer == (Place{})
	}
	return x.Port == peer && x.Peer == (Place{}) && peer != (Place{})
}

// step changes the state by an entry with a step.
func (s *State) step(e *Entry) {
	if e.Port == (Place{}) || e.Rule != "" {
		return
	}
	i := slices.IndexFunc(s.Steps, func(x *PastStep) bool { return x.Step == e.Step && x.of(e.Port, e.Peer) })
	if i < 0 {
		i = len(s.Steps)
		s.Steps = append(s.Steps, &PastStep{Port: e.Port, Step: e.Step})
	}
	x := s.Steps[i]
	x.Name = e.Name
	if e.Peer != (Place{}) {
		x.Port, x.Peer = e.Port, e.Peer
	}
	if e.Kind == KindStep {
		x.Done = e.At
	} else {
		x.Proposed = e.At
	}
	s.forgetSteps(e.At)
}

// forgetSteps drops steps that are too old, and the oldest ones of too many.
func (s *State) forgetSteps(now time.Time) {
	latest := func(x *PastStep) time.Time { return slices.MaxFunc([]time.Time{x.Proposed, x.Done}, time.Time.Compare) }
	s.Steps = slices.DeleteFunc(s.Steps, func(x *PastStep) bool { return now.Sub(latest(x)) >= forgetAfter })
	if len(s.Steps) > maxPorts {
		oldest := slices.MinFunc(s.Steps, func(a, b *PastStep) int { return cmp.Compare(latest(a).UnixNano(), latest(b).UnixNano()) })
		s.Steps = slices.DeleteFunc(s.Steps, func(x *PastStep) bool { return x == oldest })
	}
}

// week implements the rule "week", for the ticket that is judged.
func (x *decider) week(now time.Time, a *Action) string {
	port, peer := placesOf(a)
	if a.Step == "" || port == (Place{}) {
		return ""
	}
	within := func(t time.Time) bool { return !t.IsZero() && now.Sub(t) < stepAgain }
	for _, s := range x.State.Steps {
		if s.Step != a.Step || !s.of(port, peer) {
			continue
		}
		switch {
		case within(s.Done):
			return fmt.Sprintf("%s was done at %s", s.Step, s.Done.UTC().Format(timeFormat))
		case within(s.Proposed):
			return fmt.Sprintf("%s was proposed at %s; when it is done, record it: fabsh remedy log add LINK %[1]s", s.Step, s.Proposed.UTC().Format(timeFormat))
		}
	}
	key := stepKey{port, a.Step}
	if x.steps[key] || x.steps[stepKey{peer, a.Step}] {
		return fmt.Sprintf("%s is proposed for this link already", a.Step)
	}
	x.steps[key] = true
	return ""
}

// stepKey is a step at a port.
type stepKey struct {
	Place
	Step
}

// placesOf returns the ends of the link, or the port, that a ticket is about; none of others.
func placesOf(a *Action) (port, peer Place) {
	for i, end := range a.Subject.Ends {
		if end.Num < 0 {
			return Place{}, Place{}
		}
		if place := (Place{end.Node, end.Num}); i == 0 {
			port = place
		} else {
			peer = place
		}
	}
	return port, peer
}

// AddStep records in the log at path that a step was done for the link of p, or for p without
// one. who did it, and note, may be empty.
func AddStep(path string, p *fabric.Port, step Step, who, note string, now time.Time) error {
	e := Entry{At: now, Kind: KindStep, Step: step, Port: PlaceOf(p), Name: nameOf(p), By: who, Reason: note}
	if q := p.Peer(); q != nil {
		e.Peer = PlaceOf(q)
	}
	_, err := update(path, func(l *Log) ([]Entry, error) {
		if past := l.State.Of(p); e.Peer == (Place{}) && past != nil { // the link is isolated
			e.Port, e.Peer, e.Name = past.Port, past.Peer, past.Name
		}
		return []Entry{e}, nil
	})
	return err
}
