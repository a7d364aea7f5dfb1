package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// historyOptions name the history that a command reads.
type historyOptions struct{ file, subnet string }

func (o *historyOptions) addTo(c *cobra.Command) {
	c.Flags().StringVar(&o.file, "file", "", "the history in `FILE`, or in PostgreSQL: postgres://USER@HOST/DATABASE (default: that of the only subnet in --state)")
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
where there is a history. Reading it sends nothing. The directory must be on a local file
system. A copy made by cp while a recorder runs is damaged; "fabsh history copy FILE"
makes one that is not, and copies to PostgreSQL. Passwords of PostgreSQL come from
PGPASSFILE or ~/.pgpass.

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
	for _, sub := range []*cobra.Command{
		historyRecordCommand(p), historyImportCommand(p), historyChangesCommand(p), historyLinkCommand(p), historyPortCommand(p), historyCableCommand(p), historyNodeCommand(p),
		historyFlapsCommand(p), historyBERCommand(p), historyOffendersCommand(p), historyPlotCommand(p),
		historyCheckCommand(p), historyCopyCommand(p), historyCompactCommand(p), historyExportCommand(p), historySQLCommand(p),
	} {
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
	if history.IsServer(o.file) && o.subnet != "" {
		return o.file + "#" + url.PathEscape(o.subnet), nil
	}
	if o.file != "" {
		return o.file, nil
	}
	path, err := history.Find(dir, o.subnet)
	if err != nil {
		return "", &session.HostError{Err: err}
	}
	return path, nil
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
		Use:   "copy FILE|postgres://...",
		Short: "Copy the history, also while it is written",
		Long: `Copy the history to FILE, which must not exist, also while a recorder writes it; or to a
database of PostgreSQL, which must not have a history of the subnet.`,
		Example: `  fabsh history copy backup.db
  fabsh history copy postgres://fabsh@db.example.com/fabrics`,
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
	defer showGaps(s, o.LongestGaps)
	return s.Show(values.Wrap(h.Path(), o))
}

// showGaps states when nothing was recorded: in text on standard output, else as a warning.
func showGaps(s *session.Session, gaps []history.Gap) {
	for i, g := range gaps {
		text := values.GapText(g)
		if i == maxGaps {
			text = fmt.Sprintf("and in %d more times; fabsh history changes lists them", len(gaps)-i)
		}
		if s.Format == lang.FormatText {
			s.Print(text + "\n")
		} else {
			s.Warn("%s", text)
		}
		if i == maxGaps {
			break
		}
	}
}

// maxGaps is how many gaps an answer lists.
const maxGaps = 10
