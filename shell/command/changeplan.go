package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/read"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/change/target"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
	"fabsh/shell/session"
)

// changeCommand has the commands on changes.
func changeCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "change",
		Short: "Plan a change of the fabric, show it, make it, take it back",
		Long: `Plan a change of the fabric, and make it. A plan is made without a change of the
fabric: what a script or a routing policy would write is recorded, put in an order,
and proven: packets neither loop nor get lost nor deadlock at any step. It is made
under a journal: round by round, each read back, with a look at the fabric in
between, and is taken back by itself unless it is confirmed.`,
		Example: `  fabsh change plan --routes ftree --out new.plan
  fabsh change plan maintenance.star --out m.plan
  fabsh change show new.plan
  fabsh change check new.plan
  fabsh --write change apply new.plan --confirm-within 60s
  fabsh change confirm
  fabsh --write change revert
  fabsh change status`,
	}
	c.AddCommand(planCommand(p), showCommand(p), checkPlanCommand(p), applyCommand(p), confirmCommand(p), revertCommand(p), resumeCommand(p), statusCommand(p), guardCommand(p))
	return c
}

// planOptions are what follows change plan on the command line.
type planOptions struct {
	routes, out       string
	levels, levelsOut string
	exact, adaptive   bool
	risk              bool
	help              bool
	words             []string // script or policy, and its options
}

// flags declares the command's own flags, and sets o to their defaults.
func (o *planOptions) flags() *pflag.FlagSet {
	f := newFlags("change plan")
	f.StringVar(&o.routes, "routes", "", "plan for `TABLES`: a policy, or a file of tables as of fabsh route --out")
	f.StringVar(&o.out, "out", "", "write the plan to `FILE`; it has mode 0600")
	f.BoolVar(&o.exact, "exact", false, "plan for the tables of the policy or the file alone, not for compatible ones")
	f.BoolVar(&o.adaptive, "adaptive", false, "the switches are known to route adaptively: then nothing can be proven of tables, and no plan is made")
	f.BoolVar(&o.risk, riskFlag, false, "where no order is free of credit loops, make the plan all the same: its certificate does not cover them")
	f.StringVar(&o.levels, "sl", "", "the service levels of paths in `FILE` are those in use, where virtual lanes matter; not behind a script")
	f.StringVar(&o.levelsOut, "sl-out", "", "write the service levels that the tables' paths have to `FILE`: the subnet administrator must give them out; change apply --sl reads them")
	return f
}

// planCommand plans changes.
func planCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan SCRIPT [script's options] | --routes TABLES [policy's options]",
		Short: "Record what a script, or tables of a policy, would change, and prove it safe",
		Long: `Plan a change of the fabric. Nothing is sent that changes it: what would be sent is
recorded, put in an order, and proven, and written to a file.

A change is what a script writes (set_*, port_*, smp_set), or tables: those of a
routing policy, shipped (fabsh route --list) or a .star file, or of a file of tables.
Reads in the script show what it would have written; what follows from that, such as
a link that goes down, they do not. --plan FILE does the same for any command.

A policy stands for several tables: its own with entries in force kept where its rules
allow that (no link gets over 2% more routes), its own, those in force repaired, and
its paths where they are compatible with those in force. The plan leads to the first
to which the change is proven; its verdict says to which, and what that costs in load.
Entries that a file does not name stay. --exact takes the tables of the policy or the
file alone. Without --sl the service levels of paths are those of path records, if there
is a subnet administrator, else all 16; and those that the tables' own paths have.

Exit status: 0 the verdict is ok; 1 it is not; 2 the command or script is to be
fixed, or the change is refused; 3 the fabric or the host is to be looked at.`,
		Example: `  fabsh change plan --routes ftree --out new.plan
  fabsh change plan --routes lfts.dump --out new.plan
  fabsh change plan maintenance.star --rack=7 --out m.plan`,
		DisableFlagParsing: true, // they are told from those of the script
		ValidArgsFunction:  completePlan,
		RunE: func(c *cobra.Command, words []string) error {
			words, err := takePlan(p, words)
			if err != nil {
				return err
			}
			o, err := parsePlan(words)
			var opening session.Opening
			switch {
			case err != nil:
				return fmt.Errorf("change plan: %w", err)
			case o.help:
				return c.Help()
			case p.Settings.PlanFile != "":
				return errors.New("change plan: leave --plan out: --out says where the plan goes")
			case o.routes == "":
				if err := CheckScript(c, o.words[0]); err != nil {
					return err
				}
				opening.Script = o.words[0]
			}
			settings := *p.Settings
			settings.PlanFile = o.out
			planned := p.With(settings)
			open := func(ctx context.Context) (*session.Session, error) { return session.Open(ctx, planned, opening) }
			return execute(planned, task{name: "change", plan: o.from(), time: p.StartTime(), open: open, run: func(ctx context.Context, s *session.Session) error {
				return runPlan(ctx, s, o)
			}})
		},
	}
	return withFlags(c, new(planOptions).flags())
}

// takePlan takes the session flags out of the words behind change plan: those that are
// neither the command's, nor the policy's, nor stand behind a script.
func takePlan(p *session.Program, words []string) ([]string, error) {
	own := new(planOptions).flags()
	o, _ := parsePlan(withoutSession(p.Settings, words, own))
	behind := len(words)
	if o.routes == "" && len(o.words) > 0 {
		behind = slices.Index(words, o.words[0])
	}
	options := policyProgram(o.routes).Options
	taken, err := extractSession(p.Settings, words[:behind], own, func(flag string) bool { return slices.Contains(options, flag) })
	return append(taken, words[behind:]...), err
}

