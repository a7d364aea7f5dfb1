package audits_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// session calls fn with a session on a simulated fabric, with scripts in its directory.
func session(t *testing.T, files map[string]string, fn func(t *testing.T, s *builtins.Session, out *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fab, o, err := sim.Parse("fattree")
		if err != nil {
			t.Fatal(err)
		}
		subnet := sim.New(fab, o)
		transport, err := subnet.Attach(fab.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(transport, engine.Options{})
		defer e.Close()
		var out bytes.Buffer
		disk := afero.NewMemMapFs()
		for name, text := range files {
			if err := afero.WriteFile(disk, "/work/"+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := builtins.NewSession(builtins.SessionOptions{Facts: topology.Facts{Engine: e, Sim: subnet}, Stdout: &out, Stderr: &out, FS: disk, Dir: "/work"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fn(t, s, &out)
	})
}

// TestTogether: shipped audits run together, except one that measures response times; other
// audits do not.
func TestTogether(t *testing.T) {
	session(t, map[string]string{"own.star": "def audit(fabric): pass"}, func(t *testing.T, s *builtins.Session, _ *bytes.Buffer) {
		set, err := audits.LoadAudits(t.Context(), s.Interpreter, []string{"links", "own.star", "sm", "counters"}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"links", "counters"}, set.Together()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestParts: audits that run together begin before one of them has ended, each with its own
// clock. Findings, output, coverage, unjudged checks and metrics are in the order of the audits.
func TestParts(t *testing.T) {
	const script = `
def audit(fabric):
    began = time.now()
    print("%[1]s begins")
    smp_get("NodeInfo", fabric.switches[:%[2]d])
    sleep("%[2]ds")
    metric("mine", %[2]d)
    finding("mine.%[1]s", fabric, "slept %%d s" %% (time.now() - began).seconds)
    not_judged("mine.more", "%[1]s")
    print("%[1]s ends")
    if %[2]d < 3:
        fail("at the end")
`
	const want = `b begins
b ends
a begins
a ends
c begins
c ends
mine.b slept 2 s
mine.a slept 3 s
mine.c slept 1 s
b NodeInfo 2
a NodeInfo 3
c NodeInfo 1
b
a
c
mine 1
b: fail: at the end
c: fail: at the end
`
	files := map[string]string{}
	for i, name := range []string{"a", "b", "c"} {
		files[name+".star"] = fmt.Sprintf(script, name, 3-i)
	}
	for together, want := range map[bool]struct {
		text string
		took time.Duration
	}{true: {want, 3 * time.Second}, false: {want, 6 * time.Second}} {
		session(t, files, func(t *testing.T, s *builtins.Session, out *bytes.Buffer) {
			set, err := audits.LoadAudits(t.Context(), s.Interpreter, []string{"b.star", "a.star", "c.star"}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			set.SetTogether(together)
			r, err := set.Run(t.Context(), s.Interpreter, audits.RunOptions{Once: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				fmt.Fprintln(out, f.Check, f.Message)
			}
			for _, row := range r.Coverage.Rows()[3:] { // after the rows of the sweep
				fmt.Fprintln(out, row.Audit, row.Attribute, row.Requests)
			}
			for _, u := range r.Unjudged {
				fmt.Fprintln(out, u.Lacked)
			}
			for _, m := range r.Metrics {
				fmt.Fprintln(out, m.Name, m.Value)
			}
			for _, f := range r.Failures {
				fmt.Fprintf(out, "%s: %v\n", f.Audit, f.Err)
			}
			if diff := cmp.Diff(want.text, out.String()); diff != "" {
				t.Errorf("together = %v (-want +got):\n%s", together, diff)
			}
			if took := r.Ended.Sub(r.Began).Truncate(time.Second); took != want.took {
				t.Errorf("together = %v: took %v, want %v", together, took, want.took)
			}
		})
	}
}
