package builtins

import (
	"bytes"
	"testing"
	"testing/synctest"

	"fabsh/builtins/audits"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/diff"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// snapshotOf is all that there is to read of a simulated fabric, after a script ran
// on it.
func snapshotOf(t *testing.T, subnet *sim.Subnet, tr engine.Transport, code string) *fabric.Fabric {
	t.Helper()
	e := engine.New(tr, engine.Options{Write: true})
	defer e.Close()
	s, err := NewSession(SessionOptions{Env: topology.Env{Engine: e, Sim: subnet, Write: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := program.RunCode(t.Context(), s.Interpreter, "<test>", code); err != nil {
		t.Fatal(s.Explain(err))
	}
	f, err := topology.SweepQuietly(t.Context(), s.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := audits.ReadRoutes(t.Context(), s.Runtime, f, false)
	if err != nil {
		t.Fatal(err)
	}
	tables := make([][]byte, len(f.Nodes()))
	for i, sw := range routes.Graph().Switches() {
		tables[sw.ID()] = routes.Row(i)
	}
	if f, err = audits.ReadAnswers(t.Context(), s.Runtime, f.With(fabric.Reading{LFTs: tables})); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTwin: a simulated fabric from a snapshot has the settings, tables and counters
// that the snapshot has.
func TestTwin(t *testing.T) { synctest.Test(t, testTwin) }

func testTwin(t *testing.T) {
	subnet, tr := attachSubnet(t, "fattree:k=4,levels=2")
	original := snapshotOf(t, subnet, tr, `
sim.speed("leaf-2/1", "edr", width="1x")
f = discover()
leaf = f.switches[0]
set_lft(leaf, {12: None})
smp_set("PortInfo", leaf, port=2, neighbor_mtu="2048", vl_high_limit=7)
set_pkeys(leaf.ports[2], {1: 0x8001})
set_sl2vl(leaf, {(1, 2): [3] * 16})
sim.set_counters(leaf.ports[2], symbol_error_counter=70000)
`)
	var file bytes.Buffer
	if err := format.Dump(&file, original, format.KindSnapshot); err != nil {
		t.Fatal(err)
	}
	loaded, err := format.Load(&file, "today.fab", nil)
	if err != nil {
		t.Fatal(err)
	}
	subnet = sim.New(loaded, sim.Options{})
	if tr, err = subnet.Attach(loaded.OfType(mad.NodeTypeCA)[0].ID(), 1); err != nil {
		t.Fatal(err)
	}
	twin := snapshotOf(t, subnet, tr, `
f = discover()
assert_same = lambda got, want: None if got == want else fail(got, want)
assert_same(perf_get("PortCountersExtended", "leaf-1/2").symbol_error_counter, 70000)
assert_same(perf_get("PortCounters", "leaf-1/2").symbol_error_counter, 65535)
assert_same(get_pkeys("leaf-1/2")[1], 0x8001)
assert_same(get_sl2vl("leaf-1")[1, 2], (3,) * 16)
assert_same(get_lft("leaf-1")[12], None)
assert_same(smp_get("PortInfo", "leaf-1/2").vl_high_limit, 7)
`)
	report, err := diff.Compare(t.Context(), original, twin)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Changes {
		if c.Subject != "SMInfoRecord" { // its ActCount
			t.Errorf("differs: %+v", c)
		}
	}
}
