package apply_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change/apply"
	"fabsh/mad"
)

// TestReleasedJournals: journals of each released format are read, their changes are reverted, and
// a line is appended.
func TestReleasedJournals(t *testing.T) {
	for _, version := range []string{"0.9.0", "0.10.0"} {
		synctest.Test(t, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + version + ".journal")
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(text, []byte("\n"))
			for n := 2; n < len(lines); n++ { // as if the process had been killed after line n
				path := filepath.Join(t.TempDir(), "journal")
				if err := os.WriteFile(path, bytes.Join(lines[:n], nil), 0o600); err != nil {
					t.Fatal(err)
				}
				j, err := apply.OpenJournal(path, clock{})
				if err != nil {
					t.Fatalf("%s, %d lines: %v", version, n, err)
				}
				if len(j.Records) != n {
					t.Errorf("%s, %d lines: %d records", version, n, len(j.Records))
				}
				r := newRig(t, "fattree:k=4")
				r.cells = j.Begin().Cells
				for _, rec := range j.Records { // the switches are as the journal has them
					for _, w := range rec.Writes {
						c := r.cells[w.Change]
						for lid, port := range w.Data {
							if err := r.subnet.Edit.LFT(c.Node, mad.LID(c.Modifier)*mad.LFTBlock+mad.LID(lid), port); lid > 0 && err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				e := r.engine(-1, nil)
				err = r.change(e, j).Revert(t.Context(), "test")
				if err != nil || !r.are(before) || j.Open() {
					t.Errorf("%s, %d lines: not reverted: %v", version, n, err)
				}
				e.Close()
				j.Close()
				if j, err = apply.ReadJournal(path); err != nil || j.Last(apply.KindReverted) == nil {
					t.Errorf("%s, %d lines: %v", version, n, err)
				}
			}
		})
	}
}
