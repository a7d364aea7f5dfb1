package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/tenant"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// changeCommand has the commands on changes.
func changeCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "change",
		Short: "Plan, show, apply and revert changes of the fabric",
		Long: `Plan a change of the fabric, and apply it. A plan is made without changing the
fabric: the writes of a script or a routing policy are recorded, ordered, and proven:
packets neither loop nor get lost nor deadlock at any step. A change is applied under a
journal: round by round, each read back, with checks of the fabric between rounds. It is
reverted automatically unless it is confirmed.

To practise, use a simulated fabric; these lines work as typed:

  fabsh sim fattree:k=4,levels=3 --listen lab --no-sm &
  fabsh -F ibsim:lab change plan --routes lash --out lab.plan
  fabsh -F ibsim:lab --write change apply lab.plan --confirm-within 60s & sleep 5; fabsh -F ibsim:lab change confirm
  fabsh -F ibsim:lab --write change revert`,
		Annotations: map[string]string{atPrompt: ""},
		Example: `  fabsh change plan --routes ftree --out new.plan
  fabsh change plan maintenance.star --out m.plan
  fabsh change show new.plan
  fabsh change check new.plan
  fabsh --write change apply new.plan --confirm-within 60s
  fabsh change confirm
  fabsh --write change revert
  fabsh change status`,
	}
	c.AddCommand(planCapability(p).asCommand(p), showCommand(p), checkPlanCommand(p), applyCommand(p), confirmCommand(p), revertCommand(p), resumeCommand(p), statusCommand(p), guardCommand(p))
	return c
}

// planOptions are the options behind change plan on the command line.
type planOptions struct {
	routes, out       string
	levels, levelsOut string
	managerEngine     string
	exact, adaptive   bool
	static            bool
	risk              bool
	tenantsFile       string
	allowTenants      bool
	tenants           *tenant.File

	words []string // script or policy, and its options
	code  string   // of a client's script; "": none
}

// params declares the parameters.
func (o *planOptions) params() params {
	return params{
		{name: "routes", to: &o.routes, propose: func() []string { return docWords(script.Policies) }, doc: "plan for `TABLES`: a policy, or a file of tables as written by fabsh route --out"},
		{name: "out", to: &o.out, doc: "write the plan to `FILE`; it has mode 0600", withheld: writesFiles},
		{name: "exact", to: &o.exact, doc: "plan for the tables of the policy or the file alone, not for compatible ones"},
		{name: "static", to: &o.static, doc: docOf(&changes.Plan, "static", "", "")},
		{name: "adaptive", to: &o.adaptive, doc: "assume that switches route adaptively in an unknown way, whatever they report: no plan of tables is made", withheld: "what switches report is enough"},
		{name: riskFlag, to: &o.risk, doc: "if no order is free of credit loops, make the plan nevertheless; its certificate does not cover them"},
		{name: "sl", to: &o.levels, doc: "read the service levels of paths from `FILE`, where virtual lanes matter", file: true},
		{name: "sl-out", to: &o.levelsOut, doc: "write the service levels of the tables' paths to `FILE`: the subnet administrator must assign them; change apply --sl reads them", withheld: writesFiles},
		managerEngineParam(&o.managerEngine),
		{name: "tenants", to: &o.tenantsFile, file: true, doc: "refuse a plan that joins tenants of `FILE` (fabsh help load_tenants)"},
		{name: "allow-tenants", to: &o.allowTenants, doc: "with --tenants: make a plan that joins tenants, and state it", withheld: "an operator decides"},
	}
}

