package builtins

import (
	"testing"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestGuard: where each port has an M_Key of its own, an SMP has that of the
// port it is for, however the script names it.
func TestGuard(t *testing.T) {
	const spec = "ring:n=2,mkey=0x1234,mkey_level=2"
	plan, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	keys := &engine.Keys{Ports: map[mad.GUID]uint64{}}
	for i := range plan.Ports() {
		keys.Ports[plan.Ports()[i].GUID()] = 0x1234
	}
	onSim(t, spec, func(o *SessionOptions) {
		o.Engine.Close()
		o.Engine = engine.New(attach(t, spec), engine.Options{Keys: keys, Write: true})
		o.Write = true
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		_, explained, status := f.run(`
unknown = catch(smp_get, "NodeInfo", 1)
if unknown or "and that --keys has its M_Key" not in unknown.message: fail(unknown)
smp_get("NodeInfo", "` + plan.Nodes()[0].GUID().String() + `") # the subnet administrator knows it
f = discover(via="sa")
smp_get("NodeInfo", 1)
smp_get("NodeInfo", f.switches[1])
smp_get("PortInfo", f.cas[1].ports[1])
smp_get("NodeInfo", f.switches[1].name)
smp_get("NodeInfo", dr("0,1,3"))
f = discover()
smp_get("NodeInfo", f.switches[1])
smp_set("NodeDescription", f.cas[1], node_string="x")
smp_set("NodeDescription", dr("0,1"), node_string="x")
get_lft(f.switches)
set_lft(f.switches[1], {40: 1})
`)
		if explained != "" || status != 0 {
			t.Errorf("status %d, %s", status, explained)
		}
	})
}
