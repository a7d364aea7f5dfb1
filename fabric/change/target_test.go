package change

import (
	"bytes"
	"strings"
	"testing"
)

// TestChoice: the file has which tables were chosen, and the verdict says so.
func TestChoice(t *testing.T) {
	for kind, want := range map[ChoiceKind]string{
		Own:        "target: the policy's own tables",
		Kept:       "target: the policy's tables with entries in force kept (largest load: 3, with the policy's own tables 2)",
		Repaired:   "target: the tables in force, repaired (largest load: 3, with the policy's own tables 2)",
		Compatible: "target: the policy's paths where they are compatible with those in force (largest load: 3, with the policy's own tables 2)",
	} {
		p := &Plan{From: "--routes nue", Choice: &Choice{Kind: kind, Load: 3, OwnLoad: 2}}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		read, err := LoadPlan(&b, "x.plan")
		if err != nil || *read.Choice != *p.Choice || read.Choice.String() != want {
			t.Errorf("%s: %+v, %v, expected %q", kind.Name(), read, err, want)
		}
		if _, err := LoadPlan(strings.NewReader(strings.Replace(text, `"`+kind.Name()+`"`, `"best"`, 1)), "x.plan"); err == nil || !strings.Contains(err.Error(), "unknown choice") {
			t.Errorf("an unknown choice: %v", err)
		}
	}
}
