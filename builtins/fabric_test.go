package builtins

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/diff"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
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
		"len(discover().switches)":      "7\n",
		"discover() == discover()":      "True\n",
		"discover().links[0].b.name":    "\"dual HCA/1\"\n",
		"smp_get('NodeInfo', 1)":        "smp_get: the file has no attributes beyond the topology; ibdiagnet2.db_csv and fabsh snapshot --all have them; or open a live fabric with -F (for example -F sim)",
		"discover(hops=1)":              "discover: around and hops require a live fabric; this session reads a file",
		"perf_get('PortCounters',1,1)":  "perf_get: the file has no counters; ibdiagnet2.db_csv, fabsh snapshot --all, and outputs of ibqueryerrors and perfquery in one directory with the topology have them; or open a live fabric with -F (for example -F sim)",
		"sa_gettable('MCMemberRecord')": "sa_gettable: the file has no records of the subnet administrator; fabsh snapshot --all has them, and opensm-sa.dump in one directory with the topology has groups and services; or open a live fabric with -F (for example -F sim)",
		"set_lft(1, {1: 1})":            "set_lft" + noFabric,
		"stats()":                       "stats" + noFabric,
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
		`load_fabric(".")`:         "load_fabric: .: no topology among its 1 file; expected ibdiagnet2.db_csv, opensm-subnet.lst, or what ibnetdiscover or iblinkinfo print; not read: bad.topo (unknown format)",
	} {
		if _, explained, _ := f.run(code); firstLines(explained, want) != want {
			t.Errorf("%s: %s\nwant %s", code, explained, want)
		}
	}
	if _, explained, status := f.run(`load_fabric("bad.topo")`); status != lang.StatusUsage || explained == "" {
		t.Errorf("malformed file: status %d, %s", status, explained)
	}
}

// planarized is a fabric behind an adapter whose SMPs go by directed route alone,
// and says of what class was sent.
type planarized struct {
	engine.Transport
	mu   sync.Mutex
	sent []mad.Class
}

func (p *planarized) Port() (engine.Port, error) {
	port, err := p.Transport.Port()
	port.Planarized = true
	return port, err
}

func (p *planarized) Send(d *engine.Datagram) error {
	p.mu.Lock()
	p.sent = append(p.sent, mad.Class(d.MAD[mad.ClassOffset]))
	p.mu.Unlock()
	return p.Transport.Send(d)
}

func (p *planarized) TrySend(*engine.Datagram) (bool, error) { return false, nil }

// TestPlanarized: an SMP to a LID goes along a directed route, where the fabric
// is known and the adapter is planarized; all else goes by LID.
func TestPlanarized(t *testing.T) {
	var p *planarized
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		p = &planarized{Transport: attach(t, "ring:n=2")}
		o.Engine = engine.New(p, engine.Options{})
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		f.run("f = discover()")
		p.mu.Lock()
		p.sent = nil
		p.mu.Unlock()
		out, explained, _ := f.run(`f = discover(); print(smp_get("NodeInfo", f.switches[1].lid).node_guid == f.switches[1].guid, perf_get("PortCounters", f.switches[1].lid, 1).port_select)`)
		if got := strings.TrimSpace(out) + explained; got != "True 1" {
			t.Error(got)
		}
		for _, c := range p.sent {
			if c == mad.ClassSubn {
				t.Error("an SMP went by LID")
			}
		}
	})
}

