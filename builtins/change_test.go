package builtins

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// foreign hides that a transport is simulated.
type foreign struct{ engine.Transport }

func (f foreign) Traits() engine.Traits {
	t := f.Transport.Traits()
	t.Simulated = false
	return t
}

// onForeign runs fn with a session on a fabric that does not look simulated,
// and has a subnet manager.
func onForeign(t *testing.T, adapt func(*SessionOptions), fn func(t *testing.T, f *fixture)) {
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		o.Engine = engine.New(foreign{attach(t, "ring:n=2")}, engine.Options{Write: o.Write})
		if adapt != nil {
			adapt(o)
		}
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		fn(t, f)
	})
}

func TestRefusals(t *testing.T) {
	const (
		sm        = "a subnet manager with GUID 0x0002c90310000001 at LID 3, priority 14, state master"
		aftermath = " sets LinearForwardingTable and expects no other changes; OpenSM neither detects nor repairs them, because it compares with the values that it remembers; --override-sm allows the change"
	)
	for _, test := range []struct {
		name   string
		adapt  func(*SessionOptions)
		code   string
		err    string
		status int
	}{
		{"read-only", func(o *SessionOptions) { o.Write = false }, "set_lft(1, {9: 1})", "set_lft: refused: it would change the fabric; allow changes with --write", 2},
		{"subnet manager", nil, "set_lft(1, {9: 1})", "set_lft: refused: " + sm + aftermath, 2},
		{"a record", func(o *SessionOptions) { o.Write = false }, `catch(sa_set, "ServiceRecord", service_id=1, service_gid="fe80::1")`, "sa_set: refused: it would change the fabric; allow changes with --write", 2},
		{"a record deleted", func(o *SessionOptions) { o.Write = false }, `sa_delete("ServiceRecord", service_id=1)`, "sa_delete: refused: it would change the fabric; allow changes with --write", 2},
		{"a record beside its subnet manager", nil, `sa_set("ServiceRecord", service_id=1, service_gid=gid(sa_get("NodeRecord", lid=3).port_guid, prefix="0xfe80000000000000")).service_id`, "", 0},
		{"not caught", nil, "catch(set_lft, 1, {9: 1})", "set_lft: refused: " + sm + aftermath, 2},
		{"not caught in parallel", nil, "parallel(lambda i: catch(set_lft, i, {9: 1}), [1])", "parallel: item 0, 1: set_lft: refused: " + sm + aftermath, 2},
		{"overridden", func(o *SessionOptions) { o.OverrideSM = true }, "set_lft(1, {9: 1})[9]", "", 0},
		{"not the subnet manager's", nil, `smp_set("NodeDescription", 1, node_string="x").node_string`, "", 0},
		{"module", func(o *SessionOptions) {
			o.OverrideSM = true
			write(t, o.FS, "/work/m.star", "x = catch(set_lft, 1, {9: 1})")
		}, `load("m.star", "x")`, "cannot load m.star: set_lft: refused: a module cannot change the fabric while it is being loaded (m.star); change it in a function that the script calls", 2},
		{"function of a module", func(o *SessionOptions) {
			o.OverrideSM = true
			write(t, o.FS, "/work/m.star", "def f():\n    return set_lft(1, {9: 1})[9]")
		}, `load("m.star", "f"); f()`, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			onForeign(t, test.adapt, func(t *testing.T, f *fixture) {
				_, explained, status := f.run(test.code)
				if diff := cmp.Diff(test.err, firstLines(explained, test.err)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if status != test.status {
					t.Errorf("status %d, want %d", status, test.status)
				}
			})
		})
	}
}

// TestSimulatedIsWritable: the fabric in process has no guard but --read-only.
func TestSimulatedIsWritable(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		if out, explained, status := f.run("set_lft(1, {9: 1})[9]"); out != "1\n" || status != 0 {
			t.Errorf("%q %s, status %d", out, explained, status)
		}
	})
	onSim(t, "ring:n=2", func(o *SessionOptions) { o.Write = false }, func(t *testing.T, f *fixture) {
		_, explained, status := f.run("set_lft(1, {9: 1})")
		want := "set_lft: refused: this session is read-only; omit --read-only to change the simulated fabric"
		if firstLines(explained, want) != want || status != 2 {
			t.Errorf("%s, status %d", explained, status)
		}
	})
}

// TestRefusalIsRemembered: whatever the script does next, the status tells.
func TestRefusalIsRemembered(t *testing.T) {
	onForeign(t, nil, func(t *testing.T, f *fixture) {
		f.run("set_lft(1, {9: 1})")
		if _, _, status := f.run("exit(0)"); status != lang.StatusUsage {
			t.Errorf("status %d, want %d", status, lang.StatusUsage)
		}
	})
}

// TestGuardIsKept: one look for a subnet manager counts for 10 s.
func TestGuardIsKept(t *testing.T) {
	onForeign(t, nil, func(t *testing.T, f *fixture) {
		sent := func() uint64 { return f.Env.Engine.Stats().Sent }
		before := sent()
		f.run("set_lft(1, {9: 1})")
		look := sent() - before
		f.run("set_lft(1, {9: 1})")
		if got := sent() - before; look == 0 || got != look {
			t.Errorf("%d MADs for two refusals, %d for the first", got, look)
		}
		time.Sleep(11 * time.Second) // virtual
		f.run("set_lft(1, {9: 1})")
		if got := sent() - before; got != 2*look {
			t.Errorf("%d MADs after the finding was old, want %d", got, 2*look)
		}
	})
}

