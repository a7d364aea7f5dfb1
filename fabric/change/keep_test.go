package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// railed returns a fabric of four hosts with three adapters, each at a leaf of its own, after a change of
// its nodes and ports.
func railed(t testing.TB, edit func(name *string, info *mad.NodeInfo, port *mad.PortInfo)) *fabric.Fabric {
	t.Helper()
	f, b := routingtest.Topology(t, "pgft:m=4/3,w=1/2,p=1/1,rails=3"), new(fabric.Builder)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		name, info, port := n.Name(), *n.Info(), mad.PortInfo{PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp, LID: mad.LID(i + 1)}
		if edit != nil {
			edit(&name, &info, &port)
		}
		b.AddNode(fabric.NodeSpec{Name: name, Info: info, Switch: n.SwitchInfo()})
		for p := range n.Ports() {
			b.SetPort(i, p.Num(), &port)
		}
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil && p.ID() < p.Peer().ID() {
			if err := b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// named returns port 1 of a node.
func named(t testing.TB, f *fabric.Fabric, name string) *fabric.Port {
	t.Helper()
	if list := f.NodeByName(name); len(list) > 0 {
		return list[0].Port(1)
	}
	t.Fatalf("no node %s", name)
	return nil
}

// tablesOf returns a reader of P_Key tables by the names of nodes; "": of others. nil: not read.
func tablesOf(tables map[string][]uint16) PKeys {
	return func(_ context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
		read := map[*fabric.Port][]uint16{}
		for _, p := range ports {
			keys, ok := tables[p.Node().Name()]
			if !ok {
				keys = tables[""]
			}
			if keys != nil {
				read[p] = keys
			}
		}
		return read, nil
	}
}

func TestKeepPorts(t *testing.T) {
	same := map[string][]uint16{"": {0xffff, 0, 0x0005}}
	with := func(name string, keys ...uint16) map[string][]uint16 {
		return map[string][]uint16{"": {0xffff}, "node-0001 HCA-1": {0xffff, 0x8005, 0x0006}, name: keys}
	}
	for _, c := range []struct {
		name string
		edit func(name *string, info *mad.NodeInfo, port *mad.PortInfo)
		down string // separated by commas
		keys map[string][]uint16
		want string
	}{
		{name: "another with all partitions", down: "node-0001 HCA-1", keys: same, want: "node-0001 HCA-1/1 by node-0001 HCA-2/1"},
		{name: "two of a host", down: "node-0001 HCA-1,node-0001 HCA-2", keys: same, want: "node-0001 HCA-1/1 by node-0001 HCA-3/1, node-0001 HCA-2/1 by node-0001 HCA-3/1"},
		{name: "all of a host", down: "node-0001 HCA-1,node-0001 HCA-2,node-0001 HCA-3", keys: same, want: "node-0001 HCA-1/1: node-0001 HCA-2/1 goes down too; node-0001 HCA-3/1 goes down too, " +
			"node-0001 HCA-2/1: node-0001 HCA-1/1 goes down too; node-0001 HCA-3/1 goes down too, node-0001 HCA-3/1: node-0001 HCA-1/1 goes down too; node-0001 HCA-2/1 goes down too"},
		{name: "two hosts", down: "node-0001 HCA-1,node-0002 HCA-2", keys: same, want: "node-0001 HCA-1/1 by node-0001 HCA-2/1, node-0002 HCA-2/1 by node-0002 HCA-1/1"},
		{name: "no table", down: "node-0001 HCA-1", want: "node-0001 HCA-1/1: node-0001 HCA-2/1: not judged: the P_Key table of node-0001 HCA-1/1 was not read; node-0001 HCA-3/1: not judged: the P_Key table of node-0001 HCA-1/1 was not read"},
		{name: "the third", down: "node-0001 HCA-1", keys: with("node-0001 HCA-3", 0xffff, 0x8006, 0x8005), want: "node-0001 HCA-1/1 by node-0001 HCA-3/1"},
		{name: "a limited member", down: "node-0001 HCA-1", keys: with("node-0001 HCA-3", 0xffff, 0x0005, 0x0006), want: "node-0001 HCA-1/1: node-0001 HCA-2/1 lacks P_Key 0x8005; node-0001 HCA-3/1 is only a limited member of 0x0005"},
		{name: "both members", down: "node-0001 HCA-1", keys: with("node-0001 HCA-3", 0xffff, 0x0005, 0x8005, 0x0006), want: "node-0001 HCA-1/1 by node-0001 HCA-3/1"},
		{name: "a table of one was not read", down: "node-0001 HCA-1", keys: with("node-0001 HCA-3"), want: "node-0001 HCA-1/1: node-0001 HCA-2/1 lacks P_Key 0x8005; node-0001 HCA-3/1: not judged: its P_Key table was not read"},
		{name: "an empty table", down: "node-0001 HCA-1", keys: map[string][]uint16{"": {0, 0}}, want: "node-0001 HCA-1/1 by node-0001 HCA-2/1"},
		{name: "not active", down: "node-0001 HCA-1", keys: same, want: "node-0001 HCA-1/1 by node-0001 HCA-3/1", edit: func(name *string, _ *mad.NodeInfo, port *mad.PortInfo) {
			if *name == "node-0001 HCA-2" {
				port.PortState = mad.PortStateInitialize
			}
		}},
		{name: "none is active", down: "node-0001 HCA-1", keys: same, want: "node-0001 HCA-1/1: node-0001 HCA-2/1 is not used: its state is initialize; node-0001 HCA-3/1 is not used: its state is initialize", edit: func(name *string, _ *mad.NodeInfo, port *mad.PortInfo) {
			if *name == "node-0001 HCA-2" || *name == "node-0001 HCA-3" {
				port.PortState = mad.PortStateInitialize
			}
		}},
		{name: "another host", down: "node-0001 HCA-1", keys: same, want: "", edit: func(name *string, _ *mad.NodeInfo, _ *mad.PortInfo) {
			if strings.HasPrefix(*name, "node-0001") && *name != "node-0001 HCA-1" {
				*name = "x" + *name
			}
		}},
		{name: "two hosts of one system", down: "left HCA-1", keys: same, want: "", edit: func(name *string, info *mad.NodeInfo, _ *mad.PortInfo) {
			*name = strings.ReplaceAll(*name, "node-0001 HCA-1", "left HCA-1")
			*name = strings.ReplaceAll(*name, "node-0001", "right")
		}},
		{name: "no names", down: "MT4129 ConnectX7 Mellanox Technologies", keys: same, want: "MT4129 ConnectX7 Mellanox Technologies/1 by MT4129 ConnectX7 Mellanox Technologies/1", edit: func(name *string, _ *mad.NodeInfo, _ *mad.PortInfo) {
			if strings.HasPrefix(*name, "node-") {
				*name = "MT4129 ConnectX7 Mellanox Technologies"
			}
		}},
		{name: "no names and no system", down: "MT4129 ConnectX7 Mellanox Technologies", keys: same, want: "", edit: func(name *string, info *mad.NodeInfo, _ *mad.PortInfo) {
			if strings.HasPrefix(*name, "node-") {
				*name, info.SystemImageGUID = "MT4129 ConnectX7 Mellanox Technologies", 0
			}
		}},
		{name: "one name of several hosts", down: "node-0001 mlx5_0", keys: same, want: "node-0001 mlx5_0/1 by node-0001 HCA-2/1", edit: func(name *string, _ *mad.NodeInfo, _ *mad.PortInfo) {
			if strings.HasSuffix(*name, "HCA-1") { // of all hosts; the system tells which
				*name = "node-0001 mlx5_0"
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, down := railed(t, c.edit), map[*fabric.Port]bool{}
			for name := range strings.SplitSeq(c.down, ",") {
				p := named(t, f, name)
				down[p], down[p.Peer()] = true, true
			}
			kept, err := KeepPorts(t.Context(), f, down, tablesOf(c.keys), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range f.Ports() {
				switch p := &f.Ports()[i]; {
				case kept.By[p] != nil:
					got = append(got, p.Name()+" by "+kept.By[p].Name())
				case kept.Why(p) != "":
					got = append(got, p.Name()+": "+kept.Why(p))
				}
			}
			if slices.Sort(got); strings.Join(got, ", ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), c.want)
			}
			if cut := CutOff(f, down, kept); (cut == "") != (2*len(kept.By) == len(down)) {
				t.Errorf("cut off: %s", cut)
			}
		})
	}
	failed := errors.New("closed")
	f := railed(t, nil)
	p := named(t, f, "node-0001 HCA-1")
	_, err := KeepPorts(t.Context(), f, map[*fabric.Port]bool{p: true, p.Peer(): true}, func(context.Context, []*fabric.Port) (map[*fabric.Port][]uint16, error) { return nil, failed }, nil)
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestKeptParts: a port at switches that the other one is not connected to keeps nothing.
func TestKeptParts(t *testing.T) {
	f := railed(t, nil)
	p, down := named(t, f, "node-0001 HCA-1"), map[*fabric.Port]bool{}
	down[p], down[p.Peer()] = true, true
	for q := range p.Peer().Node().Ports() {
		if q.Peer() != nil && q.Peer().Node().IsSwitch() {
			down[q], down[q.Peer()] = true, true
		}
	}
	kept, err := KeepPorts(t.Context(), f, down, tablesOf(map[string][]uint16{"": {0xffff}}), nil)
	const want = "node-0001 HCA-2/1 is connected to other switches; node-0001 HCA-3/1 is connected to other switches"
	if err != nil || len(kept.By) > 0 || kept.Why(p) != want {
		t.Errorf("%v, %v: %s", err, kept.By, kept.Why(p))
	}
}

// TestKeptEffect: the pairs of a port whose host keeps another one end, and are not lost.
func TestKeptEffect(t *testing.T) {
	f := railed(t, nil)
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := engines.Compute(t.Context(), g, "minhop", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.ForgetOrigin()
	same := tablesOf(map[string][]uint16{"": {0xffff}})
	for _, c := range []struct {
		name    string
		down    string
		keys    PKeys
		managed bool
		broken  bool // a host does not reach the second adapter
		want    string
	}{
		{"kept", "node-0001 HCA-1", same, true, false, ": 22 ended [node-0001 HCA-2/1 in place of node-0001 HCA-1/1], 0 through, 0 lost, 0 out of reach"},
		{"no subnet manager", "node-0001 HCA-1", same, false, false, ": 22 ended [node-0001 HCA-2/1 in place of node-0001 HCA-1/1], 0 through, 0 lost, 0 out of reach"},
		{"two of a host", "node-0001 HCA-1,node-0001 HCA-2", same, true, false, ": 42 ended [node-0001 HCA-3/1 in place of node-0001 HCA-1/1 node-0001 HCA-3/1 in place of node-0001 HCA-2/1], 0 through, 0 lost, 0 out of reach"},
		{"its last", "node-0001 HCA-1,node-0001 HCA-2,node-0001 HCA-3", same, true, false, `"node-0001 HCA-1" (0x0002c90310000000) would lose its last link; no other port of the host keeps its paths: node-0001 HCA-2/1 goes down too; node-0001 HCA-3/1 goes down too; node-0001 HCA-1/1 goes down too: 0 ended [], 60 through, 60 lost, 60 out of reach`},
		{"unread", "node-0001 HCA-1", nil, true, false, `"node-0001 HCA-1" (0x0002c90310000000) would lose its last link; no other port of the host keeps its paths: node-0001 HCA-2/1: not judged: the P_Key table of node-0001 HCA-1/1 was not read; node-0001 HCA-3/1: not judged: the P_Key table of node-0001 HCA-1/1 was not read: 0 ended [], 22 through, 22 lost, 22 out of reach`},
		{"fewer paths", "node-0001 HCA-1", same, true, true, ": 21 ended [node-0001 HCA-3/1 in place of node-0001 HCA-1/1], 0 through, 0 lost, 0 out of reach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables := r
			if c.broken {
				tables = r.Clone()
				leaf := g.SwitchOf(named(t, f, "node-0002 HCA-1").Peer().Node())
				tables.EditRow(leaf)[g.Terminals()[g.TerminalOf(named(t, f, "node-0001 HCA-2"))].LID] = mad.NoPort
			}
			var down []*fabric.Port
			for name := range strings.SplitSeq(c.down, ",") {
				down = append(down, named(t, f, name).Peer())
			}
			e, err := PredictEffect(t.Context(), tables, down, PredictOptions{Managed: c.managed, PKeys: c.keys})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s: %d ended %v, %d through, %d lost, %d out of reach", e.Refusal(), e.Ended, e.Kept, e.Through, e.Lost, e.OutOfReach); got != c.want {
				t.Errorf("got  %s\nwant %s\n%s", got, c.want, strings.Join(e.Lines(), "\n"))
			}
		})
	}
}
