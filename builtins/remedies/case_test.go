package remedies

import (
	"strings"
	"testing"

	"fabsh/fabric/change"
)

// TestCost: a predicted effect states whether it is of one link, or of all links of the plan so far.
func TestCost(t *testing.T) {
	for _, test := range []struct {
		links []string
		want  string
	}{
		{[]string{"a/1 - b/1"}, "prediction for this link alone: 3 pairs rerouted, 0 lost; "},
		{[]string{"a/1 - b/1", "a/2 - b/2"}, "prediction for all 2 links so far: 3 pairs rerouted, 0 lost; "},
	} {
		if got := costOf(&change.Effect{Links: test.links, Rerouted: 3}, len(test.links)); !strings.HasPrefix(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if got := scoped("2 pairs would lose their path", 2); got != "2 pairs would lose their path, if all 2 links so far are down" {
		t.Error(got)
	}
	if got := scoped("", 2); got != "" {
		t.Error(got)
	}
}
