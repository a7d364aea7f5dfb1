package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	live "fabsh/shell/top"
)

// onFabric runs a command on the fabric that the session flags name. name is the
// command's.
func (a *app) onFabric(name string, run func(context.Context, *session) error) error {
	collectAt(200) // tables are large: of 11,664 hosts 21 MB each
	return a.inSession(name, func() (*session, error) { return a.open(false) }, run)
}

// withoutFabric runs a command that needs none.
func (a *app) withoutFabric(name string, run func(context.Context, *session) error) error {
	return a.inSession(name, func() (*session, error) { return a.session(nil, topology.ErrNoFabric, nil, nil) }, run)
}

// inSession runs a command in the session that open makes.
func (a *app) inSession(name string, open func() (*session, error), run func(context.Context, *session) error) error {
	if a.flags.Changed("command") {
		return errors.New("-c takes no command")
	}
	if err := a.settings.check(); err != nil {
		return err
	}
	return a.profiled(func() error {
		d := a.startDeadline()
		defer d.stop()
		s, err := open()
		if err != nil {
			return err
		}
		defer s.close()
		s.deadline = d
		d.limit(s)
		a.status = s.evaluate(func(ctx context.Context) error {
			return lang.Protect(name, func() error { return run(ctx, s) })
		})
		a.status = s.endPlan(a.status, name)
		s.writeMetrics()
		s.summary()
		return nil
	})
}

// profiled runs run, with --profile under Starlark's profiler. The profile is
// written as a whole when run ends; without one, none is.
func (a *app) profiled(run func() error) error {
	if a.profile == "" {
		return run()
	}
	return writeNamed(a.profile, func(w io.Writer) error {
		if err := starlark.StartProfile(w); err != nil {
			return err
		}
		return errors.Join(run(), starlark.StopProfile())
	})
}

// findings is the end of a command that found something: exit status 1.
func findings() error { return &lang.ExitError{Code: lang.StatusFindings} }

// openNamed opens files that the command line names by open, until ctx ends.
func openNamed(ctx context.Context, open func(context.Context, string) (*lang.File, error)) format.Opener {
	return func(path string) (io.ReadCloser, error) {
		f, err := open(ctx, path)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

// writeNamed writes the file that the command line names, whole or not at all.
func writeNamed(path string, write func(io.Writer) error) error {
	return notWritten(path, format.WriteFile(path, write))
}

// notWritten is err with the name that the user knows, not that of the temporary
// file.
func notWritten(path string, err error) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	return noFile(&fs.PathError{Op: pe.Op, Path: path, Err: pe.Err})
}

// topCommand is the live table, which package top has.
func (a *app) topCommand() *cobra.Command {
	var o live.Options
	by, every := live.Words[0], duration{unit: time.Second, units: "a number of seconds"}
	c := &cobra.Command{
		Use:   "top [--by wait|data|errors] [--every TIME] [--filter PATTERN] [--rounds N]",
		Short: "Who sends, who waits, who counts errors: a table of all ports, live",
		Long: `Who sends, who waits, who counts errors: a table of all ports with a link, live on
a terminal, and lines elsewhere. A round reads the counters of each port once, as an
audit does, and clears none; the first line says how many datagrams that took. The
fabric is swept at the beginning, and when the ports that answer are others.

PORT counts what the row says, PEER is the other end of its link, which has a row
too. USE is what is sent, of what the link can. WAIT/s is PortXmitWait: ticks in which
there was something to send, and no credit for it. How long a tick is depends on the
device; SHARE, of waiting in waiting and sending, takes it for the time of 4 bytes. ERR/s
are all counters of errors. TREND is of the last 24 rounds, each row for itself; ?
is not known, for no answer came, or the counter was cleared or stands at its largest.

Keys: q quits; w, d and e sort by wait, data and errors; / filters; arrows, PageUp,
PageDown, Home and End move.`,
		Example: `  fabsh top
  fabsh top --by errors --every 30s --filter 'leaf-*'
  fabsh -F sim:traffic=10GB/s top --rounds 3 | cat`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			i := slices.Index(live.Words, by)
			switch {
			case i < 0:
				return fmt.Errorf("top: --by %q: use one of %s", by, strings.Join(live.Words, ", "))
			case every.value == 0:
				every.value = 5 * time.Second
			case every.value < audit.MinWindow:
				return fmt.Errorf("top: --every %v: want %v or more: agents do not renew counters at each read", every.value, audit.MinWindow)
			}
			if o.Rounds < 0 {
				return fmt.Errorf("top: --rounds %d: want 1 or more", o.Rounds)
			}
			o.By, o.Every = live.By(i), every.value
			return a.onFabric("top", func(ctx context.Context, s *session) error { return s.top(ctx, o) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&by, "by", by, "sort by `WORD`: "+strings.Join(live.Words, ", "))
	c.Flags().Var(&every, "every", "the `TIME` between two rounds, 2s or more (default 5s)")
	c.Flags().StringVar(&o.Filter, "filter", "", "only ports with `PATTERN` in their name or their peer's; * stands for any text")
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "end after `N` rounds (default: at q or Ctrl-C)")
	c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(live.Words, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// ratesSource is where the table has its rates from.
type ratesSource struct {
	*builtins.Session
	poller audits.Poller
	sent   func() uint64
}

func (r *ratesSource) Rates(ctx context.Context, ports []*fabric.Port) ([]audit.PortRates, error) {
	return r.PollRates(ctx, &r.poller, ports)
}

func (r *ratesSource) Sent() uint64 { return r.sent() }

// top shows the table until it is over.
func (s *session) top(ctx context.Context, o live.Options) error {
	if s.engine == nil {
		return errors.New("top: needs a live fabric: this session reads a file, whose counters stand still")
	}
	if d := s.deadline; d != nil { // a round may last as long as one waits
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, d.at, d.late)
		defer stop()
	}
	o.Name = s.name
	src := &ratesSource{Session: s.Session, sent: func() uint64 { return s.engine.Stats().Sent }}
	c := s.app.console
	out, ok := c.stdout.(*os.File)
	if !ok || !c.stdoutTTY || os.Getenv("TERM") == "dumb" {
		return live.Plain(ctx, o, src, s.Clock, c.Out())
	}
	var err error
	c.lend(func() {
		err = live.Live(ctx, o, src, s.Clock, s.app.stdin, out, func(restore func()) {
			s.app.interrupts.onExit(func() {
				restore()
				s.leave()
			})
		})
	})
	s.app.interrupts.onExit(s.leave)
	return err
}
