package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/remedy"
	"fabsh/shell/session"
)

const remedyDoc = `Turn findings into a plan: isolate bad links, restore repaired ones.

A remedy is a .star file that defines remedy(fabric, findings, *, ...), which returns
isolate(), restore(), reset() and ticket(); or the name of a shipped remedy (--list).
Without names all shipped remedies run. Options are passed to every remedy that accepts
them: "fabsh remedy NAME --help" lists them. The standard audits run first; --last uses
the findings of their last run that kept state, such as that of cron.

Nothing is changed. Without --out the decisions and the plan are shown, and nothing else
happens. With --out the plan is written, and the decisions are added to the log of the
subnet ("fabsh remedy log"), by which remedies count in how many runs a link was bad, and
what fabsh has isolated. "fabsh --write --override-sm change apply FILE" applies the plan,
within a day and with the same --state.

What these rules forbid is declined and reported, also for your own remedies:
%s
Exit status: 0 nothing to do; 1 something is planned, declined or for people; 2 usage or
script error; 3 fabric or host error (no answer, no device, the log is damaged).`

func remedyCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "remedy [NAME | FILE.star] [remedies' options]",
		Short: "Turn findings into a plan: isolate bad links, restore repaired ones",
		Long:  fmt.Sprintf(remedyDoc, ruleTable()),
		Example: `  fabsh remedy
  fabsh remedy isolate --per-day 2 --out bad.plan
  fabsh remedy --last --out bad.plan
  fabsh -o jsonl remedy mine.star
  fabsh remedy log`,
		Annotations:        map[string]string{atPrompt: ""},
		DisableFlagParsing: true, // session flags are distinguishable only when the remedies are known
		ValidArgsFunction:  completeRemedy,
		RunE: func(c *cobra.Command, words []string) error {
			words, err := takeRemedy(p, words)
			if err != nil {
				return err
			}
			o, err := parseRemedy(words)
			switch {
			case err != nil:
				return err
			case o.help && len(o.words) == 1:
				return c.Help()
			case o.list:
				return writeDocs(p.Console.Out(), script.Remedies.Shipped())
			}
			for _, w := range o.words {
				if strings.HasSuffix(w, ".star") && !strings.HasPrefix(w, "-") {
					if err := CheckScript(c, w); err != nil {
						return err
					}
				}
			}
			work := func(ctx context.Context, s *session.Session) error { return runRemedies(ctx, s, o) }
			if o.help {
				return withoutFabric(p, "remedy", work)
			}
			return onFabric(p, "remedy", work)
		},
	}
	c.AddCommand(remedyLogCommand(p))
	return withFlags(c, new(remedyOptions).flags())
}

// ruleTable lists the rules for every remedy.
func ruleTable() string {
	var b strings.Builder
	for _, r := range remedy.Rules() {
		fmt.Fprintf(&b, "  %-8s %s\n", r.Name, r.Sentence)
	}
	return b.String()
}

// remedyOptions are the options behind remedy on the command line.
type remedyOptions struct {
	words []string // names of remedies, and their options

	list, last, help               bool
	audits, over, out, job, subnet string
}

// flags declares the flags of a run, and sets o to their defaults.
func (o *remedyOptions) flags() *pflag.FlagSet {
	f := newFlags("remedy")
	f.BoolVar(&o.list, "list", false, "list the shipped remedies")
	f.BoolVar(&o.last, "last", false, "use the findings of the last run of audits that kept state, instead of a new run")
	f.StringVar(&o.out, "out", "", "write the plan to `FILE`, which has mode 0600, and the decisions to the log of the subnet")
	f.StringVar(&o.audits, "audits", "", "run the audits `NAMES`: names or .star files, separated by commas (default: the standard set)")
	f.StringVar(&o.over, "over", "", "compare counters over `TIME`: the option --over of the audits that have it")
	f.Func("job", "use the state of the audits' job `NAME` (default: remedy; with --last, the one that ran last)", func(name string) error {
		o.job = name
		return audit.CheckJob(name)
	})
	subnetFlag(f, &o.subnet)
	return f
}