// planCapability plans changes. The tool applies nothing.
func planCapability(p *session.Program) *capability[*planOptions] {
	return &capability[*planOptions]{command: &cobra.Command{
		Use:   "plan SCRIPT [script's options] | --routes TABLES [policy's options]",
		Short: "Record the changes of a script, or of tables of a policy, and prove them safe",
		Long: `Plan a change of the fabric. Nothing that changes the fabric is sent: requests are
recorded, ordered, proven, and written to a file.

A change is the writes of a script (set_*, port_*, smp_set), or tables: those of a
routing policy, shipped (fabsh route --list) or a .star file, or of a file of tables.
Reads in the script return what it would have written, but not the effects of that,
such as a link that goes down. --plan FILE does the same for any command.

A policy has several possible tables: its own with current entries kept where its rules
allow that (no link carries over 2% more routes), its own, the current ones repaired, and
its paths where they are compatible with the current ones. The plan leads to the first
of these for which the change is proven; its verdict states which, and the cost in load.
Entries that a file does not contain stay, and with a policy those that lead to switches or
that no packets between hosts use: a note states how many. --exact uses only the tables of
the policy or the file.

Where adaptive routing is on, switches do not follow the forwarding tables, and a write of
a table may disable adaptive routing. Such a plan is refused, and names the switches, unless
--static requests static routing. The first round then disables adaptive routing, at all
switches with --routes, else at those that the script writes to; the order is proven for all
choices that the switches have. The plan and change apply report it, and a revert does not
restore adaptive routing. What switches report is read each time; --adaptive is for those
that do not report it. Switches of NVIDIA that do not answer whether they route adaptively
are assumed not to, and the plan lists them as not judged.

With --tenants FILE a plan that joins two tenants is refused: P_Key tables, checks of P_Keys at
switch ports and forwarding tables are judged before and after all writes. Multicast groups and
virtual ports are not judged.

Without --sl the service levels of paths are those of path records, if there
is a subnet administrator, else all 16; and those of the tables' own paths.

Exit status: 0 the verdict is ok; 1 it is not; 2 usage or script error, or the change is
refused; 3 fabric or host error (no answer, no device).`,
		Example: `  fabsh change plan --routes ftree --out new.plan
  fabsh change plan --routes lfts.dump --out new.plan
  fabsh change plan --routes updn --static --out new.plan
  fabsh change plan maintenance.star --rack=7 --out m.plan`,
		ValidArgsFunction: completePlan,
	},
		options: fresh[planOptions],
		line:    (*planOptions).take,
		start: func(o *planOptions, _ *cobra.Command, _ func(context.Context, *session.Session) error) error {
			var opening session.Opening
			if err := checkLevels(o.levels); err != nil {
				return err
			}
			if err := o.readTenants(); err != nil {
				return err
			}
			switch {
			case p.Settings.PlanFile != "":
				return errors.New("--plan: not supported: --out names the file of the plan; leave --plan out")
			case o.routes == "":
				opening.Script = o.words[0]
			}
			if p.Line != nil {
				return onFabric(p, func(ctx context.Context, s *session.Session) error {
					return s.PlanWhile(ctx, o.out, o.from(), o.proof(), func() error { return runPlan(ctx, s, *o) })
				})
			}
			settings := *p.Settings
			settings.PlanFile = o.out
			planned := p.With(settings)
			opening.Proof = o.proof()
			open := func(ctx context.Context) (*session.Session, error) { return session.Open(ctx, planned, opening) }
			return execute(planned, task{plan: o.from(), time: p.StartTime(), open: open, run: func(ctx context.Context, s *session.Session) error {
				return runPlan(ctx, s, *o)
			}})
		},
		run:  recordPlan,
		tool: "plan",
		doc:  "The result is the plan with its verdict, rounds, writes and certificate, for an operator to apply. Give a script that calls set_*, port_* or smp_set, whose writes are recorded; or routes.",
		words: []mcp.Param{
			{Name: "script", Kind: mcp.KindText, Doc: "the text of a script whose writes are the change"},
			optionsParam("the policy of routes"),
		},
		take: func(ctx context.Context, s *session.Session, a mcp.Arguments, o *planOptions) (err error) {
			o.code = a.Text("script")
			switch {
			case o.code == "" && o.routes == "":
				return errors.New("missing change; give a script, or routes with a policy or a file of tables")
			case o.code != "" && o.routes != "":
				return errors.New("script and routes exclude each other")
			case o.code != "" && a.Has("options"):
				return errors.New("options are those of a policy of routes; a script has none")
			}
			if o.routes != "" {
				o.routes, o.words, err = clientScript(ctx, s, a, script.Policies, o.routes)
			}
			return err
		},
	}
}

// plannedScript returns the script that words name, or the policy of --routes.
func plannedScript(words parsedWords) []script.Program {
	if tables := words.flags["routes"]; tables != "" {
		p := programIn(script.Policies, tables)
		p.Known = true // it has no word on the command line
		return []script.Program{p}
	}
	if len(words.plain) == 0 {
		return nil
	}
	return []script.Program{programAt(words.plain[0])}
}

