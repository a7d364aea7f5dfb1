package builtins

import (
	"context"
	"fmt"
	"io"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/format"
)

// Snapshot writes the session's fabric to a file, and the forwarding tables of
// its switches, if there are any to be asked.
func (s *Session) Snapshot(ctx context.Context, path string) error {
	t, release := s.mainThread(ctx, "snapshot")
	defer release()
	return finish(ctx, "snapshot", func() error {
		x, err := topology.CurrentFabric(t)
		if err != nil {
			return err
		}
		f := x.(*topology.Fabric).F
		all := &format.Snapshot{Fabric: f}
		tables := "no tables: they are not in a topology"
		if s.env.Engine != nil {
			live, err := liveRoutes(t, x)
			if err != nil {
				return err
			}
			all.LFTs = make([][]byte, len(f.Nodes()))
			g := live.R.Graph()
			for i, sw := range g.Switches() {
				all.LFTs[sw.ID()] = live.R.Row(i)
			}
			tables = "the tables of " + lang.Count(len(g.Switches()), "switch")
		}
		if err := format.WriteFile(s.Files.Abs(path), func(w io.Writer) error { return format.WriteSnapshot(w, all) }); err != nil {
			return fmt.Errorf("snapshot: %w", lang.Tidy(lang.Rename(err, path)))
		}
		lang.FiberOf(t).Print(fmt.Sprintf("%s: %s, %s\n", path, f.String(), tables))
		return nil
	})
}
