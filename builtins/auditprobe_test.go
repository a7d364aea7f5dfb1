package builtins

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
)

// TestAuditProbe: a link that loses datagrams is found, alone, wherever it is on the routes to the
// others, with what was sent and lost; and one over which nothing comes back gets few.
func TestAuditProbe(t *testing.T) {
	for name, test := range map[string]struct{ loss, where, want string }{
		"no loss":           {"0", "leaf-1/5", ""},
		"first of the host": {"0.3", "leaf-1/1", "error link.loss leaf-1/1 - node-0001 HCA-1/1: 31 of 60 datagrams over the link were lost\n"},
		"to a spine":        {"0.3", "leaf-1/7", "error link.loss leaf-1/7 - spine-3/1: 36 of 60 datagrams over the link were lost\n"},
		"beyond a spine":    {"0.3", "leaf-3/6", "error link.loss leaf-3/6 - spine-2/3: 31 of 60 datagrams over the link were lost\n"},
		"to a host":         {"0.3", "node-0009 HCA-1/1", "error link.loss leaf-3/1 - node-0009 HCA-1/1: 30 of 60 datagrams over the link were lost\n"},
		"one in 50":         {"0.02", "leaf-3/6", "error link.loss leaf-3/6 - spine-2/3: 2 of 60 datagrams over the link were lost\n"},
	} {
		t.Run(name, func(t *testing.T) {
			onSim(t, "", nil, func(t *testing.T, f *fixture) {
				f.run(fmt.Sprintf("sim.loss(%s, where=%q)", test.loss, test.where))
				r := audited(t, f, audits.RunOptions{Once: true}, "probe", "--count=30")
				if diff := cmp.Diff(test.want, told(r)); diff != "" {
					t.Error(diff)
				}
				if name == "to a host" && (!r.Answered() || !r.Complete()) { // elsewhere the sweep misses ports too
					t.Errorf("lost datagrams are reported as missing answers: %v", r.Coverage.Missing())
				}
			})
		})
	}
}

// TestAuditProbeFile: a snapshot has routes, but nothing can be sent.
func TestAuditProbeFile(t *testing.T) {
	onSim(t, "", nil, func(t *testing.T, f *fixture) {
		file := ofFile(t, kept(t, f))
		defer file.Close()
		r := audited(t, file, audits.RunOptions{}, "probe")
		if len(r.Unjudged) != 1 || r.Unjudged[0].Check != "link.loss" || len(r.Findings) > 0 {
			t.Errorf("%v %s", r.Unjudged, told(r))
		}
	})
}

// TestLinkLoss: bounds, links that no request can cross, and rates.
func TestLinkLoss(t *testing.T) {
	onSim(t, "", nil, func(t *testing.T, f *fixture) {
		for script, want := range map[string]string{
			`link_loss([1])`:                          "link_loss: for parameter links: element 0: got int, want a link",
			`link_loss(discover().links, count=0)`:    "link_loss: for parameter count: got 0, want 1..100000",
			`link_loss(discover().links, rate=20000)`: "link_loss: for parameter rate: got 20000, want 1..10000",
		} {
			if _, explained, _ := f.run(script); !strings.HasPrefix(explained, want+"\n") {
				t.Errorf("%s: %q, want %q", script, explained, want)
			}
		}
		out, explained, _ := f.run(`l = discover().node("node-0009 HCA-1").ports[1].link
sim.loss(1, where="node-0009 HCA-1/1")
print([(x["sent"], x["lost"], x["behind"].a.name, x["why"]) for x in link_loss([l], count=50)])`)
		if want := "[(10, 10, \"leaf-3/5\", None)]\n"; out+explained != want {
			t.Errorf("nothing arrives: %s%s\nwant %s", out, explained, want)
		}
	})
}

// TestCombinedRoute: a route that begins at a LID leads to the same nodes as the whole directed route,
// and its errors name both parts.
func TestCombinedRoute(t *testing.T) {
	onSim(t, "", nil, func(t *testing.T, f *fixture) {
		for script, want := range map[string]string{
			`f = discover(); print(all([smp_get("NodeInfo", lid=n.lid, route=dr([0, p.num])).node_guid == p.peer.node.guid for n in f.switches for p in n.ports if p.peer]))`: "True\n",
			`f = discover(); p = f.node("node-0003 HCA-1").ports[1]; print(smp_set("PortInfo", p, lid=99, known=[p.info]).lid)`:                                               "99\n", // a field
			`print(catch(smp_get, "NodeInfo", lid=20, route="0,1"))`:                                                                                                          "error(smp_get: SubnGet(NodeInfo) to LID 20, then route 0,1: timed out after 6 attempts in 3s; check that the node is up and that its address is current (run discover() again), or increase --timeout and --retries)\n",
			`print(catch(smp_get, "NodeInfo", lid=1))`:                                                                                                                        "error(smp_get: a combined route requires lid= and route=)\n",
			`print(catch(smp_get, "NodeInfo", 1, lid=1, route="0"))`:                                                                                                          "error(smp_get: target= and lid=, route= exclude each other)\n",
			`print(catch(smp_get, "NodeInfo", lid=1, route="1"))`:                                                                                                             "error(smp_get: for parameter route: directed route \"1\": element 0 stands for this node and must be 0)\n",
			`print(catch(smp_get, "NodeInfo", lid=1, route=5))`:                                                                                                               "error(smp_get: for parameter route: got int, want a route)\n",
		} {
			out, explained, _ := f.run(script)
			if out+explained != want {
				t.Errorf("%s:\n%s%s\nwant %s", script, out, explained, want)
			}
		}
	})
}