// take sets what the command line has besides the flags of the command.
func (o *planOptions) take(c *cobra.Command, words []string) error {
	o.words = words
	if len(words) > 0 && o.routes == "" {
		o.words = append(words[:1:1], scriptWords(c, words)...)
	} else {
		o.words = append(optionWords(c.Flags()), words...)
	}
	if len(words) > 0 && o.routes == "" {
		if err := CheckScript(c, words[0]); err != nil {
			return err
		}
	}
	switch {
	case len(words) == 0 && o.routes == "":
		return errors.New("missing change; give a script, or --routes with a policy or a file of tables")
	case o.out == "" && slices.ContainsFunc(o.words, func(w string) bool { return w == "--out" || strings.HasPrefix(w, "--out=") }):
		return fmt.Errorf("--out: behind %s, whose options cannot be read beforehand; give it before the script", o.words[0])
	case o.out == "":
		return errors.New("missing --out FILE")
	case o.levelsOut != "" && o.routes == "":
		return errors.New("--sl-out requires --routes: a script does not set service levels of paths")
	case o.exact && o.routes == "":
		return errors.New("--exact requires --routes: the writes of a script have no alternatives")
	case o.adaptive && o.routes != "":
		return errors.New("--adaptive: refused: with adaptive routing the tables do not determine the paths of packets, so nothing can be proven")
	}
	return nil
}

// readTenants reads the file of --tenants.
func (o *planOptions) readTenants() error {
	switch {
	case o.tenantsFile == "" && o.allowTenants:
		return errors.New("--allow-tenants requires --tenants")
	case o.tenantsFile == "":
		return nil
	}
	in, err := lang.OpenNamed(context.Background(), o.tenantsFile)
	if err != nil {
		return fmt.Errorf("--tenants: %w", format.FileError(err))
	}
	defer in.Close()
	o.tenants, err = tenant.Read(in, o.tenantsFile)
	return err
}

// from returns the origin of the plan.
func (o *planOptions) from() string {
	if o.code != "" {
		return scriptName
	}
	if o.routes != "" {
		return strings.Join(slices.Insert(slices.Clone(o.words), 0, "--routes "+o.routes), " ")
	}
	return strings.Join(o.words, " ")
}

// proof returns the options for the proof of the plan.
func (o *planOptions) proof() changes.ProofOptions {
	return changes.ProofOptions{Levels: o.levels, AcceptCreditLoops: o.risk, ManagerEngine: o.managerEngine, Tenants: o.tenants, AllowTenants: o.allowTenants}
}

