package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/fabric/history"
	"fabsh/fabric/remedy"
	"fabsh/fabric/routing/opensm"
	"fabsh/shell/mcp"
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

Each line is a decision about one action: planned (it is in the plan), declined (with the
rule and the reason), kept (a link passed its test and stays up), or ticket (work for
people: its text names the step of repair). Below a planned action is its predicted
effect: of its link alone if it is the first of the plan, else of all links so far,
because each is judged together with those before it. A pair is a port of a host with a
LID of another; rerouted pairs take another path, lost ones have none, and the largest
load is that of the link with most pairs. Findings do not decide by their severity alone:
"fabsh remedy isolate --help" has the checks and severities that make a link bad.

What these rules forbid is declined and reported, also for your own remedies:
%s
Exit status: 0 nothing to do; 1 something is planned, declined or for people; 2 usage or
script error; 3 fabric or host error (no answer, no device, the log is damaged).`

func remedyCommand(p *session.Program) *cobra.Command {
	c := remedyCapability().asCommand(p)
	addSubcommand(c, remedyLogCommand(p))
	return c
}

// remedyCapability turns findings into a plan.
func remedyCapability() *capability[*remedyOptions] {
	return &capability[*remedyOptions]{command: &cobra.Command{
		Use:   "remedy [NAME | FILE.star] [remedies' options]",
		Short: "Turn findings into a plan: isolate bad links, restore repaired ones",
		Long:  fmt.Sprintf(remedyDoc, ruleTable()),
		Example: `  fabsh remedy
  fabsh remedy isolate --per-day 2 --out bad.plan
  fabsh remedy --last --out bad.plan
  fabsh -o jsonl remedy mine.star
  fabsh remedy log`,
		Annotations:       map[string]string{atPrompt: ""},
		ValidArgsFunction: completeRemedy,
	},
		options: fresh[remedyOptions],
		line:    (*remedyOptions).take, scripts: script.Remedies,
		run: func(ctx context.Context, s *session.Session, o *remedyOptions) (starlark.Value, error) {
			return nil, runRemedies(ctx, s, *o)
		},
		tool: "remedy",
		doc:  "For \"what should be done?\": the standard audits run, and rules decide on each finding: planned, declined, or for people.",
		words: []mcp.Param{
			{Name: "remedies", Kind: mcp.KindTexts, Doc: "names of remedies (default: all): " + docsOf(script.Remedies) + "; or .star files below a directory of -I"},
			optionsParam("remedies; help NAME lists them"),
		},
		take: func(ctx context.Context, s *session.Session, a mcp.Arguments, o *remedyOptions) error {
			names, err := clientScripts(ctx, s, script.Remedies, a.Texts("remedies"))
			if err != nil {
				return err
			}
			options, err := a.Words("options", optionsOf(remediesIn(parsedWords{all: names, plain: names})))
			o.words = append(names, options...)
			return err
		},
	}
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

	last                           bool
	audits, over, out, job, subnet string
	managerEngine                  string
}

// params declares the parameters.
func (o *remedyOptions) params() params {
	return params{
		{name: "list", to: new(bool), doc: "list the shipped remedies", withheld: listsNames},
		{name: "last", to: &o.last, doc: "use the findings of the last run of audits that kept state, instead of a new run", withheld: keepsState},
		{name: "out", to: &o.out, doc: "write the plan to `FILE`, which has mode 0600, and the decisions to the log of the subnet", withheld: writesFiles},
		{name: "audits", to: &o.audits, doc: "run the audits `NAMES`: names or .star files, separated by commas (default: the standard set)"},
		{name: "over", to: &o.over, doc: "compare counters over `TIME`: the option --over of the audits that have it"},
		{name: "job", withheld: keepsState, doc: "use the state of the audits' job `NAME` (default: remedy; with --last, the one that ran last)", to: func(name string) error {
			o.job = name
			return audit.CheckJob(name)
		}},
		subnetParam(&o.subnet),
		managerEngineParam(&o.managerEngine),
	}
}

// managerEngineParam is the parameter of commands that predict what OpenSM does.
func managerEngineParam(to *string) param {
	return param{name: "manager-engine", doc: "predict the tables of OpenSM's routing engine `NAME` after a loss: " + strings.Join(opensm.Engines(), ", ") + ", several separated by commas; auto: the worst of all that could have made the tables in force (default: the engine of the OpenSM on this host, if it is the subnet manager, else auto)", to: func(text string) error {
		_, err := change.ParseManagerEngine(text)
		*to = text
		return err
	}}
}

// take sets what the command line has besides the flags of the command.
func (o *remedyOptions) take(c *cobra.Command, words []string) error {
	o.words = append(words, optionWords(c.Flags())...)
	if wantsHelp(c) {
		o.words = append(o.words, "--help")
	}
	if o.last && (o.audits != "" || o.over != "") {
		return errors.New("--last runs no audits; leave --audits and --over out")
	}
	return nil
}

// remediesIn returns the remedies that words name, or all shipped ones.
func remediesIn(words parsedWords) (list []script.Program) {
	names := slices.DeleteFunc(remedies.Named(words.free()), func(w string) bool {
		return strings.HasSuffix(w, ".star") && !slices.Contains(words.plain, w)
	})
	if len(names) == 0 {
		names = script.Remedies.Names()
	}
	for _, name := range names {
		p := programIn(script.Remedies, name, script.RemedyEntry)
		p.Options = remedies.OptionsOf(p.Options)
		list = append(list, p)
	}
	return list
}

// oldestFindings is how old the findings of --last may be.
const oldestFindings = 24 * time.Hour

// runRemedies runs remedies, decides on their actions, and shows or writes the plan.
func runRemedies(ctx context.Context, s *session.Session, o remedyOptions) error {
	all, err := remedies.Load(ctx, s.Interpreter, o.words, session.FlagNames(new(remedyOptions).params().flags()))
	if err != nil {
		return err
	}
	if all.Help != "" {
		_, err := io.WriteString(s.Console.Out(), all.Help)
		return err
	}
	if o.out != "" && s.Engine == nil {
		return s.NoLive("--out: a plan needs a live or simulated fabric; choose one with -F")
	}
	x, err := findFaults(ctx, s, o)
	if err != nil {
		return err
	}
	x.ManagerEngine = o.managerEngine
	if s.Engine != nil && !x.Fabric.Complete() {
		return &session.HostError{Err: fmt.Errorf("no plan is made: incomplete sweep: %s", x.Fabric.FirstMissing())}
	}
	log, err := openRemedyLog(s.StateDir, x, o.out != "", s.InProcess(), s.Clock.Now())
	if err != nil {
		return err
	}
	x.State = new(remedy.State)
	if log != nil {
		x.State = &log.State
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
		if log != nil {
			if err := recordDecisions(log, s.StateDir, x, result); err != nil {
				return err
			}
		}
		if err := result.Plan.Save(ctx, o.out); err != nil {
			return session.NotWritten(o.out, err)
		}
		addDecisions(ctx, s, x.subnet, result.Decisions)
	}
	if err := s.Show(result.Wrap(s.Format)); err != nil {
		return err
	}
	if len(result.Decisions) > 0 {
		x.status = session.Worse(x.status, lang.StatusFindings)
	}
	return session.Exit(x.status)
}

// faults are the findings that remedies get, and their fabric.
type faults struct {
	remedies.Input
	subnet fabric.Subnet
	// status is that of audits that did not run, or of requests without an answer.
	status int
}

// findFaults gets the fabric and the findings, and reports audits that failed.
func findFaults(ctx context.Context, s *session.Session, o remedyOptions) (*faults, error) {
	if o.last {
		return lastFaults(ctx, s.Runtime, s.StateDir, o)
	}
	x, failures, err := currentFaults(ctx, s.Interpreter, s.StateDir, o, s.InProcess())
	for _, f := range failures {
		s.Console.Complain(fmt.Sprintf("audit %s: %s", f.Audit, s.Explain(f.Err)))
	}
	return x, err
}

// currentFaults runs audits. In a session that reads a fabric of this process, they do not compare
// with earlier runs. dir is the directory of states.
func currentFaults(ctx context.Context, in *script.Interpreter, dir string, o remedyOptions, inProcess bool) (x *faults, failures []audit.Failure, err error) {
	var words []string
	for name := range strings.SplitSeq(o.audits, ",") {
		if name != "" {
			words = append(words, name)
		}
	}
	if o.over != "" {
		words = append(words, "--over="+o.over)
	}
	set, err := audits.LoadAudits(ctx, in, words, nil, false)
	if err != nil {
		return nil, nil, err
	}
	options := audits.RunOptions{Subnet: o.subnet, Job: cmp.Or(o.job, "remedy"), ReadOnly: o.out == "", NoPast: inProcess}
	options.Begin = func(subnet fabric.Subnet) (audit.Acks, error) {
		if dir != "" && o.out != "" && !subnet.IsKnown() { // before audits run for seconds
			return nil, errUnknownSubnet
		}
		return audits.RunAcks(in.Runtime, dir, subnet), nil
	}
	report, err := set.Run(ctx, in, options)
	if err != nil {
		return nil, nil, err
	}
	if report.Model == nil {
		return nil, nil, &session.HostError{Err: errors.New("the fabric is unknown")}
	}
	x = &faults{Input: remedies.Input{Fabric: report.Model, Findings: report.Findings, Of: report.Ended}, subnet: report.Subnet}
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
	if status := audits.RunStatus(report, audit.Critical+1); status == lang.StatusFabric || status == lang.StatusUsage {
		x.status = status
	}
	return x, slices.DeleteFunc(slices.Clone(report.Failures), func(f audit.Failure) bool { return f.Skipped }), nil
}

// lastFaults reads the findings of the last run of audits that kept state below dir.
func lastFaults(ctx context.Context, r *lang.Runtime, dir string, o remedyOptions) (*faults, error) {
	if dir == "" {
		return nil, errors.New("--last: no directory for state; give --state DIR")
	}
	f, err := audits.ReadFabric(ctx, r)
	if err != nil {
		return nil, err
	}
	subnet := fabric.SubnetOf(f, o.subnet)
	if err := audit.CheckSubnet(dir, subnet); err != nil {
		return nil, &session.HostError{Err: err}
	}
	job, store := o.job, history.JobStates(ctx, dir, subnet)
	if job == "" {
		job = audit.LatestJob(dir, subnet, store, new(audit.Ack))
	}
	if job == "" {
		return nil, errors.New("--last: no run of audits has kept findings; run fabsh audit --over last --job NAME, or leave --last out")
	}
	st, err := audit.OpenState(dir, subnet, job)
	if err != nil {
		return nil, fmt.Errorf("--last: %w", err)
	}
	st.UseStore(store)
	if st.Read(); st.Reset != nil {
		return nil, &session.HostError{Err: fmt.Errorf("--last: %w", st.Reset)}
	}
	found, at := st.LastRun()
	age := r.Clock.Now().Sub(at)
	switch {
	case at.IsZero():
		return nil, fmt.Errorf("--last: no run of job %s has kept findings; run fabsh audit --over last --job %[1]s", job)
	case age > oldestFindings, age < -oldestFindings:
		return nil, fmt.Errorf("--last: job %s last ran at %s, more than a day ago; run fabsh audit --job %[1]s", job, at.UTC().Format(time.RFC3339))
	}
	var settled audit.Report
	settled.Settle(found, audits.RunAcks(r, dir, subnet), nil, r.Clock.Now())
	return &faults{Input: remedies.Input{Fabric: f, Findings: settled.Findings, Of: at}, subnet: subnet}, nil
}

var errUnknownSubnet = errors.New("--out: the log is kept by subnet, and this one is unknown: it has neither a prefix nor a subnet manager; give --subnet NAME")

// openRemedyLog reads the log of the subnet, of which dir has the states; nil: nothing is kept.
// Without a log, budgets would not hold across runs, and what a plan isolates would be unknown later:
// so a plan that is written needs one, except of a fabric of this process.
func openRemedyLog(dir string, x *faults, written, inProcess bool, now time.Time) (log *remedy.Log, err error) {
	switch {
	case dir == "" && written && !inProcess:
		return nil, errors.New("--out: no directory for state, which has the log of decisions; give --state DIR")
	case dir != "" && written && !x.subnet.IsKnown():
		return nil, errUnknownSubnet
	case dir == "" || !x.subnet.IsKnown():
		return nil, nil
	}
	if err = audit.CheckSubnet(dir, x.subnet); err == nil {
		log, err = remedy.Open(remedy.LogFile(dir, x.subnet), dir, x.Fabric, now)
	}
	if err != nil {
		return nil, &session.HostError{Err: err}
	}
	return log, nil
}

// recordDecisions adds the decisions to the log.
func recordDecisions(log *remedy.Log, dir string, x *faults, result *remedies.Outcome) error {
	err := log.Keep(dir, x.Fabric, result.Decisions, result.Now, result.Of)
	if err == nil {
		err = audit.RecordSubnet(dir, x.subnet, x.Fabric.Complete())
	}
	if err != nil {
		return &session.HostError{Err: fmt.Errorf("no plan written: %w", err)}
	}
	return nil
}

// completeRemedy proposes remedies.
func completeRemedy(_ *cobra.Command, words []string, typed string) (list []string, _ cobra.ShellCompDirective) {
	for _, d := range script.Remedies.Shipped() {
		if !slices.Contains(words, d.Name) {
			list = append(list, d.Name+"\t"+d.Doc)
		}
	}
	return check.Matching(list, typed), cobra.ShellCompDirectiveDefault
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
