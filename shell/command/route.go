package command

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	values "fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
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

// watchRoutes runs route --watch.
func watchRoutes(p *session.Program, o routeOptions) error {
	if err := checkWatch(p, o); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	w := routeWatch{out: o.out, every: o.every, stderr: p.Console.Err()}
	if o.reload != "" {
		r, err := apply.FindOpenSM(o.reload)
		if err != nil {
			return fmt.Errorf("route: %w", &session.HostError{Err: err})
		}
		w.reload = r.Reload
	}
	return onFabric(p, "route", func(ctx context.Context, s *session.Session) error {
		ctx, stop := s.Runner.Deadline.Within(ctx) // nothing is reported after it
		defer stop()
		if s.Engine == nil {
			return s.NoLive("route", "--watch needs a live fabric: this session reads a file; choose one with -F")
		}
		policy, err := loadPolicy(ctx, s, o.policy, o.args)
		if policy == nil || err != nil {
			return err
		}
		w.session, w.policy = s.Session, policy
		return w.run(ctx)
	})
}

// checkWatch checks the requirements of --watch.
func checkWatch(p *session.Program, o routeOptions) error {
	switch {
	case o.out == "":
		return errors.New("--watch requires --out FILE, the file to keep up to date")
	case o.diff || o.failEachLink || o.adaptive != 0:
		return errors.New("--watch excludes --diff, --fail-each-link and --adaptive")
	case !p.Settings.Write:
		return errors.New("--watch changes the input of a subnet manager; it requires --write (before the word route)")
	}
	return nil
}

// routeWatch runs a policy whenever the topology has changed, and writes its tables to
// a file. The file is replaced only after a complete sweep, by tables whose verdict is
// ok and that read back unchanged; then its reader is notified. Otherwise the file
// stays unchanged. Each action, and each reason for none, is one line on stderr; a
// reason that lasts is reported once.
type routeWatch struct {
	session *builtins.Session
	policy  *program.Policy
	out     string        // the file
	every   time.Duration // between the end of a sweep and the next one
	stderr  io.Writer
	// reload notifies the reader of the file, and returns its name: "opensm (process
	// 4711)". It may be nil. After apply.ErrOpenSMEnded it is not called again.
	reload func() (reader string, err error)

	last      *routes.Routes // the latest tables whose verdict was ok
	begun     bool
	topology  [sha256.Size]byte // of the latest decision
	why       string            // why the file does not suit the topology; "": it does
	reported  string            // the latest reason reported
	notifyDue bool              // the file is new, and its reader not yet notified
}

// run watches until ctx ends.
func (w *routeWatch) run(ctx context.Context) error {
	for {
		if err := w.round(ctx); err != nil {
			return err
		}
		if err := w.session.Clock.Sleep(ctx, w.every); err != nil {
			return err
		}
	}
}

// round sweeps the fabric once. An error ends the watch.
func (w *routeWatch) round(ctx context.Context) error {
	f, err := topology.SweepQuietly(ctx, w.session.Runtime)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		w.keep(firstLine(err))
		return nil
	case !f.Complete():
		w.keep("incomplete sweep: " + f.FirstMissing())
		return nil
	}
	topology, err := digest(f)
	if err != nil {
		return err
	}
	if !w.begun || topology != w.topology {
		w.why, err = w.decide(ctx, f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (!w.begun || endsScripts(err)):
			return err // a usage or script error
		case err != nil:
			w.why = firstLine(err)
		}
		w.begun, w.topology = true, topology
	}
	if w.why != "" {
		w.keep(w.why)
		return nil
	}
	if w.reported != "" && !w.notifyDue {
		w.log("the fabric and the file are in order again")
		w.reported = ""
	}
	return w.notifyReader()
}

// endsScripts reports whether err is exit() or a refusal, which catch() does not stop.
func endsScripts(err error) bool {
	var exit *lang.ExitError
	var refusal *lang.RefusalError
	return errors.As(err, &exit) || errors.As(err, &refusal)
}

