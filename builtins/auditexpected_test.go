package builtins

import (
	"context"
	"testing"
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
		onSim(t, test.spec, func(o *Options) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
			sent := func() int { return int(f.env.Engine.Stats().Sent) }
			before := sent()
			if _, err := f.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			sweep := sent() - before
			said := -1
			run := AuditRun{Job: "x", Expected: func(n int) { said = n }}
			for range 2 { // of the second, what agents have is known
				var err error
				if run.Audits, err = f.LoadAudits(context.Background(), test.words, nil, test.deep); err != nil {
					t.Fatal(err)
				}
				before = sent()
				r, err := f.RunAudits(context.Background(), run)
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
