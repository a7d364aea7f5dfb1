package builtins

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
)

// Watch says how a file of tables is kept up to date.
type Watch struct {
	Every time.Duration // between the end of a sweep and the next one
	// Reload tells the reader of the file that it is new, and returns who that
	// is: "opensm (process 4711)". It may be nil. After ErrNoReader it is not
	// called again.
	Reload func() (reader string, err error)
}

// ErrNoReader: there is nobody any more whom Reload could tell.
var ErrNoReader = errors.New("nobody reads the file any more")

// Watch runs a policy whenever the topology has changed, and puts its tables in
// p.Out, until ctx ends. The file is replaced only after a complete sweep, by
// tables that were found sound and that read back as they are; then its reader
// is told. Otherwise it stays as it was. One line on stderr says what was done,
// and why not; a reason that lasts is told once.
func (s *Session) Watch(ctx context.Context, p Policy, o Watch) error {
	if s.env.Engine == nil {
		return errors.New("route: --watch needs a live fabric: this session reads a file")
	}
	return s.withPolicy(ctx, p, func(t *starlark.Thread, policy *policy) error {
		w := &watch{Watch: o, s: s, thread: t, policy: policy, out: p.Out}
		s.Files.Allow(starlark.String(p.Out))
		for {
			if err := w.round(ctx); err != nil {
				return err
			}
			err := lang.Block(t, func(ctx context.Context) error { return s.Clock.Sleep(ctx, o.Every) })
			if err != nil {
				return err
			}
		}
	})
}

// watch is a Session.Watch under way.
type watch struct {
	Watch
	s      *Session
	thread *starlark.Thread
	policy *policy
	out    string

	begun  bool
	seen   [sha256.Size]byte // the topology that was decided on last
	why    string            // why the file does not suit it; "": it does
	said   string            // the last reason that was told
	untold bool              // the file is new, and its reader does not know
}

// round looks at the fabric once. The error is the end of all rounds.
func (w *watch) round(ctx context.Context) error {
	f, err := w.sweep()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		w.stays(firstLine(err))
		return nil
	case !f.F.Complete():
		w.stays("the sweep is not complete: " + firstMissing(f.F))
		return nil
	}
	seen, err := fingerprint(f.F)
	if err != nil {
		return err
	}
	if !w.begun || seen != w.seen {
		w.why, err = w.decide(ctx, f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (!w.begun || !lang.Catchable(lang.FiberOf(w.thread), err)):
			return err // to be fixed by who started this
		case err != nil:
			w.why = firstLine(err)
		}
		w.begun, w.seen = true, seen
	}
	if w.why != "" {
		w.stays(w.why)
		return nil
	}
	if w.said != "" && !w.untold {
		w.tell("all is well again")
		w.said = ""
	}
	return w.reload()
}

// sweep is discover(), whose warnings are told in one line.
func (w *watch) sweep() (*topology.Fabric, error) {
	quiet := *lang.FiberOf(w.thread)
	quiet.Sink = silence{}
	t, release := lang.NewThread(&quiet, "sweep")
	defer release()
	v, err := starlark.Call(t, &lang.Function{Builtin: &topology.Discover}, nil, nil)
	if err != nil {
		return nil, err
	}
	return v.(*topology.Fabric), nil
}

// silence is a sink that keeps to itself what it hears.
type silence struct{}

func (silence) Emit(lang.Stream, string) error { return nil }

// firstMissing is the first thing that the sweep lacks, and how many more.
func firstMissing(f *fabric.Fabric) string {
	text, n := "", 0
	for _, p := range f.Problems() {
		if p.Kind.Missing() {
			if n++; n == 1 {
				text = p.Text
			}
		}
	}
	if n > 1 {
		text += fmt.Sprintf("; and %d more", n-1)
	}
	return text
}

// fingerprint is a digest of all that tables can depend on: nodes, names, links,
// their widths and speeds, LIDs.
func fingerprint(f *fabric.Fabric) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := format.Dump(h, f, format.KindIbnetdiscover); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// decide computes tables for f and writes them, if they are sound and new. why
// says what keeps the file from being written.
func (w *watch) decide(ctx context.Context, f *topology.Fabric) (why string, err error) {
	v, err := w.policy.compute(w.thread, f)
	if err != nil {
		return "", err
	}
	x, err := starlark.Call(w.thread, &lang.Function{Builtin: &routing.VerifyMethod, Recv: v}, nil, nil)
	if err != nil {
		return "", err
	}
	if verdict := x.(*lang.Result); verdict.Get("ok") != starlark.True {
		return fmt.Sprintf("the verdict is not ok: unreachable %v, loops %v, acyclic %v",
			verdict.Get("unreachable"), verdict.Get("loops"), verdict.Get("acyclic")), nil
	}
	changes := "the first tables"
	if old, err := routing.RoutesFile(f, w.s.Files, w.out, "", ""); err == nil {
		d := v.R.Diff(old.R)
		if d.Entries == 0 {
			w.tell(w.out + " is up to date")
			return "", nil
		}
		changes = fmt.Sprintf("%s of %s changed", lang.Count(d.Entries, "entry"), lang.Count(len(d.Switches), "switch"))
	}
	err = format.WriteChecked(w.s.Files.Abs(w.out), func(out io.Writer) error { return v.Write(ctx, out, format.KindLFTs) }, func(name string) error {
		w.s.Files.Allow(starlark.String(name))
		back, err := routing.RoutesFile(f, w.s.Files, name, "", "")
		if err != nil {
			return fmt.Errorf("the new file does not read back: %w", err)
		}
		if d := v.R.Diff(back.R); d.Entries > 0 {
			return fmt.Errorf("the new file does not read back as it is: %s", lang.Count(d.Entries, "entry"))
		}
		return nil
	})
	if err != nil {
		return "", lang.Tidy(lang.Rename(err, w.out))
	}
	w.tell(w.out + " is new: " + changes)
	w.untold = w.Reload != nil
	return "", nil
}

// reload tells the reader, if there is anything to tell.
func (w *watch) reload() error {
	if !w.untold {
		return nil
	}
	reader, err := w.Reload()
	switch {
	case errors.Is(err, ErrNoReader):
		w.tell(err.Error())
		return &lang.ExitError{Code: lang.StatusFabric}
	case err != nil:
		if text := "not reloaded: " + err.Error(); text != w.said {
			w.tell(text)
			w.said = text
		}
		return nil
	}
	w.tell(reader + " is told to read it")
	w.untold, w.said = false, ""
	return nil
}

// stays tells why the file is left as it is, once.
func (w *watch) stays(why string) {
	if why != w.said {
		w.tell(w.out + " stays as it is: " + why)
		w.said = why
	}
}

// tell writes a line with the time.
func (w *watch) tell(text string) {
	w.s.Emit(lang.Stderr, w.s.Clock.Now().UTC().Format(time.RFC3339)+" "+text+"\n")
}

// firstLine is the first line of an error.
func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
