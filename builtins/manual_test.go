package builtins

import (
	"slices"
	"testing"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/script"
	"fabsh/mad"
)

// TestManual: the manual has all that help knows.
func TestManual(t *testing.T) {
	chapters, err := help.Manual(Functions())
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range chapters {
		for i, topic := range c.Topics {
			has[topic.Name] = true
			if slices.ContainsFunc(c.Topics[:i], func(x help.Topic) bool { return x.Name == topic.Name }) {
				t.Errorf("%s: two topics %s", c.Title, topic.Name)
			}
		}
	}
	var want []string
	for _, b := range Functions() {
		want = append(want, b.Name)
	}
	for _, d := range check.Types() {
		want = append(want, d.Name)
	}
	for _, a := range append(mad.Attributes(), mad.Headers()...) {
		want = append(want, a.Name)
	}
	for _, d := range slices.Concat(script.Audits.Shipped(), script.Reports.Shipped()) {
		want = append(want, d.Name)
	}
	for _, name := range want {
		if !has[name] {
			t.Errorf("the manual lacks %s", name)
		}
	}
}
