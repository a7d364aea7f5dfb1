package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestCompare changes a fat tree of 4 leaves, 2 spines and 8 hosts.
func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(d *draft)
		want string
	}{
		{"nothing", func(d *draft) {}, ""},
		{"two cables swapped", func(d *draft) { d.cross("leaf-3/1", "leaf-3/2") },
			"link.swapped leaf-3/1, leaf-3/2 [leaf-3/1 - node-0005/1, leaf-3/2 - node-0006/1 > leaf-3/1 - node-0006/1, leaf-3/2 - node-0005/1] swap the cables at leaf-3/1 and leaf-3/2\n"},
		{"swapped between switches", func(d *draft) { d.cross("leaf-1/3", "leaf-2/3") },
			"link.swapped spine-1/1, spine-1/2 [spine-1/1 - leaf-1/3, spine-1/2 - leaf-2/3 > spine-1/1 - leaf-2/3, spine-1/2 - leaf-1/3] swap the cables at spine-1/1 and spine-1/2\n"},
		{"three cables exchanged", func(d *draft) { d.cross("leaf-1/3", "leaf-2/3"); d.cross("leaf-1/3", "leaf-3/3") },
			"link.swapped spine-1/1, spine-1/2, spine-1/3 [spine-1/1 - leaf-1/3, spine-1/2 - leaf-2/3, spine-1/3 - leaf-3/3 > spine-1/1 - leaf-2/3, spine-1/2 - leaf-3/3, spine-1/3 - leaf-1/3] exchange the cables of 3 ports: move that at spine-1/1 to spine-1/2, at spine-1/2 to spine-1/3, at spine-1/3 to spine-1/1\n"},
		{"one end moved", func(d *draft) { d.unlink("leaf-1/1"); d.unlink("leaf-4/2"); d.link("leaf-4/2", "node-0001/1") }, "" +
			"link.moved leaf-1/1 - node-0001/1 [leaf-1/1 > leaf-4/2] the end at node-0001/1 stayed\n" +
			"link.gone leaf-4/2 - node-0008/1 [4x hdr > ]\n"},
		{"gone and back", func(d *draft) { d.unlink("leaf-1/3") }, "link.gone leaf-1/3 - spine-1/1 [4x hdr > ]\n"},
		{"a host gone", func(d *draft) { d.drop("node-0003") }, "" +
			"node.gone node-0003 [ca, 1 port > ] 1 link\n" +
			"  link.gone leaf-2/1 - node-0003/1 [4x hdr > ]\n"},
		{"a leaf and its hosts gone", func(d *draft) { d.drop("leaf-2"); d.drop("node-0003"); d.drop("node-0004") }, "" +
			"node.gone leaf-2 [switch, 4 ports > ] 4 links, 2 nodes behind it\n" +
			"  node.gone node-0003 [ca, 1 port > ]\n" +
			"  node.gone node-0004 [ca, 1 port > ]\n" +
			"  link.gone leaf-2/1 - node-0003/1 [4x hdr > ]\n" +
			"  link.gone leaf-2/2 - node-0004/1 [4x hdr > ]\n" +
			"  link.gone leaf-2/3 - spine-1/2 [4x hdr > ]\n" +
			"  link.gone leaf-2/4 - spine-2/2 [4x hdr > ]\n"},
		{"a host replaced", func(d *draft) { d.node("node-0003").info.NodeGUID = 0x99 },
			"node.replaced node-0003 [0x0002c90310000020 > 0x0000000000000099]\n"},
		{"a leaf and its host replaced", func(d *draft) { d.node("leaf-2").info.NodeGUID = 0x98; d.node("node-0003").info.NodeGUID = 0x99 }, "" +
			"node.replaced leaf-2 [0x0002c90300100010 > 0x0000000000000098]\n" +
			"node.replaced node-0003 [0x0002c90310000020 > 0x0000000000000099]\n"},
		{"renamed", func(d *draft) { d.node("node-0003").name = "a,\"b\x1b[31m\n\xff" },
			`node.name "a,\"b\x1b[31m\n\xff" [node-0003 > "a,\"b\x1b[31m\n\xff"]` + "\n"},
		{"firmware", func(d *draft) { d.node("leaf-2").info.Revision = 0xb1 },
			"node.revision leaf-2 [0x00000000 > 0x000000b1]\n"},
		{"settings", func(d *draft) {
			p := d.node("spine-1").ports[2]
			p.NeighborMTU, p.OperationalVLs, p.LinkSpeedExtActive = mad.MTU2048, 2, mad.LinkSpeedExtEDR
			p.LID, p.MKey, p.MKeyViolations = 99, 5, 3 // mean nothing there
			q := d.node("node-0002").ports[1]
			q.LID, q.LMC, q.MKey, q.MKeyProtectBits = 77, 1, 12, 1 // the key is not reported
		}, "" +
			"link.speed leaf-2/3 - spine-1/2 [hdr > edr]\n" +
			"port.neighbor_mtu spine-1/2 [4096 > 2048]\n" +
			"port.operational_vls spine-1/2 [vl0_3 > vl0_1]\n" +
			"port.lid node-0002/1 [8 > 77]\n" +
			"port.m_key_protect_bits node-0002/1 [0 > 1]\n" +
			"port.lmc node-0002/1 [0 > 1]\n"},
		{"switch settings", func(d *draft) { d.node("spine-1").sw.LifeTimeValue = 9 }, "switch.life_time_value spine-1 [0 > 9]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := tree(t)
			d := draftOf(f)
			test.edit(d)
			check(t, f, d.build(), test.want)
		})
	}
}

