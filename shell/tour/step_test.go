package tour

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const first = "= intro\n\nHello.\n\n= One\ncheck: fabric\nname: f\nkind: fabric\nkeep: f = g()\nanswer: a\nhint: b: c\ndone: d\n\nType:\n\n  f = g()\n\n"
	intro, steps, outro, err := parse(first + "= outro\n\nThe end.\n\nReally.\n")
	if err != nil || intro != "Hello." || outro != "The end.\n\nReally." || len(steps) != 1 {
		t.Fatalf("got %q, %v, %q, %v", intro, steps, outro, err)
	}
	s := steps[0]
	if s.check == nil || s.title != "One" || s.asks != "Type:\n\n  f = g()" || s.hint != "b: c" || s.answer != "a" || s.done != "d" || s.name != "f" || s.kind != "fabric" || s.keep != "f = g()" {
		t.Errorf("got %+v", s)
	}
	for text, want := range map[string]string{
		"":    "got 0 sections",
		first: "got 2 sections",
		strings.Replace(first, "hint: b: c\n", "", 1) + "= outro\n\n.":                `step "One": incomplete`,
		strings.Replace(first, "check: fabric", "check: nothing", 1) + "= outro\n\n.": `step "One": incomplete`,
		strings.Replace(first, "hint: b", "hnit: b", 1) + "= outro\n\n.":              `step "One": unknown line "hnit: b: c"`,
		strings.Replace(first, "name: f\n", "", 1) + "= outro\n\n.":                   `step "One": incomplete`,
	} {
		if _, _, _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
