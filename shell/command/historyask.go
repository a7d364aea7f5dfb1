package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// answer is what a question on a history returns.
type answer struct {
	value starlark.Value
	gaps  []history.Gap
	none  string // a sentence for people if value is empty
}

// question is a question on a history, at a time.
type question func(ctx context.Context, h *history.Store, now time.Time) (answer, error)

// ask shows the answer to a question.
func ask(p *session.Program, o *historyOptions, q question) error {
	return onHistory(p, o, func(ctx context.Context, s *session.Session, h *history.Store) error {
		a, err := q(ctx, h, s.Clock.Now())
		if err != nil {
			return err
		}
		showGaps(s, a.gaps)
		if list, ok := a.value.(*starlark.List); ok && list.Len() == 0 && s.Format == lang.FormatText {
			s.Print(a.none + "\n")
			return nil
		}
		return s.Show(a.value)
	})
}

// oneWord takes one word, which the error names.
func oneWord(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, words []string) error {
		if len(words) != 1 {
			return fmt.Errorf("want one %s", what)
		}
		return nil
	}
}

// timeFlag is a flag that takes a time, "30d" or "2026-05-01".
type timeFlag struct{ text string }

func (f *timeFlag) String() string { return f.text }
func (f *timeFlag) Type() string   { return "TIME" }
func (f *timeFlag) Set(text string) error {
	if _, err := history.ParseTime(text, time.Now()); err != nil {
		return history.ErrTime
	}
	f.text = text
	return nil
}

// before returns the time.
func (f *timeFlag) before(now time.Time) (time.Time, error) {
	if f.text == "" {
		return time.Time{}, nil
	}
	return history.ParseTime(f.text, now)
}

// overFlag adds --over.
func overFlag(c *cobra.Command, f *timeFlag, doc string) {
	c.Flags().Var(f, "over", doc+": the last `TIME`, such as 36h or 30d, or from a time on")
}

func historyChangesCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	var kinds []string
	c := &cobra.Command{
		Use:   "changes [SINCE [UNTIL]] [--kind KINDS]",
		Short: "Show what happened to nodes and links, the oldest first",
		Long: `Show the events of the history: nodes that are new, gone, back, or have another name or
LID; links that are new, up, down, gone with a node, or have another width or speed;
cables that moved; the subnet manager that moved; the clock that was set back. Each was
found by the sweep at its time, and happened since the one before. Changes, remedies and
comparisons of cables by fabsh are of the kind change, acknowledgements of the kind ack;
--kind finding shows findings of audits that began and are gone. Times in which nothing
was recorded are shown among them.

SINCE and UNTIL are times such as 2026-05-01, 2026-05-01T14:05+02:00, yesterday, or 36h
or 7d for as long before now. Without an offset they are of the zone of this host.`,
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
			return ask(p, &o, changesOf(limits[0], limits[1], kinds))
		},
	}
	c.Flags().StringSliceVar(&kinds, "kind", nil, "events of these `KINDS`: link, node.gone, ...")
	o.addTo(c)
	return c
}

func changesOf(since, until time.Time, kinds []string) question {
	return func(ctx context.Context, h *history.Store, _ time.Time) (answer, error) {
		events, err := h.Changes(ctx, since, until, kinds...)
		if err != nil {
			return answer{}, err
		}
		gaps, err := h.Gaps(ctx, since, until)
		return answer{value: values.Events(events, gaps), none: "no events"}, err
	}
}

func historyLinkCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "link PORT",
		Short: "Show what happened to the links of a port",
		Long: `Show the events of the links that a port had, the oldest first, and the times in which
nothing was recorded. PORT is a name with a port number as in the last sweep of the
history, or a node GUID with one. "fabsh history port" shows cables, errors and findings, too.`,
		Example: `  fabsh history link leaf-3/7`,
		Args:    oneWord("PORT, such as leaf-3/7"),
		RunE: func(_ *cobra.Command, words []string) error {
			return ask(p, &o, func(ctx context.Context, h *history.Store, _ time.Time) (answer, error) {
				_, e, err := historyPort(ctx, h, words[0])
				if err != nil {
					return answer{}, err
				}
				events, err := h.EventsOf(ctx, e.Node, e.Port)
				if err != nil {
					return answer{}, err
				}
				gaps, err := h.Gaps(ctx, time.Time{}, time.Time{})
				return answer{value: values.Events(events, gaps), none: "no events"}, err
			})
		},
	}
	o.addTo(c)
	return c
}

