package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	values "fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/verify"
	"fabsh/shell/session"
)

// routeCommand computes tables.
func routeCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "route POLICY [policy's options]",
		Short: "Compute forwarding tables by a routing policy; verify, compare and write them",
		Long: `Compute forwarding tables by a routing policy.

A policy is a .star file that defines route(fabric, *, ...), or the name of a shipped
policy (--list). The keyword parameters of route() are its options:
"fabsh route POLICY --help" lists them.

--watch repairs the tables when the topology has changed: entries whose paths are still
valid are kept. The file is replaced only after a complete sweep, if the verdict is ok
and the new file was read back. --watch requires --write, and runs until Ctrl-C.`,
		Example: `  fabsh -F file:cluster.net route ftree --verify --out lfts.dump
  fabsh -F ibsim route dmodk.star --verify --diff
  fabsh -F file:cluster.net -o json route updn --roots=roots.guids --verify
  fabsh --write route ftree --watch --out lfts.dump --reload /run/opensm.pid`,
		Annotations:        map[string]string{atPrompt: ""},
		DisableFlagParsing: true, // session flags are distinguishable only when the policy is known
		ValidArgsFunction:  completePolicy,
		RunE: func(c *cobra.Command, words []string) error {
			words, err := takeRoute(p, words)
			if err != nil {
				return err
			}
			o, err := parseRoute(words)
			switch {
			case err != nil:
				return fmt.Errorf("route: %w", err)
			case o.list:
				return writeDocs(p.Console.Out(), script.Policies.Shipped())
			case o.policy == "" && o.help:
				return c.Help()
			case o.policy == "":
				return errors.New(`route: missing policy; give a name ("fabsh route --list" lists the shipped ones) or a .star file`)
			case strings.HasSuffix(o.policy, ".star"):
				if err := CheckScript(c, o.policy); err != nil {
					return err
				}
			}
			if o.every > 0 {
				return watchRoutes(p, o)
			}
			return onFabric(p, "route", func(ctx context.Context, s *session.Session) error { return runRoute(ctx, s, o) })
		},
	}
	return withFlags(c, new(routeOptions).flags())
}

// routeOptions are the options behind route on the command line.
type routeOptions struct {
	policy string   // a .star file, or the name of a shipped policy
	args   []string // the policy's options

	verify, diff, failEachLink bool
	adaptive                   verify.Adaptive
	out                        string // file for OpenSM; with verify only written if the verdict is ok

	list, help bool
	every      time.Duration // of --watch; 0: not given
	reload     string
}

// flags declares the command's own flags, and sets o to their defaults.
func (o *routeOptions) flags() *pflag.FlagSet {
	f := newFlags("route")
	f.BoolVar(&o.verify, "verify", false, "check the tables: do packets between all pairs arrive, without loops and deadlocks? Exit with 1 on findings")
	f.BoolVar(&o.diff, "diff", false, "compare with the tables that the switches have")
	f.BoolVar(&o.failEachLink, "fail-each-link", false, "report what each single failure of a link would break")
	adaptiveFlagOf(f, &o.adaptive)
	f.StringVar(&o.out, "out", "", "write the tables for OpenSM's engine file to `FILE`; with --verify only if the verdict is ok")
	f.SetAnnotation("out", valueIs, []string{"the name of a file"})
	f.BoolVar(&o.list, "list", false, "list the shipped policies")
	f.Var((*watchFlag)(&o.every), "watch", "keep the file of --out up to date: sweep the fabric every `TIME`")
	f.Lookup("watch").NoOptDefVal = "10s"
	f.StringVar(&o.reload, "reload", "", "with --watch: then send SIGHUP to OpenSM so that it reads the tables: its process ID, or a file that contains it (`PID|FILE`)")
	f.SetAnnotation("reload", valueIs, []string{"a process ID, or the name of a file that holds one"})
	return f
}

