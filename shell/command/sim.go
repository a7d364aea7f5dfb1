package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/run"
	"fabsh/fabric/sim/server"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/shell/session"
)

// The help of sim.
const (
	simDoc = `Write the topology of a simulated fabric in the format of ibnetdiscover, which ibsim,
-F file: and -F sim: read.

SPEC is KIND[:KEY=VALUE,...] as with -F sim:. The kinds are fattree, pgft, ring,
mesh, torus, hyperx, dragonfly, dragonfly+, slimfly, random; or a topology file. All of them accept
remove_links=, remove_switches= and seed=, which leave parts out.

--listen serves the fabric by the sockets of ibsim until it is interrupted: programs
with libumad2sim preloaded attach to it as to ibsim, and fabsh with -F ibsim:NAME. With
--bare the fabric is in the state after power-on, for a subnet manager to bring up;
with --no-sm it is up, with LIDs and tables, and its subnet manager has stopped, as to
practise a change; without both it is up, and has a subnet manager. --console reads commands of
ibsim from standard input: type Help. Programs of the same user control the served fabric
with fabsh -F ibsim:NAME and the methods of sim: help("sim").

--scenario plays a script with scenario(sim), or a shipped one, while the fabric is
served, and writes each action with its time as a line of JSON to standard output (with
--run: to standard error), or to the file of --log. Without --listen and --run it plays by
a virtual clock on a fabric that nothing else sees, to show what will happen.

The log also has the changes by other programs (fabsh -F ibsim:NAME), with process and user
ID. --log writes it without a scenario, too.

libumad2sim does not work with rdma-core 56 and later: tools of such a release end with
a segmentation fault as soon as they attach. Use --run for them.

--run runs a command, and all that it starts, on the simulated subnet: unmodified tools
of any release, dynamic or static, OpenSM, scripts, bash for a session, fabsh itself. All
words behind --run are the command's, and fabsh exits with its exit status. The command
sees /dev/infiniband and /sys/class/infiniband of a host of the subnet: that of --host,
or of SIM_HOST in the environment of each process. When it ends, what it started is
terminated. SIGTERM and SIGINT go to the command; one second after the second of them (of
Ctrl-C at a terminal: two within 2 s) it is killed, with all that it started. fabsh keeps
no state there without --state. It needs no privileges, and Linux 5.14 or newer.

This is a view, not a sandbox: programs can do all that you can. These do not work under
--run: cd into these folders (so not ibstatus), relative wildcards (sys/class/infini*), and
links to them; dup2 of a device's descriptor; recv and send on it; sudo and other setuid
programs, which get no privileges; 32-bit programs; verbs (ibv_devices lists the devices,
nothing opens them) and IPoIB; another --run inside.

Calls on devices return what they do on Linux. For speed, the kernel executes those of
ibnetdiscover and opensm unchecked: a MAD that ib_umad rejects gets no answer instead of
an error, and so does a request or an answer of several segments to these programs.
SIM_FAST=0 in the environment of a process prevents that; SIM_FAST=1 does it for any.`

	simExample = `  fabsh sim fattree:k=8,levels=3 --out net
  fabsh sim dragonfly:a=4,p=2,h=2,remove_links=5%,seed=3 > net
  fabsh sim fattree:k=16,levels=3 --listen mysock --bare &
  IBSIM_SOCKNAME=mysock ibsim-run opensm -o -R updn
  IBSIM_SOCKNAME=mysock ibsim-run ibnetdiscover
  fabsh sim fattree:k=4 --run iblinkinfo
  fabsh sim fattree:k=4,rails=2 --host node-0003 --run bash
  fabsh sim fattree:seed=7 --scenario flap`
)

