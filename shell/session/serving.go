package session

import (
	"context"

	"fabsh/builtins"
	"fabsh/fabric/format"
	"fabsh/mad/engine"
)

// Serving is how a session runs code of clients of a server. The engine sends only requests that
// read, without keys. Scripts and commands read only files that are shipped or below -I. Nothing
// is written, and no state is kept.
type Serving struct {
	Transport   func(engine.Transport) engine.Transport // wraps the transport
	BeforeSweep func(context.Context) error             // called before each sweep
	Progress    func(string)                            // receives the progress of an evaluation
}

// settings returns s with what a server does not allow turned off.
func (v *Serving) settings(s *Settings) *Settings {
	confined := *s
	confined.Write, confined.ReadOnly = false, true
	return &confined
}

// engine returns the transport of the session's engine, and its options. v may be nil.
func (v *Serving) engine(t engine.Transport, o *engine.Options) (engine.Transport, engine.Options) {
	if v == nil {
		return t, *o
	}
	o.OnlyReads = true
	return v.Transport(t), *o
}

// options restricts the options of the builtins.Session.
func (v *Serving) options(o *builtins.SessionOptions) {
	o.Confined, o.Sealed, o.Documents = true, true, true
	o.BeforeSweep, o.Progress = v.BeforeSweep, v.Progress
	o.State, o.StartGuard = "", nil
}

// KeepsNothing reports whether the session only reads state kept between runs.
func (s *Session) KeepsNothing() bool { return s.serving != nil }

// Renew replaces the builtins.Session by a new one on the same fabric: nothing of earlier
// evaluations remains, such as modules, or the latest fabric. It must not be called while
// something runs.
func (s *Session) Renew() error {
	next, err := builtins.NewSession(s.options)
	if err != nil {
		return err
	}
	s.Session.Close()
	s.Session, s.Runner.session = next, next
	return nil
}

// Included returns what opens files that a file of the command line names.
func (s *Session) Included(ctx context.Context) format.Opener {
	if s.serving != nil {
		return OpenNamed(ctx, s.Files.Open)
	}
	return s.Secrets.Open
}
