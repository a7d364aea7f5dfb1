package remedy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/audit"
)

// TestSteps: a step that was proposed or done is not proposed again for a week, by either end of
// the link, also if the log is shortened to its state.
func TestSteps(t *testing.T) {
	f := simulated(t, "fattree:k=4")
	up := uplinks(f.NodeByName("leaf-1")[0])
	path := filepath.Join(t.TempDir(), "subnet", "remedies")
	propose := func(hours int, s Step, reverse bool) string {
		t.Helper()
		l, err := readLog(path)
		if err != nil {
			t.Fatal(err)
		}
		l.path = path
		p := up[0]
		if reverse {
			p = p.Peer()
		}
		now := noon.Add(time.Duration(hours) * time.Hour)
		list, err := Decide(t.Context(), &Case{Fabric: f, State: &l.State, Now: now}, []Action{step(p, s)})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Keep("", f, list, now, now); err != nil {
			t.Fatal(err)
		}
		return list[0].Why
	}
	done := func(hours int, s Step) {
		t.Helper()
		if err := AddStep(path, up[0].Peer(), s, "me", "note", noon.Add(time.Duration(hours)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	week := 7 * 24
	for _, x := range []struct {
		hours   int
		step    Step
		reverse bool
		done    bool
		want    string
	}{
		{0, StepReset, false, false, ""},
		{1, StepReset, true, false, "reset was proposed at " + noon.Format(timeFormat) + "; when it is done"},
		{2, StepReset, false, true, ""},
		{3, StepReset, true, false, "reset was done at "},
		{3, StepReseat, true, false, ""},
		{1 + week, StepReset, false, false, "reset was done at "},
		{2 + week, StepReset, false, false, ""},
		{3 + week, StepReset, false, false, "reset was proposed at "},
	} {
		if x.done {
			done(x.hours, x.step)
			continue
		}
		if got := propose(x.hours, x.step, x.reverse); got != x.want && (x.want == "" || !strings.HasPrefix(got, x.want)) {
			t.Errorf("%d h, %s: %q, want %q", x.hours, x.step, got, x.want)
		}
	}
	l, err := readLog(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.State.StepsOf(up[0])); n != 2 {
		t.Errorf("%d steps of the link, want 2", n)
	}
	if n := len(l.State.StepsOf(up[1])); n != 0 {
		t.Errorf("%d steps of another link, want 0", n)
	}
	before := l.State
	if l.partial = true; l.rewrite() != nil {
		t.Fatal("not rewritten")
	}
	if l, err = readLog(path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, l.State); diff != "" {
		t.Errorf("-before +rewritten\n%s", diff)
	}
	later := noon.Add(forgetAfter + 30*24*time.Hour)
	if l.State.step(&Entry{At: later, Kind: KindStep, Step: StepSwap, Port: PlaceOf(up[1])}); len(l.State.Steps) != 1 {
		t.Errorf("%d steps, want those of the last %v", len(l.State.Steps), forgetAfter)
	}
}

// TestParseStep: an unknown step is an error that lists the steps.
func TestParseStep(t *testing.T) {
	if _, err := ParseStep("reset"); err != nil {
		t.Error(err)
	}
	if _, err := ParseStep("resett"); err == nil || !strings.Contains(err.Error(), "supported: reset, reseat") {
		t.Error(err)
	}
	if port, peer := placesOf(&Action{Subject: audit.OfFabric()}); port != (Place{}) || peer != (Place{}) {
		t.Error("the fabric has no ends")
	}
}
