package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
  --out FILE        write the tables for OpenSM's engine file; with --verify only
                    if the verdict is ok
  --list            list the shipped policies

Examples:
  fabsh -F file:cluster.net route ftree --verify --out lfts.dump
  fabsh -F ibsim route dmodk.star --verify --diff
  fabsh -F file:cluster.net -o json route updn --roots=roots.guids --verify
`

// routeCommand parses its own flags: all others are the policy's.
func (a *app) routeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:                "route POLICY [options] [--verify] [--diff] [--out FILE] [--fail-each-link] [--list]",
		Short:              "Compute forwarding tables by a routing policy; verify, compare and write them",
		DisableFlagParsing: true,
		ValidArgsFunction:  completePolicy,
		RunE: func(_ *cobra.Command, words []string) error {
			p, list, help, err := parseRoute(words)
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
			return a.onFabric(func(ctx context.Context, s *session) error { return s.Route(ctx, p) })
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) { fmt.Fprint(a.console.Out(), routeHelp) })
	return c
}

// parseRoute tells the command's own flags, which may stand anywhere, from the
// policy's.
func parseRoute(words []string) (p builtins.Policy, list, help bool, err error) {
	own := map[string]*bool{"--verify": &p.Verify, "--diff": &p.Diff, "--fail-each-link": &p.FailEachLink, "--list": &list}
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, value, hasValue := strings.Cut(w, "=")
		switch on := own[name]; {
		case on != nil && hasValue:
			return p, false, false, fmt.Errorf("%s takes no value, and here is %q", name, value)
		case on != nil:
			*on = true
		case name == "--out":
			if !hasValue {
				if i++; i == len(words) {
					return p, false, false, errors.New("--out needs the name of a file")
				}
				value = words[i]
			}
			if value == "" {
				return p, false, false, errors.New("--out needs the name of a file")
			}
			p.Out = value
		case p.Name == "" && (w == "-h" || w == "--help"):
			help = true
		case p.Name == "" && strings.HasPrefix(w, "-") && !hasValue: // is the next word its value, or the policy?
			return p, false, false, fmt.Errorf("%s stands before the policy: write it as %[1]s=VALUE, or after the policy", w)
		case p.Name == "" && !strings.HasPrefix(w, "-"):
			p.Name = w
		default:
			p.Args = append(p.Args, w)
		}
	}
	return p, list, help, nil
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
	if p, _, _, err := parseRoute(words); err == nil && p.Name == "" {
		for _, p := range builtins.ShippedPolicies() {
			names = append(names, p.Name+"\t"+p.Doc)
		}
	}
	return append(names, "--verify", "--diff", "--fail-each-link", "--out", "--list"), cobra.ShellCompDirectiveDefault
}

// verifyCommand judges tables that there are already.
func (a *app) verifyCommand() *cobra.Command {
	var o builtins.Tables
	c := &cobra.Command{
		Use:   "verify --lfts FILE [--sl FILE] [--slvl FILE]",
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
	s, err := a.open(false)
	if err != nil {
		return err
	}
	defer s.close()
	defer s.startDeadline()()
	a.status = s.evaluate(func(ctx context.Context) error { return task(ctx, s) })
	s.summary()
	return nil
}