// parseRemedy separates the command's own flags, which may stand anywhere, from the
// remedies'.
func parseRemedy(words []string) (o remedyOptions, err error) {
	if o.words, err = extractOwn(words, finder(o.flags()), invalidValue); err != nil {
		return o, fmt.Errorf("remedy: %w", err)
	}
	o.help = slices.ContainsFunc(o.words, func(w string) bool { return w == "-h" || w == "--help" })
	if o.last && (o.audits != "" || o.over != "") {
		return o, errors.New("remedy: --last runs no audits; leave --audits and --over out")
	}
	return o, nil
}

// takeRemedy takes the session flags out of the words behind remedy: those that neither the
// command nor a remedy has.
func takeRemedy(p *session.Program, words []string) ([]string, error) {
	options := remedyFlags(words)
	return extractSession(p.Settings, words, new(remedyOptions).flags(), func(flag string) bool { return slices.Contains(options, flag) })
}

// remedyFlags returns the options of the remedies that words name, or of all shipped ones.
func remedyFlags(words []string) (options []string) {
	names := remedies.Named(words)
	for _, d := range script.Remedies.Shipped() {
		if len(names) == 0 || slices.Contains(names, d.Name) {
			options = append(options, d.Options...)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".star") {
			options = append(options, script.ProgramOf(name, sourceAt(name), script.RemedyEntry).Options...)
		}
	}
	return remedies.OptionsOf(options)
}

// oldestFindings is how old the findings of --last may be.
const oldestFindings = 24 * time.Hour

// runRemedies runs remedies, decides on their actions, and shows or writes the plan.
func runRemedies(ctx context.Context, s *session.Session, o remedyOptions) error {
	all, err := remedies.Load(ctx, s.Interpreter, o.words, session.FlagNames(new(remedyOptions).flags()))
	if err != nil {
		return err
	}
	if all.Help != "" {
		_, err := io.WriteString(s.Console.Out(), all.Help)
		return err
	}
	if o.out != "" && s.Engine == nil {
		return s.NoLive("remedy", "--out: a plan needs a live or simulated fabric; choose one with -F")
	}
	x := &remedyRun{Session: s, o: o}
	status, err := x.find(ctx)
	if err != nil {
		return err
	}
	if s.Engine != nil && !x.Fabric.Complete() {
		return &session.HostError{Err: fmt.Errorf("remedy: no plan is made: incomplete sweep: %s", x.Fabric.FirstMissing())}
	}
	if err := x.readLog(); err != nil {
		return err
	}
	result, err := all.Decide(ctx, s.Interpreter, &x.Input)
	if err != nil {
		return err
	}
	if s.Engine != nil && (len(remedy.Sets(result.Decisions)) > 0 || o.out != "") {
		if err := remedies.Plan(ctx, s.Runtime, result); err != nil {
			return err
		}
	}
	if o.out != "" {
		if err := x.record(result); err != nil {
			return err
		}
		if err := result.Plan.Save(ctx, o.out); err != nil {
			return session.NotWritten(o.out, err)
		}
	}
	if err := s.Show(result.Wrap(s.Format)); err != nil {
		return err
	}
	if len(result.Decisions) > 0 {
		status = session.Worse(status, lang.StatusFindings)
	}
	return session.Exit(status)
}

// remedyRun is a run of remedies.
type remedyRun struct {
	*session.Session
	remedies.Input
	o      remedyOptions
	subnet fabric.Subnet
	log    *remedy.Log // nil: nothing is kept
}

