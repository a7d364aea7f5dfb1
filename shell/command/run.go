// Package command has the commands of fabsh. Each declares its flags, parses its words into
// a struct, runs on an open session, and ends with an error or an exit status.
//
//	run.go          a command in a session; All: the list of commands; tables
//	program.go      scripts, and what they declare; commandflag.go, the flags of commands
//	                that share a command line with one
//	atprompt.go     the commands that run at the prompt too
//	audit.go        audit; auditrails.go, its --each-port, and audits of this host;
//	                auditnodes.go, -o nodes; auditack.go, its acks
//	remedy.go       remedy; remedylog.go, its log
//	report.go       report, and its page of HTML
//	route.go        route; routewatch.go, its --watch
//	verify.go       verify, and the checks that it shares with route
//	changeplan.go   change plan; changecheck.go, show and check;
//	                changeapply.go, apply and resume;
//	                changeend.go, confirm, revert and status; changeguard.go, the guard
//	                process
//	trial.go        trial; trialreport.go, its report as a value; trialtools.go, other
//	                tools of the host
//	snapshot.go     snapshot; graph.go, diff.go, topology.go, exporter.go, top.go, tour.go,
//	                sim.go, decode.go, ports.go, new.go, test.go, fmt.go, check.go, lsp.go:
//	                the commands of these names; simrun.go, simscenario.go: sim --run,
//	                --scenario and --log
//	mcp.go          mcp; its tools are also beside their commands; mcpprocess.go, the process
//	                that serves
//	doc.go          version, doc and examples
//	help.go         help, and the pages of commands
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/shell/session"
)

// All returns the commands, without help. newRoot returns the root command of a program.
func All(p *session.Program, newRoot func(*session.Program) *cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		auditCommand(p), remedyCommand(p), reportCommand(p), routeCommand(p), verifyCommand(p), snapshotCommand(p), diffCommand(p), exporterCommand(p),
		changeCommand(p), topologyCommand(p), graphCommand(p), topCommand(p), tourCommand(p, newRoot), simCommand(p), decodeCommand(p),
		portsCommand(p), trialCommand(p), mcpCommand(p, newRoot), newCommand(p), testCommand(p), checkCommand(p), fmtCommand(p), lspCommand(p), versionCommand(p), docCommand(p), examplesCommand(p),
	}
}

// task is the work of a command in a session.
type task struct {
	name string // of the command
	plan string // origin of a plan, for its file; "": the name
	time session.TimeLimit
	open func(context.Context) (*session.Session, error)
	run  func(context.Context, *session.Session) error
}

// onFabric runs a command on the fabric that the session flags name. name is the
// command's.
func onFabric(p *session.Program, name string, run func(context.Context, *session.Session) error) error {
	return execute(p, task{name: name, time: p.StartTime(), run: run})
}

// withoutFabric runs a command that needs none.
func withoutFabric(p *session.Program, name string, run func(context.Context, *session.Session) error) error {
	open := func(context.Context) (*session.Session, error) {
		return session.New(p, session.Base{Absent: topology.ErrNoFabric})
	}
	return execute(p, task{name: name, time: p.StartTime(), open: open, run: run})
}

// execute runs a task on the fabric that the session flags name, unless the task opens
// a session itself. The error is why it did not run, or the exit status.
func execute(p *session.Program, t task) error {
	if p.Settings.Given("command") {
		return errors.New("-c: not supported by commands; leave it out")
	}
	if err := p.Settings.Check(); err != nil {
		return err
	}
	if p.Line != nil {
		return t.atPrompt(p)
	}
	if t.open == nil {
		t.open = func(ctx context.Context) (*session.Session, error) { return session.Open(ctx, p, session.Opening{}) }
	}
	return p.Profiled(func() (status int, err error) {
		return p.Evaluate(t.time, cmp.Or(t.plan, t.name), t.open, func(s *session.Session) int {
			return s.Runner.Evaluate(func(ctx context.Context) error {
				return lang.Protect(t.name, func() error { return t.run(ctx, s) })
			})
		})
	})
}

// atPrompt runs a task in the session of the prompt.
func (t task) atPrompt(p *session.Program) error {
	s := p.Line.Session
	format, levels, risk := s.Format, s.Env.Levels, s.Env.AcceptCreditLoops
	defer func() { s.Format, s.Env.Levels, s.Env.AcceptCreditLoops = format, levels, risk }()
	s.Format = p.Settings.Output()
	defer s.Files.Scope()() // a script of the command has its own
	if s.Engine != nil {    // the command reads the current fabric
		before := s.Env.Current
		s.Env.Current = nil
		defer func() {
			if s.Env.Current == nil {
				s.Env.Current = before
			}
		}()
	}
	return lang.Protect(t.name, func() error { return t.run(p.Line.Context, s) })
}

// renderTable returns a table of a command that opens no fabric, in the format of -o, with
// the rows and columns of --where and --columns. name is the prefix of its metrics.
func renderTable(s *session.Settings, warnings io.Writer, v starlark.Value, name string) (string, error) {
	v, err := viewOf(s, warnings)(v)
	if err != nil {
		return "", err
	}
	return audits.RenderMetrics(v, s.Output(), name)
}

// viewOf returns the function that selects the rows and columns of --where and --columns.
func viewOf(s *session.Settings, warnings io.Writer) func(starlark.Value) (starlark.Value, error) {
	r := &lang.Runtime{View: s.View(), Format: s.Output(), DidYouMean: fabric.DidYouMean, Quiet: s.Quiet, Stderr: warnings, Activity: new(lang.Activity)}
	return func(v starlark.Value) (starlark.Value, error) { return r.ViewOf(nil, v, r.Format) }
}

// noTable returns an error if the command line selects rows or columns of a command that shows
// no table; why is the reason.
func noTable(p *session.Program, command, why string) error {
	for _, flag := range []string{"where", "columns"} {
		if p.Settings.Given(flag) {
			return fmt.Errorf("%s: --%s: not supported: %s", command, flag, why)
		}
	}
	return nil
}
