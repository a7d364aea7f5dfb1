package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins"
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
  --out FILE        write the tables for OpenSM's engine file; with --verify only
                    if the verdict is ok
  --list            list the shipped policies
  --watch[=TIME]    keep the file of --out up to date: look at the fabric every TIME
                    (10s), and where the topology has changed, compute anew. Only
                    after a complete sweep, with a verdict that is ok, and read back,
                    is the file replaced. Takes --write, and goes on until Ctrl-C
  --reload PID|FILE with --watch: then send SIGHUP to this process, or to the one
                    whose ID is in this file, so that OpenSM reads the tables

Examples:
  fabsh -F file:cluster.net route ftree --verify --out lfts.dump
  fabsh -F ibsim route dmodk.star --verify --diff
  fabsh -F file:cluster.net -o json route updn --roots=roots.guids --verify
  fabsh --write route ftree --watch --out lfts.dump --reload /run/opensm.pid
`

// routeCommand parses its own flags: all others are the policy's.
func (a *app) routeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:                "route POLICY [options] [--verify] [--diff] [--out FILE] [--fail-each-link] [--list] [--watch --reload PID|FILE]",
		Short:              "Compute forwarding tables by a routing policy; verify, compare and write them",
		DisableFlagParsing: true,
		ValidArgsFunction:  completePolicy,
		RunE: func(_ *cobra.Command, words []string) error {
			o, err := parseRoute(words)
			p, list, help := o.Policy, o.list, o.help
			switch {
			case err != nil:
				return fmt.Errorf("route: %w", err)
			case list:
				return a.listPolicies()
			case p.Name == "" && help:
				_, err := fmt.Fprint(a.console.Out(), routeHelp)
				return err
			case p.Name == "":
				return errors.New(`route: which policy? "fabsh route --list" lists the shipped ones; or name a .star file`)
			case strings.HasSuffix(p.Name, ".star"):
				if err := checkScript(p.Name); err != nil {
					return err
				}
			}
			if o.every == 0 {
				return a.onFabric(func(ctx context.Context, s *session) error { return s.Route(ctx, p) })
			}
			w, err := a.watch(o)
			if err != nil {
				return fmt.Errorf("route: %w", err)
			}
			return a.onFabric(func(ctx context.Context, s *session) error {
				if d := s.deadline; d != nil { // there is nothing to be reported after it
					var stop context.CancelFunc
					ctx, stop = context.WithDeadlineCause(ctx, d.at, d.late)
					defer stop()
				}
				return s.Watch(ctx, p, w)
			})
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) { fmt.Fprint(a.console.Out(), routeHelp) })
	return c
}

// routeWords are what follows route on the command line.
type routeWords struct {
	builtins.Policy
	list, help bool
	every      time.Duration // of --watch; 0: not asked for
	reload     string
}

// usualWatch is how often --watch looks at the fabric.
const usualWatch = 10 * time.Second

// parseRoute tells the command's own flags, which may stand anywhere, from the
// policy's.
func parseRoute(words []string) (o routeWords, err error) {
	own := map[string]*bool{"--verify": &o.Verify, "--diff": &o.Diff, "--fail-each-link": &o.FailEachLink, "--adaptive": &o.Adaptive, "--list": &o.list}
	needs := map[string]struct {
		value *string
		what  string
	}{"--out": {&o.Out, "the name of a file"}, "--reload": {&o.reload, "a process ID, or the name of a file that holds one"}}
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
		case name == "--watch":
			o.every = usualWatch
			if hasValue {
				if o.every, err = time.ParseDuration(value); err != nil || o.every < time.Second {
					return o, fmt.Errorf("--watch=%s: want a time of at least 1s, such as 30s or 5m", value)
				}
			}
		case o.Name == "" && (w == "-h" || w == "--help"):
			o.help = true
		case o.Name == "" && strings.HasPrefix(w, "-") && !hasValue: // is the next word its value, or the policy?
			return o, fmt.Errorf("%s stands before the policy: write it as %[1]s=VALUE, or after the policy", w)
		case o.Name == "" && !strings.HasPrefix(w, "-"):
			o.Name = w
		default:
			o.Args = append(o.Args, w)
		}
	}
	if o.reload != "" && o.every == 0 {
		return o, errors.New("--reload goes with --watch")
	}
	return o, nil
}

// watch checks what --watch needs.
func (a *app) watch(o routeWords) (w builtins.Watch, err error) {
	switch {
	case o.Out == "":
		return w, errors.New("--watch needs --out FILE, the file to be kept up to date")
	case o.Diff || o.FailEachLink || o.Adaptive:
		return w, errors.New("--watch shows no reports: leave --diff, --fail-each-link and --adaptive out")
	case !a.write:
		return w, errors.New("--watch changes what a subnet manager does, which takes --write (before the word route)")
	}
	w.Every = o.every
	if o.reload == "" {
		return w, nil
	}
	r, err := findReader(o.reload)
	if err != nil {
		return w, &hostError{err}
	}
	w.Reload = r.reload
	return w, nil
}

func (a *app) listPolicies() error {
	width := 0
	for _, p := range builtins.ShippedPolicies() {
		width = max(width, len(p.Name))
	}
	for _, p := range builtins.ShippedPolicies() {
		if _, err := fmt.Fprintf(a.console.Out(), "%-*s  %s\n", width, p.Name, p.Doc); err != nil {
			return err
		}
	}
	return nil
}

// completePolicy proposes policies, then the command's own flags.
func completePolicy(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if o, err := parseRoute(words); err == nil && o.Name == "" {
		for _, p := range builtins.ShippedPolicies() {
			names = append(names, p.Name+"\t"+p.Doc)
		}
	}
	return append(names, builtins.RouteFlags...), cobra.ShellCompDirectiveDefault
}

// verifyCommand judges tables that there are already.
func (a *app) verifyCommand() *cobra.Command {
	var o builtins.Tables
	c := &cobra.Command{
		Use:   "verify --lfts FILE [--sl FILE] [--slvl FILE] [--fail-each-link]",
		Short: "Follow the packets through forwarding tables: do all arrive, can none deadlock?",
		Long: `Follow the packets between all pairs of ports through forwarding tables: do all