// digest returns a hash of everything that tables can depend on: nodes, names, links,
// their widths and speeds, LIDs.
func digest(f *fabric.Fabric) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := format.Dump(h, f, format.KindIbnetdiscover); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// decide computes tables for f and writes them, if their verdict is ok and they differ
// from those in the file. why is what keeps the file from being written.
func (w *routeWatch) decide(ctx context.Context, f *fabric.Fabric) (why string, err error) {
	r, v, err := w.compute(ctx, f)
	if err != nil {
		return "", err
	}
	if !v.OK() {
		return fmt.Sprintf("verdict not ok: unreachable %d, loops %d, acyclic %v", v.Unreachable, v.Loops, starlark.Bool(v.Acyclic)), nil
	}
	w.last = r
	changes := "the first tables"
	if old, err := routes.Load(f, routes.Files{LFTs: w.out}, session.OpenNamed(ctx, w.session.Files.OpenNamed)); err == nil {
		d := r.Diff(old)
		if d.Entries == 0 {
			w.log(w.out + " is up to date")
			return "", nil
		}
		changes = fmt.Sprintf("%s of %s changed", plural.Count(d.Entries, "entry", "entries"), plural.Count(len(d.Switches), "switch", "switches"))
	}
	if err := w.write(ctx, r); err != nil {
		return "", session.NotWritten(w.out, err)
	}
	w.log(w.out + ": new tables: " + changes)
	w.notifyDue = w.reload != nil
	return "", nil
}

// compute repairs the last tables. It runs the policy from the start if there are no
// tables or their verdict is not ok.
func (w *routeWatch) compute(ctx context.Context, f *fabric.Fabric) (*routes.Routes, *verify.Verdict, error) {
	for last := w.last; ; last = nil {
		r, err := w.policy.Repair(ctx, f, last)
		if err != nil {
			return nil, nil, err
		}
		v, err := verify.Tables(ctx, r, verify.Options{})
		if err != nil || v.OK() || last == nil {
			return r, v, err
		}
	}
}

// write replaces the file, if it reads back as r.
func (w *routeWatch) write(ctx context.Context, r *routes.Routes) error {
	write := func(out io.Writer) error { return r.Write(ctx, out, format.KindLFTs) }
	return format.WriteChecked(w.out, write, func(name string) error {
		back, err := routes.Load(r.Graph().Fabric(), routes.Files{LFTs: name}, session.OpenNamed(ctx, w.session.Files.OpenNamed))
		if err != nil {
			return fmt.Errorf("new file: cannot be read back: %w", err)
		}
		if d := r.Diff(back); d.Entries > 0 {
			return fmt.Errorf("new file: reads back with differences: %s", plural.Count(d.Entries, "entry", "entries"))
		}
		return nil
	})
}

// notifyReader notifies the reader of the file, if that is due.
func (w *routeWatch) notifyReader() error {
	if !w.notifyDue {
		return nil
	}
	reader, err := w.reload()
	switch {
	case errors.Is(err, apply.ErrOpenSMEnded):
		w.log(err.Error())
		return &lang.ExitError{Code: lang.StatusFabric}
	case err != nil:
		if text := "not reloaded: " + err.Error(); text != w.reported {
			w.log(text)
			w.reported = text
		}
		return nil
	}
	w.log(reader + ": SIGHUP sent, to read the tables")
	w.notifyDue, w.reported = false, ""
	return nil
}

// keep reports once why the file is not changed.
func (w *routeWatch) keep(why string) {
	if why != w.reported {
		w.log(w.out + ": unchanged: " + why)
		w.reported = why
	}
}

// log writes a line with the time.
func (w *routeWatch) log(text string) {
	fmt.Fprintf(w.stderr, "%s %s\n", w.session.Clock.Now().UTC().Format(time.RFC3339), text)
}

// firstLine is the first line of an error.
func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
