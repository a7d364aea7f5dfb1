// Package session opens and ends sessions of the program: from its settings and a fabric to a
// builtins.Session whose evaluations are limited, and whose failures are reported to people.
//
// A Program is one run of fabsh; its sessions share Settings (the session flags), the Console
// and the Interrupts. A Session has one connection; its Runner evaluates code within the
// limits of time and memory and determines the exit status.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"fabsh/builtins"
	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/format"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Session is a builtins.Session with the connection to its fabric.
type Session struct {
	*builtins.Session
	Engine   *engine.Engine // nil: no live fabric
	Name     string         // of the fabric, in the prompt
	Console  *Console
	Runner   *Runner
	Secrets  Secrets
	StateDir string // for state kept between runs; "": none is read or kept
	// StdinIsTerminal reports whether a user types the input.
	StdinIsTerminal bool

	interrupts *Interrupts
	plan       *plan                   // of --plan; nil: writes are sent
	recorded   *recorded               // by --record; nil: nothing is
	serving    *Serving                // nil: the code that runs is the user's
	options    builtins.SessionOptions // of the builtins.Session
}

// Opening is how a session is opened, besides settings. The zero value is usable.
type Opening struct {
	Script string       // what runs; names its state. "": no script
	Keys   *engine.Keys // without --keys
	// Changing is set for a command on changes, which reports open changes itself.
	Changing bool
	// Serving is set if the session runs code of clients of a server.
	Serving *Serving
	// Proof are the options for the proof of the plan of --plan.
	Proof changes.ProofOptions
	// Replace returns the fabric to open if none is named, and the host has no device
	// because of absent. If it is nil the session has no fabric, and functions that
	// need one report that.
	Replace func(absent error) (spec string, err error)
	// NoKeys uses no keys, not even the keys of the site.
	NoKeys bool
	// Wrap returns the transport in place of the fabric's own. It may be nil.
	Wrap func(engine.Transport) (engine.Transport, error)
}

// Open opens the fabric that the settings of p name, and a session on it.
func Open(ctx context.Context, p *Program, o Opening) (*Session, error) {
	if o.Serving != nil && o.Serving.Loaded != nil {
		return New(p, Base{Serving: o.Serving, Connection: &Connection{Name: "the last reading"}})
	}
	spec, given := p.Settings.FabricSpec()
	b := Base{Script: o.Script, Changing: o.Changing, Serving: o.Serving, Proof: o.Proof}
	var err error
	if b.Keys, b.Secrets, err = p.ReadKeys(ctx); err != nil {
		return nil, Late(err)
	}
	kind, _, _ := strings.Cut(spec, ":")
	if b.Names, err = p.NodeNames(ctx, kind); err != nil {
		return nil, Late(err)
	}
	settings := *p.Settings
	site := readSite(settings.siteFolder(), kind, &settings, p.Warn)
	b.Keys, b.Secrets, b.PlainSpeeds = cmp.Or(b.Keys, o.Keys, site.keys), append(b.Secrets, site.secrets...), site.plainSpeeds
	if o.NoKeys || o.Serving != nil {
		b.Keys = nil
	}
	p = p.With(settings)
	b.Connection, b.Absent = Connect(ctx, p.Settings, b.Secrets, spec)
	switch {
	case b.Absent == nil:
	case given:
		return nil, b.Absent
	case o.Replace != nil:
		if spec, err = o.Replace(b.Absent); err != nil {
			return nil, err
		}
		if b.Connection, err = Connect(ctx, p.Settings, b.Secrets, spec); err != nil {
			return nil, err
		}
	}
	if b.Connection != nil {
		for _, err := range b.Connection.warnings {
			p.Warn("%v", err)
		}
		if err := b.Connection.wrap(o.Wrap); err != nil {
			return nil, err
		}
	}
	return New(p, b)
}

// Base is the base of a session. New completes its facts from the settings and the connection.
type Base struct {
	topology.Facts

	Connection *Connection // nil: no fabric, because of Absent
	Keys       *engine.Keys
	Secrets    Secrets
	Script     string // what runs; names its state. "": no script
	Changing   bool   // a command on changes, which reports open changes itself
	Serving    *Serving
	Proof      changes.ProofOptions // of --plan
}

// facts returns the facts of a session with the settings s and the engine e.
func (b *Base) facts(s *Settings, c *Connection, e *engine.Engine, client *sa.Client) topology.Facts {
	f := b.Facts
	f.Engine, f.SA, f.Sim, f.Control, f.Loaded, f.Host, f.HostPorts = e, client, c.sim, c.control, c.loaded, c.host, c.ports
	f.History = c.history
	f.Write, f.ReadOnly, f.OverrideSM, f.TrapAgent = e != nil && e.Write(), s.ReadOnly, s.OverrideSM, s.TrapAgent
	f.BesideManager = e != nil && e.Traits().Name == "umad" && c.control == nil
	f.State, f.Job, f.User, f.Version = s.stateDir(c), jobOf(b.Script), Login(), Version()
	return f
}

