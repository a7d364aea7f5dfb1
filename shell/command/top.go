package command

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/read"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/shell/session"
	live "fabsh/shell/top"
)

// topCommand is the live table, which package top has.
func topCommand(p *session.Program) *cobra.Command {
	var o live.Options
	by, every := live.Words[0], session.Duration{Unit: time.Second, Units: "a number of seconds"}
	c := &cobra.Command{
		Use:   "top [--by wait|data|errors|ber] [--every TIME] [--tier WORD] [--filter PATTERN] [--rounds N]",
		Short: "Who sends, who waits, who counts errors: a table of all ports, live",
		Long: `Who sends, who waits, who counts errors: a table of all ports with a link, live on
a terminal, and lines elsewhere. A round reads the counters of each port once, as an
audit does, and clears none; the first line says how many datagrams that took. The
fabric is swept at the beginning, and when the ports that answer are others.

PORT counts what the row says, PEER is the other end of its link, which has a row
too. USE is what is sent, of what the link can. WAIT/s is PortXmitWait: ticks in which
there was something to send, and no credit for it. How long a tick is depends on the
device; SHARE, of waiting in waiting and sending, takes it for the time of 4 bytes. ERR/s
are all counters of errors. BER is symbol errors by bits carried, both since the
beginning: < means that there was none yet, and how low the rate is at least. TREND is
of the last 24 rounds, each row for itself; ? is not known, for no answer came, or the
counter was cleared or stands at its largest.

A tier is a distance from the hosts: host, leaf, spine, core.

Keys: q quits; w, d, e and b sort by wait, data, errors and BER, < and > by the one
before and the next; t chooses a tier, / filters by name, Esc ends that; arrows, PageUp,
PageDown, Home and End move. F4, F6 and F10 are those of htop.`,
		Example: `  fabsh top
  fabsh top --by errors --every 30s --filter 'leaf-*'
  fabsh top --by ber --tier spine
  fabsh -F sim:traffic=10GB/s top --rounds 3 | cat`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			i := slices.Index(live.Words, by)
			switch {
			case i < 0:
				return fmt.Errorf("top: --by %q: use one of %s", by, strings.Join(live.Words, ", "))
			case every.Value == 0:
				every.Value = 5 * time.Second
			case every.Value < audit.MinWindow:
				return fmt.Errorf("top: --every %v: want %v or more: agents do not renew counters at each read", every.Value, audit.MinWindow)
			}
			if o.Tier != "" && !slices.Contains(picture.TierWords, o.Tier) {
				return fmt.Errorf("top: --tier %q: use one of %s", o.Tier, strings.Join(picture.TierWords, ", "))
			}
			if o.Rounds < 0 {
				return fmt.Errorf("top: --rounds %d: want 1 or more", o.Rounds)
			}
			o.By, o.Every = live.By(i), every.Value
			return onFabric(p, "top", func(ctx context.Context, s *session.Session) error { return runTop(ctx, p, s, o) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&by, "by", by, "sort by `WORD`: "+strings.Join(live.Words, ", "))
	c.Flags().Var(&every, "every", "the `TIME` between two rounds, 2s or more (default 5s)")
	c.Flags().StringVar(&o.Tier, "tier", "", "only ports of nodes in the tier `WORD`: "+strings.Join(picture.TierWords, ", "))
	c.Flags().StringVar(&o.Filter, "filter", "", "only ports with `PATTERN` in their name or their peer's; * stands for any text")
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "end after `N` rounds (default: at q or Ctrl-C)")
	c.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(picture.TierWords, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(live.Words, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// ratesSource is where the table has its rates from.
type ratesSource struct {
	*builtins.Session
	poller audits.Poller
	sent   func() uint64
	gone   func() error // why no answer will come any more: the device is lost
	end    context.CancelCauseFunc
}

func (r *ratesSource) Rates(ctx context.Context, ports []*fabric.Port) ([]audit.PortRates, error) {
	defer r.endIfGone()
	return read.Rates(ctx, r.Runtime, &r.poller, ports)
}

func (r *ratesSource) Sweep(ctx context.Context) (*fabric.Fabric, error) {
	defer r.endIfGone()
	return topology.SweepQuietly(ctx, r.Session.Runtime)
}

// endIfGone ends the table where the device is lost: a session does not open it again.
func (r *ratesSource) endIfGone() {
	if lost := r.gone(); lost != nil {
		r.end(&session.HostError{Err: lost})
	}
}

func (r *ratesSource) Sent() uint64 { return r.sent() }

// runTop shows the table until it is over.
func runTop(ctx context.Context, p *session.Program, s *session.Session, o live.Options) error {
	if s.Engine == nil {
		return s.NoLive("top", "needs a live fabric: this session reads a file, whose counters stand still")
	}
	ctx, stop := s.Runner.Deadline.Within(ctx) // a round may last as long as one waits
	defer stop()
	o.Name = s.Name
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	src := &ratesSource{Session: s.Session, sent: func() uint64 { return s.Engine.Stats().Sent }, gone: s.Engine.Failed, end: end}
	out := s.Console.Terminal()
	if out == nil || os.Getenv("TERM") == "dumb" {
		return live.Plain(ctx, o, src, s.Clock, s.Console.Out())
	}
	var err error
	s.Console.Lend(func() {
		err = live.Live(ctx, o, src, s.Clock, p.Stdin, out, func(restore func()) {
			p.Interrupts.OnExit(func() {
				restore()
				s.Leave()
			})
		})
	})
	p.Interrupts.OnExit(s.Leave)
	return err
}
