package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// plotted are words for what plot draws.
var plotted = map[string]string{"traffic": history.SampleMean, "most": history.SampleMost, "wait": history.SampleWait, "temperature": history.SampleTemperature, "light": history.SampleRxPower, "errors": "", "ber": history.SampleBERGrade}

func historyPlotCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	var out string
	over := timeFlag{"30d"}
	c := &cobra.Command{
		Use:   "plot PORT WHAT [--over TIME] [--out FILE.svg]",
		Short: "Draw the course of traffic, errors or temperature of a port",
		Long: `Draw the course of a value of a port: as blocks in the terminal, or as an image with
--out. WHAT is traffic (data sent, MB/s, the mean of each hour), most (of the busiest
minutes), wait (for credits, in %), errors (of all counters), temperature (°C) or light
(received, mW) of the module, ber (grade of the bit error rate), or the name of a
counter such as symbol_error_counter. Events of the port are marked; where nothing was
recorded the line is broken. -o json and csv write the values.`,
		Example: `  fabsh history plot leaf-3/7 traffic
  fabsh history plot leaf-3/7 errors --over 90d --out errors.svg`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) != 2 {
				return errors.New("want a PORT and WHAT, such as leaf-3/7 traffic")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			if out != "" && !strings.HasSuffix(out, ".svg") {
				return fmt.Errorf("--out %s: want a name that ends with .svg", out)
			}
			q := courseOf(words[0], words[1], &over)
			if out == "" {
				return ask(p, &o, q)
			}
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				a, err := q(ctx, h, s.Clock.Now())
				if err != nil {
					return err
				}
				switch err := format.WriteFile(ctx, out, a.value.(lang.Saved).SaveAs("svg")); {
				case errors.Is(err, syscall.EISDIR):
					return fmt.Errorf("--out %s: is a directory", out)
				case errors.Is(err, fs.ErrNotExist):
					return fmt.Errorf("--out %s: no such directory", out)
				case err != nil:
					return fmt.Errorf("--out: %w", err)
				}
				return nil
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(words) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for name := range plotted {
				names = append(names, name)
			}
			slices.Sort(names)
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	overFlag(c, &over, "draw")
	c.Flags().StringVar(&out, "out", "", "write an image to `FILE`, which ends with .svg")
	c.MarkFlagFilename("out", "svg")
	o.addTo(c)
	return c
}

// courseOf returns a course of a port.
func courseOf(port, what string, over *timeFlag) question {
	return func(ctx context.Context, h *history.Store, now time.Time) (answer, error) {
		since, err := over.before(now)
		if err != nil {
			return answer{}, err
		}
		if what == "" {
			return answer{}, errors.New("want a counter, or a kind of sample such as traffic, errors or temperature")
		}
		n, e, err := historyPort(ctx, h, port)
		if err != nil {
			return answer{}, err
		}
		var x *history.Series
		if word, ok := plotted[what]; ok && word == "" {
			x, err = h.ErrorSeries(ctx, e.Node, e.Port, since, now)
		} else {
			x, err = h.Series(ctx, e.Node, e.Port, cmp.Or(word, what), since, now)
		}
		if err != nil {
			return answer{}, err
		}
		events, err := h.EventsOf(ctx, e.Node, e.Port)
		return answer{value: values.Series(n, x, since, now, events)}, err
	}
}

func historyExportCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the history as files of CSV, for DuckDB, ClickHouse or spreadsheets",
		Long: `Write the tables of the history as files of CSV into DIR, which must not exist: events,
links, cables, errors by 5 minutes, hours and days, bit error rates, findings,
acknowledgements, changes; and of samples one row for each port and hour or day, in
files by kind and month. Times are seconds since 1970. Texts that a spreadsheet could
run as formulas have an apostrophe before them, except with --csv-raw.`,
		Example: `  fabsh history export history-2026
  duckdb -c "select printf('0x%016x', guid), port, sum(count) from 'history-2026/errors_day.csv' group by all order by 3 desc limit 10"`,
		Args: oneWord("DIR that does not exist"),
		RunE: func(_ *cobra.Command, words []string) error {
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				text := lang.SafeCell
				if p.Settings.CSVRaw {
					text = lang.Harmless
				}
				names, err := h.Export(ctx, words[0], text)
				if errors.Is(err, fs.ErrExist) {
					return fmt.Errorf("%s: exists; name a directory that does not", words[0])
				}
				if err != nil {
					return err
				}
				s.Print(fmt.Sprintf("%s: %s\n", words[0], plural.Count(len(names), "file", "files")))
				return nil
			})
		},
	}
	o.addTo(c)
	return c
}

func historySQLCommand(p *session.Program) *cobra.Command {
	var o historyOptions
	limit, most := 10000, history.QueryTime
	c := &cobra.Command{
		Use:   "sql QUERY [--limit N] [--time TIME]",
		Short: "Run a query in SQL on the history",
		Long: `Run one query on the tables of the history, and show its rows. Only queries are run:
statements that write, ATTACH, PRAGMA, and several statements are refused. It ends after
30 s, and shows at most 10000 rows. "fabsh history sql 'select sql from sqlite_master'"
shows the tables. Times are seconds since 1970.`,
		Example: `  fabsh history sql 'select kind, count(*) from event group by kind'
  fabsh -o csv history sql "select datetime(t, 'unixepoch') as time, subject from event where kind = 'link.down'"`,
		Args: oneWord("QUERY, in quotes"),
		RunE: func(_ *cobra.Command, words []string) error {
			if limit < 1 {
				return errors.New("--limit must be positive")
			}
			if most <= 0 {
				return errors.New("--time must be positive")
			}
			return onHistory(p, &o, func(ctx context.Context, s *session.Session, h *history.Store) error {
				timed, cancel := context.WithTimeout(ctx, most)
				defer cancel()
				t, err := h.Query(timed, words[0], limit)
				if err != nil {
					return err
				}
				if t.More {
					s.Warn("only the first %d rows are shown; --limit shows more", limit)
				}
				if len(t.Rows) == 0 && s.Format == lang.FormatText {
					s.Print("no rows\n")
					return nil
				}
				return s.Show(tableOf(t))
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", limit, "show at most `N` rows")
	c.Flags().DurationVar(&most, "time", most, "end the query after `TIME`")
	o.addTo(c)
	return c
}

// tableOf returns the rows of a query as dicts.
func tableOf(t *history.Table) starlark.Value {
	names := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		for n := 2; slices.Contains(names[:i], name); n++ {
			name = fmt.Sprintf("%s_%d", t.Columns[i], n)
		}
		names[i] = name
	}
	return lang.List(t.Rows, func(row []any) starlark.Value {
		d := starlark.NewDict(len(row))
		for i, v := range row {
			var cell starlark.Value
			switch v := v.(type) {
			case nil:
				cell = starlark.None
			case int64:
				cell = starlark.MakeInt64(v)
			case float64:
				cell = starlark.Float(v)
			case bool:
				cell = starlark.Bool(v)
			default:
				cell = starlark.String(history.Cell(v, lang.Harmless))
			}
			d.SetKey(starlark.String(names[i]), cell)
		}
		return d
	})
}
