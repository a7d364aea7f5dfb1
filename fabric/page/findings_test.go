package page

import (
	"strings"
	"testing"
	"time"

	"fabsh/fabric/audit"
	"fabsh/mad"
)

// TestFindings: effects stand below their cause, and old findings tell since when.
func TestFindings(t *testing.T) {
	f := parse(t, "fattree:k=4")
	sw := &f.OfType(mad.NodeTypeSwitch)[0]
	p := pageOf(t, f)
	p.Report.Findings = []audit.Finding{
		{Check: "ctr.symbol", Subject: audit.OfPort(sw.Port(1)), Severity: audit.Warning, Message: "errors"},
		{Check: "node.silent", Subject: audit.OfNode(sw), Severity: audit.Error, Message: "silent", Since: time.Unix(0, 0)},
	}
	at, err := newTopology(f, p.Report)
	if err != nil {
		t.Fatal(err)
	}
	v := p.findings(at, &explanations{known: map[string]bool{}})
	if len(v.Groups) != 1 || len(v.Groups[0]) != 2 || v.Groups[0][1].Depth != 1 || !v.Since || v.Groups[0][0].Since != "1970-01-01T00:00:00Z" || v.Groups[0][1].Place == "" {
		t.Errorf("%+v", v)
	}
}

// TestGrown: a finding that outgrew its ack is a finding, and its ack is shown with both counts.
func TestGrown(t *testing.T) {
	f := parse(t, "fattree:k=4")
	p := pageOf(t, f)
	grown := audit.Finding{Check: "ctr.symbol", Subject: audit.OfPort(f.OfType(mad.NodeTypeSwitch)[0].Port(1)), Severity: audit.Warning, Message: "<errors>"}
	p.Report.Findings = []audit.Finding{grown}
	p.Report.Grown = []audit.Acked{{Finding: grown, Ack: &audit.Ack{By: "<ops>", Reason: "old cable", Until: time.Unix(0, 0).UTC(), Count: 3}, Now: 42}}
	html := written(t, p)
	for _, want := range []string{
		"1 warning, 1 acknowledged, but 10 times as much since", "<summary>Acknowledged, but 10 times as much since (1)</summary>",
		`data-label="now" class="n">42</td><td role="cell" data-label="when acknowledged" class="n">3</td><td role="cell" data-label="by"><bdi>&lt;ops&gt;</bdi></td><td role="cell" data-label="until">1970-01-01</td>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
