package command

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/opensm"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/shell/session"
)

// watchRoutes runs route --watch.
func watchRoutes(p *session.Program, o routeOptions) error {
	if err := checkWatch(p, o); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	w := routeWatch{out: o.out, every: o.every, stderr: p.Console.Err()}
	if o.reload != "" {
		r, err := opensm.Find(o.reload)
		if err != nil {
			return fmt.Errorf("route: %w", &session.HostError{Err: err})
		}
		w.reload = r.Reload
	}
	return onFabric(p, "route", func(ctx context.Context, s *session.Session) error {
		ctx, stop := s.Runner.Deadline.Within(ctx) // there is nothing to be reported after it
		defer stop()
		if s.Engine == nil {
			return s.NoLive("route", "--watch needs a live fabric: this session reads a file")
		}
		policy, err := loadPolicy(ctx, s, o.policy, o.args)
		if policy == nil || err != nil {
			return err
		}
		w.session, w.policy = s.Session, policy
		return w.run(ctx)
	})
}

// checkWatch checks what --watch needs.
func checkWatch(p *session.Program, o routeOptions) error {
	switch {
	case o.out == "":
		return errors.New("--watch needs --out FILE, the file to be kept up to date")
	case o.diff || o.failEachLink || o.adaptive != 0:
		return errors.New("--watch shows no reports: leave --diff, --fail-each-link and --adaptive out")
	case !p.Settings.Write:
		return errors.New("--watch changes what a subnet manager does, which takes --write (before the word route)")
	}
	return nil
}

// routeWatch runs a policy whenever the topology has changed, and puts its tables
// in a file. The file is replaced only after a complete sweep, by tables whose
// verdict is ok and that read back as they are; then its reader is told. Otherwise
// it stays as it was. One line on stderr says what was done, and why not; a reason
// that lasts is told once.
type routeWatch struct {
	session *builtins.Session
	policy  *program.Policy
	out     string        // the file
	every   time.Duration // between the end of a sweep and the next one
	stderr  io.Writer
	// reload tells the reader of the file that it is new, and returns who that is:
	// "opensm (process 4711)". It may be nil. After opensm.ErrEnded it is not called
	// again.
	reload func() (reader string, err error)

	last     *routes.Routes // the tables whose verdict was ok last
	begun    bool
	topology [sha256.Size]byte // on which it was decided last
	why      string            // why the file does not suit the topology; "": it does
	told     string            // the last reason that was told
	untold   bool              // the file is new, and its reader does not know
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

// round looks at the fabric once. The error is the end of all rounds.
func (w *routeWatch) round(ctx context.Context) error {
	f, err := topology.SweepQuietly(ctx, w.session.Runtime)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		w.keep(firstLine(err))
		return nil
	case !f.Complete():
		w.keep("the sweep is not complete: " + f.FirstMissing())
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
			return err // to be fixed by who started this
		case err != nil:
			w.why = firstLine(err)
		}
		w.begun, w.topology = true, topology
	}
	if w.why != "" {
		w.keep(w.why)
		return nil
	}
	if w.told != "" && !w.untold {
		w.tell("all is well again")
		w.told = ""
	}
	return w.tellReader()
}

// endsScripts: err is exit() or a refusal, which nothing catches.
func endsScripts(err error) bool {
	var exit *lang.ExitError
	var refusal *lang.RefusalError
	return errors.As(err, &exit) || errors.As(err, &refusal)
}

// digest is one of all that tables can depend on: nodes, names, links, their
// widths and speeds, LIDs.
func digest(f *fabric.Fabric) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := format.Dump(h, f, format.KindIbnetdiscover); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// decide computes tables for f and writes them, if their verdict is ok and they
// differ from those in the file. why says what keeps the file from being written.
func (w *routeWatch) decide(ctx context.Context, f *fabric.Fabric) (why string, err error) {
	r, v, err := w.compute(ctx, f)
	if err != nil {
		return "", err
	}
	if !v.OK() {
		return fmt.Sprintf("the verdict is not ok: unreachable %d, loops %d, acyclic %v", v.Unreachable, v.Loops, starlark.Bool(v.Acyclic)), nil
	}
	w.last = r
	changes := "the first tables"
	if old, err := routes.Load(f, routes.Files{LFTs: w.out}, session.OpenNamed(ctx, w.session.Files.OpenNamed)); err == nil {
		d := r.Diff(old)
		if d.Entries == 0 {
			w.tell(w.out + " is up to date")
			return "", nil
		}
		changes = fmt.Sprintf("%s of %s changed", plural.Count(d.Entries, "entry", "entries"), plural.Count(len(d.Switches), "switch", "switches"))
	}
	if err := w.write(ctx, r); err != nil {
		return "", session.NotWritten(w.out, err)
	}
	w.tell(w.out + " is new: " + changes)
	w.untold = w.reload != nil
	return "", nil
}

// compute repairs the last tables, and runs the policy anew where there are none or the
// verdict on those is not ok.
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
			return fmt.Errorf("the new file does not read back: %w", err)
		}
		if d := r.Diff(back); d.Entries > 0 {
			return fmt.Errorf("the new file does not read back as it is: %s", plural.Count(d.Entries, "entry", "entries"))
		}
		return nil
	})
}

// tellReader tells the reader, if there is anything to tell.
func (w *routeWatch) tellReader() error {
	if !w.untold {
		return nil
	}
	reader, err := w.reload()
	switch {
	case errors.Is(err, opensm.ErrEnded):
		w.tell(err.Error())
		return &lang.ExitError{Code: lang.StatusFabric}
	case err != nil:
		if text := "not reloaded: " + err.Error(); text != w.told {
			w.tell(text)
			w.told = text
		}
		return nil
	}
	w.tell(reader + " is told to read it")
	w.untold, w.told = false, ""
	return nil
}

// keep tells why the file is left as it is, once.
func (w *routeWatch) keep(why string) {
	if why != w.told {
		w.tell(w.out + " stays as it is: " + why)
		w.told = why
	}
}

// tell writes a line with the time.
func (w *routeWatch) tell(text string) {
	fmt.Fprintf(w.stderr, "%s %s\n", w.session.Clock.Now().UTC().Format(time.RFC3339), text)
}

// firstLine is the first line of an error.
func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
