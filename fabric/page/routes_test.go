package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// TestAdaptive: adaptive routing is among the facts on routing, with the reason where it is
// not on everywhere.
func TestAdaptive(t *testing.T) {
	p := pageOf(t, parse(t, "fattree:k=4"))
	p.Adaptive, p.Verdict.Adaptive, p.Verdict.Reason = "on at 5 of 6 switches", verify.AdaptiveMixed, "1 <static>"
	lines := p.routes().Lines
	for _, want := range []string{"Adaptive routing is on at 5 of 6 switches.", "Adaptive routing is mixed: 1 <static>."} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not among %q", want, lines)
		}
	}
}

// TestLoads: the loads with choices are the means of the largest of the samples.
func TestLoads(t *testing.T) {
	p := pageOf(t, parse(t, "fattree:k=4"))
	p.Loads = []Load{{"<shift>", &traffic.AdaptiveLoad{Samples: 2, Static: traffic.Extremes{Max: 9, Mean: 7.5}, Ideal: traffic.Extremes{Mean: 2.25}, Bound: traffic.Extremes{Mean: 2}, Worst: traffic.Extremes{Mean: 12345.6}, Lost: 3}}}
	if diff := cmp.Diff([]loadView{{"<shift>", "2", "7.5", "2.25", "2", "12346", "3"}}, p.routes().Loads); diff != "" {
		t.Error(diff)
	}
	if html := written(t, p); !strings.Contains(html, "<td role=\"cell\" data-label=\"pattern\">&lt;shift&gt;</td>") {
		t.Error("the page has no row of the pattern")
	}
}