// historyPort finds a port, and returns the names of the last sweep.
func historyPort(ctx context.Context, h *history.Store, name string) (*history.Named, history.End, error) {
	n, err := h.Names(ctx)
	if err != nil {
		return nil, history.End{}, err
	}
	e, err := n.Port(name)
	return n, e, err
}

func historyPortCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	over := timeFlag{"90d"}
	c := &cobra.Command{
		Use:   "port PORT [--over TIME]",
		Short: "Show the life of a port: events, cables, errors, findings",
		Long: `Show what happened to a port and the links that it had: events, when links were up,
cables and modules by serial number, errors by days, bit error rates, findings of audits
with their acknowledgements, plans and remedies; and when nothing was recorded. --over
limits the errors and the gaps; the rest is whole.`,
		Example: `  fabsh history port leaf-3/7
  fabsh -o json history port leaf-3/7 --over 365d`,
		Args: oneWord("PORT, such as leaf-3/7"),
		RunE: func(_ *cobra.Command, words []string) error { return ask(p, &o, portLife(words[0], &over)) },
	}
	overFlag(c, &over, "errors")
	o.addTo(c)
	return c
}

func portLife(name string, over *timeFlag) question {
	return func(ctx context.Context, h *history.Store, now time.Time) (answer, error) {
		since, err := over.before(now)
		if err != nil {
			return answer{}, err
		}
		n, e, err := historyPort(ctx, h, name)
		if err != nil {
			return answer{}, err
		}
		l, err := h.LifeOf(ctx, e.Node, e.Port, since, now)
		if err != nil {
			return answer{}, err
		}
		return answer{value: values.PortLife(n, l)}, nil
	}
}

func historyCableCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "cable SERIAL",
		Short: "Show the life of a cable or module by its serial number",
		Long: `Show where a cable or module was, and its link-downs and errors there: a fault that
moves with it is its own. Serial numbers are known where modules state them.`,
		Example: `  fabsh history cable MT2210VS00042`,
		Args:    oneWord("SERIAL, the serial number of a cable or module"),
		RunE:    func(_ *cobra.Command, words []string) error { return ask(p, &o, cableLife(words[0])) },
	}
	o.addTo(c)
	return c
}

func cableLife(serial string) question {
	return func(ctx context.Context, h *history.Store, _ time.Time) (answer, error) {
		l, err := h.CableLife(ctx, serial)
		if err != nil {
			return answer{}, err
		}
		n, err := h.Names(ctx)
		if err != nil {
			return answer{}, err
		}
		return answer{value: values.CableLife(n, l)}, nil
	}
}

func historyNodeCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	over := timeFlag{"90d"}
	c := &cobra.Command{
		Use:   "node NAME [--over TIME]",
		Short: "Show the life of a node: events, errors of its ports, findings",
		Long: `Show what happened to a node and its links, the errors of its ports, findings of audits
with their acknowledgements, plans and remedies; and when nothing was recorded. NAME is
a name as in the last sweep of the history, or a node GUID. --over limits the errors and
the gaps; the rest is whole.`,
		Example: `  fabsh history node leaf-3`,
		Args:    oneWord("NAME of a node"),
		RunE:    func(_ *cobra.Command, words []string) error { return ask(p, &o, nodeLife(words[0], &over)) },
	}
	overFlag(c, &over, "errors")
	o.addTo(c)
	return c
}

func nodeLife(name string, over *timeFlag) question {
	return func(ctx context.Context, h *history.Store, now time.Time) (answer, error) {
		since, err := over.before(now)
		if err != nil {
			return answer{}, err
		}
		n, err := h.Names(ctx)
		if err != nil {
			return answer{}, err
		}
		g, err := n.Node(name)
		if err != nil {
			return answer{}, err
		}
		l, err := h.NodeLife(ctx, g, since, now)
		if err != nil {
			return answer{}, err
		}
		return answer{value: values.NodeLife(n, l)}, nil
	}
}

func historyFlapsCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	times, within := audit.FlapDowns, timeFlag{"24h"}
	c := &cobra.Command{
		Use:   "flaps [--times N] [--within TIME]",
		Short: "Show the links that went down several times",
		Long: `Show the links that went down at least twice in the last 24 hours (NVIDIA's bring-up
guide), the most frequent first. Links that went down with a host or switch, or whose
port was disabled, do not count.`,
		Example: `  fabsh history flaps
  fabsh history flaps --times 5 --within 30d`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error { return ask(p, &o, flapsOf(&times, &within)) },
	}
	c.Flags().IntVar(&times, "times", times, "links that went down at least `N` times")
	c.Flags().Var(&within, "within", "in the last `TIME`, such as 24h or 7d")
	o.addTo(c)
	return c
}

func flapsOf(times *int, within *timeFlag) question {
	return func(ctx context.Context, h *history.Store, now time.Time) (answer, error) {
		since, err := within.before(now)
		if err != nil {
			return answer{}, err
		}
		flaps, err := h.Flaps(ctx, *times, since, now.Add(time.Second))
		if err != nil {
			return answer{}, err
		}
		gaps, err := h.Gaps(ctx, since, now)
		return answer{values.Flaps(flaps), gaps, fmt.Sprintf("no link went down %d times in %s", *times, within.text)}, err
	}
}

func historyBERCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	above, up := "1e-12", audit.BERUptime
	c := &cobra.Command{
		Use:   "ber [--above RATE] [--up TIME]",
		Short: "Show the links whose bit error rate is too high, and those not yet judged",
		Long: `Show the links whose newest bit error rate is above 1e-12, the worst first, and then
those that are not judged yet, with the reason. A rate counts once the link has been up
for 125 minutes (NVIDIA's bring-up guide). It is the rate after error correction, as the
port estimates it; of ports that do not, it is that of the symbol errors of the last 30
days, if these are enough for the rate that is asked for.`,
		Example: `  fabsh history ber
  fabsh history ber --above 1e-14`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			rate, err := strconv.ParseFloat(above, 64)
			if err != nil || !(rate > 0 && rate < 1) {
				return fmt.Errorf("--above %q: want a rate such as 1e-12", above)
			}
			if up < 0 {
				return errors.New("--up must not be negative")
			}
			return ask(p, &o, berAbove(rate, up))
		},
	}
	c.Flags().StringVar(&above, "above", above, "links whose rate is above `RATE`")
	c.Flags().DurationVar(&up, "up", up, "judge links that have been up for `TIME`")
	o.addTo(c)
	return c
}

func berAbove(rate float64, up time.Duration) question {
	return func(ctx context.Context, h *history.Store, now time.Time) (answer, error) {
		judged, unjudged, err := h.BER(ctx, rate, up, now)
		if err != nil {
			return answer{}, err
		}
		n, err := h.Names(ctx)
		if err != nil {
			return answer{}, err
		}
		gaps, err := h.Gaps(ctx, now.Add(-30*24*time.Hour), now)
		return answer{values.BER(n, append(judged, unjudged...)), gaps, fmt.Sprintf("no link that was judged has a bit error rate above %g", rate)}, err
	}
}

func historyOffendersCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	over := timeFlag{"180d"}
	q := history.OffenderQuery{Of: "link", By: "days"}
	top := 50
	var all bool
	c := &cobra.Command{
		Use:   "offenders [--of KIND] [--by ORDER] [--over TIME]",
		Short: "Show the links, cables, hosts or switches that had faults again and again",
		Long: `Show what had errors or involuntary link-downs over half a year: on how many days, how
many link-downs, and how many errors. --of cable counts by serial number, wherever the
cable was: more than one link shows that the fault moved with it. Errors of a port whose
cable or link is not known are not in it.`,
		Example: `  fabsh history offenders
  fabsh history offenders --of cable --over 365d --by flaps`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if !slices.Contains(history.OffenderKinds, q.Of) {
				return fmt.Errorf("--of %q: want %s", q.Of, strings.Join(history.OffenderKinds, ", "))
			}
			if !slices.Contains(history.OffenderOrders, q.By) {
				return fmt.Errorf("--by %q: want %s", q.By, strings.Join(history.OffenderOrders, ", "))
			}
			if top < 1 {
				return errors.New("--top must be positive")
			}
			if all {
				if o.subnet != "" {
					return errors.New("--all and --subnet exclude each other")
				}
				return offendersOfAll(p, &o, q, &over, top)
			}
			return ask(p, &o, offendersOf(q, &over, top))
		},
	}
	c.Flags().StringVar(&q.Of, "of", q.Of, "what has the faults: `KIND` "+strings.Join(history.OffenderKinds, ", "))
	c.Flags().StringVar(&q.By, "by", q.By, "sort by `ORDER`: "+strings.Join(history.OffenderOrders, ", "))
	overFlag(c, &over, "faults")
	c.Flags().IntVar(&top, "top", top, "show the worst `N`")
	c.Flags().BoolVar(&all, "all", false, "of all subnets whose histories are in --state or in the database")
	c.RegisterFlagCompletionFunc("of", cobra.FixedCompletions(history.OffenderKinds, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(history.OffenderOrders, cobra.ShellCompDirectiveNoFileComp))
	o.addTo(c)
	return c
}

func offendersOf(q history.OffenderQuery, over *timeFlag, top int) question {
	return func(ctx context.Context, h *history.Store, now time.Time) (answer, error) {
		var err error
		if q.Since, err = over.before(now); err != nil {
			return answer{}, err
		}
		q.Until = now.Add(time.Second)
		list, err := h.Offenders(ctx, q)
		if err != nil {
			return answer{}, err
		}
		n, err := h.Names(ctx)
		if err != nil {
			return answer{}, err
		}
		gaps, err := h.Gaps(ctx, q.Since, now)
		return answer{values.Offenders(n, "", list[:min(len(list), top)]), gaps, "no faults in this time"}, err
	}
}

// offendersOfAll shows the offenders of all subnets in --state or in a database. A history that cannot be
// read is reported, and makes the exit status 3.
func offendersOfAll(p *session.Program, o *historyOptions, q history.OffenderQuery, over *timeFlag, top int) error {
	return withoutFabric(p, func(ctx context.Context, s *session.Session) error {
		var paths []string
		switch {
		case history.IsServer(o.file):
			subnets, err := history.Subnets(ctx, o.file)
			if err != nil {
				return &session.HostError{Err: err}
			}
			for _, name := range subnets {
				paths = append(paths, o.file+"#"+url.PathEscape(name))
			}
		case o.file != "":
			return errors.New("--all: --file must be a database of PostgreSQL, or left out")
		default:
			paths = fabric.StateFiles(s.StateDir, history.FileName)
		}
		if len(paths) == 0 {
			return &session.HostError{Err: fmt.Errorf("%s: %w", s.StateDir, history.ErrNone)}
		}
		type row struct {
			history.Offender
			value starlark.Value
		}
		var rows []row
		var failed error
		for _, path := range paths {
			err := func() error {
				h, err := history.Open(ctx, path)
				if err != nil {
					return err
				}
				defer h.Close()
				now := s.Clock.Now()
				if q.Since, err = over.before(now); err != nil {
					return err
				}
				q.Until = now.Add(time.Second)
				list, err := h.Offenders(ctx, q)
				if err != nil {
					return err
				}
				n, err := h.Names(ctx)
				if err != nil {
					return err
				}
				view, err := h.Overview(ctx)
				if err != nil {
					return err
				}
				gaps, err := h.Gaps(ctx, q.Since, now)
				if err != nil {
					return err
				}
				if len(gaps) > 0 {
					s.Warn("%s: %s", view.Subnet, values.GapText(gaps[0]))
				}
				list = list[:min(len(list), top)]
				for i, v := range lang.Elements(values.Offenders(n, view.Subnet, list)) {
					rows = append(rows, row{list[i], v})
				}
				return nil
			}()
			if err != nil {
				failed = &session.HostError{Err: err}
				s.Warn("%v", err)
			}
		}
		slices.SortStableFunc(rows, func(a, b row) int { return history.CompareOffenders(q.By, &a.Offender, &b.Offender) })
		if len(rows) == 0 && failed == nil && s.Format == lang.FormatText {
			s.Print("no faults in this time\n")
			return nil
		}
		if err := s.Show(lang.List(rows[:min(len(rows), top)], func(r row) starlark.Value { return r.value })); err != nil {
			return err
		}
		return failed
	})
}

