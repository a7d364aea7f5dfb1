package builtins

import (
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/script"
)

// TestNeeds: each check that a shipped audit documents is in its table needs, and no other, so
// that a report names it if it was not done.
func TestNeeds(t *testing.T) {
	documented := map[string][]string{}
	for _, c := range help.Checks() {
		documented[c.Audit] = append(documented[c.Audit], c.Name)
	}
	f := plain(t, nil)
	var words []string
	for _, d := range script.Audits.Shipped() {
		words = append(words, d.Name)
	}
	set, err := audits.LoadAudits(t.Context(), f.Interpreter, words, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range set.List {
		got, want := a.Checks(), documented[a.Name]
		slices.Sort(got)
		slices.Sort(want)
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s:\nneeds      %v\ndocumented %v", a.Name, got, want)
		}
	}
}
