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
	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/check"
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

// routeCapability computes tables.
func routeCapability(p *session.Program) *capability[*routeOptions] {
	return &capability[*routeOptions]{command: &cobra.Command{
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
		Annotations:       map[string]string{atPrompt: ""},
		ValidArgsFunction: completePolicy,
	},
		options: fresh[routeOptions],
		line:    (*routeOptions).take, scripts: script.Policies, missing: "policy",
		start: func(o *routeOptions, c *cobra.Command, run func(context.Context, *session.Session) error) error {
			if o.every > 0 && !wantsHelp(c) {
				return watchRoutes(p, *o)
			}
			return onScript(p, wantsHelp(c), run)
		},
		run: func(ctx context.Context, s *session.Session, o *routeOptions) (starlark.Value, error) {
			return nil, runRoute(ctx, s, *o)
		},
	}
}

// routeOptions are the options behind route on the command line.
type routeOptions struct {
	policy string   // a .star file, or the name of a shipped policy
	args   []string // the policy's options

	verify, diff, failEachLink bool
	adaptive                   verify.Adaptive
	out                        string // file for OpenSM; with verify only written if the verdict is ok

	every  time.Duration // of --watch; 0: not given
	reload string
}

// params declares the parameters.
func (o *routeOptions) params() params {
	return params{
		{name: "verify", to: &o.verify, doc: "check the tables: do packets between all pairs arrive, without loops and deadlocks? Exit with 1 on findings"},
		{name: "diff", to: &o.diff, doc: "compare with the tables that the switches have"},
		failEachLinkParam(&o.failEachLink),
		adaptiveParam(&o.adaptive),
		{name: "out", to: &o.out, doc: "write the tables for OpenSM's engine file to `FILE`; with --verify only if the verdict is ok"},
		{name: "list", to: new(bool), doc: "list the shipped policies"},
		{name: "watch", to: (*watchFlag)(&o.every), alone: "10s", doc: "keep the file of --out up to date: sweep the fabric every `TIME`"},
		{name: "reload", to: &o.reload, doc: "with --watch: then send SIGHUP to OpenSM so that it reads the tables: its process ID, or a file that contains it (`PID|FILE`)"},
	}
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

// take sets what the command line has besides the flags of the command.
func (o *routeOptions) take(c *cobra.Command, words []string) error {
	if len(words) > 0 {
		o.policy, o.args = words[0], scriptWords(c, words)
	}
	if o.reload != "" && o.every == 0 {
		return errors.New("--reload requires --watch")
	}
	return nil
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
	p, err := program.LoadPolicy(ctx, s.Interpreter, name, args)
	if err != nil || p.Help == "" {
		return p, err
	}
	_, err = io.WriteString(s.Console.Out(), p.Help)
	return nil, err
}

// completePolicy proposes policies.
func completePolicy(_ *cobra.Command, words []string, typed string) (list []string, _ cobra.ShellCompDirective) {
	if len(words) == 0 {
		list = docWords(script.Policies)
	}
	return check.Matching(list, typed), cobra.ShellCompDirectiveDefault
}

// docWords returns the scripts of a folder, and their docs, for completion.
func docWords(f script.Folder) (list []string) {
	for _, d := range f.Shipped() {
		list = append(list, d.Name+"\t"+d.Doc)
	}
	return list
}

// watchRoutes runs route --watch.
func watchRoutes(p *session.Program, o routeOptions) error {
	if err := checkWatch(p, o); err != nil {
		return err
	}
	w := routeWatch{out: o.out, every: o.every, stderr: p.Console.Err()}
	if o.reload != "" {
		if err := checkReload(o.reload); err != nil {
			return err
		}
		r, err := apply.FindOpenSM(o.reload)
		if err != nil {
			return &session.HostError{Err: err}
		}
		w.reload = r.Reload
	}
	return onFabric(p, func(ctx context.Context, s *session.Session) error {
		ctx, stop := s.Runner.Deadline.Within(ctx) // nothing is reported after it
		defer stop()
		if s.Engine == nil {
			return s.NoLive("--watch needs a live fabric: this session reads a file; choose one with -F")
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