// snapshotOf is all that there is to read of a simulated fabric, after a script ran
// on it.
func snapshotOf(t *testing.T, subnet *sim.Subnet, tr engine.Transport, code string) *fabric.Fabric {
	t.Helper()
	e := engine.New(tr, engine.Options{Write: true})
	defer e.Close()
	s, err := NewSession(SessionOptions{Facts: topology.Facts{Engine: e, Sim: subnet, Write: true}})
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

// virtual is a port that may not send SMPs, like a port of a virtual function.
type virtual struct{ engine.Transport }

func (v *virtual) Send(d *engine.Datagram) error {
	if d.QP == 0 {
		return &engine.SendError{Err: errors.New("the port has no subnet management interface")}
	}
	return v.Transport.Send(d)
}

func (v *virtual) TrySend(d *engine.Datagram) (bool, error) { return true, v.Send(d) }

// TestVirtualFunction: without a queue pair 0 there is the subnet administrator.
func TestVirtualFunction(t *testing.T) {
	onSim(t, "ring:n=2", func(o *SessionOptions) {
		o.Engine.Close()
		o.Engine = engine.New(&virtual{attach(t, "ring:n=2")}, engine.Options{})
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		const want = "the port has no subnet management interface; or use the subnet administrator: discover(via=\"sa\")\n"
		if _, explained, status := f.run(`discover()`); !strings.Contains(explained, want) || status != 3 {
			t.Errorf("status %d: %s", status, explained)
		}
		out, explained, status := f.run(`f = discover(via="sa"); print(f, perf_get("PortCounters", f.switches[0], 1).port_select)`)
		if out != "fabric: 4 nodes (2 switches, 2 CAs), 3 links, complete by the records of the subnet administrator 1\n" || status != 0 {
			t.Errorf("%s, %s, status %d", out, explained, status)
		}
	})
}

// extendedScript reads virtual ports, by the modifier that the simulator has for VPortInfo.
const extendedScript = `f = discover(extended=True, vport_modifier=lambda port, index: index if index else None)
`

// TestDiscoverExtended: virtual ports, planes and health as values; VPortInfo is requested
// only by a modifier of the script.
func TestDiscoverExtended(t *testing.T) {
	onSim(t, "ring:n=2,vports=2", nil, func(t *testing.T, f *fixture) {
		for _, test := range []struct{ code, want string }{
			{"f = discover(extended=True)\n" + `for v in f.virtual_ports: print(v.port.name, v.index, v.state, v.lid, v.guid)`, `node-0001 HCA-1/1 0 active 0 None
node-0001 HCA-1/1 1 active 0 None
node-0001 HCA-1/1 2 active 0 None
node-0002 HCA-1/1 0 active 0 None
node-0002 HCA-1/1 1 active 0 None
node-0002 HCA-1/1 2 active 0 None`},
			{extendedScript + `for v in f.virtual_ports:
    if v.index == None and v.port.node.name == "node-0002 HCA-1": print(v, v.state, v.lid, v.guid)`, `virtual_port("node-0002 HCA-1/1", index=None) active 6 0x0002ca0310000011
virtual_port("node-0002 HCA-1/1", index=None) active 0 0x0002cb0310000011`},
			{extendedScript + `print([(l.plane, l.unhealthy, l.a.unhealthy) for l in f.links][0], f.nodes[0].next_hops, f.nodes[0].router_info, len(discover().virtual_ports))`,
				`(None, None, None) None None 0`},
			{`discover(vport_modifier=lambda p, i: 0)`, `discover: for parameter vport_modifier: requires extended=True`},
			{`discover(via="sa", extended=True)`, `discover: extended is not supported with via="sa"`},
			{`discover(extended=True, vport_modifier=lambda p, i: "a")`, `discover: for parameter vport_modifier: returned "a", want a modifier of 32 bits or None`},
			{`discover(extended=True, vport_modifier=lambda p, i: 1 << 32)`, `discover: for parameter vport_modifier: returned 4294967296, want a modifier of 32 bits or None`},
			{`discover(extended=True, vport_modifier=lambda p, i: fail("my own"))`, `fail: my own`},
			{`print(len(discover(extended=True, vport_modifier=lambda p, i: 77 if i == 1 else None).virtual_ports))`, `6`}, // index 77 does not exist
		} {
			out, explained, _ := f.run(test.code)
			if got := strings.TrimSpace(out + strings.SplitN(explained, "\n", 2)[0]); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
			}
		}
	})
}