// parsePlan separates the command's own flags from the script's or policy's.
func parsePlan(words []string) (o planOptions, err error) {
	f := o.flags()
	// What a script writes is taken as it is: there --exact is the script's own, and so
	// are --sl and --sl-out behind it.
	tables := slices.ContainsFunc(words, func(w string) bool { return w == "--routes" || strings.HasPrefix(w, "--routes=") })
	behind := false // the script
	find := func(word string) *pflag.Flag {
		flag := lookup(f, word)
		if flag != nil && !tables && (flag.Name == "exact" || behind && strings.HasPrefix(flag.Name, "sl")) {
			flag = nil
		}
		behind = behind || flag == nil
		return flag
	}
	words, err = extractOwn(words, find, invalidValue)
	if err != nil {
		return o, err
	}
	if o.words = words; len(words) > 0 && (words[0] == "-h" || words[0] == "--help") {
		o.help, o.words = true, words[1:]
	}
	switch {
	case o.help:
	case len(o.words) == 0 && o.routes == "":
		return o, errors.New("what change? give a script, or --routes with a policy or a file of tables")
	case o.out == "":
		return o, errors.New("where does the plan go? give --out FILE")
	case o.routes == "" && strings.HasPrefix(o.words[0], "-"):
		return o, fmt.Errorf("%s stands before the script: write it after it", o.words[0])
	case o.levelsOut != "" && o.routes == "":
		return o, errors.New("--sl-out goes with --routes: a script gives no paths service levels")
	case o.adaptive && o.routes != "":
		return o, errors.New("refused, for where switches route adaptively the tables do not tell which way packets go, and nothing can be proven")
	}
	return o, nil
}

// from is what the plan is made from.
func (o *planOptions) from() string {
	if o.routes != "" {
		return strings.Join(slices.Insert(slices.Clone(o.words), 0, "--routes "+o.routes), " ")
	}
	return strings.Join(o.words, " ")
}

// runPlan runs the script, or computes the tables, whose writes are the plan.
func runPlan(ctx context.Context, s *session.Session, o planOptions) error {
	s.Env.Levels, s.Env.AcceptCreditLoops = o.levels, o.risk
	if o.routes == "" {
		return program.RunFile(ctx, s.Interpreter, o.words[0], o.words[1:])
	}
	r, live, err := plannedRoutes(ctx, s, o)
	if err != nil || r == nil {
		return err
	}
	printNotes(s, slices.Concat(r.ReadNotes, r.Notes))
	if err := changes.SetRoutes(ctx, s.Runtime, r, live); err != nil || o.levelsOut == "" {
		return err
	}
	if err := session.WriteNamed(ctx, o.levelsOut, func(w io.Writer) error { return r.Write(ctx, w, format.KindPathSL) }); err != nil {
		return fmt.Errorf("--sl-out: %w", err)
	}
	return nil
}

func printNotes(s *session.Session, notes []string) {
	for _, note := range notes {
		s.Print("note: " + lang.OneLine(note) + "\n")
	}
}

// plannedRoutes are the tables that --routes names, and those in force.
func plannedRoutes(ctx context.Context, s *session.Session, o planOptions) (r, live *routes.Routes, err error) {
	f, err := read.Fabric(ctx, s.Runtime)
	if err != nil {
		return nil, nil, err
	}
	if live, err = read.Routes(ctx, s.Runtime, f); err != nil {
		return nil, nil, err
	}
	isPolicy := strings.HasSuffix(o.routes, ".star") || slices.ContainsFunc(script.Policies.Shipped(), func(p script.Doc) bool { return p.Name == o.routes })
	if !isPolicy {
		if len(o.words) > 0 {
			return nil, nil, fmt.Errorf("change plan: %s is a file of tables, and has no option %q", o.routes, o.words[0])
		}
		if r, err = routes.Load(f, routes.Files{LFTs: o.routes}, session.OpenNamed(ctx, s.Files.OpenNamed)); err != nil {
			return nil, nil, err
		}
		if !o.exact {
			r.FillFrom(live.On(r.Graph()))
		}
		return r, live, nil
	}
	policy, err := loadPolicy(ctx, s, o.routes, o.words)
	if policy == nil || err != nil {
		return nil, nil, err
	}
	if o.exact {
		r, err = policy.Compute(ctx, f)
	} else {
		r, err = chosenRoutes(ctx, s, policy, f, live)
	}
	return r, live, err
}

// chosenRoutes are those of a policy's tables to which a change is proven.
func chosenRoutes(ctx context.Context, s *session.Session, policy *program.Policy, f *fabric.Fabric, live *routes.Routes) (*routes.Routes, error) {
	c, err := changes.Choose(ctx, s.Runtime, target.Policy{
		Own: func(ctx context.Context) (*routes.Routes, error) { return policy.Compute(ctx, f) },
		Keeping: func(ctx context.Context) (*routes.Routes, bool, error) {
			return policy.ComputeKeeping(ctx, f, live)
		},
		Live: live,
	})
	if err != nil {
		return nil, err
	}
	for _, refused := range c.Refused {
		printNotes(s, []string{"not proven: " + refused})
	}
	return c.Tables, changes.SetChoice(ctx, s.Runtime, c.Choice)
}

// loadPlan reads the plan's file that the command line names.
func loadPlan(ctx context.Context, path string) (*plan.Plan, error) {
	file, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, format.FileError(err)
	}
	defer file.Close()
	return plan.Load(file, path)
}

// completePlan proposes scripts; after --routes, policies; and the command's own flags.
func completePlan(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := session.FlagNames(new(planOptions).flags())
	if len(words) > 0 && words[len(words)-1] == "--routes" {
		names = nil
		for _, p := range script.Policies.Shipped() {
			names = append(names, p.Name+"\t"+p.Doc)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}
