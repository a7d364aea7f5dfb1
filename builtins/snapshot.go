package builtins

import (
	"context"
	"fmt"
	"io"

	"fabsh/fabric/format"
)

// Snapshot writes the session's fabric to a file, and the forwarding tables of
// its switches, if there are any to be asked.
func (s *Session) Snapshot(ctx context.Context, path string) error {
	t, release := s.mainThread(ctx, "snapshot")
	defer release()
	return finish(ctx, "snapshot", func() error {
		x, err := currentFabric(t)
		if err != nil {
			return err
		}
		f := x.(*fabricValue).f
		all := &format.Snapshot{Fabric: f}
		tables := "no tables: they are not in a topology"
		if s.env.Engine != nil {
			live, err := liveRoutes(t, x)
			if err != nil {
				return err
			}
			all.LFTs = make([][]byte, len(f.Nodes()))
			g := live.r.Graph()
			for i, sw := range g.Switches() {
				all.LFTs[sw.ID()] = live.r.Row(i)
			}
			tables = "the tables of " + count(len(g.Switches()), "switch")
		}
		if err := format.WriteFile(s.Files.abs(path), func(w io.Writer) error { return format.WriteSnapshot(w, all) }); err != nil {
			return fmt.Errorf("snapshot: %w", tidy(rename(err, path)))
		}
		fiberOf(t).print(fmt.Sprintf("%s: %s, %s\n", path, f.String(), tables))
		return nil
	})
}
