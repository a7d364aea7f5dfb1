package session

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"fabsh/fabric/audit"
)

// Line is a command that was typed at the prompt: it runs in the prompt's session, and
// opens none.
type Line struct {
	Context context.Context // ends when the command must stop
	Session *Session
	Words   []string

	// Results, for the tour.
	Named  string        // the report that ran; "": none
	Report *audit.Report // from audits; nil: none ran
}

// Ran records the report that the command ran. l may be nil.
func (l *Line) Ran(named string) {
	if l != nil {
		l.Named = named
	}
}

// Audited records a report of audits. l may be nil.
func (l *Line) Audited(r *audit.Report) {
	if l != nil {
		l.Report = r
	}
}

// Typed returns p for a command typed at the prompt. Its settings have no flags yet.
func (p *Program) Typed(l *Line) *Program {
	typed := p.With(Settings{})
	typed.Line = l
	return typed
}

// Run calls fn with a context that ends with the first signal, or with the statement at
// the prompt.
func (p *Program) Run(fn func(context.Context) error) error {
	if p.Line != nil {
		return fn(p.Line.Context)
	}
	return p.Interrupts.Run(fn)
}

// TimeContext returns a context that ends with the time of a command.
func (p *Program) TimeContext(l TimeLimit) context.Context {
	if p.Line != nil {
		return p.Line.Context
	}
	return l.Context()
}

// Inherit gives s, whose flags are declared and not yet parsed, the values of an open
// session. Only the output format may then be set.
func (s *Settings) Inherit(from *Settings) {
	flags, groups := s.flags, s.groups
	*s = *from
	s.flags, s.groups = flags, groups
	for _, g := range groups {
		g.VisitAll(func(f *pflag.Flag) {
			f.Changed = from.Given(f.Name)
			if f.Name != "format" && f.Name != "csv-raw" {
				f.Value, f.Hidden = fixed{f.Value, f.Name}, true
			}
		})
	}
}

// fixed is the value of a flag that an open session does not change.
type fixed struct {
	pflag.Value
	flag string
}

func (f fixed) Set(string) error { return &FixedError{f.flag} }

// FixedError reports a flag that an open session does not change.
type FixedError struct{ Flag string }

func (e *FixedError) Error() string {
	return fmt.Sprintf("--%s: cannot be changed in an open session; start another one with fabsh --%[1]s", e.Flag)
}