// find gets the fabric and the findings. The status is that of audits that did not run, or of
// requests without an answer.
func (x *remedyRun) find(ctx context.Context) (status int, err error) {
	s := x.Session
	if x.o.last {
		return 0, x.findLast(ctx)
	}
	var words []string
	for name := range strings.SplitSeq(x.o.audits, ",") {
		if name != "" {
			words = append(words, name)
		}
	}
	if x.o.over != "" {
		words = append(words, "--over="+x.o.over)
	}
	set, err := audits.LoadAudits(ctx, s.Interpreter, words, nil, false)
	if err != nil {
		return 0, err
	}
	options := audits.RunOptions{Subnet: x.o.subnet, Job: x.o.job, ReadOnly: x.o.out == "", NoPast: s.InProcess()}
	if options.Job == "" {
		options.Job = "remedy"
	}
	options.Begin = func(subnet fabric.Subnet) (audit.Acks, error) {
		return audits.RunAcks(s.Runtime, s.StateDir, subnet), nil
	}
	report, err := set.Run(ctx, s.Interpreter, options)
	if err != nil {
		return 0, err
	}
	x.Fabric, x.Findings, x.Of, x.subnet = report.Model, report.Findings, report.Ended, report.Subnet
	if x.Fabric == nil {
		return 0, &session.HostError{Err: errors.New("remedy: the fabric is unknown")}
	}
	for _, f := range report.Failures {
		if !f.Skipped {
			s.Console.Complain(fmt.Sprintf("audit %s: %s", f.Audit, s.Explain(f.Err)))
		}
	}
	unjudged := map[string]bool{}
	for _, u := range report.Unjudged {
		unjudged[u.Check] = true
	}
	for _, a := range set.List {
		for _, check := range a.Checks() {
			if !unjudged[check] {
				x.Judged = append(x.Judged, check)
			}
		}
	}
	if status = audits.RunStatus(report, audit.Critical+1); status == lang.StatusFabric || status == lang.StatusUsage {
		return status, nil
	}
	return lang.StatusClean, nil
}

// findLast is find for the last run of audits that kept state.
func (x *remedyRun) findLast(ctx context.Context) (err error) {
	s := x.Session
	if s.StateDir == "" {
		return errors.New("remedy: --last: no directory for state; give --state DIR")
	}
	if x.Fabric, err = audits.ReadFabric(ctx, s.Runtime); err != nil {
		return err
	}
	x.subnet = fabric.SubnetOf(x.Fabric, x.o.subnet)
	if err := audit.CheckSubnet(s.StateDir, x.subnet); err != nil {
		return &session.HostError{Err: fmt.Errorf("remedy: %w", err)}
	}
	job := x.o.job
	if job == "" {
		job = audit.LatestJob(s.StateDir, x.subnet, new(audit.Ack))
	}
	if job == "" {
		return errors.New("remedy: --last: no run of audits has kept findings; run fabsh audit --over last --job NAME, or leave --last out")
	}
	st, err := audit.OpenState(s.StateDir, x.subnet, job)
	if err != nil {
		return fmt.Errorf("remedy: --last: %w", err)
	}
	if st.Read(); st.Reset != nil {
		return &session.HostError{Err: fmt.Errorf("remedy: --last: %w", st.Reset)}
	}
	found, at := st.LastRun()
	age := s.Clock.Now().Sub(at)
	switch {
	case at.IsZero():
		return fmt.Errorf("remedy: --last: no run of job %s has kept findings; run fabsh audit --over last --job %[1]s", job)
	case age > oldestFindings, age < -oldestFindings:
		return fmt.Errorf("remedy: --last: job %s last ran at %s, more than a day ago; run fabsh audit --job %[1]s", job, at.UTC().Format(time.RFC3339))
	}
	var settled audit.Report
	settled.Settle(found, audits.RunAcks(s.Runtime, s.StateDir, x.subnet), nil, s.Clock.Now())
	x.Findings, x.Of = settled.Findings, at
	return nil
}

// readLog reads the log of the subnet. Without a log, budgets would not hold across runs, and
// what a plan isolates would be unknown later: so --out needs one on a live fabric.
func (x *remedyRun) readLog() (err error) {
	x.State = new(remedy.State)
	switch {
	case x.StateDir == "" && x.o.out != "" && !x.InProcess():
		return errors.New("remedy: --out: no directory for state, which has the log of decisions; give --state DIR")
	case x.StateDir != "" && x.o.out != "" && !x.subnet.IsKnown():
		return errors.New("remedy: --out: the log is kept by subnet, and this one is unknown: it has neither a prefix nor a subnet manager; give --subnet NAME")
	case x.StateDir == "" || !x.subnet.IsKnown():
		return nil
	}
	if err = audit.CheckSubnet(x.StateDir, x.subnet); err == nil {
		x.log, err = remedy.Open(remedy.LogFile(x.StateDir, x.subnet), x.StateDir, x.Fabric, x.Clock.Now())
	}
	if err != nil {
		return &session.HostError{Err: fmt.Errorf("remedy: %w", err)}
	}
	x.State = &x.log.State
	return nil
}