// TestVirtualPortAudits: LIDs and GUIDs of virtual ports count for the audits identity and
// sm, and partitions with virtual ports are not judged by their number of members.
func TestVirtualPortAudits(t *testing.T) {
	onSimWith(t, "ring:n=3,vports=2", smKey, nil, nil, func(t *testing.T, f *fixture) {
		all := kept(t, f)
		f.run(extendedScript)
		read := topology.EnvOf(f.Runtime).Current.Fabric
		healthy := slices.Concat(all.Answers(), read.Answers())
		cas := read.OfType(mad.NodeTypeCA)
		first, second := cas[0].Port(1).GUID(), cas[1].LID() // of physical ports
		// edited returns the answers with VPortInfo of the last node changed, where it has a LID.
		edited := func(change func(v *mad.VPortInfo)) []fabric.Answer {
			list := slices.Clone(healthy)
			for i := range list {
				if a := &list[i]; a.Class == mad.ClassSubn && a.ID == mad.AttrVPortInfo.ID && int(a.Node) == cas[2].ID() {
					var v mad.VPortInfo
					if v.Decode(a.Data); v.LIDRequired {
						change(&v)
						a.Data = make([]byte, len(a.Data))
						v.Encode(a.Data)
					}
				}
			}
			return list
		}
		record := func(lid mad.LID) fabric.Answer {
			data := make([]byte, mad.AttrNodeRecord.Size)
			(&mad.NodeRecord{LID: lid, NodeInfo: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 0x77}}).Encode(data)
			return fabric.Answer{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: mad.AttrNodeRecord.ID, Data: data}
		}
		// A partition of one host alone, with virtual ports and without.
		lonely := slices.Clone(healthy)
		for i := range lonely {
			if a := &lonely[i]; a.Class == mad.ClassSubn && a.ID == mad.AttrPKeyTable.ID && a.Modifier&0xffff == 0 && int(a.Node) == cas[2].ID() {
				a.Data = slices.Clone(a.Data)
				a.Data[2], a.Data[3] = 0x80, 0x05
			}
		}
		physical := slices.DeleteFunc(slices.Clone(lonely), func(a fabric.Answer) bool {
			return a.ID == mad.AttrVPortState.ID || a.ID == mad.AttrVPortInfo.ID
		})
		for _, test := range []struct {
			name    string
			answers []fabric.Answer
			want    string
		}{
			{"healthy", healthy, ""},
			{"LID", edited(func(v *mad.VPortInfo) { v.LID = second }), "lid.dup  node-0003 HCA-1/1: LID 5 of a virtual port of this port is also the LID of node-0002 HCA-1/1"},
			{"LID of a virtual port", edited(func(v *mad.VPortInfo) { v.LID -= 1 }), "lid.dup  node-0003 HCA-1/1: LID 8 of a virtual port of this port is also the LID of node-0002 HCA-1/1"},
			{"GUID", edited(func(v *mad.VPortInfo) { v.PortGUID = first }), "guid.dup  node-0003 HCA-1/1: a virtual port of this port has the port GUID of node-0001 HCA-1/1: 0x0002c90310000001"},
			{"GUID 0", edited(func(v *mad.VPortInfo) { v.PortGUID = 0 }), "guid.zero  node-0003 HCA-1/1: a virtual port of this port has port GUID 0"},
			{"record of a virtual port", append(slices.Clone(healthy), record(9)), ""},
			{"record of another node", append(slices.Clone(healthy), record(99)), `node.silent  0x0000000000000077: the subnet administrator has "" at LID 99, but the sweep did not reach it`},
			{"partition", lonely, ""},
			{"partition without virtual ports", physical, "pkey.lonely  node-0003 HCA-1/1: no other port is in partition 0x0005"},
		} {
			var b bytes.Buffer
			if err := format.WriteSnapshot(&b, all.With(fabric.Reading{Answers: test.answers})); err != nil {
				t.Fatal(err)
			}
			snap, err := format.ReadSnapshot(&b, "snapshot")
			if err != nil {
				t.Fatal(err)
			}
			file := ofFile(t, snap)
			r := audited(t, file, audits.RunOptions{}, "identity", "partitions", "sm")
			var got []string
			for i := range r.Findings {
				if x := &r.Findings[i]; !aboutRun(x.ID()) {
					got = append(got, x.Check+"  "+x.Subject.Name()+": "+x.Message)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
			file.Close()
		}
	})
}