// watchFlag is --watch, which may have a value: the time between two sweeps.
type watchFlag time.Duration

func (f *watchFlag) String() string { return "" }
func (f *watchFlag) Type() string   { return "time" }

func (f *watchFlag) Set(text string) error {
	every, err := time.ParseDuration(text)
	if err != nil || every < time.Second {
		return errors.New("want a time of at least 1s, such as 30s or 5m")
	}
	*f = watchFlag(every)
	return nil
}

// parseRoute separates the command's own flags, which may stand anywhere, from
// the policy's.
func parseRoute(words []string) (o routeOptions, err error) {
	words, err = extractOwn(words, finder(o.flags()), "--%s=%s: %w")
	if err != nil {
		return o, err
	}
	for _, w := range words {
		switch isFlag := strings.HasPrefix(w, "-"); {
		case o.policy != "" || isFlag && strings.Contains(w, "="):
			o.args = append(o.args, w)
		case w == "-h" || w == "--help":
			o.help = true
		case isFlag: // is the next word its value, or the policy?
			return o, fmt.Errorf("%s: ambiguous before the policy; write %[1]s=VALUE, or write it after the policy", w)
		default:
			o.policy = w
		}
	}
	if o.reload != "" && o.every == 0 {
		return o, errors.New("--reload requires --watch")
	}
	return o, nil
}

// takeRoute takes the session flags out of the words behind route: those that neither
// route nor the policy has. The options of a policy are read from its text.
func takeRoute(p *session.Program, words []string) ([]string, error) {
	own := new(routeOptions).flags()
	o, _ := parseRoute(withoutSession(p.Settings, words, own))
	policy := policyProgram(o.policy)
	return extractSession(p.Settings, words, own, func(flag string) bool { return o.policy != "" && hasOption(policy, flag) })
}

// runRoute computes tables by a policy, checks them, writes them and prints the
// results.
func runRoute(ctx context.Context, s *session.Session, o routeOptions) error {
	policy, err := loadPolicy(ctx, s, o.policy, o.args)
	if policy == nil || err != nil {
		return err
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	c := checks{verify: o.verify, adaptive: o.adaptive, failEachLink: o.failEachLink, progress: s.Runtime.Progress}
	if o.diff { // read first: without them the computation would be in vain
		if c.live, err = audits.ReadRoutes(ctx, s.Runtime, f, false); err != nil {
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
		if r.HasChoices() {
			s.Warn("%s has the static ports alone, without the choices; dump(\"snapshot\") of routes in a script keeps both", o.out)
		}
	}
	if err := s.Show(values.WrapReport(report)); err != nil {
		return err
	}
	if left := r.Graph().LeftOut(); len(left) > 0 && !o.verify {
		s.Warn("missing from the tables: %s, for example: %s; with --verify this is a finding", plural.Count(len(left), "port", "ports"), left[0])
	}
	switch {
	case o.out != "" && report.Sound():
		s.Print("use with opensm -R file,no_fallback -U " + o.out + "\n")
		switch {
		case r.SL.Any():
			s.Warn("%s has no service levels, but paths use some: OpenSM would assign others; %s", o.out, r.RunInstead())
		case r.ChangesLanes():
			s.Warn("%s has no virtual lanes, but paths change theirs: OpenSM would leave them on one, where they may deadlock; %s", o.out, r.RunInstead())
		}
	case o.out != "":
		s.Warn("%s: not written: the verdict is not ok", o.out)
	}
	if !report.Clean() {
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// loadPolicy loads a policy. If its options request its help, that is printed, and it
// returns no policy.
func loadPolicy(ctx context.Context, s *session.Session, name string, args []string) (*program.Policy, error) {
	p, err := program.LoadPolicy(ctx, s.Interpreter, name, args, session.FlagNames(new(routeOptions).flags()))
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
	return append(names, session.FlagNames(new(routeOptions).flags())...), cobra.ShellCompDirectiveDefault
}
