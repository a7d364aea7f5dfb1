package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// historyOptions name the history that a command reads.
type historyOptions struct{ file, subnet string }

func (o *historyOptions) addTo(c *cobra.Command) {
	c.Flags().StringVar(&o.file, "file", "", "the history in `FILE` (default: that of the only subnet in --state)")
	params{subnetParam(&o.subnet)}.addTo(c)
	c.MarkFlagFilename("file")
}

// historyCommand shows what a history has.
func historyCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "history",
		Short: "What the fabric was, and what happened to each link, over months",
		Long: `Show what the history of a subnet has: from when to when, how many sweeps, and the
longest times in which nothing was recorded.

"fabsh history record" keeps it: one SQLite file for each subnet in the directory of
--state, ` + history.FileName + `, of mode 0600 and without keys. Each sweep adds the events since the
one before; the fabric, as a snapshot a week and deltas; error counters that grew; and
the traffic of ports by hour. Audits, acknowledgements, changes and remedies are added
where there is a history. Reading it sends nothing. The directory must be on a local file system. A copy made by cp
while a recorder runs is damaged; "fabsh history copy FILE" makes one that is not.

Exit status: 0; 2 usage error; 3 host error, no history, or the history is damaged.`,
		Example: `  fabsh history record --once
  fabsh history
  fabsh history changes 24h
  fabsh history flaps --times 3 --within 168h`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onHistory(p, &o, showOverview)
		},
	}
	o.addTo(c)
	for _, sub := range []*cobra.Command{historyRecordCommand(p), historyImportCommand(p), historyChangesCommand(p), historyLinkCommand(p), historyFlapsCommand(p), historyCheckCommand(p), historyCopyCommand(p), historyCompactCommand(p)} {
		addSubcommand(c, sub)
	}
	return c
}

// onHistory runs a command on a history, without a fabric.
func onHistory(p *session.Program, o *historyOptions, run func(context.Context, *session.Session, *history.Store) error) error {
	return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
		path, err := o.path(s.StateDir)
		if err != nil {
			return err
		}
		h, err := history.Open(ctx, path)
		if err != nil && o.file != "" { // a wrong command line
			return err
		}
		if err != nil {
			return &session.HostError{Err: err}
		}
		defer h.Close()
		var usage *lang.ExitError
		if err := run(ctx, s, h); err != nil && !errors.As(err, &usage) {
			return &session.HostError{Err: err}
		} else {
			return err
		}
	})
}

// path returns the path of the history.
func (o *historyOptions) path(dir string) (string, error) {
	if o.file != "" {
		return o.file, nil
	}
	path, err := history.Find(dir, o.subnet)
	if err != nil {
		return "", &session.HostError{Err: err}
	}
	return path, nil
}

func historyChangesCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	var kinds []string
	c := &cobra.Command{
		Use:   "changes [SINCE [UNTIL]] [--kind KINDS]",
		Short: "Show what happened to nodes and links, the oldest first",
		Long: `Show the events of the history: nodes that are new, gone, back, or have another name or
LID; links that are new, up, down, gone with a node, or have another width or speed; the
subnet manager that moved; the clock that was set back. Each was found by the sweep at
its time, and happened since the one before. Times in which nothing was recorded are
shown among them.

SINCE and UNTIL are times such as 2026-05-01, 2026-05-01T14:05, yesterday, or 36h or 7d
for as long before now.`,
		Example: `  fabsh history changes 24h
  fabsh -o csv history changes 2026-05-01 2026-06-01 --kind link.down,link.up`,
		Args: atMost(2),
		RunE: func(_ *cobra.Command, words []string) error {
			var limits [2]time.Time
			for i, w := range words {
				var err error
				if limits[i], err = history.ParseTime(w, time.Now()); err != nil {
					return err
				}
			}
			from, to := limits[0], limits[1]
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				events, err := h.Changes(ctx, from, to, kinds...)
				if err != nil {
					return err
				}
				gaps, err := h.Gaps(ctx, from, to)
				if err != nil {
					return err
				}
				return showEvents(s, events, gaps)
			})
		},
	}
	c.Flags().StringSliceVar(&kinds, "kind", nil, "events of these `KINDS`: link, node.gone, ...")
	o.addTo(c)
	return c
}

func historyLinkCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "link PORT",
		Short: "Show what happened to the links of a port",
		Long: `Show the events of the links that a port had, the oldest first. PORT is a name with a
port number as in the last sweep of the history, or a node GUID with one.`,
		Example: `  fabsh history link leaf-3/7`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) != 1 {
				return errors.New("want one PORT, such as leaf-3/7")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				f, _, err := h.At(ctx, s.Clock.Now())
				if err != nil {
					return err
				}
				i := slices.IndexFunc(f.Ports(), func(p fabric.Port) bool {
					return p.Name() == words[0] || fmt.Sprintf("%s/%d", p.Node().GUID(), p.Num()) == words[0]
				})
				if i < 0 {
					return fmt.Errorf("history link: %q: no such port in the last sweep", words[0])
				}
				port := &f.Ports()[i]
				events, err := h.EventsOf(ctx, port.Node().GUID(), port.Num())
				if err != nil {
					return err
				}
				gaps, err := h.Gaps(ctx, time.Time{}, time.Time{})
				if err != nil {
					return err
				}
				return showEvents(s, events, gaps)
			})
		},
	}
	o.addTo(c)
	return c
}

func historyFlapsCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	times, within := audit.FlapDowns, audit.FlapWindow
	c := &cobra.Command{
		Use:   "flaps [--times N] [--within TIME]",
		Short: "Show the links that went down several times",
		Long: `Show the links that went down at least twice in the last 24 hours (NVIDIA's bring-up
guide), the most frequent first. Links that went down with a host or switch, or whose
port was disabled, do not count. Link-downs between two sweeps that both found the link
are seen by the counters of its ports.`,
		Example: `  fabsh history flaps
  fabsh history flaps --times 5 --within 720h`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				now := s.Clock.Now()
				flaps, err := h.Flaps(ctx, times, now.Add(-within), now.Add(time.Second))
				if err != nil {
					return err
				}
				gaps, err := h.Gaps(ctx, now.Add(-within), now)
				if err != nil {
					return err
				}
				var list []starlark.Value
				for _, f := range flaps {
					list = append(list, &historyRow{"history_flap", []lang.Fact{
						{Name: "link", Value: starlark.String(f.Subject)},
						{Name: "downs", Value: starlark.MakeInt(f.Downs)},
						{Name: "first", Value: timeValue(f.First)},
						{Name: "last", Value: timeValue(f.Last)},
					}})
				}
				if s.Format == lang.FormatText {
					showGaps(s, gaps)
					if len(list) == 0 {
						s.Print(fmt.Sprintf("no link went down %d times in %v\n", times, within))
						return nil
					}
				}
				return s.Show(starlark.NewList(list))
			})
		},
	}
	c.Flags().IntVar(&times, "times", times, "links that went down at least `N` times")
	c.Flags().DurationVar(&within, "within", within, "in the last `TIME`")
	o.addTo(c)
	return c
}

func historyCheckCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "check",
		Short: "Read all of the history, and name what is damaged",
		Long: `Read all of the history, compare the rows of each table and day, and the events of each
sweep, with the sums that were written with them, and name what is damaged and what is
intact; exit status 3 if anything is damaged.`,
		Example: `  fabsh history check`,
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				v, err := h.Check(ctx)
				if err != nil {
					return err
				}
				if len(v.Damage) == 0 {
					s.Print(h.Path() + ": no damage\n")
					return nil
				}
				for _, d := range v.Damage {
					s.Print("damaged: " + d + "\n")
				}
				for _, text := range v.Sound {
					s.Print("intact: " + text + "\n")
				}
				return fmt.Errorf("%s: the history is damaged: %s", h.Path(), plural.Count(len(v.Damage), "fault", "faults"))
			})
		},
	}
	o.addTo(c)
	return c
}

func historyCopyCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:     "copy FILE",
		Short:   "Copy the history, also while it is written",
		Long:    `Copy the history to FILE, which must not exist, also while a recorder writes it.`,
		Example: `  fabsh history copy backup.db`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) != 1 {
				return errors.New("want one FILE")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onHistory(p, &o, func(ctx context.Context, _ *session.Session, h *history.Store) error { return h.Copy(ctx, words[0]) })
		},
	}
	o.addTo(c)
	return c
}

// showOverview shows what the history has.
func showOverview(ctx context.Context, s *session.Session, h *history.Store) error {
	o, err := h.Overview(ctx)
	if err != nil {
		return err
	}
	row := &historyRow{"history", []lang.Fact{
		{Name: "file", Value: starlark.String(h.Path())},
		{Name: "subnet", Value: starlark.String(o.Subnet)},
		{Name: "first", Value: timeValue(o.From)},
		{Name: "last", Value: timeValue(o.To)},
		{Name: "every", Value: starlark.String(o.Every.String())},
		{Name: "sweeps", Value: starlark.MakeInt(o.Cycles)},
		{Name: "incomplete", Value: starlark.MakeInt(o.Incomplete)},
		{Name: "events", Value: starlark.MakeInt(o.Events)},
		{Name: "nodes", Value: starlark.MakeInt(o.Nodes)},
		{Name: "links", Value: starlark.MakeInt(o.Links)},
		{Name: "bytes", Value: starlark.MakeInt64(o.Bytes)},
	}}
	if s.Format == lang.FormatText {
		defer showGaps(s, o.LongestGaps)
	}
	return s.Show(row)
}

// showGaps states when nothing was recorded.
func showGaps(s *session.Session, gaps []history.Gap) {
	for _, g := range gaps {
		s.Print(fmt.Sprintf("nothing was recorded from %s to %s\n", g.From.Local().Format(time.RFC3339), g.To.Local().Format(time.RFC3339)))
	}
}

// showEvents shows events, and gaps as events of their own kind.
func showEvents(s *session.Session, events []history.Event, gaps []history.Gap) error {
	for _, g := range gaps {
		events = append(events, history.Event{Time: g.To, Kind: "gap", Subject: "nothing was recorded", Was: g.From.Local().Format(time.RFC3339), Now: g.To.Local().Format(time.RFC3339)})
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.Time.Compare(b.Time) })
	list := make([]starlark.Value, len(events))
	for i, e := range events {
		list[i] = &historyRow{"history_event", []lang.Fact{
			{Name: "time", Value: timeValue(e.Time)},
			{Name: "kind", Value: starlark.String(e.Kind)},
			{Name: "subject", Value: starlark.String(e.Subject)},
			{Name: "was", Value: starlark.String(e.Was)},
			{Name: "now", Value: starlark.String(e.Now)},
		}}
	}
	if len(list) == 0 && s.Format == lang.FormatText {
		s.Print("no events\n")
		return nil
	}
	return s.Show(starlark.NewList(list))
}

// timeValue is a time in the zone of this host, with its offset; None for the zero time.
func timeValue(t time.Time) starlark.Value {
	if t.IsZero() {
		return starlark.None
	}
	return starlark.String(t.Local().Format(time.RFC3339))
}

// historyRow is an answer of a history, as a value to print.
type historyRow struct {
	kind  string
	facts []lang.Fact
}

var _ lang.Factual = (*historyRow)(nil)

func (v *historyRow) Type() string          { return v.kind }
func (v *historyRow) Freeze()               {}
func (v *historyRow) Truth() starlark.Bool  { return true }
func (v *historyRow) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: %s", v.kind) }
func (v *historyRow) Schema() string        { return v.kind + "/1" }
func (v *historyRow) String() string        { return v.facts[0].Value.String() }
func (v *historyRow) Facts() []lang.Fact    { return v.facts }
