package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// verifyOptions are the options of verify on the command line.
type verifyOptions struct {
	tables       routes.Files // without LFTs: the tables that the switches have
	failEachLink bool
	adaptive     verify.Adaptive
}

// verifyCommand verifies existing tables.
func verifyCommand(p *session.Program) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify --lfts FILE [--sl FILE] [--sl2vl FILE] [--fail-each-link]",
		Short: "Verify forwarding tables: do all packets arrive, without loops and deadlocks?",
		Long: `Follow the packets between all pairs of ports through forwarding tables: do all
arrive, without loops and deadlocks? Findings make the exit status 1.

The tables are those of the file of --lfts; without it, those of the switches, or of the
snapshot that the session reads. With --sl alone, the virtual lanes are those of the
switches, or of the snapshot, too.`,
		Example: `  fabsh -F file:opensm-subnet.lst verify --lfts opensm-lfts.dump --sl path-sl.txt --sl2vl opensm-sl2vl.dump
  fabsh -F ibsim verify`,
		Annotations: map[string]string{atPrompt: ""},
		Args:        cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onFabric(p, "verify", func(ctx context.Context, s *session.Session) error { return runVerify(ctx, s, o) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(o.flags())
	c.RegisterFlagCompletionFunc("adaptive", cobra.FixedCompletions(verify.AdaptiveWords(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"lfts", "sl", "sl2vl", "far"} {
		c.MarkFlagFilename(name)
	}
	return c
}

// flags declares the flags of verify.
func (o *verifyOptions) flags() *pflag.FlagSet {
	f := newFlags("verify")
	f.StringVar(&o.tables.LFTs, "lfts", "", "forwarding tables in `FILE`: opensm-lfts.dump, opensm.fdbs, output of ibroute or dump_fts, ibdiagnet2.far, or a snapshot")
	f.StringVar(&o.tables.SL, "sl", "", "service levels of paths in `FILE`")
	f.StringVar(&o.tables.SL2VL, "sl2vl", "", "virtual lanes of service levels in `FILE`: opensm-sl2vl.dump, ibdmchk's short form, output of smpquery sl2vl, or a snapshot made with --all")
	f.StringVar(&o.tables.FAR, "far", "", "adaptive routing of switches in `FILE`: ibdiagnet2.far")
	f.BoolVar(&o.failEachLink, "fail-each-link", false, "report what each single failure of a link would break")
	adaptiveFlagOf(f, &o.adaptive)
	f.StringVar(&o.tables.SL2VL, "slvl", "", "the former name of --sl2vl")
	f.MarkHidden("slvl")
	return f
}

// runVerify verifies tables of files, or those that the switches have.
func runVerify(ctx context.Context, s *session.Session, o verifyOptions) error {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	var r *routes.Routes
	switch {
	case o.tables.LFTs != "":
		r, err = routes.Load(f, o.tables, session.OpenNamed(ctx, s.Files.OpenNamed))
	case o.tables.FAR != "":
		err = errors.New("verify: --far belongs to tables of a file; give --lfts FILE")
	case o.tables.SL2VL != "":
		err = errors.New("verify: --sl2vl belongs to tables of a file; give --lfts FILE")
	default:
		if r, err = audits.ReadRoutes(ctx, s.Runtime, f, true); err == nil && o.tables.SL != "" {
			if err = audits.ReadLanes(ctx, s.Runtime, r); err == nil {
				r.SL, _, err = change.Levels{File: o.tables.SL, Open: session.OpenNamed(ctx, s.Files.OpenNamed)}.Of(ctx, r)
			}
		}
	}
	if err != nil {
		return err
	}
	report, err := examine(ctx, r, checks{verify: true, failEachLink: o.failEachLink, adaptive: o.adaptive, progress: s.Runtime.Progress})
	if err != nil {
		return err
	}
	shown := values.WrapVerdict(report.Verdict)
	if o.failEachLink {
		shown = values.WrapReport(report)
	}
	if err := s.Show(shown); err != nil {
		return err
	}
	if !report.Clean() {
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// adaptiveFlag is --adaptive, which may have a value.
type adaptiveFlag verify.Adaptive

// adaptiveFlagOf declares --adaptive.
func adaptiveFlagOf(f *pflag.FlagSet, to *verify.Adaptive) {
	f.Var((*adaptiveFlag)(to), "adaptive", "the switches route adaptively: the verdict is unknown; with =minimal or =updown: check all choices among the minimal ports, or the legal up/down ports")
	f.Lookup("adaptive").NoOptDefVal = "true"
}

func (f *adaptiveFlag) String() string { return "" }

// Type makes help show no value, which would follow a blank and not the equals sign.
func (f *adaptiveFlag) Type() string { return "bool" }

func (f *adaptiveFlag) Set(value string) error {
	if value == "true" {
		*f = adaptiveFlag(verify.AdaptiveOn)
		return nil
	}
	a, err := verify.ParseAdaptive(value)
	if err != nil {
		return fmt.Errorf("want --adaptive=%s, or --adaptive alone", strings.Join(verify.AdaptiveWords(), ", --adaptive="))
	}
	*f = adaptiveFlag(a)
	return nil
}

// checks are the checks of tables to run.
type checks struct {
	verify       bool
	adaptive     verify.Adaptive
	live         *routes.Routes // to compare with; nil: none
	failEachLink bool
	progress     func(doing string) // the progress line
}

// examine runs the checks. It adds to the notes of r what the fabric's file left open
// and tables depend on, and which checks leave choices of switches out.
func examine(ctx context.Context, r *routes.Routes, c checks) (*verify.Report, error) {
	r.ReadNotes = slices.Concat(assignedLIDs(r.Graph().Fabric()), r.ReadNotes)
	report := &verify.Report{Routes: r}
	defer c.progress("")
	if c.failEachLink {
		c.progress("simulating link failures")
		list, byChoice, err := verify.FailEachLink(ctx, r, 0)
		switch {
		case err != nil:
			return nil, err
		case byChoice:
			r.ReadNotes = append(r.ReadNotes, "failures of links were judged on the choices of packets of reliable connections (RC), SL 0")
		case r.HasChoices() || c.adaptive != 0:
			r.ReadNotes = append(r.ReadNotes, "failures of links were judged on the static ports alone")
		}
		report.Failures = append([]verify.LinkFailure{}, list...) // not nil: requested
	}
	var err error
	if c.verify {
		c.progress("verifying the tables")
		if report.Verdict, err = verify.Tables(ctx, r, verify.Options{Adaptive: c.adaptive}); err != nil {
			return nil, err
		}
	}
	if c.live != nil {
		report.Diff = r.Diff(c.live)
	}
	return report, nil
}

// assignedLIDs returns the notes on LIDs that a file does not have.
func assignedLIDs(f *fabric.Fabric) []string {
	var notes []string
	for _, p := range f.Problems() {
		if p.Kind == fabric.ProblemAssignedLIDs {
			notes = append(notes, p.Text)
		}
	}
	return notes
}

// verifyTool verifies tables.
func verifyTool() *agentTool {
	offered := []string{"lfts", "sl", "sl2vl", "far", "fail-each-link", "adaptive"}
	return &agentTool{
		name: "route_verify", command: "verify",
		doc:   "The tables are those that the switches have, or those of files.",
		flags: new(verifyOptions).flags(), offered: offered,
		withheld: map[string]string{"slvl": "the former name of sl2vl"},
		run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			var o verifyOptions
			if err := a.SetFlags(o.flags(), offered...); err != nil {
				return fmt.Errorf("verify: %w", err)
			}
			return runVerify(ctx, s, o)
		},
	}
}