// simCommand writes the topologies of -F sim to files.
func simCommand(p *session.Program) *cobra.Command {
	var out string
	var serve simServe
	c := &cobra.Command{
		Use:     "sim [SPEC|FILE] [--out FILE | --listen NAME | --run COMMAND...]",
		Short:   "Write the topology of a simulated fabric, or let OpenSM and the C tools attach to it",
		Long:    simDoc,
		Example: simExample,
		Args: func(c *cobra.Command, words []string) error {
			if serve.run {
				words = words[:max(0, c.ArgsLenAtDash())]
			}
			if len(words) > 1 {
				return fmt.Errorf("unexpected argument %q; want one SPEC", words[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, words []string) error {
			spec := ""
			if len(words) > 0 {
				spec = words[0]
			}
			if serve.bare && serve.noSM {
				return errors.New("--bare and --no-sm exclude each other: a bare fabric has no tables")
			}
			if serve.log != "" && serve.scenario == "" && serve.name == "" && !serve.run {
				return errors.New("--log requires --scenario FILE, --listen NAME or --run")
			}
			if serve.run {
				switch at := c.ArgsLenAtDash(); {
				case c.Flags().Changed("out"), serve.console:
					return errors.New("--run excludes --out and --console")
				case at < 0 || len(words) == at:
					return errors.New("--run: missing command")
				case at == 0:
					spec = ""
					fallthrough
				default:
					return serve.logged(p, func(log *actionLog) error { return runOn(p, spec, &serve, words[at:], log) })
				}
			}
			if c.Flags().Changed("host") {
				return errors.New("--host requires --run")
			}
			if c.Flags().Changed("out") && out == "" {
				return errors.New("--out: missing file name")
			}
			if c.Flags().Changed("listen") {
				if c.Flags().Changed("out") {
					return errors.New("--out and --listen exclude each other: one writes the topology, the other serves it")
				}
				return serve.logged(p, func(log *actionLog) error { return serveTopology(p, spec, &serve, log) })
			}
			if serve.bare || serve.noSM || serve.console || serve.anyUser {
				return errors.New("--bare and --no-sm require --listen NAME or --run, --console and --any-user --listen NAME")
			}
			if serve.scenario != "" {
				if out != "" {
					return errors.New("--out and --scenario exclude each other: one writes the topology, the other plays a scenario")
				}
				return serve.logged(p, func(log *actionLog) error { return rehearse(p, spec, serve.scenario, log) })
			}
			limit := p.StartTime()
			defer p.StartDeadline(limit).Stop()
			ctx := limit.Context()
			f, err := bringUp(ctx, p, spec)
			if err != nil {
				return session.Late(err)
			}
			write := func(w io.Writer) error { return format.Dump(w, f, format.KindIbnetdiscover) }
			if out == "" {
				return write(p.Console.Out())
			}
			switch err := format.WriteFile(ctx, out, write); {
			case errors.Is(err, syscall.EISDIR):
				return fmt.Errorf("--out %s: is a directory", out)
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("--out %s: no such directory", out)
			case err != nil:
				return &session.HostError{Err: fmt.Errorf("--out: %w", err)}
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` instead of standard output")
	c.Flags().StringVar(&serve.name, "listen", "", "serve the fabric to programs that have IBSIM_SOCKNAME=`NAME`")
	c.Flags().BoolVar(&serve.run, "run", false, "run the command that follows, and all that it starts, on the fabric")
	c.Flags().StringVar(&serve.host, "host", "", "with --run: the `NODE` of programs without SIM_HOST in their environment")
	c.Flags().BoolVar(&serve.bare, "bare", false, "with --listen or --run: no LIDs, no tables, no subnet manager; links in INIT")
	c.Flags().BoolVar(&serve.noSM, "no-sm", false, "with --listen or --run: LIDs and tables, but no subnet manager")
	c.Flags().BoolVar(&serve.console, "console", false, "with --listen: read console commands of ibsim from standard input")
	c.Flags().BoolVar(&serve.anyUser, "any-user", false, "with --listen: serve programs of all users, not only yours")
	c.Flags().StringVar(&serve.scenario, "scenario", "", "play the scenario of the script `FILE`, or a shipped one: "+strings.Join(script.Scenarios.Names(), ", "))
	c.Flags().StringVar(&serve.log, "log", "", "write the actions of --scenario, and those of other programs, to `FILE` instead of standard output")
	c.MarkFlagFilename("out")
	c.RegisterFlagCompletionFunc("scenario", completeScenario)
	c.MarkFlagFilename("log")
	return c
}

// completeScenario proposes the shipped scenarios; other words are left to the shell: files.
func completeScenario(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, d := range script.Scenarios.Shipped() {
		names = append(names, d.Name+"\t"+d.Doc)
	}
	return check.Matching(names, typed), cobra.ShellCompDirectiveDefault
}

// bringUp starts a simulated fabric and discovers it, so that it has the LIDs, widths
// and speeds that its subnet manager has set. Faults are not part of the topology.
// Nodes without a cable to the rest are, but without LIDs.
func bringUp(ctx context.Context, p *session.Program, spec string) (*fabric.Fabric, error) {
	f, o, err := sim.ParseFiles(spec, session.OpenNamed(ctx, lang.OpenNamed), session.Secrets(nil).Open)
	if err != nil {
		return nil, err
	}
	node, err := session.SimNode(f, "")
	if err != nil {
		return nil, err
	}
	t, err := sim.New(f, o.WithoutFaults()).Attach(node, 0)
	if err != nil {
		return nil, err
	}
	e := engine.New(t, engine.Options{})
	defer e.Close()
	found, err := discover.Sweep(ctx, e, discover.Options{})
	if err == nil && len(found.Nodes()) < len(f.Nodes()) {
		p.Warn("sim: %s: only the %[3]d nodes that %[2]s reaches are written: no cables join the others to them",
			plural.Count(len(f.Nodes()), "node", "nodes"), f.Nodes()[node].Label(), len(found.Nodes()))
	}
	return found, err
}

// simServe is how fabsh sim serves a fabric.
type simServe struct {
	name       string // of the sockets
	run        bool   // a command
	host       string // where it is
	bare, noSM bool
	console    bool
	anyUser    bool
	scenario   string // a file, or the name of a shipped one; "": none
	log        string // the file for actions; "": none, or with a scenario standard output
}

// serveTopology serves a simulated fabric by the sockets of ibsim until it is
// interrupted.
func serveTopology(p *session.Program, spec string, o *simServe, actions *actionLog) error {
	limit := p.StartTime()
	defer p.StartDeadline(limit).Stop()
	ctx := limit.Context()
	f, options, err := sim.ParseFiles(spec, session.OpenNamed(ctx, lang.OpenNamed), session.Secrets(nil).Open)
	if err != nil {
		return session.Late(err)
	}
	options.Bare, options.NoSM = options.Bare || o.bare, options.NoSM || o.noSM
	name := cmp.Or(o.name, os.Getenv("IBSIM_SOCKNAME"), server.DefaultName)
	subnet := sim.New(f, options)
	log := func(text string) {
		if !p.Settings.Quiet {
			fmt.Fprintln(p.Console.Err(), text)
		}
	}
	srv, err := server.Listen(subnet, f, server.Options{Name: name, Log: log, AnyUser: o.anyUser})
	if errors.Is(err, server.ErrName) {
		return err
	}
	if err != nil {
		return &session.HostError{Err: err}
	}
	end, err := o.control(ctx, p, subnet, f, name, actions)
	if err != nil {
		return err
	}
	defer end()
	state := "up, with its own subnet manager"
	switch {
	case options.Bare:
		state = "bare: attach a subnet manager"
	case options.NoSM:
		state = "up, without a subnet manager"
	}
	log(fmt.Sprintf("serving %s (%s)\nattach with: IBSIM_SOCKNAME=%s [SIM_HOST=NODE] ibsim-run COMMAND, or fabsh -F ibsim:%[3]s", counts(f), state, name))
	if o.console {
		go srv.Console(os.Stdin, p.Console.Out())
	}
	err = srv.Serve(ctx)
	switch {
	case errors.Is(err, server.ErrQuit):
		return nil
	case err != nil:
		return &session.HostError{Err: err}
	}
	return ctx.Err()
}

// counts returns the numbers of nodes and links of a fabric.
func counts(f *fabric.Fabric) string {
	return fmt.Sprintf("%s, %s, %s", plural.Count(len(f.OfType(mad.NodeTypeSwitch)), "switch", "switches"),
		plural.Count(len(f.OfType(mad.NodeTypeCA)), "host", "hosts"), plural.Count(f.Links(), "cable", "cables"))
}

// runFlag ends the flags of sim: what follows is the command to run.
const runFlag = "--run"

// splitRun inserts -- behind the flag --run of sim, so that the flags that follow are
// the command's flags. words are the arguments behind the program's name.
func splitRun(root *cobra.Command, words []string) []string {
	i := firstWord(root, words)
	if i == len(words) || words[i] != "sim" {
		return words // of another command, or a script
	}
	for j := i + 1; j < len(words) && words[j] != "--"; j++ {
		if words[j] == runFlag {
			return slices.Insert(slices.Clone(words), j+1, "--")
		}
	}
	return words
}

// commandError reports that a command cannot be run, and returns the status of a shell
// for it.
func commandError(p *session.Program, status int, err error) error {
	p.Fail(err)
	return session.Exit(status)
}

// runOn runs a command on a simulated subnet, and returns its exit status as an error.
func runOn(p *session.Program, spec string, o *simServe, args []string, actions *actionLog) error {
	path, err := exec.LookPath(args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return commandError(p, 127, fmt.Errorf("--run %s: command not found", args[0]))
	case err != nil && !errors.Is(err, exec.ErrDot):
		return commandError(p, 126, fmt.Errorf("--run %s: %w", args[0], errors.Unwrap(err)))
	}
	limit := p.StartTime()
	defer p.StartDeadline(limit).Stop()
	ctx, cancel := context.WithCancel(limit.Context())
	defer cancel()
	f, options, err := sim.ParseFiles(spec, session.OpenNamed(ctx, lang.OpenNamed), session.Secrets(nil).Open)
	if err != nil {
		return session.Late(err)
	}
	options.Bare, options.NoSM = options.Bare || o.bare, options.NoSM || o.noSM
	subnet := sim.New(f, options)
	log := func(text string) { fmt.Fprintln(p.Console.Err(), "sim: "+text) }
	if o.name != "" {
		srv, err := server.Listen(subnet, f, server.Options{Name: o.name, AnyUser: o.anyUser})
		if errors.Is(err, server.ErrName) {
			return err
		}
		if err != nil {
			return &session.HostError{Err: err}
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			srv.Serve(ctx)
		}()
		defer func() {
			cancel()
			<-served
		}()
	}
	name := cmp.Or(o.name, fmt.Sprintf("fabsh-run-%d", os.Getpid()))
	end, err := o.control(ctx, p, subnet, f, name, actions)
	if err != nil {
		return err
	}
	defer end()
	os.Setenv(session.ControlVariable, name)
	status := 0
	var r *run.Running
	var requests endRequests
	started := make(chan struct{})
	p.Interrupts.Forward(func(sig os.Signal) {
		<-started
		s, ok := sig.(syscall.Signal)
		if !ok || r == nil {
			return
		}
		// What the terminal sends, the command has got from it.
		typed := (s == syscall.SIGINT || s == syscall.SIGQUIT) && session.InForeground()
		if !typed {
			r.Signal(s)
		}
		if requests.second(s, typed, time.Now()) {
			time.AfterFunc(killAfter, r.Kill)
		}
	}, func() { // also Start: the command may be signalled as soon as it runs
		r, err = run.Start(run.ProgramOptions{Subnet: subnet, Fabric: f, Node: o.host, Program: os.Args[0], Path: path, Args: args, Log: log})
		close(started)
		if err == nil {
			defer context.AfterFunc(ctx, func() { r.Signal(syscall.SIGTERM) })()
			status, err = r.Wait()
		}
	})
	if _, ok := errors.AsType[*run.NodeError](err); ok {
		return fmt.Errorf("--host: %w", err)
	}
	switch {
	case err != nil:
		return &session.HostError{Err: fmt.Errorf("--run: %w", err)}
	case limit.Context().Err() != nil:
		return session.Late(context.Cause(limit.Context()))
	}
	return session.Exit(status)
}

// endRequests are the signals that request the end of a command, which may ignore them. It is
// safe for concurrent use.
type endRequests struct {
	mu    sync.Mutex
	last  syscall.Signal // 0: none
	at    time.Time
	typed bool // it was Ctrl-C at a terminal
}

const (
	// killAfter is how long the command may take to end after the second request.
	killAfter = time.Second
	// typedWithin is how soon a second Ctrl-C must follow: programs at a terminal use it for
	// more than their end.
	typedWithin = 2 * time.Second
)

// second reports whether a signal is a second request: SIGTERM or SIGINT after one of them.
func (r *endRequests) second(sig syscall.Signal, typed bool, now time.Time) bool {
	if sig != syscall.SIGTERM && sig != syscall.SIGINT {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	since := now.Sub(r.at)
	if sig == r.last && since < session.SameSignal {
		return false
	}
	second := r.last != 0 && !(r.typed && since > typedWithin)
	r.last, r.at, r.typed = sig, now, typed
	return second
}

// scenarioLimit is how long a scenario without an end lasts where no program can attach.
const scenarioLimit = 24 * time.Hour

// simControl is a session on a simulated subnet that changes it: by a scenario, and by
// calls of other programs.
type simControl struct {
	*builtins.Session
	engine *engine.Engine
	sim    *topology.Sim
}

// controlOf returns a session on the subnet that was made from f, with a clock; nil: the
// real one.
func controlOf(p *session.Program, subnet *sim.Subnet, f *fabric.Fabric, clock lang.Clock) (*simControl, error) {
	node, err := session.SimNode(f, "")
	if err != nil {
		return nil, err
	}
	t, err := subnet.Attach(node, 0)
	if err != nil {
		return nil, err
	}
	c := &simControl{engine: engine.New(t, engine.Options{Write: true})}
	c.Session, err = builtins.NewSession(builtins.SessionOptions{
		Facts:  topology.Facts{Engine: c.engine, Sim: subnet, Write: true},
		Stdout: p.Console.Err(), Stderr: p.Console.Err(), Quiet: p.Settings.Quiet, Clock: clock,
	})
	if err != nil {
		return nil, errors.Join(err, c.engine.Close())
	}
	c.sim = &topology.Sim{Subnet: subnet}
	return c, nil
}

// close ends the session.
func (c *simControl) close() {
	c.Close()
	c.engine.Close()
}

// call returns the server.ControlHandler of the subnet, which logs changes.
func (c *simControl) call(ctx context.Context, log *actionLog) server.ControlHandler {
	in := c.Interpreter.Beside()
	*topology.EnvOf(in.Runtime) = *c.Env
	return func(from server.Peer, method string, args []byte) (result []byte, err error) {
		observed := &topology.Sim{Subnet: c.sim.Subnet, Acted: func(since time.Time, method string, args map[string]any, err error) {
			log.call(&from, since, method, args, err)
		}}
		err = in.Runtime.Evaluate(ctx, method, func(t *starlark.Thread) error {
			v, err := observed.Execute(t, method, args)
			if err == nil {
				result, err = lang.EncodeJSON(v)
			}
			return err
		})
		var refused *lang.RefusalError
		var eval *starlark.EvalError
		if !errors.As(err, &refused) && errors.As(err, &eval) && eval.Unwrap() != nil {
			err = eval.Unwrap() // without the calls
		}
		if err != nil { // the caller adds the name of the method
			err = errors.New(strings.TrimPrefix(err.Error(), method+": "))
		}
		return result, err
	}
}

// load loads a scenario, a file or the name of a shipped one. Its actions go to log.
func (c *simControl) load(ctx context.Context, name string, log *actionLog) (*script.Scenario, error) {
	path, err := script.Scenarios.Locate(name)
	if err != nil {
		return nil, err
	}
	src, err := c.Interpreter.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := script.LoadScenario(ctx, c.Interpreter, c.sim, path, src, script.ScenarioSeed(c.sim), log.add)
	if err != nil {
		return nil, fmt.Errorf("%s", c.Explain(err))
	}
	return s, nil
}

// control lets programs of the same user change a served subnet, and plays the scenario of
// o, until end is called.
func (o *simServe) control(ctx context.Context, p *session.Program, subnet *sim.Subnet, f *fabric.Fabric, name string, log *actionLog) (end func(), err error) {
	c, err := controlOf(p, subnet, f, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	log.begin = time.Now()
	var running sync.WaitGroup
	end = func() {
		cancel()
		running.Wait()
		c.close()
	}
	if o.scenario != "" {
		s, err := c.load(ctx, o.scenario, log)
		if err != nil {
			end()
			return nil, fmt.Errorf("--scenario: %w", err)
		}
		log.begin = s.Begin()
		running.Go(func() {
			if err := s.Play(ctx, 0); err != nil && ctx.Err() == nil {
				p.Warn("sim: --scenario: an action failed: %s", c.Explain(err))
			}
		})
	}
	srv, err := server.ListenControl(name, c.call(ctx, log))
	if err != nil {
		end()
		return nil, &session.HostError{Err: err}
	}
	running.Go(func() { srv.Serve(ctx) })
	return end, nil
}

// rehearse plays a scenario on a subnet of its own by a virtual clock, and writes its
// actions.
func rehearse(p *session.Program, spec, name string, log *actionLog) error {
	limit := p.StartTime()
	defer p.StartDeadline(limit).Stop()
	ctx := limit.Context()
	f, options, err := sim.ParseFiles(spec, session.OpenNamed(ctx, lang.OpenNamed), session.Secrets(nil).Open)
	if err != nil {
		return session.Late(err)
	}
	c, err := controlOf(p, sim.New(f, options), f, lang.NewVirtualClock())
	if err != nil {
		return err
	}
	defer c.close()
	s, err := c.load(ctx, name, log)
	if err == nil {
		err = s.Play(ctx, scenarioLimit)
	}
	if err != nil {
		return fmt.Errorf("--scenario: %w", err)
	}
	return nil
}

// actionLog receives what changes a simulated subnet, the actions of a scenario and the
// calls of other programs, and writes a line of JSON for each.
type actionLog struct {
	begin time.Time // 0 s of calls

	mu  sync.Mutex // a line is written as a whole
	out io.Writer  // nil: there is no log
	err error      // the first one: the subnet is also served while the disk is full
}

// logged calls fn with the log of o.
func (o *simServe) logged(p *session.Program, fn func(*actionLog) error) error {
	switch {
	case o.log == "" && o.scenario == "":
		return fn(new(actionLog))
	case o.log == "" && o.run: // standard output is the command's
		return fn(&actionLog{out: p.Console.Err()})
	case o.log == "":
		return fn(&actionLog{out: p.Console.Out()})
	}
	f, err := format.Create(o.log, os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	log := &actionLog{out: f}
	err = fn(log)
	if bad := cmp.Or(log.err, f.Close()); err == nil && bad != nil {
		err = &session.HostError{Err: fmt.Errorf("--log: %w", bad)}
	}
	return err
}

// add writes an action.
func (l *actionLog) add(a script.ScenarioAction) {
	line, err := a.JSON()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return
	}
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	l.err = cmp.Or(l.err, err)
}

// call writes a change that a call of another program has made or tried.
func (l *actionLog) call(from *server.Peer, since time.Time, method string, args map[string]any, err error) {
	a := script.ScenarioAction{At: since.Sub(l.begin).Seconds(), Time: since, Action: method, Args: args, Peer: from}
	if err != nil {
		a.Error = err.Error()
	}
	l.add(a)
}
