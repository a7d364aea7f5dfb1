package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/read"
	values "fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
	"fabsh/shell/session"
)

const routeHelp = `Compute forwarding tables by a routing policy.

A policy is a .star file that defines route(fabric, *, ...), or one that is
shipped, by name (--list). The keyword parameters of route() are its options:
"fabsh route POLICY --help" tells them.

Usage:
  fabsh [flags] route POLICY [policy's options] [flags]

Flags, anywhere after route:
  --verify          follow the packets between all pairs: do all arrive, and can
                    none deadlock? With findings the exit status is 1
  --diff            compare with the tables that the switches have
  --fail-each-link  say what each single failure of a link would break
  --adaptive        the switches are known to route adaptively: then the tables do
                    not tell where packets go, and the verdict is unknown
  --adaptive=minimal, --adaptive=updown
                    is it ok whichever of the minimal ports, or of the legal up/down
                    ports, they choose?
  --out FILE        write the tables for OpenSM's engine file; with --verify only
                    if the verdict is ok
  --list            list the shipped policies
  --watch[=TIME]    keep the file of --out up to date: look at the fabric every TIME
                    (10s), and where the topology has changed, repair the tables:
                    entries stay where their paths need no change. Only after a
                    complete sweep, with a verdict that is ok, and read back, is the
                    file replaced. Takes --write, and goes on until Ctrl-C
  --reload PID|FILE with --watch: then send SIGHUP to this process, or to the one
                    whose ID is in this file, so that OpenSM reads the tables

Examples:
  fabsh -F file:cluster.net route ftree --verify --out lfts.dump
  fabsh -F ibsim route dmodk.star --verify --diff
  fabsh -F file:cluster.net -o json route updn --roots=roots.guids --verify
  fabsh --write route ftree --watch --out lfts.dump --reload /run/opensm.pid
`

// routeCommand parses its own flags by itself, for all others are the policy's.
func routeCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:                "route POLICY [options] [--verify] [--diff] [--out FILE] [--fail-each-link] [--list] [--watch --reload PID|FILE]",
		Short:              "Compute forwarding tables by a routing policy; verify, compare and write them",
		DisableFlagParsing: true,
		ValidArgsFunction:  completePolicy,
		RunE: func(_ *cobra.Command, words []string) error {
			words, err := takeRoute(p, words)
			if err != nil {
				return err
			}
			o, err := parseRoute(words)
			switch {
			case err != nil:
				return fmt.Errorf("route: %w", err)
			case o.list:
				return listShipped(p, script.Policies.Shipped())
			case o.policy == "" && o.help:
				_, err := fmt.Fprint(p.Console.Out(), routeHelp)
				return err
			case o.policy == "":
				return errors.New(`route: which policy? "fabsh route --list" lists the shipped ones; or name a .star file`)
			case strings.HasSuffix(o.policy, ".star"):
				if err := checkScript(o.policy); err != nil {
					return err
				}
			}
			if o.every > 0 {
				return watchRoutes(p, o)
			}
			return onFabric(p, "route", func(ctx context.Context, s *session.Session) error { return runRoute(ctx, s, o) })
		},
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), routeHelp) })
	return c
}

// routeOptions are what follows route on the command line.
type routeOptions struct {
	policy string   // a .star file, or the name of a shipped policy
	args   []string // the policy's options

	verify, diff, failEachLink bool
	adaptive                   routing.Adaptive
	out                        string // file for OpenSM; with verify only written if the verdict is ok

	list, help bool
	every      time.Duration // of --watch; 0: not asked for
	reload     string
}

// routeFlags are the command's own: no policy has an option of such a name.
var routeFlags = []string{"--verify", "--diff", "--fail-each-link", "--adaptive", "--out", "--list", "--watch", "--reload"}

// defaultWatch is the time between two sweeps of --watch.
const defaultWatch = 10 * time.Second

