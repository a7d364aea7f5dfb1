package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/picture"
)

// TestTopology: the links of each pod are a matrix, and a missing link is shown at its place.
func TestTopology(t *testing.T) {
	f := parse(t, "fattree:k=8,levels=3,remove_links=5%,seed=3")
	html := written(t, pageOf(t, f))
	var got []string
	for _, m := range regexp.MustCompile(`<summary><bdi>(.*?)</bdi> \((.*?)\)`).FindAllStringSubmatch(html, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	var want []string
	for pod := range 8 {
		want = append(want, fmt.Sprintf("tier 1 (leaves) x tier 2: leaf-%d … leaf-%d × spine-%[1]d … spine-%d 4 × 4 switches", 4*pod+1, 4*pod+4))
	}
	for i := range 4 {
		want = append(want, fmt.Sprintf("tier 2 x tier 3: spine-%d … spine-%d × core-%[1]d … core-%[3]d 8 × 4 switches", i+1, i+29, i+13))
	}
	got = got[:min(len(got), len(want))]
	slices.Sort(got) // identical ones are on one line
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.Contains(html, "leaf-3 – spine-1: no link; most pairs here have 1") {
		t.Error("no link is missing")
	}
	html = regexp.MustCompile(`(?s)<p class="legend">.*?</p>`).ReplaceAllString(html, "")
	for _, s := range []picture.State{picture.Up, picture.Slow, picture.Down} {
		if strings.Contains(html, `<path class="`+s.Class()+`"`) {
			t.Errorf("links are shown as %s of whose ports nothing is known", s)
		}
	}
}
