package page

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/audit"
)

// TestIdentical: matrices that look alike are on one line; matrices with findings, or without
// some links, stand alone.
func TestIdentical(t *testing.T) {
	f := parse(t, "fattree:k=8,levels=3")
	p := pageOf(t, f)
	lines := func() (got []string) {
		for _, m := range regexp.MustCompile(`<details id="(g\d+-same)"><summary>(.*?)</summary>`).FindAllStringSubmatch(written(t, p), -1) {
			got = append(got, m[1]+" "+m[2])
		}
		return got
	}
	want := []string{"g1-same tier 1 (leaves) x tier 2: 8 identical matrices of 4 × 4 switches each, 32 links of unknown state in each", "g9-same tier 2 x tier 3: 4 identical matrices of 8 × 4 switches each, 32 links of unknown state in each"}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	leaf := f.NodeByName("leaf-1")
	p.Report.Findings = []audit.Finding{{Check: "node.silent", Subject: audit.OfNode(leaf[0]), Severity: audit.Error}}
	want[0] = "g2-same tier 1 (leaves) x tier 2: 7 identical matrices of 4 × 4 switches each, 32 links of unknown state in each"
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("with a finding: -want +got\n%s", diff)
	}
	p = pageOf(t, parse(t, "fattree:k=8,levels=3,remove_links=1,seed=3"))
	if got := lines(); len(got) != 2 || strings.Contains(got[0], " 8 ") == strings.Contains(got[1], ": 4 ") {
		t.Errorf("without a link: %q", got)
	}
}
