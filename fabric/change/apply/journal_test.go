package apply_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fabsh/fabric/change/apply"
)

// TestJournalTorn: what a killed writer has left at the end counts for nothing, and
// is written over; other damage ends the journal where it is.
func TestJournalTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := apply.NewJournal(path, &apply.Begin{Summary: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(apply.Record{Kind: apply.KindApplied}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut >= 0; cut-- {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := apply.OpenJournal(path)
		lines := slices.Index(whole, '\n') + 1
		if (err == nil) != (cut >= lines) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err != nil {
			continue
		}
		if err := j.Append(apply.Record{Kind: apply.KindConfirmed}); err != nil {
			t.Fatal(err)
		}
		j.Close()
		if j, err = apply.ReadJournal(path); err != nil || j.Open() {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}