// parseRoute separates the command's own flags, which may stand anywhere, from
// the policy's.
func parseRoute(words []string) (o routeOptions, err error) {
	own := map[string]*bool{"--verify": &o.verify, "--diff": &o.diff, "--fail-each-link": &o.failEachLink, "--list": &o.list}
	needs := map[string]struct {
		value *string
		what  string
	}{"--out": {&o.out, "the name of a file"}, "--reload": {&o.reload, "a process ID, or the name of a file that holds one"}}
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, value, hasValue := strings.Cut(w, "=")
		switch on, need := own[name], needs[name]; {
		case on != nil && hasValue:
			return o, fmt.Errorf("%s takes no value, and here is %q", name, value)
		case on != nil:
			*on = true
		case need.value != nil:
			if !hasValue {
				if i++; i < len(words) {
					value = words[i]
				}
			}
			if value == "" {
				return o, fmt.Errorf("%s needs %s", name, need.what)
			}
			*need.value = value
		case name == "--adaptive":
			if !hasValue {
				value = "true"
			}
			if err := (*adaptiveFlag)(&o.adaptive).Set(value); err != nil {
				return o, fmt.Errorf("--adaptive=%s: %w", value, err)
			}
		case name == "--watch":
			o.every = defaultWatch
			if hasValue {
				if o.every, err = time.ParseDuration(value); err != nil || o.every < time.Second {
					return o, fmt.Errorf("--watch=%s: want a time of at least 1s, such as 30s or 5m", value)
				}
			}
		case o.policy == "" && (w == "-h" || w == "--help"):
			o.help = true
		case o.policy == "" && strings.HasPrefix(w, "-") && !hasValue: // is the next word its value, or the policy?
			return o, fmt.Errorf("%s stands before the policy: write it as %[1]s=VALUE, or after the policy", w)
		case o.policy == "" && !strings.HasPrefix(w, "-"):
			o.policy = w
		default:
			o.args = append(o.args, w)
		}
	}
	if o.reload != "" && o.every == 0 {
		return o, errors.New("--reload goes with --watch")
	}
	return o, nil
}

// runRoute computes tables by a policy, examines them, writes them and shows what
// it found.
func runRoute(ctx context.Context, s *session.Session, o routeOptions) error {
	policy, err := loadPolicy(ctx, s, o.policy, o.args)
	if policy == nil || err != nil {
		return err
	}
	f, err := read.Fabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	c := checks{verify: o.verify, adaptive: o.adaptive, failEachLink: o.failEachLink, tell: s.Runtime.Progress}
	if o.diff { // first: if it cannot be had, nothing is computed in vain
		if c.live, err = read.Routes(ctx, s.Runtime, f); err != nil {
			return err
		}
	}
	r, err := policy.Compute(ctx, f)
	if err != nil {
		return err
	}
	report, err := examine(ctx, r, c)
	if err != nil {
		return err
	}
	if o.out != "" && report.Sound() {
		if err := session.WriteNamed(ctx, o.out, func(w io.Writer) error { return r.Write(ctx, w, format.KindLFTs) }); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if err := s.Show(values.WrapReport(report)); err != nil {
		return err
	}
	if left := r.Graph().LeftOut(); len(left) > 0 && !o.verify {
		s.Warn("the tables leave out %s, such as this: %s; with --verify that is a finding", fabric.Plural(len(left), "port", "ports"), left[0])
	}
	switch {
	case o.out != "" && report.Sound():
		s.Print("use with opensm -R file,no_fallback -U " + o.out + "\n")
		switch {
		case r.SL.Any():
			s.Warn("%s tells no service levels, and paths have some: OpenSM would give out others; %s", o.out, r.RunInstead())
		case r.ChangesLanes():
			s.Warn("%s tells no virtual lanes, and paths change theirs: OpenSM would leave them on one, where they may deadlock; %s", o.out, r.RunInstead())
		}
	case o.out != "":
		s.Warn("%s is not written, for the verdict is not ok", o.out)
	}
	if !report.Clean() {
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// loadPolicy loads a policy. Where its options ask for its help, that is printed,
// and there is no policy to run.
func loadPolicy(ctx context.Context, s *session.Session, name string, args []string) (*program.Policy, error) {
	p, err := program.LoadPolicy(ctx, s.Interpreter, name, args, routeFlags)
	if err != nil || p.Help == "" {
		return p, err
	}
	_, err = io.WriteString(s.Console.Out(), p.Help)
	return nil, err
}

// completePolicy proposes policies, then their options, and the command's own
// flags.
func completePolicy(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	switch o, err := parseRoute(words); {
	case err != nil:
	case o.policy != "":
		names = policyProgram(o.policy).Options
	default:
		for _, p := range script.Policies.Shipped() {
			names = append(names, p.Name+"\t"+p.Doc)
		}
	}
	return append(names, routeFlags...), cobra.ShellCompDirectiveDefault
}
