package builtins

import (
	"strings"
	"testing"
	"time"

	"fabsh/builtins/audits"
	"fabsh/fabric/audit"
)

// TestPageTrends: what a job's runs read of counters is told of, port by port, the worst
// first; what ports count as bit errors is known where there are some.
func TestPageTrends(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		f.run(`f = discover(); sim.errors("switch-1/1", port_rcv_errors="1/s"); sim.errors("switch-2/2", symbol_error_counter="5/s")`)
		kept := new(audit.State)
		var r *audit.Report
		for range 4 {
			time.Sleep(10 * time.Minute)
			r = ran(t, f, audits.RunOptions{Kept: kept, Once: true}, "counters", "--over", "last")
		}
		p, status, err := ReportPage(t.Context(), f.Runtime, r, PageOptions{FailOn: audit.Warning})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		_, trends, _ := strings.Cut(b.String(), `<h2 id="trends">`)
		first, second := strings.Index(trends, "switch-2/2"), strings.Index(trends, "switch-1/1")
		if first < 0 || second < first || !strings.Contains(trends, "4 reads") || strings.Count(trends, "<polyline") != 2 {
			t.Errorf("status %d, trends %.2000s", status, trends)
		}
		if !strings.Contains(b.String(), "of 10^15 bits</td>") {
			t.Error("no bit errors")
		}
	})
}
