package command

import (
	"syscall"
	"testing"
	"time"
)

// TestEndRequests: which signals are the second request to end a command.
func TestEndRequests(t *testing.T) {
	type signal struct {
		sig   syscall.Signal
		after time.Duration
		typed bool
	}
	const term, intr, hup, quit = syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT
	for name, test := range map[string]struct {
		signals []signal
		want    bool // of the last of them
	}{
		"the first":                  {[]signal{{term, 0, false}}, false},
		"two":                        {[]signal{{term, 0, false}, {term, time.Hour, false}}, true},
		"two kinds, at once":         {[]signal{{intr, 0, false}, {term, 0, false}}, true},
		"a copy":                     {[]signal{{term, 0, false}, {term, 20 * time.Millisecond, false}}, false},
		"after a copy":               {[]signal{{term, 0, false}, {term, 20 * time.Millisecond, false}, {term, time.Second, false}}, true},
		"for other purposes":         {[]signal{{term, 0, false}, {hup, time.Second, false}}, false},
		"after other purposes":       {[]signal{{quit, 0, true}, {hup, time.Second, false}, {term, time.Second, false}}, false},
		"typed twice":                {[]signal{{intr, 0, true}, {intr, time.Second, true}}, true},
		"typed now and then":         {[]signal{{intr, 0, true}, {intr, 3 * time.Second, true}}, false},
		"typed, and sent much later": {[]signal{{intr, 0, true}, {term, time.Hour, false}}, false},
		"sent, and typed much later": {[]signal{{term, 0, false}, {intr, time.Hour, true}}, true},
	} {
		var r endRequests
		now, got := time.Unix(1, 0), false
		for _, s := range test.signals {
			now = now.Add(s.after)
			got = r.second(s.sig, s.typed, now)
		}
		if got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
