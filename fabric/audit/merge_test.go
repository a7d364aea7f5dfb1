package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/audit"
	"fabsh/mad"
)

func faultAt(check string, node mad.GUID, num int, s audit.Severity) audit.Finding {
	return audit.Finding{Check: check, Subject: audit.OfGUID(node, num, ""), Severity: s}
}

func merged(list []audit.Finding) string {
	var b strings.Builder
	for _, f := range audit.Merge(list) {
		fmt.Fprintf(&b, "%s %s%v", f.Severity, f.ID(), f.Absorbed)
		if f.Cause != "" {
			b.WriteString(" <- " + f.Cause)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestMerge: one fault is one finding. It keeps the IDs of the others, and the worst severity.
func TestMerge(t *testing.T) {
	const leaf, spine = "0x0000000000000001", "0x0000000000000002"
	down := func(num int) audit.Finding {
		f := faultAt("link.down", 1, num, audit.Warning)
		f.Absorbs = []string{"link.uplinks:" + leaf}
		return f
	}
	uplinks := faultAt("link.uplinks", 1, audit.NoPort, audit.Error)
	uplinks.Parts = 2
	gone := faultAt("node.gone", 2, audit.NoPort, audit.Error)
	gone.Absorbs = []string{"node.silent:" + spine}
	silent := faultAt("node.silent", 2, audit.NoPort, audit.Critical)
	silent.Absorbs = []string{"port.unresponsive:" + leaf + "/7"}
	port := faultAt("port.unresponsive", 1, 7, audit.Error)
	effect := faultAt("ctr.rcv", 1, 7, audit.Warning)
	effect.Cause = "port.unresponsive:" + leaf + "/7"
	self := faultAt("a.b", 3, 1, audit.Info)
	self.Absorbs = []string{"a.b:0x0000000000000003/1", "c.d:0x0000000000000003/1"}
	circle := faultAt("c.d", 3, 1, audit.Info)
	circle.Absorbs = []string{"a.b:0x0000000000000003/1"}
	for _, x := range []struct {
		name string
		list []audit.Finding
		want string
	}{
		{"alone", []audit.Finding{down(1)}, "warning link.down:" + leaf + "/1[]\n"},
		{"one of two parts", []audit.Finding{uplinks, down(1)}, "error link.uplinks:" + leaf + "[]\nwarning link.down:" + leaf + "/1[]\n"},
		{"both parts", []audit.Finding{uplinks, down(1), down(2)}, "error link.down:" + leaf + "/1[link.uplinks:" + leaf + "]\nwarning link.down:" + leaf + "/2[]\n"},
		{"a chain", []audit.Finding{effect, port, silent, gone}, "critical node.gone:" + spine + "[port.unresponsive:" + leaf + "/7 node.silent:" + spine + "]\nwarning ctr.rcv:" + leaf + "/7[] <- node.gone:" + spine + "\n"},
		{"a circle", []audit.Finding{self, circle}, "info a.b:0x0000000000000003/1[]\ninfo c.d:0x0000000000000003/1[]\n"},
	} {
		if got := merged(x.list); got != x.want {
			t.Errorf("%s:\ngot\n%swant\n%s", x.name, got, x.want)
		}
	}

	// An ack of an absorbed ID applies to the finding that absorbed it, and to no other.
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	acks := audit.Acks{{Pattern: "port.unresponsive:" + leaf + "/7", Until: now, Reason: "off"}}
	var r audit.Report
	r.Settle(audit.Merge([]audit.Finding{port, silent, gone, uplinks}), acks, nil, now)
	if len(r.Acked) != 1 || r.Acked[0].Check != "node.gone" || len(r.Findings) != 1 || len(r.Silent) != 3 {
		t.Errorf("acked %v, reported %v, silent %v", r.Acked, r.Findings, r.Silent)
	}
}
