package shell

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"fabsh/builtins"
	"fabsh/mad"
)

// kind is a way to reach a fabric.
type kind struct {
	name  string
	usage string
	open  func(a *app, arg string) (*link, error)
}

// link is a fabric that was reached.
type link struct {
	transport mad.Transport // nil: a file
	name      string        // for the prompt
}

// kinds are all of them; the first is the default.
func kinds() []kind {
	return []kind{
		{"umad", "umad[:DEVICE/PORT]", openUmad},
	}
}

func kindsUsage() string {
	var usages []string
	for _, k := range kinds() {
		usages = append(usages, k.usage)
	}
	return strings.Join(usages, ", ")
}

// hostError is a failure of the host or the fabric rather than of the command.
type hostError struct{ err error }

func (e *hostError) Error() string { return e.err.Error() }
func (e *hostError) Unwrap() error { return e.err }

// open opens the fabric that the flags name, and a session on it.
func (a *app) open() (*session, error) {
	spec, given := a.fabricSpec()
	l, err := a.link(spec)
	if err != nil && given {
		return nil, err
	}
	s := &session{app: a}
	if l == nil {
		s.name = "no fabric"
	}
	if l != nil {
		s.name = l.name
		if l.transport != nil {
			s.engine = mad.NewEngine(l.transport, a.engineOptions(l.transport))
		}
	}
	s.progress = &progress{console: a.console, idle: s.doing}
	o := builtins.Options{
		Engine:     s.engine,
		Stdout:     a.console.Out(),
		Stderr:     a.console.Err(),
		Format:     builtins.Format(a.format),
		Write:      s.engine != nil && s.engine.Write(),
		OverrideSM: a.overrideSM,
		Include:    a.include,
		Quiet:      a.quiet,
		Verbose:    a.verbose,
		Progress:   s.progress.Tell,
	}
	if a.quiet {
		s.progress = nil
		o.Progress = nil
	}
	s.Session, err = builtins.NewSession(o)
	if err != nil {
		s.engineClose()
		return nil, err
	}
	a.interrupts.onExit(s.engineClose)
	return s, nil
}

// doing is what the engine does, for the progress line.
func (s *session) doing() string {
	if s.engine == nil {
		return "working"
	}
	st := s.engine.Stats()
	return fmt.Sprintf("%d MADs sent, %d answered", st.Sent, st.Answered)
}

func (a *app) engineOptions(t mad.Transport) mad.Options {
	o := mad.Options{
		Window:  a.window.value,
		Timeout: a.timeout.value(),
		Retries: a.retries.value,
		Write:   !a.readOnly && (a.write || t.Traits().Simulated),
	}
	if o.Retries == 0 {
		o.Retries = -1 // none; 0 is the engine's default
	}
	return o
}

func (a *app) link(spec string) (*link, error) {
	name, arg, _ := strings.Cut(spec, ":")
	var names []string
	for _, k := range kinds() {
		if k.name == name {
			return k.open(a, arg)
		}
		names = append(names, k.name)
	}
	return nil, fmt.Errorf("-F %s: no such kind of fabric%s: use %s", spec, didYouMean(name, names), kindsUsage())
}

// openUmad reports what is there. A driver for it is yet to come.
func openUmad(a *app, arg string) (*link, error) {
	if len(devices("/sys/class/infiniband")) == 0 {
		return nil, &hostError{errors.New("no InfiniBand device on this host (/sys/class/infiniband is empty); -F sim is a simulated fabric, -F ibsim one of ibsim's")}
	}
	return nil, &hostError{errors.New("this version cannot open InfiniBand devices; -F sim is a simulated fabric, -F ibsim one of ibsim's, -F file:PATH a saved one")}
}

func devices(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