// TestRoutes: tables that differ, and what that does to paths, are an effect of the one
// thing that changed.
func TestRoutes(t *testing.T) {
	f := routed(t, tree(t))
	check(t, f, routed(t, tree(t)), "")
	d := draftOf(f)
	d.node("leaf-1").lft[14] = 3 // node-0008, by the other spine
	check(t, f, d.build(), "routes forwarding tables of 1 switch 2 pairs rerouted, max load +2\n  table.lft leaf-1 [14 LIDs > 14 LIDs] 1 entry differs\n")
	d = draftOf(f)
	d.node("leaf-1").lft[14] = mad.NoPort
	check(t, f, d.build(), "routes forwarding tables of 1 switch 2 pairs rerouted, of which 2 do not arrive, max load +0\n  table.lft leaf-1 [14 LIDs > 13 LIDs] 1 entry differs\n")
	d = draftOf(f)
	d.cross("leaf-3/1", "leaf-3/2")
	check(t, f, d.build(), ""+
		"link.swapped leaf-3/1, leaf-3/2 [leaf-3/1 - node-0005/1, leaf-3/2 - node-0006/1 > leaf-3/1 - node-0006/1, leaf-3/2 - node-0005/1] swap the cables at leaf-3/1 and leaf-3/2\n"+
		"  routes paths, by the same forwarding tables 14 pairs rerouted, of which 14 do not arrive, max load +0\n")
	d = draftOf(f)
	d.unlink("leaf-1/3")
	check(t, f, routed(t, d.build()), ""+
		"link.gone leaf-1/3 - spine-1/1 [4x hdr > ]\n"+
		"  routes forwarding tables of 6 switches 12 pairs rerouted, max load +6\n"+
		"    table.lft leaf-1 [14 LIDs > 14 LIDs] 5 entries differ\n"+
		"    table.lft leaf-2 [14 LIDs > 14 LIDs] 2 entries differ\n"+
		"    table.lft leaf-3 [14 LIDs > 14 LIDs] 2 entries differ\n"+
		"    table.lft leaf-4 [14 LIDs > 14 LIDs] 2 entries differ\n"+
		"    table.lft spine-1 [14 LIDs > 14 LIDs] 4 entries differ\n"+
		"    table.lft spine-2 [14 LIDs > 14 LIDs] 1 entry differs\n")
	check(t, f, tree(t), "not compared: linear forwarding tables: missing in the newer fabric\n")
	d = draftOf(f)
	d.node("leaf-1").lft = nil
	check(t, f, d.build(), "unread: linear forwarding table of leaf-1: missing in the newer fabric\n")
}

// check compares what Compare tells with want, and that nothing is unread.
func check(t *testing.T, old, new *fabric.Fabric, want string) {
	t.Helper()
	r, err := Compare(t.Context(), old, new)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, reportLines(r)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	changed := slices.ContainsFunc(strings.Split(want, "\n"), func(line string) bool {
		return line != "" && !strings.HasPrefix(line, "unread") && !strings.HasPrefix(line, "not compared")
	})
	if r.Same() == changed || strings.Contains(want, "unread") == r.Complete() {
		t.Errorf("same %v, complete %v", r.Same(), r.Complete())
	}
}

// reportLines returns a report as lines.
func reportLines(r *Report) string {
	var b strings.Builder
	var write func(list []*Change, indent string)
	write = func(list []*Change, indent string) {
		for _, x := range list {
			line := indent + x.Kind + " " + x.Subject
			if x.Before+x.After != "" {
				line += " [" + x.Before + " > " + x.After + "]"
			}
			fmt.Fprintln(&b, strings.TrimRight(line+" "+x.Effect, " "))
			write(x.Effects, indent+"  ")
		}
	}
	write(r.Changes, "")
	for _, note := range r.NotCompared {
		fmt.Fprintln(&b, "not compared: "+note)
	}
	for _, note := range r.Unread {
		fmt.Fprintln(&b, "unread: "+note)
	}
	return b.String()
}

// tree is a fat tree whose ports have answered.
func tree(t testing.TB) *fabric.Fabric { return generated(t, "fattree:k=4") }

