package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/shell/session"
)

// snapshotOptions are what is read beside the forwarding tables.
type snapshotOptions struct{ adaptive, all bool }

// snapshotCommand writes a fabric with its tables.
func snapshotCommand(p *session.Program) *cobra.Command {
	var o snapshotOptions
	c := &cobra.Command{
		Use:   "snapshot FILE [--adaptive] [--all]",
		Short: "Sweep the fabric, read its forwarding tables, and save all of it to a file",
		Long: `Sweep the fabric, read the forwarding tables of all switches, and write the result to
FILE, compressed and with a checksum; keys are left out. -F file:FILE and
load_fabric(FILE) read the fabric; load_routes(FILE) and verify --lfts FILE read the
tables. -F file:PATH converts a topology. --adaptive also saves the tables of adaptive
routing, which replace the forwarding tables where it is on: for 11,664 hosts about a
million datagrams. --all saves these too, and the input of audits: P_Key, SL2VL, VL
arbitration and multicast tables, counters, the records of the subnet administrator,
and what devices of NVIDIA report of the health of ports, virtual ports and routers.
For 11,664 hosts that takes millions of datagrams.`,
		Example: `  fabsh snapshot monday.snap
  fabsh snapshot golden.snap --all
  fabsh -F file:monday.snap verify --lfts monday.snap`,
		Annotations: map[string]string{atPrompt: ""},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("snapshot: missing FILE")
			case len(words) > 1:
				return fmt.Errorf("snapshot: unexpected argument %q; want one FILE", words[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onFabric(p, "snapshot", func(ctx context.Context, s *session.Session) error { return writeSnapshot(ctx, s, words[0], o) })
		},
	}
	c.Flags().BoolVar(&o.adaptive, "adaptive", false, "read the tables of adaptive routing too")
	c.Flags().BoolVar(&o.all, "all", false, "read all tables, counters and records too")
	return c
}

// writeSnapshot writes the fabric to a file, with the tables of its switches if they
// can be read.
func writeSnapshot(ctx context.Context, s *session.Session, path string, o snapshotOptions) error {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	tables := "no tables: a topology does not contain them"
	if s.Engine != nil || f.HasLFTs() {
		live, err := audits.ReadRoutes(ctx, s.Runtime, f, o.adaptive || o.all)
		if err != nil {
			return err
		}
		f = f.With(fabric.Reading{LFTs: rows(live), Adaptive: adaptiveOf(live)})
		tables = "the tables of " + plural.Count(len(live.Graph().Switches()), "switch", "switches")
	}
	unread := len(f.Problems())
	if o.all && s.Engine != nil {
		if f, err = audits.ReadAnswers(ctx, s.Runtime, f); err != nil {
			return err
		}
	}
	unread = len(f.Problems()) - unread
	if n := len(f.Answers()); n > 0 {
		tables += ", " + plural.Count(n, "answer", "answers")
	}
	if err := session.WriteNamed(ctx, path, func(w io.Writer) error { return format.WriteSnapshot(w, f) }); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	s.Print(fmt.Sprintf("%s: %s, %s\n", path, f, tables))
	if unread > 0 {
		return &lang.ExitError{Code: lang.StatusFabric}
	}
	return nil
}

// adaptiveOf returns the adaptive routing of r by node; nil: it was not read.
func adaptiveOf(r *routes.Routes) []*adaptive.Switch {
	if !r.AdaptiveKnown() {
		return nil
	}
	g := r.Graph()
	list := make([]*adaptive.Switch, len(g.Fabric().Nodes()))
	for i, sw := range g.Switches() {
		list[sw.ID()] = r.Adaptive(i)
	}
	return list
}

// rows returns the tables of r by node. If some were not read, one that drops
// everything is taken for unread: a file must not state that a switch that did not
// answer forwards nothing.
func rows(r *routes.Routes) [][]byte {
	g := r.Graph()
	tables := make([][]byte, len(g.Fabric().Nodes()))
	for i, sw := range g.Switches() {
		row := r.Row(i)
		if len(r.ReadNotes) > 0 && !slices.ContainsFunc(row, func(port uint8) bool { return port != routes.NoPort }) {
			continue
		}
		tables[sw.ID()] = row
	}
	return tables
}