// TestWrongNode: a change goes only to the node that is meant.
func TestWrongNode(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		b := fabric.NewBuilder()
		b.AddNode(fabric.NodeSpec{
			Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 0x42, NumPorts: 4}, Name: "gone", Route: mad.DirectedRoute{0, 1},
		})
		f.Env.Current = topology.NewFabric(b.Build())
		for code, want := range map[string]string{
			`set_lft("gone", {9: 1})`:                          `set_lft: "gone" (0x0000000000000042): the node at 0,1 is now 0x0002c90300100000, not 0x0000000000000042; run discover() again`,
			`smp_set("SwitchInfo", "gone", life_time_value=1)`: `smp_set: "gone" (0x0000000000000042): the node at 0,1 is now 0x0002c90300100000, not 0x0000000000000042; run discover() again`,
		} {
			_, explained, status := f.run(code)
			if firstLines(explained, want) != want || status != lang.StatusFabric {
				t.Errorf("%s, status %d\nwant %s", explained, status, want)
			}
		}
	})
}

// TestPortGuardsTheWayToTheSM: a link between switches by which this session
// and the subnet manager reach each other is left alone, whichever end is named.
func TestPortGuardsTheWayToTheSM(t *testing.T) {
	const spec = "fattree:k=4,levels=2"
	onSim(t, spec, func(o *SessionOptions) {
		o.Engine.Close()
		fab, options, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		cas := fab.OfType(mad.NodeTypeCA)
		tr, err := sim.New(fab, options).Attach(cas[len(cas)-1].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		o.Engine, o.OverrideSM = engine.New(foreign{tr}, engine.Options{Write: true}), true
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		out, explained, _ := f.run(`
f = discover()
local = smp_get("PortInfo", dr("0"), 0)
us, sm = local.lid, local.master_sm_lid
leaves = [f.cas[i].ports[1].peer.node for i in (0, -1)]
# There and back over other spines than by our directed routes, and the nodes'
# own ways.
_ = set_lft(leaves[1], {sm: 4}), set_lft(leaves[0], {us: 3})
for p in leaves[0].ports[4], leaves[1].ports[3]:
    print(catch(port_disable, p))
    print(catch(port_disable, p.peer))
print(port_disable(leaves[1].ports[1]).port_physical_state) # a host's, whom nobody else needs
`)
		if diff := cmp.Diff(strings.Join([]string{
			`error(port_disable: port 4 of "leaf-1" (0x0002c90300100000): not taken down: this session (LID 14) reaches the subnet manager (LID 7) through it; force=True skips this check)`,
			`error(port_disable: port 1 of "spine-2" (0x0002c90300100050): not taken down: the node reaches the subnet manager (LID 7) through it; force=True skips this check)`,
			`error(port_disable: port 3 of "leaf-4" (0x0002c90300100030): not taken down: the subnet manager (LID 7) reaches this session (LID 14) through it; force=True skips this check)`,
			`error(port_disable: port 4 of "spine-1" (0x0002c90300100040): not taken down: this session reaches the node through it; force=True skips this check)`,
			"disabled\n",
		}, "\n"), out+explained); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

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

// forgetful is a transport that, once it is told to, does something to Sets of
// performance management, and counts them.
type forgetful struct {
	engine.Transport

	mu   sync.Mutex
	does string // "", "lose", "lose answer", "ignore"
	sets int
}

func (f *forgetful) Send(d *engine.Datagram) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := mad.ParseHeader(d.MAD); h.Class == mad.ClassPerf && h.Method == mad.MethodSet {
		f.sets++
		switch f.does {
		case "lose":
			return nil
		case "lose answer": // it comes with a transaction ID that nobody has
			d.MAD[12] ^= 0x80
		case "ignore": // to the agent it is a Get
			d.MAD[3] = byte(mad.MethodGet)
		}
	}
	return f.Transport.Send(d)
}

func (f *forgetful) TrySend(d *engine.Datagram) (bool, error) { return true, f.Send(d) }

// start sets the behaviour from now on.
func (f *forgetful) start(does string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.does, f.sets = does, 0
}

func (f *forgetful) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets
}

// TestPerfClearOnce: a request to clear is sent once. Where the answer is lost,
// the counters tell; where they do not, that is an error.
func TestPerfClearOnce(t *testing.T) {
	for _, test := range []struct {
		does, out, err string
		status         int
	}{
		{out: "0\n"},
		{does: "lose answer", out: "0\n"},
		{does: "lose",
			err: "perf_clear: PerfSet(PortCounters) to LID 1: timed out after 1 attempt in 1s; check that the node is up and that its address is current (run discover() again), or increase --timeout and --retries", status: lang.StatusFabric},
		{does: "ignore",
			err: "perf_clear: LID 1: the Set was sent, but symbol_error_counter is still 5", status: lang.StatusFabric},
	} {
		t.Run(test.does, func(t *testing.T) {
			lossy := new(forgetful)
			onSim(t, "ring:n=2", func(o *SessionOptions) {
				o.Engine.Close()
				lossy.Transport = attach(t, "ring:n=2")
				o.Engine = engine.New(lossy, engine.Options{Write: true})
			}, func(t *testing.T, f *fixture) {
				defer f.Env.Engine.Close()
				if _, explained, status := f.run(`perf_set("PortCounters", 1, 1, symbol_error_counter=5)`); status != 0 {
					t.Fatal(explained)
				}
				lossy.start(test.does)
				out, explained, status := f.run(`print(perf_clear("PortCounters", 1, 1, counters="symbol_error_counter").symbol_error_counter)`)
				got := fmt.Sprint(out, firstLines(explained, test.err), " ", status)
				if diff := cmp.Diff(fmt.Sprint(test.out, test.err, " ", test.status), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if n := lossy.count(); n != 1 {
					t.Errorf("%d Sets", n)
				}
			})
		})
	}
}

// TestGuard: where each port has an M_Key of its own, an SMP has the M_Key of its destination port,
// however the script names the port.
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
