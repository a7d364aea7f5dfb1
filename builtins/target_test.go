package builtins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// oddities is a fabric with names and GUIDs that are not unique.
func oddities(t *testing.T) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	add := func(kind mad.NodeType, guid mad.GUID, ports uint8, name string, route mad.DirectedRoute) int {
		n := b.AddNode(fabric.NodeSpec{Name: name, Route: route, Info: mad.NodeInfo{NodeType: kind, NodeGUID: guid, PortGUID: guid + 1, NumPorts: ports, LocalPortNum: 1}})
		for i := range int(ports) {
			b.SetPort(n, i+1, &mad.PortInfo{LID: mad.LID(uint64(guid) + uint64(i)), PortState: mad.PortStateActive, GIDPrefix: 0xfe80000000000000})
			b.SetPortGUID(n, i+1, guid+1+mad.GUID(i))
		}
		return n
	}
	sw := add(mad.NodeTypeSwitch, 0x100, 4, "twin", mad.DirectedRoute{0, 1})
	add(mad.NodeTypeSwitch, 0x200, 4, "twin", mad.DirectedRoute{0, 1, 2})
	add(mad.NodeTypeSwitch, 0x300, 4, "rack 1/leaf/2", mad.DirectedRoute{0, 1, 3})
	add(mad.NodeTypeSwitch, 0x400, 4, "rack 1/leaf", mad.DirectedRoute{0, 1, 4})
	add(mad.NodeTypeSwitch, 0x500, 4, "same", mad.DirectedRoute{0, 1, 4, 1})
	add(mad.NodeTypeSwitch, 0x500, 4, "guid", mad.DirectedRoute{0, 1, 4, 2})
	two := add(mad.NodeTypeCA, 0x600, 2, "dual HCA", mad.DirectedRoute{0, 1, 1})
	add(mad.NodeTypeSwitch, 0x700, 4, "0x0000000000000100", mad.DirectedRoute{0, 1, 4, 3})
	add(mad.NodeTypeCA, 0x800, 1, "", nil)
	b.SetPort(sw, 0, &mad.PortInfo{LID: 5})
	if err := b.Link(sw, 1, two, 1); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// TestResolve: what a name or GUID stands for, and what is said where it
// stands for several things or none.
func TestResolve(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		f.Env.Current = topology.NewFabric(oddities(t))
		c := &lang.Call{Builtin: &datagrams.SMPGet, Thread: f.newThread(t.Context(), "test")}
		for _, test := range []struct{ name, want string }{
			{"twin", `2 nodes are named "twin"; use a GUID, one of 0x0000000000000100, 0x0000000000000200`},
			{"twin/1", `2 nodes are named "twin"; use a GUID, one of 0x0000000000000100, 0x0000000000000200`},
			{"rack 1/leaf/2", `"rack 1/leaf/2" (0x0000000000000300) by 0,1,3`},
			{"rack 1/leaf/1", `port 1 of "rack 1/leaf" (0x0000000000000400) by 0,1,4`},
			{"rack 1/leaf/7", `no port 7: "rack 1/leaf" (0x0000000000000400) has ports 0..4`},
			{"rack 1/leaf/0x1", `unknown node "rack 1/leaf/0x1" (did you mean rack 1/leaf/2?); if it is new, run discover() again`},
			{"rack 1/laef", `unknown node "rack 1/laef" (did you mean rack 1/leaf?); if it is new, run discover() again`},
			{"", "0x0000000000000800 by LID 2048"},
			{"dual HCA/2", `port 2 of "dual HCA" (0x0000000000000600) by LID 1537`},
			// A GUID is one, whatever nodes call themselves; port GUIDs go first.
			{"0x0000000000000100", `"twin" (0x0000000000000100) by 0,1`},
			{"0x200", `"twin" (0x0000000000000200) by 0,1,2`},
			{"0x500", `2 nodes have GUID 0x0000000000000500; use one of dr("0,1,4,1"), dr("0,1,4,2")`},
			{"0x600", "0x0000000000000600 is a node with 2 ports in use; use one of dual HCA/1 (port GUID 0x0000000000000601), dual HCA/2 (port GUID 0x0000000000000602)"},
			{"0x602", `port 2 of "dual HCA" (0x0000000000000600) by LID 1537`},
			{"fe80::602", `port 2 of "dual HCA" (0x0000000000000600) by LID 1537`},
			{"0x0", "invalid GUID 0"},
			{"0xdead", "unknown GUID 0x000000000000dead: neither the latest discover() nor the subnet administrator has it"},
		} {
			list, _, err := (&topology.Resolver{Call: c}).Targets(starlark.String(test.name))
			if err != nil {
				t.Fatal(err)
			}
			got := list[0]
			text := got.Label
			switch {
			case got.Err != nil:
				text = got.Err.Error()
			case got.Route != nil:
				text += " by " + got.Route.String()
			default:
				text += " by LID " + fmt.Sprint(got.LID)
			}
			if diff := cmp.Diff(test.want, text); diff != "" {
				t.Errorf("%q (-want +got):\n%s", test.name, diff)
			}
		}
	})
}

// TestFileSession: a session on a file knows the fabric, and asks nobody.
func TestFileSession(t *testing.T) {
	f := plain(t, func(o *SessionOptions) { o.Loaded = oddities(t) })
	const noFabric = ": no live fabric: this session reads a file; open a live fabric with -F (for example -F sim)"
	for code, want := range map[string]string{
		"len(discover().switches)":     "7\n",
		"discover() == discover()":     "True\n",
		"discover().links[0].b.name":   "\"dual HCA/1\"\n",
		"smp_get('NodeInfo', 1)":       "smp_get" + noFabric,
		"discover(hops=1)":             "discover: around and hops require a live fabric; this session reads a file",
		"perf_get('PortCounters',1,1)": "perf_get" + noFabric,
		"set_lft(1, {1: 1})":           "set_lft" + noFabric,
		"stats()":                      "stats" + noFabric,
	} {
		out, explained, _ := f.run(code)
		if got := firstLines(out+explained, want); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestLoadedNodes: the nodes of a file are reached by LID.
func TestLoadedNodes(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		code := `
live = discover()
f = load_fabric("live.topo")
pairs = [(a, b) for a, b in zip(live.nodes, f.nodes)]
print(all([a.guid == b.guid and a.lid == b.lid and b.route == None for a, b in pairs]))
print(smp_get("NodeInfo", f.nodes) == [smp_get("NodeInfo", n.lid) for n in f.nodes])
`
		out, explained, _ := f.run(`print(discover().dump())`)
		if explained != "" {
			t.Fatal(explained)
		}
		write(t, f.fs, "/work/live.topo", out)
		if out, explained, _ := f.run(code); out != "True\nTrue\n" {
			t.Errorf("printed %q %s", out, explained)
		}
	})
	f := plain(t, func(o *SessionOptions) { write(t, o.FS, "/work/bad.topo", "Switch 3\n") })
	for code, want := range map[string]string{
		`load_fabric("none.topo")`: "load_fabric: none.topo: no such file",
		`load_fabric("/etc/x")`:    "load_fabric: /etc/x: scripts may not read here, only below .; allow its directory with -I",
		`load_fabric(".")`:         "load_fabric: .: is a directory",
	} {
		if _, explained, _ := f.run(code); firstLines(explained, want) != want {
			t.Errorf("%s: %s\nwant %s", code, explained, want)
		}
	}
	if _, explained, status := f.run(`load_fabric("bad.topo")`); status != lang.StatusUsage || explained == "" {
		t.Errorf("malformed file: status %d, %s", status, explained)
	}
}
