package apply_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change/apply"
)

// TestAbandon: a change that cannot be taken back ends without a write, and what is left
// of it is told.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		dir := t.TempDir()
		j, err := apply.NewJournal(apply.JournalIn(dir), &apply.Begin{Cells: r.cells}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.change(e, j).Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.Close()
		if err := r.subnet.Edit.LFT(r.cells[0].Node, 3, 4); err != nil {
			t.Fatal(err)
		}
		was := r.tables()
		run := apply.Run{Host: &apply.Host{Engine: e, Clock: clock{}}, Dir: dir}
		left, err := run.Abandon(t.Context())
		if err != nil || len(left) != len(r.cells) || !strings.Contains(left[0], "LID 3 is port 4") || !strings.HasSuffix(left[1], " is new") {
			t.Errorf("%q, %v", left, err)
		}
		for i, now := range r.tables() {
			if string(now) != string(was[i]) {
				t.Errorf("%s was written", r.cells[i].Name)
			}
		}
		if j, err = apply.ReadJournal(apply.JournalIn(dir)); err != nil || j.Open() {
			t.Error("the change is open yet", err)
		}
		if _, err := run.Abandon(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended already") {
			t.Error(err)
		}
	})
}