func generated(t testing.TB, spec string) *fabric.Fabric {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	d := draftOf(f)
	for i, n := range d.nodes {
		n.name = strings.TrimSuffix(n.name, " HCA-1")
		first := 1
		if n.info.NodeType == mad.NodeTypeSwitch {
			n.sw, first = &mad.SwitchInfo{LinearFDBCap: 49152}, 0
		}
		for num := first; num <= int(n.info.NumPorts); num++ {
			p := &mad.PortInfo{MTUCap: mad.MTU4096, NeighborMTU: mad.MTU4096, OperationalVLs: 3, CapabilityMask: mad.CapabilityMaskIsExtendedSpeedsSupported,
				LinkWidthActive: 2, LinkSpeedExtActive: mad.LinkSpeedExtHDR, PortState: mad.PortStateDown, PortPhysicalState: mad.PortPhysicalStatePolling}
			if _, ok := n.peers[num]; ok || num == 0 {
				p.PortState, p.PortPhysicalState = mad.PortStateActive, mad.PortPhysicalStateLinkUp
			}
			if num == first {
				p.LID = mad.LID(i + 1)
			}
			n.ports[num] = p
		}
	}
	return d.build()
}

// routed is f with the tables of minhop.
func routed(t testing.TB, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := engines.Compute(t.Context(), g, "minhop", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lfts := make([][]byte, len(f.Nodes()))
	for s, n := range g.Switches() {
		lfts[n.ID()] = r.Row(s)
	}
	return f.With(fabric.Reading{LFTs: lfts})
}

// draft is a fabric that can be changed.
type draft struct {
	nodes    []*draftNode
	problems []fabric.Problem
}

type draftNode struct {
	info  mad.NodeInfo
	name  string
	sw    *mad.SwitchInfo
	ports map[int]*mad.PortInfo
	peers map[int]end
	lft   []byte
}

type end struct {
	node *draftNode
	num  int
}

func draftOf(f *fabric.Fabric) *draft {
	d := &draft{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		x := &draftNode{info: *n.Info(), name: n.Name(), ports: map[int]*mad.PortInfo{}, peers: map[int]end{}, lft: slices.Clone(n.LFT())}
		if n.SwitchInfo() != nil {
			si := *n.SwitchInfo()
			x.sw = &si
		}
		d.nodes = append(d.nodes, x)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		x := d.nodes[p.Node().ID()]
		if p.Info() != nil {
			info := *p.Info()
			x.ports[p.Num()] = &info
		}
		if q := p.Peer(); q != nil {
			x.peers[p.Num()] = end{d.nodes[q.Node().ID()], q.Num()}
		}
	}
	return d
}

func (d *draft) build() *fabric.Fabric {
	b := fabric.NewBuilder()
	handle := map[*draftNode]int{}
	for _, n := range d.nodes {
		h := b.AddNode(fabric.NodeSpec{Info: n.info, Name: n.name, Switch: n.sw})
		handle[n] = h
		if n.lft != nil {
			b.SetLFT(h, n.lft)
		}
		for num, p := range n.ports {
			b.SetPort(h, num, p)
		}
	}
	for _, n := range d.nodes {
		for num, e := range n.peers {
			if err := b.Link(handle[n], num, handle[e.node], e.num); err != nil {
				panic(err)
			}
		}
	}
	for _, p := range d.problems {
		b.AddProblem(p)
	}
	return b.Build()
}

func (d *draft) node(name string) *draftNode {
	return d.nodes[slices.IndexFunc(d.nodes, func(n *draftNode) bool { return n.name == name })]
}

func (d *draft) end(port string) end {
	name, num, _ := strings.Cut(port, "/")
	n, _ := strconv.Atoi(num)
	return end{d.node(name), n}
}

func (d *draft) link(a, b string) {
	x, y := d.end(a), d.end(b)
	x.node.peers[x.num], y.node.peers[y.num] = y, x
}

func (d *draft) unlink(port string) {
	x := d.end(port)
	y := x.node.peers[x.num]
	delete(x.node.peers, x.num)
	delete(y.node.peers, y.num)
}

// cross exchanges the ends of two cables.
func (d *draft) cross(a, b string) {
	x, y := d.end(a), d.end(b)
	p, q := x.node.peers[x.num], y.node.peers[y.num]
	x.node.peers[x.num], y.node.peers[y.num] = q, p
	p.node.peers[p.num], q.node.peers[q.num] = y, x
}

// drop takes a node away.
func (d *draft) drop(name string) {
	n := d.node(name)
	for num := range n.peers {
		d.unlink(fmt.Sprintf("%s/%d", name, num))
	}
	d.nodes = slices.DeleteFunc(d.nodes, func(x *draftNode) bool { return x == n })
}

// BenchmarkCompare compares two snapshots of 11,664 hosts with their tables: equal,
// and with a link less and recomputed tables.
func BenchmarkCompare(b *testing.B) {
	f := routed(b, generated(b, "fattree:k=36,levels=3"))
	d := draftOf(f)
	same := d.build()
	d.unlink("leaf-1/19")
	less := d.build()
	for name, g := range map[string]func() error{
		"same":      func() error { _, err := Compare(b.Context(), f, same); return err },
		"link gone": func() error { _, err := Compare(b.Context(), f, less); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := g(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
