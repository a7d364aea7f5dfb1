package order

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
)

// snapshotTables returns the tables of a snapshot in testdata.
func snapshotTables(t *testing.T, name string) *routes.Routes {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := format.ReadSnapshot(file, name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := routes.OfFabric(f)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	return r
}

// TestSingles: from tables of nue to tables of updn of an irregular network 24 of 28 LIDs change
// in one group, and then the other four never can; in another order, all can. Without drains it
// is refused, and the advice states what was tried.
func TestSingles(t *testing.T) {
	old := snapshotTables(t, "irregular-nue.snap")
	in := Input{Old: old, New: snapshotTables(t, "irregular-updn.snap").On(old.Graph()), Drain: Drains(old.Graph())}
	s, err := Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if s.Figures.Cycle != nil || s.Figures.OldCycle || s.Wait() == 0 || len(s.Rounds) > 28 {
		t.Errorf("%d rounds: %+v", len(s.Rounds), s.Figures)
	}
	if h, err := newHistory(newNet(in.Old.Graph()), &in, s); err != nil {
		t.Error(err)
	} else if _, err := h.prove(t.Context()); err != nil {
		t.Error(err)
	}
	in.Drain = nil
	refused := new(Refusal)
	if _, err := Plan(t.Context(), in); !errors.As(err, &refused) || !strings.HasPrefix(refused.Hint, "keep more") {
		t.Errorf("without drains: %v", err)
	}
}