// historyTool answers questions of agents.
func historyTool(p *session.Program) mcp.Tool {
	questions := []string{"overview", "changes", "flaps", "ber", "offenders", "port", "cable", "node", "series"}
	return mcp.Tool{
		Name:  "history",
		Title: "What the fabric was, and what happened to each link, over months",
		Doc: `From the history that fabsh history record keeps; sends nothing. changes: events; flaps: links that went down at least twice in the time; ber: bit error rates above 1e-12, and those not judged; offenders: links or cables with faults on most days;
port, cable, node: the life of one, by subject; series: values of a counter or sample. In a gap nothing was recorded.`,
		Params: []mcp.Param{
			{Name: "question", Kind: mcp.KindText, Words: questions, Required: true, Doc: "what to answer"},
			{Name: "subject", Kind: mcp.KindText, Doc: "of port and series a port (leaf-3/7), of node a node, of cable a serial number"},
			{Name: "over", Kind: mcp.KindText, Doc: "the last 24h or 30d, or from a time on: 2026-05-01 (default: 24h of changes and flaps, 180d of offenders, else 30d)"},
			{Name: "of", Kind: mcp.KindText, Words: history.OffenderKinds, Doc: "of offenders: what has the faults (default link)"},
			{Name: "what", Kind: mcp.KindText, Doc: "of series: a counter such as symbol_error_counter, or xmit_mean, wait, temperature, rx_power"},
			{Name: "file", Kind: mcp.KindText, Doc: "the history (default: that of the only subnet in the directory for state)" + theFile},
		},
		Run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			now, word := s.Clock.Now(), a.Text("question")
			over := timeFlag{map[string]string{"changes": "24h", "flaps": "24h", "offenders": "180d"}[word]}
			if over.text == "" {
				over.text = "30d"
			}
			if a.Has("over") {
				if err := over.Set(a.Text("over")); err != nil {
					return err
				}
			}
			since, err := over.before(now)
			if err != nil {
				return err
			}
			subject := a.Text("subject")
			if subject == "" && slices.Contains([]string{"port", "cable", "node", "series"}, word) {
				return fmt.Errorf("the question %s needs a subject", word)
			}
			times := audit.FlapDowns
			q := map[string]question{
				"overview": func(ctx context.Context, h *history.Store, _ time.Time) (answer, error) {
					o, err := h.Overview(ctx)
					if err != nil {
						return answer{}, err
					}
					return answer{value: values.Wrap(h.Path(), o)}, nil
				},
				"changes":   changesOf(since, time.Time{}, nil),
				"flaps":     flapsOf(&times, &over),
				"ber":       berAbove(1e-12, audit.BERUptime),
				"offenders": offendersOf(history.OffenderQuery{Of: a.Text("of")}, &over, 50),
				"port":      portLife(subject, &over),
				"cable":     cableLife(subject),
				"node":      nodeLife(subject, &over),
				"series":    courseOf(subject, a.Text("what"), &over),
			}[word]
			path := ""
			if a.Has("file") {
				f, err := s.Files.Open(ctx, a.Text("file"))
				if err != nil {
					return err
				}
				f.Close()
				path = s.Files.Abs(a.Text("file"))
			} else if path, err = history.Find(p.Settings.StateDir(), ""); err != nil {
				return err
			}
			h, err := history.Open(ctx, path)
			if err != nil {
				return err
			}
			defer h.Close()
			x, err := q(ctx, h, now)
			if err != nil {
				return err
			}
			if list, ok := x.value.(*starlark.List); ok && word != "changes" { // the gaps with it
				d := new(starlark.Dict)
				d.SetKey(starlark.String(word), list)
				d.SetKey(starlark.String("gaps"), values.Gaps(x.gaps))
				x.value = d
			}
			return s.Show(x.value)
		},
	}
}
