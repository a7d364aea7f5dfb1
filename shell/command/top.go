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
		Short: "Show traffic, waits and errors of all ports in a live table",
		Long: `Show traffic, waits and errors of all ports with a link: as a live table on a
terminal, as lines elsewhere. A round reads the counters of each port once, as an audit
does, and clears none; the first line shows how many datagrams that took. The fabric is
swept at the start, and when the set of ports that answer changes. A sweep also reads
whether switches route adaptively; if some do, the first line has their number: packets
then take several ports, not only those of the forwarding tables.

A row has the counters of PORT. PEER is the other end of its link, which has its own
row. USE is the data sent as a part of what the link can carry. WAIT/s is PortXmitWait:
ticks in which there was data to send, but no credit. The length of a tick depends on
the device; SHARE, the part of waiting in waiting and sending, assumes the time of 4
bytes. ERR/s is the sum of all error counters. BER is symbol errors per bit carried,
both since the start; with < there was no error yet, and the value is an upper bound.
TREND has the last 24 rounds, each row on its own scale; ? is unknown: no answer came, or
the counter was cleared or has reached its maximum.

A tier is a distance from the hosts: host, leaf, spine, core.

Keys: q quits; w, d, e and b sort by wait, data, errors and BER, < and > by the previous
and the next of these; t chooses a tier, / filters by name, Esc ends that; arrows,
PageUp, PageDown, Home and End move; ? shows the keys. F4, F6 and F10 are those of htop.`,
		Example: `  fabsh top
  fabsh top --by errors --every 30s --filter 'leaf-*'
  fabsh top --by ber --tier spine
  fabsh -F sim:traffic=10GB/s top --rounds 3 | cat`,
		Annotations: map[string]string{atPrompt: direct},
		Args:        atMost(0),
		RunE: func(*cobra.Command, []string) error {
			i := slices.Index(live.Words, by)
			switch {
			case i < 0:
				return fmt.Errorf("--by %q: use one of %s", by, strings.Join(live.Words, ", "))
			case every.Value == 0:
				every.Value = 5 * time.Second
			case every.Value < audit.MinWindow:
				return fmt.Errorf("--every %v: want %v or more: agents do not update counters at each read", every.Value, audit.MinWindow)
			}
			if o.Tier != "" && !slices.Contains(picture.TierWords, o.Tier) {
				return fmt.Errorf("--tier %q: use one of %s", o.Tier, strings.Join(picture.TierWords, ", "))
			}
			if o.Rounds < 0 {
				return fmt.Errorf("--rounds %d: want 1 or more", o.Rounds)
			}
			o.By, o.Every = live.By(i), every.Value
			return onFabric(p, func(ctx context.Context, s *session.Session) error { return runTop(ctx, p, s, o) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&by, "by", by, "sort by `WORD`: "+strings.Join(live.Words, ", "))
	c.Flags().Var(&every, "every", "time between two rounds, 2s or more, as `TIME` (default: 5s)")
	c.Flags().StringVar(&o.Tier, "tier", "", "only ports of nodes in the tier `WORD`: "+strings.Join(picture.TierWords, ", "))
	c.Flags().StringVar(&o.Filter, "filter", "", "only ports whose name, or whose peer's name, matches `PATTERN`; * matches any text")
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "stop after `N` rounds (default: at q or Ctrl-C)")
	c.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(picture.TierWords, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(live.Words, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// ratesSource is where the table gets its rates from.
type ratesSource struct {
	*builtins.Session
	poller audits.Poller
	sent   func() uint64
	gone   func() error // why no answers will come: the device is lost
	end    context.CancelCauseFunc
}

func (r *ratesSource) Rates(ctx context.Context, ports []*fabric.Port) ([]audit.PortRates, error) {
	defer r.endIfGone()
	return audits.ReadRates(ctx, r.Runtime, &r.poller, ports)
}

func (r *ratesSource) Sweep(ctx context.Context) (*fabric.Fabric, error) {
	defer r.endIfGone()
	return topology.SweepQuietly(ctx, r.Session.Runtime)
}

func (r *ratesSource) Adaptivity(ctx context.Context, f *fabric.Fabric) (on, undetermined int, err error) {
	defer r.endIfGone()
	a, err := audits.ReadAdaptivity(ctx, r.Runtime, f)
	if err != nil {
		return 0, 0, err
	}
	return len(a.On), len(a.Undetermined), nil
}

// endIfGone ends the table if the device is lost: a session does not open it again.
func (r *ratesSource) endIfGone() {
	if lost := r.gone(); lost != nil {
		r.end(&session.HostError{Err: lost})
	}
}

func (r *ratesSource) Sent() uint64 { return r.sent() }

// runTop shows the table until it is over.
func runTop(ctx context.Context, p *session.Program, s *session.Session, o live.Options) error {
	if s.Engine == nil {
		return s.NoLive("top needs a live fabric: this session reads a file; choose one with -F")
	}
	ctx, stop := s.Runner.Deadline.Within(ctx) // a round may take as long as the user waits
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
	undo := func() {}
	s.Console.Lend(func() {
		err = live.Live(ctx, o, src, s.Clock, session.NewKeyboard(ctx, p.Stdin), out, func(restore func()) { undo = p.Interrupts.Also(restore) })
	})
	undo()
	return err
}
