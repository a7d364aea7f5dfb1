package shell

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// hostileNames are what anybody can call a node.
var hostileNames = []string{
	"le,af;\"1'\n\x1b[2J", "=cmd|' /C calc'!A0", "@SUM(1)", "\xff\xfe", "a\tb\\n{x=\"1\"}\r", "<script>alert(1)</script>", "\u202eflip", "%s%n$(reboot)`", "*", "link.width:leaf-2/1",
}

// TestAuditNames: whatever nodes are called, each output of audits, differences and
// reports is what it is, text does nothing to a terminal, and plans, baselines and
// acks find their nodes.
func TestAuditNames(t *testing.T) {
	dir := t.TempDir()
	file := func(name, spec string, write func(io.Writer, *fabric.Fabric) error) string {
		t.Helper()
		f, _, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		names := map[mad.GUID]string{}
		for i := range f.Nodes() {
			n := &f.Nodes()[i]
			names[n.GUID()] = fmt.Sprint(hostileNames[i%len(hostileNames)], i)
			if i < len(hostileNames) {
				names[n.GUID()] = hostileNames[i]
			}
		}
		path := filepath.Join(dir, name)
		if err := format.WriteFile(t.Context(), path, func(w io.Writer) error { return write(w, f.Renamed(names)) }); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, less := file("whole.fab", "fattree", format.WriteSnapshot), file("less.fab", "fattree:remove_links=3,seed=4", format.WriteSnapshot)
	plan := file("plan.csv", "fattree", func(w io.Writer, f *fabric.Fabric) error { return format.Dump(w, f, format.KindCables) })
	run := func(status int, words ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		c := fabsh(t, nil, append([]string{"--state", filepath.Join(dir, "state")}, words...)...)
		c.Dir, c.Stdout, c.Stderr = dir, &out, &errs
		c.Run()
		if got := c.ProcessState.ExitCode(); got != status {
			t.Errorf("%q: exit status %d, want %d\n%s%s", words, got, status, &out, &errs)
		}
		return out.String()
	}
	audits := []string{"-F", "file:" + less, "audit", "links", "identity", "topology"}
	found := run(1, append(audits, "--baseline", whole)...)
	for what, words := range map[string][]string{
		"the plan":     append(audits, "--expect", plan),
		"the snapshot": append(audits, "--expect", whole),
	} {
		if got := run(1, words...); !strings.Contains(got, "link.") && !strings.Contains(got, "topo.") {
			t.Errorf("by %s nothing is found to be missing:\n%s", what, got)
		}
	}
	texts := map[string]string{"audit": found, "diff": run(1, "diff", whole, less), "iblinkinfo": run(0, "-F", "file:"+less, "report", "iblinkinfo")}
	for what, text := range texts {
		for _, r := range text {
			if r != '\n' && (unicode.IsControl(r) || r == '\u202e' || r == unicode.ReplacementChar) {
				t.Errorf("%s: %q goes to the terminal:\n%q", what, r, text)
				break
			}
		}
	}
	for what, words := range map[string][]string{
		"audit":      append(audits, "--baseline", whole),
		"diff":       {"diff", whole, less},
		"iblinkinfo": {"-F", "file:" + less, "report", "iblinkinfo"},
	} {
		status := 1
		if what == "iblinkinfo" {
			status = 0
		}
		rows, err := csv.NewReader(strings.NewReader(run(status, append([]string{"-o", "csv"}, words...)...))).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Errorf("%s: csv: %d rows, %v", what, len(rows), err)
		}
		for _, row := range rows {
			for _, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=@") {
					t.Errorf("%s: csv: %q is a formula", what, cell)
				}
			}
		}
		var v any
		if err := json.Unmarshal([]byte(run(status, append([]string{"-o", "json"}, words...)...)), &v); err != nil {
			t.Errorf("%s: json: %v", what, err)
		}
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := p.TextToMetricFamilies(strings.NewReader(run(1, append([]string{"-o", "prom"}, append(audits, "--baseline", whole)...)...))); err != nil {
		t.Errorf("prom: %v", err)
	}

	// Each finding is acked by its id, and then not told.
	audits = append(audits, "--expect", plan)
	until := time.Now().AddDate(0, 1, 0).Format(time.DateOnly)
	var report struct{ Findings []struct{ ID string } }
	if err := json.Unmarshal([]byte(run(1, append([]string{"-o", "json"}, audits...)...)), &report); err != nil || len(report.Findings) == 0 {
		t.Fatal(err, report)
	}
	for _, f := range report.Findings {
		run(0, "-F", "file:"+less, "audit", "ack", f.ID, "--until", until, "--reason", hostileNames[0], "--by", hostileNames[1])
	}
	if got := run(0, audits...); !strings.Contains(got, "findings  none") {
		t.Errorf("acked, and told:\n%s", got)
	}
}
