package audit

import (
	"fmt"
	"testing"
	"time"

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
		got = append(got, fmt.Sprint(r.Audit, " ", r.Attribute, " ", r.Requests))
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

// TestCoverage: what is silent is missing until it is known to be.
func TestCoverage(t *testing.T) {
	var c Coverage
	c.Count("sweep", "NodeInfo", Subject{}, Answered, 10)
	c.Count("sweep", "NodeInfo", port(1, 7), TimedOut, 1)
	c.Count("pkeys", "PKeyTable", port(1, 7), Failed, 1)
	c.Count("pkeys", "PKeyTable", port(1, 8), Unsupported, 1)
	if c.Complete() {
		t.Errorf("complete: %+v", c.Rows())
	}
	r := Report{Coverage: c}
	ack := Ack{Pattern: "port.unresponsive:*/7", Until: time.Now()}
	r.Settle([]Finding{{Check: "port.unresponsive", Subject: port(1, 7), Severity: Error}}, Acks{ack}, nil, time.Now())
	want := []Row{
		{Audit: "sweep", Attribute: "NodeInfo", Requests: 10, Answered: 10},
		{Audit: "pkeys", Attribute: "PKeyTable", Requests: 1, Unsupported: 1},
	}
	if diff := cmp.Diff(want, r.Coverage.Rows()); diff != "" || !r.Complete() || len(r.Silent) != 1 {
		t.Errorf("silent %v, rows -want +got\n%s", r.Silent, diff)
	}
	r.Coverage.Forget("sweep")
	if diff := cmp.Diff(want[1:], r.Coverage.Rows()); diff != "" {
		t.Errorf("after Forget -want +got\n%s", diff)
	}
}