arrive, and can none deadlock? With findings the exit status is 1.

The tables are those of a file, or without --lfts those that the switches have.`,
		Example: `  fabsh -F file:opensm-subnet.lst verify --lfts opensm-lfts.dump --sl path-sl.txt --slvl opensm-sl2vl.dump
  fabsh -F ibsim verify`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.onFabric(func(ctx context.Context, s *session) error { return s.Verify(ctx, o) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.LFTs, "lfts", "", "forwarding tables in `FILE`: opensm-lfts.dump, opensm.fdbs, of ibroute or dump_fts, or a snapshot")
	c.Flags().StringVar(&o.SL, "sl", "", "service levels of paths in `FILE`")
	c.Flags().StringVar(&o.SL2VL, "slvl", "", "virtual lanes of service levels in `FILE`: opensm-sl2vl.dump, ibdmchk's short form, or of smpquery sl2vl")
	c.Flags().BoolVar(&o.FailEachLink, "fail-each-link", false, "say what each single failure of a link would break")
	c.Flags().BoolVar(&o.Adaptive, "adaptive", false, "the switches are known to route adaptively: the verdict is unknown")
	c.SetFlagErrorFunc(flagError)
	for _, name := range []string{"lfts", "sl", "slvl"} {
		c.MarkFlagFilename(name)
	}
	return c
}

// onFabric runs a command on the fabric that the session flags name.
func (a *app) onFabric(task func(context.Context, *session) error) error {
	collectAt(200) // tables are large: of 11,664 hosts 21 MB each
	if a.flags.Changed("command") {
		return errors.New("-c takes no command")
	}
	if err := a.settings.check(); err != nil {
		return err
	}
	d := a.startDeadline()
	defer d.stop()
	s, err := a.open(false)
	if err != nil {
		return err
	}
	defer s.close()
	s.deadline = d
	d.limit(s.engine)
	a.status = s.evaluate(func(ctx context.Context) error { return task(ctx, s) })
	s.summary()
	return nil
}
