package session

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/builtins/lang"
)

// TestDeadlineComputing: who just computes is stopped at the deadline, or a second
// after the last word; who goes on asking and writing has 10 s.
func TestDeadlineComputing(t *testing.T) {
	for name, c := range map[string]struct {
		words []time.Duration // since the start
		want  time.Duration
		why   string
	}{
		"computes":        {nil, 5 * time.Second, "deadline of 5s passed"},
		"wrote before":    {[]time.Duration{time.Second, 4500 * time.Millisecond}, 5500 * time.Millisecond, "deadline of 5s passed"},
		"reports":         {[]time.Duration{4900 * time.Millisecond, 5800 * time.Millisecond, 6700 * time.Millisecond}, 7700 * time.Millisecond, "deadline of 5s passed"},
		"never ends":      {words(900*time.Millisecond, 20), 15 * time.Second, "deadline of 5s passed; the session did not end within 10s after it"},
		"writes too late": {[]time.Duration{6 * time.Second}, 5 * time.Second, "deadline of 5s passed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				activity := new(lang.Activity)
				d := StartDeadline(5*time.Second, nil)
				defer d.Stop()
				d.Limit(nil, activity)
				for _, at := range c.words {
					time.AfterFunc(at, activity.Note)
				}
				<-d.over.Done()
				if got := time.Since(start); got != c.want {
					t.Errorf("stopped after %v, want %v", got, c.want)
				}
				if got := context.Cause(d.over).Error(); got != c.why {
					t.Errorf("got %q, want %q", got, c.why)
				}
			})
		})
	}
}

// words are n times, so far apart.
func words(apart time.Duration, n int) []time.Duration {
	var out []time.Duration
	for i := range n {
		out = append(out, time.Duration(i+1)*apart)
	}
	return out
}

// TestThresholdFile: ibqueryerrors reads the limits of the site, on fabrics of the site.
func TestThresholdFile(t *testing.T) {
	const name = "infiniband-diags/error_thresholds"
	etc := siteFiles(t, map[string]string{name: "SymbolErrorCounter=10\n"})
	for _, test := range []struct{ etc, spec, want string }{
		{etc, "umad:mlx5_0/1", filepath.Join(etc, name)},
		{etc, "ibsim", filepath.Join(etc, name)},
		{etc, "sim:fattree", ""},
		{etc, "file:x.topo", ""},
		{t.TempDir(), "umad", ""},
	} {
		p, _ := testProgram(t, "-F", test.spec)
		if got := thresholdFile(test.etc, p.Settings); got != test.want {
			t.Errorf("%s: got %q, want %q", test.spec, got, test.want)
		}
	}
}