// record adds the decisions to the log.
func (x *remedyRun) record(result *remedies.Outcome) error {
	if x.log == nil {
		return nil
	}
	err := x.log.Keep(x.StateDir, x.Fabric, result.Decisions, result.Now, result.Of)
	if err == nil {
		err = audit.RecordSubnet(x.StateDir, x.subnet, x.Fabric.Complete())
	}
	if err != nil {
		return &session.HostError{Err: fmt.Errorf("remedy: no plan written: %w", err)}
	}
	return nil
}

// completeRemedy proposes words for remedy.
func completeRemedy(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	f := new(remedyOptions).flags()
	if len(words) > 0 && takesValue(f, words[len(words)-1]) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var list []string
	for _, d := range script.Remedies.Shipped() {
		if !slices.Contains(words, d.Name) {
			list = append(list, d.Name+"\t"+d.Doc)
		}
	}
	options := remedyFlags(words)
	slices.Sort(options)
	return slices.Concat(list, slices.Compact(options), session.FlagNames(f)), cobra.ShellCompDirectiveDefault
}

// remedyLogCommand shows the log of decisions.
func remedyLogCommand(p *session.Program) *cobra.Command {
	var subnet string
	c := &cobra.Command{
		Use:   "log",
		Short: "Show what remedies decided, when and why",
		Long: `Show what runs of fabsh remedy --out decided, the oldest first: what was planned or
declined, by which rule, and why; which plans were applied; and which ports another has
enabled since. The log is the file remedies in the directory of --state, one for each
subnet. Its oldest entries are left out from 8 MB on; which ports are isolated stays
known.

Exit status: 0; 2 usage error; 3 fabric or host error, or the log is damaged.`,
		Example: `  fabsh remedy log
  fabsh -o jsonl remedy log`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onFabric(p, "remedy", func(ctx context.Context, s *session.Session) error { return showRemedyLog(ctx, s, subnet) })
		},
	}
	subnetFlag(c.Flags(), &subnet)
	return c
}

// showRemedyLog shows the log of the subnet.
func showRemedyLog(ctx context.Context, s *session.Session, given string) error {
	if s.StateDir == "" {
		return errors.New("remedy log: no directory for state; give --state DIR")
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	subnet := fabric.SubnetOf(f, given)
	path := remedy.LogFile(s.StateDir, subnet)
	err = audit.CheckSubnet(s.StateDir, subnet)
	var l *remedy.Log
	if err == nil {
		l, err = remedy.Current(path, s.StateDir)
	}
	if err != nil {
		return &session.HostError{Err: fmt.Errorf("remedy log: %w", err)}
	}
	if len(l.Entries) == 0 && s.Format == lang.FormatText {
		s.Print(fmt.Sprintf("no decisions (%s)\n", path))
		return nil
	}
	return s.Show(remedies.WrapLog(l.Entries))
}

// remedyMetrics returns metrics of the log of the report's subnet; none without a log. A log
// that cannot be read is among the failures of the report, because its values are unknown.
func remedyMetrics(s *session.Session, report *audit.Report) []audit.Metric {
	if s.StateDir == "" || report.Model == nil || !report.Subnet.IsKnown() {
		return nil
	}
	l, err := remedy.Current(remedy.LogFile(s.StateDir, report.Subnet), s.StateDir)
	switch {
	case err != nil:
		report.Fail("remedies", err)
		return nil
	case len(l.Entries) == 0:
		return nil
	}
	return l.Metrics(report.Model)
}
