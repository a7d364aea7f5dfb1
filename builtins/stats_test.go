package builtins

import (
	"testing"

	"fabsh/builtins/lang"
)

// TestStats: all counts, windows and round trips, in the same order each time.
func TestStats(t *testing.T) {
	const code = `
smp_get("NodeInfo", 1)
perf_get("PortCounters", [1, 2], 1)
sa_gettable("NodeRecord")
catch(smp_get, "NodeInfo", 999)
show(stats())
`
	for format, path := range map[lang.Format]string{lang.FormatText: "testdata/output/stats.text", lang.FormatJSON: "testdata/output/stats.json"} {
		onSim(t, "ring:n=2,delay=2ms", func(o *SessionOptions) { o.Format = format }, func(t *testing.T, f *fixture) {
			out, explained, _ := f.run(code)
			if explained != "" {
				t.Error(explained)
			}
			golden(t, path, out)
		})
	}
}
