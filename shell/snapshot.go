package shell

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
)

// snapshotCommand writes a fabric with its tables.
func (a *app) snapshotCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot FILE",
		Short: "Sweep the fabric, read its forwarding tables, and keep all in a file",
		Long: `Sweep the fabric, read the forwarding tables of all switches, and write what was
found to FILE, compressed and with a checksum; keys are left out. -F file:FILE
and load_fabric(FILE) read the fabric, load_routes(FILE) and verify --lfts FILE
the tables. With -F file:PATH a topology is converted.`,
		Example: `  fabsh snapshot monday.snap
  fabsh -F file:monday.snap verify --lfts monday.snap`,
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("snapshot: to which file?")
			case len(words) > 1:
				return fmt.Errorf("snapshot: takes one FILE, and here is also %q", words[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return a.onFabric("snapshot", func(ctx context.Context, s *session) error { return s.snapshot(ctx, words[0]) })
		},
	}
}

// snapshot writes the fabric to a file, and the tables of its switches, if there
// are any to be asked.
func (s *session) snapshot(ctx context.Context, path string) error {
	f, err := s.CurrentFabric(ctx)
	if err != nil {
		return err
	}
	tables := "no tables: they are not in a topology"
	if s.engine != nil || f.HasLFTs() {
		live, err := s.LiveRoutes(ctx, f)
		if err != nil {
			return err
		}
		f = f.With(fabric.Reading{LFTs: rows(live)})
		tables = "the tables of " + fabric.Plural(len(live.Graph().Switches()), "switch", "switches")
	}
	if err := writeNamed(path, func(w io.Writer) error { return format.WriteSnapshot(w, f) }); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	s.Print(fmt.Sprintf("%s: %s, %s\n", path, f, tables))
	return nil
}

// rows are the tables of r by node.
func rows(r *routing.Routes) [][]byte {
	g := r.Graph()
	tables := make([][]byte, len(g.Fabric().Nodes()))
	for i, sw := range g.Switches() {
		tables[sw.ID()] = r.Row(i)
	}
	return tables
}
