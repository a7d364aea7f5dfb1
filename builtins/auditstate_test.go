package builtins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// ran runs audits, as a job that keeps what it reads.
func ran(t *testing.T, f *fixture, o audits.RunOptions, words ...string) *audit.Report {
	t.Helper()
	set, err := audits.LoadAudits(context.Background(), f.Interpreter, words, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if o.Job == "" {
		o.Job = set.Job
	}
	r, err := set.Run(context.Background(), f.Interpreter, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCounterCoverage: counters that are not answered are missing in the coverage,
// and make the status 3.
func TestCounterCoverage(t *testing.T) {
	onPMA(t, t.TempDir(), func(t *testing.T, f *fixture, p *pma) {
		f.run(`perf_set("PortCounters", discover().switches[0].ports, port_rcv_errors=1, port_xmit_discards=1)`)
		write(t, f.fs, "/work/mine.star", `
def audit(fabric):
    perf_rates(fabric.switches[0].ports, over="2s")
`)
		for _, test := range []struct {
			lost mad.AttributeID
			want []audit.Row
		}{
			{0, nil},
			{mad.AttrPortCounters.ID, nil}, // it is not asked for: the 64-bit one has all
			{mad.AttrPortCountersExtended.ID, []audit.Row{{Audit: "mine", Attribute: "PortCountersExtended", Asked: 3, TimedOut: 3}}},
			{mad.AttrPortRcvErrorDetails.ID, []audit.Row{{Audit: "mine", Attribute: "PortRcvErrorDetails", Asked: 6, TimedOut: 6}}},
			{mad.AttrPerfClassPortInfo.ID, []audit.Row{{Audit: "mine", Attribute: "ClassPortInfo", Asked: 1, TimedOut: 1}}},
		} {
			clear(p.lose)
			p.lose[test.lost] = true
			r := ran(t, f, audits.RunOptions{}, "mine.star")
			want := 0
			if test.want != nil {
				want = 3
			}
			code, rows := statusOf(f, r)
			if diff := cmp.Diff(test.want, rows); diff != "" || code != want {
				t.Errorf("without %#x: status %d, coverage -want +got\n%s", test.lost, code, diff)
			}
		}
		p.lose = map[mad.AttributeID]bool{}
		p.refuse[mad.AttrPortXmitDiscardDetails.ID] = true
		code, rows := statusOf(f, ran(t, f, audits.RunOptions{}, "mine.star"))
		if diff := cmp.Diff([]audit.Row{{Audit: "mine", Attribute: "PortXmitDiscardDetails", Asked: 1, Unsupported: 1}}, rows); diff != "" || code != 0 {
			t.Errorf("not supported: status %d, coverage -want +got\n%s", code, diff)
		}
	})
}

// TestRunsOfJobs: a run compares with the run of its job before, in its second
// reading too; it is told since when something has been so, and what is gone.
func TestRunsOfJobs(t *testing.T) {
	state := t.TempDir()
	onPMA(t, state, func(t *testing.T, f *fixture, p *pma) {
		write(t, f.fs, "/work/a.star", `
load("lib.star", "say")
def audit(fabric):
    say(fabric, "a")
`)
		write(t, f.fs, "/work/b.star", `
load("lib.star", "say")
def audit(fabric, *, once=False):
    say(fabric, "b")
    if once:
        finding("b.once", fabric, "for this run")
`)
		write(t, f.fs, "/work/c.star", "def audit(fabric, *, past=None): pass")
		write(t, f.fs, "/work/lib.star", `
def say(fabric, name):
    finding(name + ".window", fabric, "%s" % perf_rates(fabric.switches[0].ports[1], over="last").window, severity="info")
`)
		var got strings.Builder
		began := time.Now()
		check := func(what string, o audits.RunOptions, words ...string) {
			time.Sleep(5*time.Minute - time.Since(began)%(5*time.Minute))
			r := ran(t, f, o, words...)
			fmt.Fprintf(&got, "%s:", what)
			for _, x := range r.Findings {
				fmt.Fprintf(&got, " %s %s", x.Check, x.Message)
				if !x.Since.IsZero() {
					fmt.Fprintf(&got, " since %v", x.Since.Sub(began).Round(time.Minute))
				}
			}
			fmt.Fprintln(&got, r.Notes, r.Failures)
		}
		check("at a terminal", audits.RunOptions{ReadOnly: true}, "a.star", "b.star")
		check("first", audits.RunOptions{}, "a.star", "b.star", "--once")
		check("second", audits.RunOptions{}, "a.star", "b.star")
		check("another job", audits.RunOptions{Job: "mine"}, "a.star", "b.star")
		check("looks only", audits.RunOptions{ReadOnly: true}, "a.star", "b.star")
		check("third", audits.RunOptions{}, "a.star", "b.star")
		check("other audits", audits.RunOptions{}, "a.star")
		held, err := format.AcquireLock(filepath.Join(state, "sm-0x0002c90310000001", "mine.state.lock"))
		if err != nil {
			t.Fatal(err)
		}
		check("locked", audits.RunOptions{Job: "mine"}, "a.star")
		check("locked, and only seen", audits.RunOptions{Job: "mine"}, "c.star")
		held.Release()
		if err := os.WriteFile(filepath.Join(state, "sm-0x0002c90310000001", "mine.state"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		check("damaged", audits.RunOptions{Job: "mine"}, "a.star")
		want := `at a terminal: a.window None b.window None[counters were not judged: no earlier run of this job has read them; a run from a terminal keeps its reads only with --job NAME] []
first: b.once for this run since 10m0s a.window None since 10m0s b.window None since 10m0s[counters were not judged: no earlier run of this job has read them] []
second: a.window 300.0 since 10m0s b.window 300.0 since 10m0s[1 finding is gone since the previous run: b.once fabric] []
another job: a.window None since 20m0s b.window None since 20m0s[counters were not judged: no earlier run of this job has read them] []
looks only: a.window 600.0 since 10m0s b.window 600.0 since 10m0s[] []
third: a.window 900.0 since 10m0s b.window 900.0 since 10m0s[] []
other audits: a.window None since 35m0s[counters were not judged: no earlier run of this job has read them] []
locked:[] [{a perf_rates: over="last": another run is in progress: process PID holds DIR/sm-0x0002c90310000001/mine.state.lock false}]
locked, and only seen:[observations of ports in earlier runs are unknown: another run is in progress: process PID holds DIR/sm-0x0002c90310000001/mine.state.lock] []
damaged: a.window None since 50m0s[counters were not judged: no earlier run of this job has read them] []
`
		text := strings.NewReplacer(state, "DIR", fmt.Sprint("process ", os.Getpid()), "process PID").Replace(got.String())
		if d := cmp.Diff(want, text); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		wantErr := "warning: DIR/sm-0x0002c90310000001/mine.state: expected a state of fabsh, which begins with \"fabsh audit state 5\\n\"; the state starts empty\n"
		if d := cmp.Diff(wantErr, strings.ReplaceAll(f.stderr.String(), state, "DIR")); d != "" {
			t.Errorf("stderr -want +got\n%s", d)
		}
	})
}
