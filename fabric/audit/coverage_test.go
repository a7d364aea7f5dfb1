package audit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCoverageOrder: an audit that is done again keeps its place among the others.
func TestCoverageOrder(t *testing.T) {
	var c Coverage
	ask := func(audit, attribute string) { c.Count(audit, attribute, Subject{}, Answered, 1) }
	ask("links", "PortInfo")
	ask("config", "SL2VL")
	ask("config", "CongestionInfo")
	ask("health", "MGIR")
	c.Forget("config")
	again := c.Clone()
	again.Count("config", "SL2VL", Subject{}, TimedOut, 2)
	var got []string
	for _, r := range again.Rows() {
		got = append(got, fmt.Sprint(r.Audit, " ", r.Attribute, " ", r.Asked))
	}
	if diff := cmp.Diff([]string{"links PortInfo 1", "config SL2VL 2", "health MGIR 1"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	again.Begin("sweep", "config", "health", "links")
	if first := again.Rows()[0].Audit; first != "config" {
		t.Errorf("the first is %s, and config began first", first)
	}
	if share := again.Share(); share != "50.00 % of 4 requests" {
		t.Error(share)
	}
}
