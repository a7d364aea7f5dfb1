package sim

import (
	"fmt"
	"testing"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestRedirect: a requester that uses the whole address of the redirection gets
// the counters of the node that it asked.
func TestRedirect(t *testing.T) {
	r := newRig(t, small+",redirect=leaf-1@spine-1+node-0002 HCA-1@node-0002 HCA-1")
	counters := func(name string) (*engine.Call, error) {
		e := engine.New(r.attach("node-0001 HCA-1"), engine.Options{Write: true})
		defer e.Close()
		c := new(engine.Call)
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, encode(&mad.PortCounters{PortSelect: 1})[:192])
		c.SetLID(r.lid(name))
		if err := e.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c, c.Err
	}
	r.at("leaf-1", 1).Counters.Set(state.CounterKey{Name: "SymbolErrorCounter", Element: 0}, 7)
	r.at("spine-1", 1).Counters.Set(state.CounterKey{Name: "SymbolErrorCounter", Element: 0}, 8)
	for name, want := range map[string]uint16{"leaf-1": 7, "spine-1": 8} {
		c, err := counters(name)
		if err != nil {
			t.Fatal(err)
		}
		var got mad.PortCounters
		if got.Decode(c.Data()); got.SymbolErrorCounter != want {
			t.Errorf("%s: %d, want %d", name, got.SymbolErrorCounter, want)
		}
	}
	lid := r.lid("node-0002 HCA-1")
	guid := r.at("node-0002 HCA-1", 1).GUID
	want := fmt.Sprintf("PerfGet(PortCounters) to LID %d: redirection required (status 0x0002): the redirections go round in a circle: LID %d, GID %v, GID %v; the agents there are set up wrongly",
		lid, lid, mad.MakeGID(state.GIDPrefix, guid), mad.MakeGID(state.GIDPrefix, guid))
	if _, err := counters("node-0002 HCA-1"); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for name, c := range map[string]engine.Address{
		"wrong Q_Key":      {LID: r.lid("spine-1"), QP: agent.RedirectQP, QKey: 0x12},
		"no Q_Key":         {LID: r.lid("spine-1"), QP: agent.RedirectQP},
		"wrong queue pair": {LID: r.lid("spine-1"), QP: 0x43, QKey: agent.RedirectQKey},
		"another node":     {LID: lid, QP: agent.RedirectQP + 1, QKey: agent.RedirectQKey},
	} {
		call := &engine.Call{To: c}
		call.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, encode(&mad.PortCounters{PortSelect: 1})[:192])
		if r.conn.ask(t, call) {
			t.Errorf("%s: answered", name)
		}
	}
}
