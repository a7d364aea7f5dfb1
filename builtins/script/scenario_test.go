package script

import (
	"testing"
)

// TestActionsKept: of a scenario without an end, the last actions are kept, and lists that
// were returned do not change.
func TestActionsKept(t *testing.T) {
	s := new(Scenario)
	s.add(ScenarioAction{At: -1})
	first := s.Actions()
	for i := range 5 * maxActions {
		s.add(ScenarioAction{At: float64(i)})
		if n := len(s.done); n > 2*maxActions {
			t.Fatalf("%d actions are kept", n)
		}
	}
	got := s.Actions()
	if len(got) != maxActions || got[0].At != 4*maxActions || got[len(got)-1].At != 5*maxActions-1 {
		t.Errorf("got %d actions from %v to %v", len(got), got[0].At, got[len(got)-1].At)
	}
	if n := s.count(); n != 5*maxActions+1 {
		t.Errorf("count %d", n)
	}
	if len(first) != 1 || first[0].At != -1 {
		t.Errorf("the first list is now %v", first)
	}
}
