package builtins

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// setters are the calls of %s that change a table or a link.
var setters = map[string]string{
	"set_lft":      "set_lft(%s, {9: 1})",
	"set_mft":      "set_mft(%s, {0xc000: [1]})",
	"set_sl2vl":    "set_sl2vl(%s, {1: 0}, 1)",
	"set_vlarb":    "set_vlarb(%s, {'low': []}, 1)",
	"set_pkeys":    "set_pkeys(%s, {1: 1}, 1)",
	"set_guids":    "set_guids(%s, {1: 1})",
	"port_disable": "port_disable(%s, 1)",
	"port_enable":  "port_enable(%s, 1)",
	"port_reset":   "port_reset(%s, 1)",
	"port_set":     "port_set(%s, 1, width='1x')",
}

// TestSettersAreGated: what smp_set refuses, all of them do, and nothing
// leaves but the look for a subnet manager.
func TestSettersAreGated(t *testing.T) {
	for _, b := range functions() {
		if (strings.HasPrefix(b.Name, "set_") || strings.HasPrefix(b.Name, "port_")) && setters[b.Name] == "" {
			t.Errorf("%s is not tested", b.Name)
		}
	}
	for name, code := range setters {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				adapt func(*SessionOptions)
				want  string
			}{
				{func(o *SessionOptions) { o.Write = false }, ": refused: it would change the fabric; allow changes with --write"},
				{nil, ": refused: a subnet manager with GUID 0x0002c90310000001 at LID 3, priority 14, state master sets "},
			} {
				onForeign(t, test.adapt, func(t *testing.T, f *fixture) {
					_, explained, status := f.run("catch(lambda: " + fmt.Sprintf(code, "1") + ")")
					if !strings.HasPrefix(explained, name+test.want) || status != lang.StatusUsage {
						t.Errorf("%s, status %d", explained, status)
					}
				})
			}
			onForeign(t, func(o *SessionOptions) { o.OverrideSM = true }, func(t *testing.T, f *fixture) {
				if _, explained, status := f.run(fmt.Sprintf(code, `dr("0,1,3")`)); explained != "" || status != 0 {
					t.Errorf("overridden: %s, status %d", explained, status)
				}
			})
		})
	}
}

// TestSettersAskWho: a change goes only to the node that is meant.
func TestSettersAskWho(t *testing.T) {
	const want = ` "gone" (0x0000000000000042): the node at 0,1 is now 0x0002c90300100000, not 0x0000000000000042; run discover() again`
	for name, code := range setters {
		onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
			b := fabric.NewBuilder()
			b.AddNode(fabric.NodeSpec{
				Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 0x42, NumPorts: 4}, Name: "gone", Route: mad.DirectedRoute{0, 1},
			})
			f.Env.Current = topology.NewFabric(b.Build())
			_, explained, status := f.run(fmt.Sprintf(code, `"gone"`))
			if line, _, _ := strings.Cut(explained, "\n"); line != name+":"+want || status != lang.StatusFabric {
				t.Errorf("%s, status %d", explained, status)
			}
		})
	}
}

// TestSetRow: set_lft takes a row of routes, entry by entry, as it takes a list.
func TestSetRow(t *testing.T) {
	onSim(t, "fattree:k=4,levels=2", nil, func(t *testing.T, f *fixture) {
		out, explained, status := f.run(`
f = discover()
routes = f.graph().route("updn")
sw = f.switches[0]
routes[sw][f.cas[-1].ports[1].lid] = None
before = get_lft(sw)
after = set_lft(sw, routes[sw])
print(after != before, [after[lid] for lid in range(len(routes[sw]))] == list(routes[sw]), after == get_lft(sw), after == set_lft(sw, list(routes[sw])))
`)
		if out != "True True True True\n" || status != 0 {
			t.Errorf("got %q, %s, status %d", out, explained, status)
		}
	})
}
