package builtins

import (
	"context"
	"strings"
	"testing"
	"time"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// TestExpected: what a run says beforehand that it will send is within 10 % of what it
// sends, beyond the sweep, whatever agents have.
func TestExpected(t *testing.T) {
	for _, test := range []struct {
		spec  string
		deep  bool
		words []string
	}{
		{"fattree:k=8,levels=3", false, nil},
		{"fattree:k=8,levels=3", false, []string{"--over", "last"}},
		{"fattree:k=8,levels=3", true, nil},
		{"fattree:k=4,registers=yes", true, []string{"health"}},
		{"fattree:k=4", true, []string{"health"}},
	} {
		onSim(t, test.spec, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
			sent := func() int { return int(f.Env.Engine.Stats().Sent) }
			before := sent()
			if _, err := topology.SweepQuietly(context.Background(), f.Runtime); err != nil {
				t.Fatal(err)
			}
			sweep := sent() - before
			said := -1
			options := audits.RunOptions{Job: "x", Expected: func(n int) { said = n }}
			for range 2 { // of the second, what agents have is known
				set, err := audits.LoadAudits(context.Background(), f.Interpreter, test.words, nil, test.deep)
				if err != nil {
					t.Fatal(err)
				}
				before = sent()
				r, err := set.Run(context.Background(), f.Interpreter, options)
				if err != nil || len(r.Findings) > 0 && r.Findings[0].Check != "audit.window" {
					t.Fatal(err, told(r))
				}
			}
			const few = 20 // of which nobody is told
			if n := sent() - before - sweep; (said+few)*10 < n*9 || said*9 > (n+few)*10 {
				t.Errorf("%s, deep %t, %q: %d are sent, %d were said", test.spec, test.deep, test.words, n, said)
			}
		})
	}
}

// TestExpectedBroken: an audit that cannot say how many datagrams it will send is not done;
// the others are, also where it computes until the deadline.
func TestExpectedBroken(t *testing.T) {
	for _, test := range []struct{ body, told, undone string }{
		{`fail("no")`, "warning b.x fabric: found\n", "a: fail: no"},
		{"exit(0)", "warning b.x fabric: found\n", "a: exit(0): not supported in an audit; its findings set the exit status"},
		{`return "many"`, "warning b.x fabric: found\n", "a: a.star: datagrams(fabric) must return a number: got string, want int"},
		{"while True: pass", "", "a: deadline of 2s passed, b: deadline of 2s passed"},
	} {
		onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
			write(t, f.fs, "/work/a.star", "def datagrams(fabric):\n    "+test.body+"\n\ndef audit(fabric):\n    finding('a.x', fabric, 'found')\n")
			write(t, f.fs, "/work/b.star", "def audit(fabric):\n    finding('b.x', fabric, 'found', severity='warning')\n")
			all, err := audits.LoadAudits(context.Background(), f.Interpreter, []string{"a.star", "b.star"}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			begin := func(fabric.Subnet) (audit.Acks, error) {
				if test.told == "" {
					cancel(&lang.DeadlineError{After: 2 * time.Second})
				}
				return nil, nil
			}
			r, err := all.Run(ctx, f.Interpreter, audits.RunOptions{Begin: begin, Expected: func(int) {}})
			if err != nil {
				t.Fatal(err)
			}
			var undone []string
			for _, x := range r.Failures {
				undone = append(undone, x.Audit+": "+f.Explain(x.Err))
			}
			got := strings.Join(undone, ", ")
			if first, _, _ := strings.Cut(got, "\n"); told(r) != test.told || first != test.undone {
				t.Errorf("%s: told %q, undone %q", test.body, told(r), got)
			}
		})
	}
}