// New makes a session on b.
func New(p *Program, b Base) (*Session, error) {
	settings, c := p.Settings, b.Connection
	if c == nil {
		c = &Connection{Name: "no fabric"}
	}
	p.Console.SetColor(settings.Color, settings.Output())
	if settings.NoPager {
		p.Console.DisablePager()
	}
	if err := c.record(settings.Record); err != nil {
		return nil, err
	}
	if b.Serving != nil {
		settings = b.Serving.settings(settings)
	}
	clock := c.clock
	if settings.VirtualTime && b.Connection != nil { // else nothing runs that waits, such as for --help
		if c.sim == nil {
			return nil, errors.New("--virtual-time: not supported without a fabric that is simulated in this process (-F sim)")
		}
		clock = lang.NewVirtualClock()
	}
	if clock == nil {
		clock = machineClock{}
	}
	s := &Session{Name: c.Name, Console: p.Console, Secrets: b.Secrets, StateDir: settings.stateDir(c), StdinIsTerminal: p.StdinIsTerminal(), interrupts: p.Interrupts, serving: b.Serving, recorded: c.recorded}
	client := settings.saClient()
	if c.transport != nil {
		o := settings.engineOptions(c.transport, b.Keys)
		o.Resolve = client.Resolve
		s.Engine = engine.New(b.Serving.engine(c.transport, &o))
	}
	s.Runner = &Runner{engine: s.Engine, console: p.Console, interrupts: p.Interrupts, settings: settings, began: time.Now()}
	o := builtins.SessionOptions{
		Facts:   b.facts(settings, c, s.Engine, client),
		Stdout:  p.Console.Out(),
		Stderr:  p.Console.Err(),
		Format:  settings.Output(),
		View:    settings.View(),
		Include: settings.Include,
		Out:     settings.Out,
		Secrets: b.Secrets,
		Flags:   settings.Names(),
		Quiet:   settings.Quiet,
		Verbose: settings.Verbose,
		Help:    p.Help,
		Clock:   clock,
		Width:   p.Console.Width,
		Shaded:  p.Console.Shaded,
	}
	if !settings.Quiet {
		s.Runner.progress = &progress{console: p.Console, idle: s.Runner.doing}
		o.Progress = s.Runner.progress.set
	}
	if p.StartGuard != nil {
		o.StartGuard = func(ctx context.Context, journal string) (apply.Guard, error) {
			return p.StartGuard(ctx, s.Engine, journal)
		}
	}
	if b.Serving != nil {
		b.Serving.options(&o)
	}
	s.options = o
	if settings.Out != "" {
		if err := format.CheckDirectory(settings.Out); err != nil {
			return nil, errors.Join(fmt.Errorf("--out: %w", err), s.CloseEngine())
		}
	}
	var err error
	if s.Session, err = builtins.NewSession(o); err != nil {
		return nil, errors.Join(err, s.CloseEngine())
	}
	s.Runner.session = s.Session
	p.Interrupts.OnExit(s.Leave)
	if s.Engine != nil && !b.Changing {
		s.warnUnended()
	}
	if settings.PlanFile != "" {
		if err := s.startPlan(settings.PlanFile, b.Proof); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Settings) saClient() *sa.Client {
	client := &sa.Client{SMLID: mad.LID(s.SMLID.Value), PKey: uint16(s.PKey.Value)}
	if s.SL.IsSet {
		sl := uint8(s.SL.Value)
		client.SL = &sl
	}
	return client
}

func (s *Settings) engineOptions(t engine.Transport, keys *engine.Keys) engine.Options {
	o := engine.Options{
		Keys:    keys,
		Window:  s.Window.Value,
		Timeout: s.Timeout.Value,
		Retries: s.Retries.Value,
		Write:   !s.ReadOnly && s.PlanFile == "" && (s.Write || t.Traits().Simulated),
	}
	if o.Retries == 0 {
		o.Retries = -1 // none; 0 is the engine's default
	}
	return o
}

// warnUnended warns about a change of this fabric that was interrupted, and about
// damaged journals, which may hide one.
func (s *Session) warnUnended() {
	b, damaged := changes.HostOf(s.Runtime).Unended(context.Background())
	if b != nil {
		s.Warn("interrupted change %q by %s: see fabsh change status; resume or revert it, or end it without a write (change revert --abandon)", b.Summary, cmp.Or(b.By, "somebody"))
	}
	for _, err := range damaged {
		s.Warn("%v", err)
	}
}

// Close ends the subscriptions and closes the transport.
func (s *Session) Close() error {
	s.interrupts.OnExit(func() {})
	s.Session.Close()
	return s.CloseEngine()
}

// Leave does what must be done before the program ends without Close: agents keep
// subscriptions and places until they are released.
func (s *Session) Leave() {
	s.Session.Unsubscribe()
	s.Console.Fail(Named("", s.CloseEngine()))
}

// CloseEngine closes only the transport.
func (s *Session) CloseEngine() error {
	if s.Engine == nil {
		return nil
	}
	if err := s.Engine.Close(); err != nil {
		return &HostError{err}
	}
	return nil
}

// InProcess reports whether the fabric is simulated in this process, so that no other
// process reaches it.
func (s *Session) InProcess() bool { return s.Engine != nil && s.Engine.Traits().Name == "sim" }

// NoLive returns the error of a command that needs a live fabric, in a session without
// one: the host has no device, or ofFile.
func (s *Session) NoLive(ofFile string) error {
	if absent := topology.EnvOf(s.Runtime).Absent; absent != nil {
		return &HostError{fmt.Errorf("%w: %w", topology.ErrNoFabric, absent)}
	}
	return errors.New(ofFile)
}

// plan is the plan that --plan makes of the writes of a session.
type plan struct {
	file     string
	planning *changes.Recording
}

// startPlan records the writes of the session instead of sending them.
func (s *Session) startPlan(file string, proof changes.ProofOptions) error {
	if s.Engine == nil {
		return s.NoLive("this session has no fabric that can be changed; a plan needs a live or a simulated one (-F)")
	}
	planning, err := changes.StartRecording(context.Background(), s.Runtime, proof)
	s.plan = &plan{file, planning}
	return err
}

// endPlan writes the plan, if one is being made, and reports its verdict. what is what
// ran, and status its exit status; the result is the status of both.
func (s *Session) endPlan(operation string, status int, what string) int {
	if s.plan == nil {
		return status
	}
	if status >= lang.StatusUsage {
		s.Warn("no plan written, because of the error above")
		return status
	}
	return Worse(status, s.Runner.Evaluate(func(ctx context.Context) error {
		return Named(operation, lang.Protect("plan", func() error { return s.writePlan(ctx, what, operation == "change plan") }))
	}))
}

// PlanWhile records the writes of run in a plan file instead of sending them. what is
// the origin of the plan, which is proven with options.
func (s *Session) PlanWhile(ctx context.Context, file, what string, proof changes.ProofOptions, run func() error) error {
	if s.plan != nil {
		return errors.New("--plan: this session already records its changes in " + s.plan.file)
	}
	defer func() { s.plan = nil }()
	if err := s.startPlan(file, proof); err != nil {
		return err
	}
	var exit *lang.ExitError
	if err := run(); err != nil && !(errors.As(err, &exit) && exit.Code < lang.StatusUsage) {
		s.plan.planning.Stop()
		return err
	}
	return s.writePlan(ctx, what, true)
}

// writePlan writes the plan, and prints its verdict; with result, the plan is also the output of the session.
func (s *Session) writePlan(ctx context.Context, what string, result bool) error {
	p, err := s.plan.planning.Finish(ctx, what)
	if err != nil {
		return err
	}
	if err := p.Save(ctx, s.plan.file); err != nil {
		return NotWritten(s.plan.file, err)
	}
	for line := range strings.Lines(p.Line(p.Report)) { // of several refusals
		s.Print(lang.OneLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	if p.Report.Effect != nil {
		for _, line := range p.Report.Effect.Lines() {
			s.Print(lang.OneLine(line) + "\n")
		}
	}
	if result && s.Format != lang.FormatText { // the lines above go to standard error
		if err := s.Show(&changes.Value{Plan: p}); err != nil {
			return err
		}
	}
	if p.Target != nil && p.Base.Manager != nil && !s.Engine.Traits().Simulated {
		s.Warn("analysis only while %v is in charge: it would assign other service levels, and write other virtual lanes; %s", p.Base.Manager, p.Target.RunInstead())
	}
	if !p.Report.OK {
		return Exit(lang.StatusFindings)
	}
	return nil
}

// Serving is how a session runs code of clients of a server. The engine sends only requests that
// read, without keys. Scripts and commands read only files that are shipped or below -I. Nothing
// is written, and no state is kept.
type Serving struct {
	Transport   func(engine.Transport) engine.Transport // wraps the transport
	BeforeSweep func(context.Context) error             // called before each sweep
	Recent      func() *fabric.Fabric                   // returns a sweep to use instead; nil: none
	Reads       *topology.RecentReads                   // what earlier evaluations have read; nil: all is read
	Progress    func(string)                            // receives the progress of an evaluation
	// Loaded returns the fabric of the next Renew, which another session has read; nil: none yet. The
	// session then has no fabric that requests could reach. A nil Loaded: the session opens one.
	Loaded func() *fabric.Fabric
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
	o.BeforeSweep, o.Recent, o.RecentReads, o.Progress = v.BeforeSweep, v.Recent, v.Reads, v.Progress
	o.State, o.StartGuard = "", nil
}

// KeepsNothing reports whether the session only reads state kept between runs.
func (s *Session) KeepsNothing() bool { return s.serving != nil }

// Renew replaces the builtins.Session by a new one on the same fabric: nothing of earlier
// evaluations remains, such as modules, or the latest fabric. It must not be called while
// something runs.
func (s *Session) Renew() error {
	if s.serving != nil && s.serving.Loaded != nil {
		if s.options.Loaded = s.serving.Loaded(); s.options.Loaded == nil {
			return errors.New("the fabric is not read yet; try again in a few seconds")
		}
	}
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

// machineClock is the machine's time, with the time since its boot.
type machineClock struct{ lang.RealClock }

func (machineClock) Uptime() (boot string, up time.Duration) { return uptime() }
