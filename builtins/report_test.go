package builtins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/mad"
)

// report runs a report, and returns what a terminal would show, and the exit status.
func (f *fixture) report(name string, words ...string) string {
	f.stdout.Reset()
	f.stderr.Reset()
	err := program.RunReport(context.Background(), f.Interpreter, name, words)
	text := f.stdout.String() + f.Explain(err)
	return fmt.Sprintf("%s[exit status %d]\n", text, audits.ExitStatus(f.Runtime, err))
}

// TestReportOver: with --over only what comes in between the two reads counts.
func TestReportOver(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		run := func(report, options string) string {
			out, explained, status := f.run(`
load("@std//report/` + report + `.star", "main")
f = discover()
perf_set("PortCountersExtended", "switch-1/3", symbol_error_counter=100)
def count():
    sleep("1s")
    perf_set("PortCountersExtended", "switch-1/3", symbol_error_counter=108)
    perf_set("PortCounters", "switch-2/1", port_rcv_errors=0xffff)
    perf_set("PortCountersExtended", "switch-2/1", port_rcv_errors=4)
    perf_set("PortCountersExtended", "switch-2/2", port_xmit_data=1000)
parallel(lambda fn: fn(), [lambda: main(` + options + `), count])
None`)
			return fmt.Sprintf("%s%s[exit status %d]\n", out, explained, status)
		}
		for _, test := range []struct{ report, options, want string }{
			{"ibqueryerrors", `over="4s"`, `port        counter               count  per_second  threshold  to                 note  guid                num
switch-1/3  symbol_error_counter      8           2          0  switch-2/2            -  0x0002c90300100000    3
switch-2/1  port_rcv_errors           4           1          0  node-0002 HCA-1/1     -  0x0002c90300100010    1
fabric: 4 nodes (2 switches, 2 CAs), 3 links, complete
ports read: 8, of nodes: 4
ports above a threshold: 2, of nodes: 2
[exit status 1]
`},
			{"ibqueryerrors", `over="4s", threshold="5"`, `port        counter               count  per_second  threshold  to          note  guid                num
switch-1/3  symbol_error_counter      8           2          5  switch-2/2     -  0x0002c90300100000    3
fabric: 4 nodes (2 switches, 2 CAs), 3 links, complete
ports read: 8, of nodes: 4
ports above a threshold: 1, of nodes: 1
[exit status 1]
`},
			{"perfquery", `over="4s", top=1, by="PortXmitData"`, `port        port_xmit_bytes  per_second  to          guid                num
switch-2/2             4000        1000  switch-1/3  0x0002c90300100010    2
fabric: 4 nodes (2 switches, 2 CAs), 3 links, complete
ports read: 8
[exit status 0]
`},
		} {
			f.run(`perf_clear("PortCountersExtended", discover().ports)`)
			if diff := cmp.Diff(test.want, run(test.report, test.options)); diff != "" {
				t.Errorf("%s(%s): -want +got\n%s", test.report, test.options, diff)
			}
		}
	})
}

// TestReportPMA: what an agent does not have is named, and what it does not answer
// makes the exit status 3; neither hides what others tell.
func TestReportPMA(t *testing.T) {
	onPMA(t, "", func(t *testing.T, f *fixture, p *pma) {
		f.run(`discover(); perf_set("PortCounters", "switch-1/3", link_downed_counter=0xff); perf_set("PortCounters", "switch-2/1", symbol_error_counter=11)`)
		summary := func(lines string) string { // without rows
			_, after, _ := strings.Cut(lines, "\nfabric: ")
			return after
		}
		const counts = "4 nodes (2 switches, 2 CAs), 3 links, complete\nports read: 8, of nodes: 4\n"
		p.refuse[mad.AttrPortCountersExtended.ID] = true
		got := f.report("ibqueryerrors")
		want := `port        counter               count  threshold  to                 note                  guid                num
switch-1/3  link_downed_counter     255          0  switch-2/2         at its largest value  0x0002c90300100000    3
switch-2/1  symbol_error_counter     11          0  node-0002 HCA-1/1  -                     0x0002c90300100010    1
fabric: ` + counts + "ports above a threshold: 2, of nodes: 2\n[exit status 1]\n"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		delete(p.refuse, mad.AttrPortCountersExtended.ID)
		p.refuse[mad.AttrPortCounters.ID] = true
		got = summary(f.report("ibqueryerrors", "--ca"))
		if !strings.HasPrefix(got, "4 nodes (2 switches, 2 CAs), 3 links, complete\nports read: 2, of nodes: 2\nports above a threshold: 0, of nodes: 0\nports without an answer: 2\n  node-0001 HCA-1/1: perf_get: ") || !strings.HasSuffix(got, "[exit status 0]\n") || !strings.Contains(got, "not supported") {
			t.Errorf("refused: %s", got)
		}
		delete(p.refuse, mad.AttrPortCounters.ID)
		p.lose[mad.AttrPortCounters.ID] = true
		for _, test := range []struct {
			words []string
			want  string
		}{
			{[]string{"ibqueryerrors"}, counts + "ports above a threshold: 0, of nodes: 0\nports without an answer: 8\n  switch-1/1 and 2 more of the node: perf_get: "},
			{[]string{"perfquery", "--top", "3"}, "4 nodes (2 switches, 2 CAs), 3 links, complete\nports read: 8\nports without an answer: 8, the first: perf_get: "},
		} {
			got := f.report(test.words[0], test.words[1:]...)
			if !strings.HasPrefix(summary(got), test.want) || !strings.HasSuffix(got, "[exit status 3]\n") {
				t.Errorf("%q, lost: %s", test.words, got)
			}
		}
	})
}

// TestReports: each has a docstring of which the first line is what lists show.
func TestReports(t *testing.T) {
	for _, d := range script.Reports.Shipped() {
		if d.Doc == "" || !script.IsReport(d.Name) {
			t.Errorf("%s: %q", d.Name, d.Doc)
		}
		f := plain(t, nil)
		if got := f.report(d.Name, "--help"); !strings.HasPrefix(got, "usage: "+d.Name) || !strings.Contains(got, "\n\n"+d.Doc+"\n") || !strings.HasSuffix(got, fmt.Sprintf("[exit status %d]\n", lang.StatusClean)) {
			t.Errorf("%s --help: %s", d.Name, got)
		}
	}
	if script.IsReport("../lib/report") || script.IsReport("iblinkinfo.star") || script.IsReport("") {
		t.Error("a path is no report's name")
	}
}
