package remedy

import (
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// State is the sum of the entries of a log.
type State struct {
	// Runs are the times of the findings of the latest runs, the newest last.
	Runs []time.Time `json:"runs,omitempty" optional:"no run was recorded"`
	// Ports are the ports with a past, in the order in which they got one.
	Ports []*Past `json:"ports,omitempty" optional:"no port has a past"`
	// Steps are the steps of repair that were proposed or done.
	Steps []*PastStep `json:"steps,omitempty" optional:"no step was proposed or done"`
	// Refused is how many actions were declined, ever; steps of repair do not count.
	Refused uint64 `json:"refused,omitempty" optional:"0"`
}

// Past is the past of a link.
type Past struct {
	Port Place  `json:"port"` // where it is disabled
	Peer Place  `json:"peer,omitzero" optional:"the other end is unknown"`
	Name string `json:"name"` // when it was last up
	// Bad are the runs that proposed to isolate it, of State.Runs.
	Bad []time.Time `json:"bad,omitempty" optional:"no run proposed to isolate it"`
	// Planned is when it was last planned to isolate it, and Restoring when to enable it; zero:
	// the action was applied or is not planned.
	Planned   time.Time `json:"planned,omitzero" optional:"its isolation is not planned"`
	Restoring time.Time `json:"restoring,omitzero" optional:"it is not planned to enable it"`
	// Declined is the rule for all remedies that last declined to isolate it; "": none has since
	// it was planned.
	Declined string `json:"declined,omitempty" optional:"no rule declined it"`
	// Isolated is since when it is isolated, and Testing since when it is enabled for a test.
	Isolated time.Time `json:"isolated,omitzero" optional:"it is not isolated"`
	Testing  time.Time `json:"testing,omitzero" optional:"it is not enabled for a test"`
	// Times is how often it was isolated, and Last when it was last.
	Times int       `json:"times,omitempty" optional:"0"`
	Last  time.Time `json:"last,omitzero" optional:"it was never isolated"`
	// Restored is when it last passed its test.
	Restored time.Time `json:"restored,omitzero" optional:"it has passed no test"`
}

const (
	// keptRuns is the number of runs whose proposals are kept.
	keptRuns = 32
	// forgetAfter is how long the isolation of a link is remembered.
	forgetAfter = 180 * 24 * time.Hour
	// pendingFor is how long an action counts as planned if it is not applied.
	pendingFor = 24 * time.Hour
	// maxPorts limits the ports of a state. Isolated ports are never dropped.
	maxPorts = 5_000
)

// Pending reports whether an action that was planned at a time may still be applied. It is false
// if the time is in the future: the clock was set back.
func Pending(planned, now time.Time) bool {
	age := now.Sub(planned)
	return !planned.IsZero() && age >= 0 && age < pendingFor
}

// Of returns the past of the port, by either end of its link; nil: it has none.
func (s *State) Of(p *fabric.Port) *Past {
	if past := s.at(PlaceOf(p)); past != nil || p.Peer() == nil {
		return past
	}
	return s.at(PlaceOf(p.Peer()))
}

// at returns the past of the link with an end at a place.
func (s *State) at(place Place) *Past {
	for _, past := range s.Ports {
		if past.Port == place || past.Peer == place && place != (Place{}) {
			return past
		}
	}
	return nil
}

// Isolated returns the ports that fabsh has isolated, and that are still disabled in f.
func (s *State) Isolated(f *fabric.Fabric) (list []*Past) {
	for _, past := range s.Ports {
		if p := past.Port.In(f); !past.Isolated.IsZero() && p != nil && p.PhysicalState() == mad.PortPhysicalStateDisabled {
			list = append(list, past)
		}
	}
	return list
}

// Released returns entries for ports that another has enabled, or has disabled in their test:
// they are no longer fabsh's.
func (s *State) Released(f *fabric.Fabric, now time.Time) (entries []Entry) {
	for _, past := range s.Ports {
		p := past.Port.In(f)
		if p == nil || p.Info() == nil || Pending(past.Planned, now) || Pending(past.Restoring, now) {
			continue
		}
		disabled := p.PhysicalState() == mad.PortPhysicalStateDisabled
		why := ""
		switch {
		case !past.Isolated.IsZero() && !disabled:
			why = "the port is enabled, and not by a remedy"
		case !past.Testing.IsZero() && disabled:
			why = "the port is disabled, and not by a remedy"
		default:
			continue
		}
		entries = append(entries, Entry{At: now, Kind: KindReleased, Port: past.Port, Peer: past.Peer, Name: past.Name, Why: why})
	}
	return entries
}

// With returns a copy of the state that entries have changed.
func (s *State) With(entries []Entry) *State {
	c := &State{Runs: slices.Clone(s.Runs), Refused: s.Refused}
	for _, past := range s.Ports {
		p := *past
		p.Bad = slices.Clone(p.Bad)
		c.Ports = append(c.Ports, &p)
	}
	for _, x := range s.Steps {
		step := *x
		c.Steps = append(c.Steps, &step)
	}
	for i := range entries {
		c.Add(&entries[i])
	}
	return c
}

// Add changes the state by an entry.
func (s *State) Add(e *Entry) {
	if e.Kind == KindRun {
		s.run(e)
		return
	}
	if e.Kind == KindDecision && e.Rule != "" && e.Step == "" {
		s.Refused++
	}
	if e.Step != "" {
		s.step(e)
		return
	}
	if e.Port == (Place{}) || e.Action == Reset || e.Action == Ticket {
		return
	}
	if e.Action == Isolate && e.Peer != (Place{}) {
		s.moved(e.Port, e.Peer)
	}
	past := s.at(e.Port)
	switch {
	case past == nil && (e.Action != Isolate || e.Kind == KindReleased):
		return
	case past == nil:
		past = &Past{Port: e.Port}
		s.Ports = append(s.Ports, past)
	}
	if e.Action == Isolate && e.Peer != (Place{}) {
		if past.Isolated.IsZero() && past.Testing.IsZero() {
			past.Port = e.Port
		}
		past.Name = e.Name
		if past.Peer = e.Peer; past.Port == e.Peer {
			past.Peer = e.Port
		}
	}
	switch e.Kind {
	case KindDecision:
		past.decided(e, s.Runs)
	case KindApplied:
		if e.Action == Isolate {
			*past = Past{Port: past.Port, Peer: past.Peer, Name: past.Name, Bad: past.Bad, Isolated: e.At, Last: e.At, Times: past.Times + 1, Restored: past.Restored}
		} else {
			past.Isolated, past.Restoring, past.Testing = time.Time{}, time.Time{}, e.At
		}
	case KindReleased:
		past.Isolated, past.Testing, past.Planned, past.Restoring = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	}
}

// moved separates the link of two places from isolated ports that were linked to one of them,
// before the cable was moved.
func (s *State) moved(p, q Place) {
	for _, past := range s.Ports {
		if !past.Isolated.IsZero() && past.Port != p && past.Port != q && (past.Peer == p || past.Peer == q) {
			past.Peer = Place{}
		}
	}
}

// decided changes the past by a decision of the latest of runs.
func (p *Past) decided(e *Entry, runs []time.Time) {
	switch {
	case e.Action == Isolate:
		if n := len(runs); n > 0 && !slices.ContainsFunc(p.Bad, runs[n-1].Equal) {
			p.Bad = append(p.Bad, runs[n-1])
		}
		if e.Rule == "" || slices.ContainsFunc(Rules(), func(r Rule) bool { return r.Name == e.Rule }) {
			p.Declined = e.Rule
		}
		// A plan may be under way already: its journal began after the first.
		if e.Rule == "" && !Pending(p.Planned, e.At) {
			p.Planned = e.At
		}
	case e.Rule != "":
	case e.Kept:
		p.Testing, p.Restored = time.Time{}, e.At
	case !Pending(p.Restoring, e.At):
		p.Restoring = e.At
	}
}

// run begins a run. A run on the same findings as one before is part of it, and counts once.
func (s *State) run(e *Entry) {
	s.Runs = append(slices.DeleteFunc(s.Runs, e.Of.Equal), e.Of)
	s.Runs = s.Runs[max(0, len(s.Runs)-keptRuns):]
	for _, past := range s.Ports {
		past.Bad = slices.DeleteFunc(past.Bad, func(t time.Time) bool { return !slices.ContainsFunc(s.Runs, t.Equal) })
	}
	excess := len(s.Ports) - maxPorts
	s.Ports = slices.DeleteFunc(s.Ports, func(past *Past) bool {
		if !past.Isolated.IsZero() || !past.Testing.IsZero() {
			return false
		}
		idle := len(past.Bad) == 0 && !Pending(past.Planned, e.At) && e.At.Sub(past.Last) >= forgetAfter
		excess--
		return idle || excess >= 0
	})
}
