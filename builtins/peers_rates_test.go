//go:build linux

package builtins

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestPerfRatesPerfQuery: on ibsim, what counted between two reads is what
// perfquery shows more of after than before; what stands at its maximum is
// not known.
func TestPerfRatesPerfQuery(t *testing.T) {
	state := t.TempDir()
	f := onIbsim(t, ibsimtest.FatTree(3, 2, 2), ibsimtest.FixtureOptions{SM: "host-0-0", SMArgs: quiet}, func(o *SessionOptions) { o.State, o.Job = state, "test" })
	fab := f.sweep(t)
	random := rand.New(rand.NewPCG(3, 4))
	var counters []string // but traffic, which moves by itself
	for name := range seedable["PortCounters"] {
		if !strings.HasSuffix(name, "Data") && !strings.HasSuffix(name, "Pkts") && name != "VL15Dropped" {
			counters = append(counters, name)
		}
	}
	slices.Sort(counters)
	// perfquery is the counters of all ports, by port name and counter.
	perfquery := func() map[string]map[string]uint64 {
		all := map[string]map[string]uint64{}
		for i := range fab.Nodes() {
			n := &fab.Nodes()[i]
			for p := range n.Ports() {
				if p.Num() == 0 {
					continue
				}
				values := map[string]uint64{}
				for line := range strings.Lines(f.peer.Run(t, "perfquery", fmt.Sprint(p.LID()), fmt.Sprint(p.Num()))) {
					if m := dots.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
						values[mad.SnakeName(m[1])], _ = strconv.ParseUint(m[3], 0, 64)
					}
				}
				all[p.Name()] = values
			}
		}
		return all
	}
	// count raises counters at random ports.
	count := func(shown map[string]map[string]uint64) {
		for range 100 {
			n := &fab.Nodes()[random.IntN(len(fab.Nodes()))]
			num := 1 + random.IntN(n.NumPorts())
			name := counters[random.IntN(len(counters))]
			most := uint64(1)<<seedable["PortCounters"][name] - 1
			v := min(most, shown[n.Port(num).Name()][mad.SnakeName(name)]+random.Uint64N(most/2))
			f.peer.Console(t, `PerformanceSet "%s"[%d] PortCounters.%s=%d`, strings.TrimSuffix(n.Name(), " HCA-1"), num, name, v)
		}
	}
	type rates struct {
		Port    string
		Counts  map[string]uint64
		Unknown map[string][]string
	}
	var first, second []rates
	count(perfquery())
	f.eval(t, &first, `perf_rates(discover().ports, over="last")`)
	before := perfquery()
	count(before)
	f.peer.Console(t, `PerformanceSet "leaf-1"[1] PortCounters.LinkDownedCounter=255`)
	f.eval(t, &second, `[sleep("1s"), perf_rates(discover().ports, over="last")][1]`)
	after := perfquery()
	compared, saturated := 0, 0
	for _, r := range second {
		for _, counter := range counters {
			name := mad.SnakeName(counter)
			was, is := before[r.Port][name], after[r.Port][name]
			got, known := r.Counts[name]
			switch {
			case slices.Contains(r.Unknown["not_supported"], name):
			case slices.Contains(r.Unknown["saturated"], name):
				if saturated++; is != 1<<seedable["PortCounters"][counter]-1 {
					t.Errorf("%s: %s is told to be saturated, perfquery has %d", r.Port, name, is)
				}
			case !known || got != is-was:
				t.Errorf("%s: %s counted %d (known: %t), perfquery has %d, then %d", r.Port, name, got, known, was, is)
			case is > was:
				compared++
			}
		}
	}
	if compared < 20 || saturated == 0 || len(second) != len(first) {
		t.Errorf("%d counters that moved were compared, %d ports", compared, len(second))
	}
	t.Logf("%d ports, %d counters that moved, %d saturated", len(second), compared, saturated)
}
