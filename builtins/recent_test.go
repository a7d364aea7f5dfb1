package builtins

import (
	"testing"
	"time"

	"fabsh/builtins/topology"
	"fabsh/mad"
)

// TestRecentCounters: a session uses the counters of earlier ones, until something writes; sampling is
// read each time; the number of answers that are kept is limited.
func TestRecentCounters(t *testing.T) {
	reads := new(topology.RecentReads)
	onSim(t, "fattree:k=4,levels=2", func(o *SessionOptions) { o.RecentReads = reads }, func(t *testing.T, f *fixture) {
		env := topology.EnvOf(f.Runtime)
		sent := func(script string) int {
			t.Helper()
			reads.Begin()
			before := env.Engine.Stats().Sent
			if _, explained, exit := f.run(script); exit > 0 {
				t.Errorf("%s: %s", script, explained)
			}
			return int(env.Engine.Stats().Sent - before)
		}
		const read = `perf_get("PortCounters", "leaf-1/1")`
		sent("f = discover()")
		for i, x := range []struct {
			script string
			reads  bool
		}{
			{read, true}, {read, false}, {`perf_get("PortCounters", "leaf-1", 1)`, false}, {`perf_get("PortCounters", "leaf-1/2")`, true},
			{`perf_get("PortCounters", 1, 1)`, true}, {`catch(perf_get, "PortCounters", "leaf-1/1", modifier=1)`, true},
			{`perf_set("PortCounters", "leaf-1/1", symbol_error_counter=7)`, true}, {`expect.eq(` + read + `.symbol_error_counter, 7)`, true}, {read, false}, {`perf_clear("PortCounters", "leaf-1/2")`, true}, {read, true},
			{`perf_get("PortSamplesControl", "leaf-1/1")`, true}, {`perf_get("PortSamplesControl", "leaf-1/1")`, true}, {"f = discover()", true}, {read, true}, {read, false},
		} {
			if n := sent(x.script); (n > 0) != x.reads {
				t.Errorf("%d: %s: %d datagrams, want some: %v", i, x.script, n, x.reads)
			}
		}

		node, of := env.Fabric().NodeByName("leaf-1")[0], func(i int) (*topology.Target, int) {
			return &topology.Target{LID: mad.LID(i >> 6)}, i & 63
		}
		kept := 0
		for i := range 1<<18 + 1000 {
			target, port := of(i)
			target.Node = node
			reads.KeepCounters(env.Keeping(), target, mad.AttrPortCountersExtended, port, []byte{1}, time.Now())
		}
		reads.Begin()
		for i := range 1<<18 + 1000 {
			target, port := of(i)
			target.Node = node
			if data, _ := env.RecentCounters(target, mad.AttrPortCountersExtended, port); data != nil {
				kept++
			}
		}
		if kept < 1<<18-1000 || kept > 1<<18 {
			t.Errorf("%d answers are kept", kept)
		}
	})
}
