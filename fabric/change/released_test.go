package change_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"fabsh/fabric/change"
)

// TestReleasedPlans: plans of each released format are read, and written in the current one.
func TestReleasedPlans(t *testing.T) {
	for version, x := range map[string]struct {
		format string
		rounds int // of the certificate
	}{"0.9.0": {"fabsh plan 1", 0}, "0.10.0": {"fabsh plan 2", 3}} {
		text, err := os.ReadFile("testdata/" + version + ".plan")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "{\n\"format\": \""+x.format+"\"") {
			t.Errorf("%s: %.40s", version, text)
		}
		p, err := change.LoadPlan(bytes.NewReader(text), version+".plan")
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if len(p.Sets) != 6 || len(p.Changes()) != 4 || len(p.Base.Links) != 6 || p.Recorded == nil || len(p.Extents()) != x.rounds {
			t.Errorf("%s: %d Sets, %d changes, %d links, %d rounds", version, len(p.Sets), len(p.Changes()), len(p.Base.Links), len(p.Extents()))
		}
		again := reread(t, p, same)
		if a, b := fileOf(t, p), fileOf(t, again); a != b || x.format == "fabsh plan 2" && a != string(text) {
			t.Errorf("%s: it is written as\n%s\nand read and written again as\n%s", version, a, b)
		}
		if x.rounds > 0 && !p.Extents()[0].Lanes {
			t.Errorf("%s: the first round does not write SL2VL", version)
		}
	}
}
