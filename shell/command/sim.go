package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/shell/session"
)

// simCommand writes the topologies of -F sim to files.
func simCommand(p *session.Program) *cobra.Command {
	var out string
	var serve simServe
	c := &cobra.Command{
		Use:   "sim [SPEC|FILE] [--out FILE | --listen NAME | --run COMMAND...]",
		Short: "Write the topology of a simulated fabric, or let OpenSM and the C tools attach to it",
		Long: `Write the topology of a simulated fabric in the format of ibnetdiscover, which ibsim,
-F file: and -F sim: read.

SPEC is KIND[:KEY=VALUE,...] as with -F sim:. The kinds are fattree, pgft, ring,
mesh, torus, hyperx, dragonfly, random; or a topology file. All of them accept
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
terminated. It needs no privileges, and Linux 5.14 or newer.

This is a view, not a sandbox: programs can do all that you can. These do not work under
--run: cd into these folders (so not ibstatus), relative wildcards (sys/class/infini*), and
links to them; dup2 of a device's descriptor; recv and send on it; sudo and other setuid
programs, which get no privileges; 32-bit programs; verbs (ibv_devices lists the devices,
nothing opens them) and IPoIB; another --run inside.

Calls on devices return what they do on Linux. For speed, the kernel executes those of
ibnetdiscover and opensm unchecked: a MAD that ib_umad rejects gets no answer instead of
an error, and so does a request or an answer of several segments to these programs.
SIM_FAST=0 in the environment of a process prevents that; SIM_FAST=1 does it for any.`,
		Example: `  fabsh sim fattree:k=8,levels=3 --out net
  fabsh sim dragonfly:a=4,p=2,h=2,remove_links=5%,seed=3 > net
  fabsh sim fattree:k=16,levels=3 --listen mysock --bare &
  IBSIM_SOCKNAME=mysock ibsim-run opensm -o -R updn
  IBSIM_SOCKNAME=mysock ibsim-run ibnetdiscover
  fabsh sim fattree:k=4 --run iblinkinfo
  fabsh sim fattree:k=4,rails=2 --host node-0003 --run bash
  fabsh sim fattree:seed=7 --scenario flap`,
		Args: func(c *cobra.Command, words []string) error {
			if serve.run {
				words = words[:max(0, c.ArgsLenAtDash())]
			}
			if len(words) > 1 {
				return fmt.Errorf("sim: unexpected argument %q; want one SPEC", words[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, words []string) error {
			spec := ""
			if len(words) > 0 {
				spec = words[0]
			}
			if serve.bare && serve.noSM {
				return errors.New("sim: --bare and --no-sm exclude each other: a bare fabric has no tables")
			}
			if serve.log != "" && serve.scenario == "" && serve.name == "" && !serve.run {
				return errors.New("sim: --log requires --scenario FILE, --listen NAME or --run")
			}
			if serve.run {
				switch at := c.ArgsLenAtDash(); {
				case c.Flags().Changed("out"), serve.console:
					return errors.New("sim: --run excludes --out and --console")
				case at < 0 || len(words) == at:
					return errors.New("sim: --run: missing command")
				case at == 0:
					spec = ""
					fallthrough
				default:
					return serve.logged(p, func(log *actionLog) error { return runOn(p, spec, &serve, words[at:], log) })
				}
			}
			if c.Flags().Changed("host") {
				return errors.New("sim: --host requires --run")
			}
			if c.Flags().Changed("out") && out == "" {
				return errors.New("sim: --out: missing file name")
			}
			if c.Flags().Changed("listen") {
				if c.Flags().Changed("out") {
					return errors.New("sim: --out and --listen exclude each other: one writes the topology, the other serves it")
				}
				return serve.logged(p, func(log *actionLog) error { return serveTopology(p, spec, &serve, log) })
			}
			if serve.bare || serve.noSM || serve.console || serve.anyUser {
				return errors.New("sim: --bare and --no-sm require --listen NAME or --run, --console and --any-user --listen NAME")
			}
			if serve.scenario != "" {
				if out != "" {
					return errors.New("sim: --out and --scenario exclude each other: one writes the topology, the other plays a scenario")
				}
				return serve.logged(p, func(log *actionLog) error { return rehearse(p, spec, serve.scenario, log) })
			}
			limit := p.StartTime()
			defer p.StartDeadline(limit).Stop()
			ctx := limit.Context()
			f, err := bringUp(ctx, p, spec)
			if err != nil {
				return session.Late(fmt.Errorf("sim: %w", err))
			}
			write := func(w io.Writer) error { return format.Dump(w, f, format.KindIbnetdiscover) }
			if out == "" {
				return write(p.Console.Out())
			}
			switch err := format.WriteFile(ctx, out, write); {
			case errors.Is(err, syscall.EISDIR):
				return fmt.Errorf("sim: --out %s: is a directory", out)
			case errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("sim: --out %s: no such directory", out)
			case err != nil:
				return &session.HostError{Err: fmt.Errorf("sim: --out: %w", err)}
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
		return session.Late(fmt.Errorf("sim: %w", err))
	}
	options.Bare, options.NoSM = o.bare, o.noSM
	name := cmp.Or(o.name, os.Getenv("IBSIM_SOCKNAME"), server.DefaultName)
	subnet := sim.New(f, options)
	log := func(text string) {
		if !p.Settings.Quiet {
			fmt.Fprintln(p.Console.Err(), text)
		}
	}
	srv, err := server.Listen(subnet, f, server.Options{Name: name, Log: log, AnyUser: o.anyUser})
	if errors.Is(err, server.ErrName) {
		return fmt.Errorf("sim: %w", err)
	}
	if err != nil {
		return &session.HostError{Err: fmt.Errorf("sim: %w", err)}
	}
	end, err := o.control(ctx, p, subnet, f, name, actions)
	if err != nil {
		return err
	}
	defer end()
	state := "up, with its own subnet manager"
	switch {
	case o.bare:
		state = "bare: attach a subnet manager"
	case o.noSM:
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
		return &session.HostError{Err: fmt.Errorf("sim: %w", err)}
	}
	return ctx.Err()
}

// counts returns the numbers of nodes and links of a fabric.
func counts(f *fabric.Fabric) string {
	return fmt.Sprintf("%s, %s, %s", plural.Count(len(f.OfType(mad.NodeTypeSwitch)), "switch", "switches"),
		plural.Count(len(f.OfType(mad.NodeTypeCA)), "host", "hosts"), plural.Count(f.Links(), "cable", "cables"))
}