// runPlan runs the script, or computes the tables, whose writes are the plan.
func runPlan(ctx context.Context, s *session.Session, o planOptions) error {
	ctx = changes.WithProof(ctx, s.Runtime, o.proof())
	if o.static {
		if err := changes.SetStatic(ctx, s.Runtime); err != nil {
			return err
		}
	}
	if o.code != "" {
		return program.RunCode(ctx, s.Interpreter, scriptName, o.code)
	}
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

// plannedRoutes returns the tables that --routes names, and the current ones.
func plannedRoutes(ctx context.Context, s *session.Session, o planOptions) (r, live *routes.Routes, err error) {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return nil, nil, err
	}
	if live, err = audits.ReadRoutes(ctx, s.Runtime, f, false); err != nil {
		return nil, nil, err
	}
	isPolicy := strings.HasSuffix(o.routes, ".star") || slices.ContainsFunc(script.Policies.Shipped(), func(p script.Doc) bool { return p.Name == o.routes })
	if !isPolicy {
		if len(o.words) > 0 {
			return nil, nil, fmt.Errorf("%s: unsupported option %[2]q of a file of tables", o.routes, o.words[0])
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

// chosenRoutes returns the tables of a policy for which a change is proven.
func chosenRoutes(ctx context.Context, s *session.Session, policy *program.Policy, f *fabric.Fabric, live *routes.Routes) (*routes.Routes, error) {
	c, err := changes.Choose(ctx, s.Runtime, change.TargetPolicy{
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

// loadPlan reads the plan file that the command line names.
func loadPlan(ctx context.Context, path string) (*change.Plan, error) {
	file, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, format.FileError(err)
	}
	defer file.Close()
	return change.LoadPlan(file, path)
}

// completePlan leaves scripts to the shell: they are files.
func completePlan(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// recordPlan returns the plan of a change, instead of writing it to a file.
func recordPlan(ctx context.Context, s *session.Session, o *planOptions) (starlark.Value, error) {
	if o.tenantsFile != "" {
		file, err := openTenants(ctx, s, o.tenantsFile)
		if err != nil {
			return nil, err
		}
		o.tenants = file
	}
	recording, err := changes.StartRecording(ctx, s.Runtime, o.proof())
	if err != nil {
		return nil, err
	}
	defer recording.Stop()
	if err := runPlan(ctx, s, *o); err != nil {
		return nil, err
	}
	made, err := recording.Finish(ctx, o.from())
	if err != nil {
		return nil, err
	}
	if !made.Report.OK {
		err = session.Exit(lang.StatusFindings)
	}
	return &changes.Value{Plan: made}, err
}

// checkPlanCommand checks the certificate of a plan.
func checkPlanCommand(p *session.Program) *cobra.Command {
	var levels string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Verify the certificate of a plan on the fabric, independently of the planner",
		Long: `Verify the certificate of a plan on the fabric, or on a snapshot with forwarding
tables. Nothing is written. The certificate holds the rounds of the plan block by
block, and the proof that they are safe whatever the order of the writes in a round:

  delivery      for each LID and round in which its entries change, a rank of each
                switch. It decreases along each old and each new entry, so packets
                arrive from each switch from which they arrive before and after
  credit loops  for the rounds up to each drain, a position of each link on each
                virtual lane. It increases along each two links that packets take one
                after the other, by old or new entries, so no credit loop arises

Another program verifies these than the one that finds them, and it trusts nothing
else in the file. A plan made with --accept-credit-loop-risk has no positions: of it
only the delivery is verified.

Exit status: 0 the certificate holds; 1 it does not, is missing, or the fabric is not the
one that the plan was made for; 2 the command line or the file is invalid; 3 the fabric
did not answer.`,
		Example: `  fabsh change check new.plan
  fabsh -F sim:today.fab change check new.plan`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, words []string) error {
			if err := checkLevels(levels); err != nil {
				return err
			}
			return onFabric(p, func(ctx context.Context, s *session.Session) error {
				p, err := loadPlan(ctx, words[0])
				if err != nil {
					return err
				}
				return checkPlan(changes.WithProof(ctx, s.Runtime, changes.ProofOptions{Levels: levels}), s, p)
			})
		},
	}
	c.Flags().StringVar(&levels, "sl", "", "read the service levels of paths from `FILE` (default: from path records)")
	c.MarkFlagFilename("sl")
	return c
}

// checkPlan prints whether the certificate of a plan holds.
func checkPlan(ctx context.Context, s *session.Session, p *change.Plan) error {
	verdict, notes, err := changes.Check(ctx, s.Runtime, p)
	if failed := new(certificate.FailureError); errors.As(err, &failed) || errors.Is(err, change.ErrNoCertificate) {
		s.Print("not ok: " + lang.OneLine(err.Error()) + "\n")
		return session.Exit(lang.StatusFindings)
	}
	if err != nil {
		return err
	}
	s.Print(verdict + "\n")
	for _, note := range notes {
		s.Print("not covered: " + lang.OneLine(note) + "\n")
	}
	return nil
}

// showCommand shows a plan.
func showCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show a plan: what it writes, in which rounds, and what its certificate proves",
		Long: `Show what a plan writes, the rounds of its certificate, and what the certificate
proves. Nothing is verified: change check does that, on the fabric. What the file
records of the time when the plan was made (pairs, load, what was not judged) is
marked "recorded".

Exit status: 0 the plan is shown; 1 it records that no safe order was found; 2 the file
is not a plan.`,
		Example: `  fabsh change show new.plan
  fabsh -o json change show new.plan`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
				p, err := loadPlan(ctx, words[0])
				if err != nil {
					return err
				}
				if err := s.Show(&changes.Value{Plan: p}); err != nil {
					return err
				}
				if p.Recorded != nil && !p.Recorded.OK {
					return session.Exit(lang.StatusFindings)
				}
				return nil
			})
		},
	}
}
