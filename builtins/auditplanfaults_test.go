package builtins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// planned is a fault that the comparison with a baseline finds: what it was when
// the fault came.
func planned(name string, do func(b *bench, ca, leaf *fabric.Port) []string) fault {
	return fault{name: name, alone: true, sweeps: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"topology"}
		b.run.Baseline = b.fabric
		return do(b, ca, leaf)
	}}
}

// planFaults are the faults that the audit topology finds.
var planFaults = []fault{
	planned("link.down", func(b *bench, _, _ *fabric.Port) []string {
		up := b.upLink()
		if up == nil {
			return nil
		}
		b.must(b.subnet.Cables.Unlink(up.Node().GUID(), up.Num()))
		return []string{id("link.down", audit.OfLink(up, up.Peer()))}
	}),
	// The finding of the audit links there is one fault with it.
	planned("link.slower", func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = []string{"topology", "links"}
		for _, p := range []*fabric.Port{ca, leaf} {
			b.port(p, func(i *mad.PortInfo) { i.LinkWidthActive = mad.LinkWidth1x })
		}
		return []string{id("link.slower", audit.OfLink(ca, leaf))}
	}),
	planned("topo.unverifiable", func(b *bench, _, _ *fabric.Port) []string {
		up := b.upLink()
		if up == nil {
			return nil
		}
		b.run.Baseline = nil
		b.file("plan", b.code(`print(discover().dump("ibnetdiscover"))`))
		b.words = []string{"topology", "--expect", "plan"}
		b.must(b.subnet.Cables.Unlink(up.Node().GUID(), up.Num()))
		return []string{id("topo.unverifiable", audit.OfLink(up, up.Peer()))}
	}),
	planned("node.gone", func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Cables.Unlink(leaf.Node().GUID(), leaf.Num()))
		return []string{id("link.down", audit.OfLink(ca, leaf))} // one fault
	}),
	planned("node.new", func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Cables.Unlink(leaf.Node().GUID(), leaf.Num()))
		b.run.Baseline = b.sweep()
		b.must(b.subnet.Cables.Link(leaf.Node().GUID(), leaf.Num()))
		return []string{id("node.new", audit.OfNode(ca.Node()))}
	}),
	planned("node.replaced", func(b *bench, ca, _ *fabric.Port) []string {
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.NodeGUID = 0xabcdef })
		return []string{id("node.replaced", audit.OfGUID(0xabcdef, audit.NoPort, ""))}
	}),
	planned("topo.device", func(b *bench, ca, _ *fabric.Port) []string {
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.DeviceID = 0x1017 })
		return []string{id("topo.device", audit.OfNode(ca.Node()))}
	}),
	planned("topo.swapped", func(b *bench, ca, leaf *fabric.Port) []string {
		other, at := b.host()
		if other == nil {
			return nil
		}
		b.must(b.subnet.Cables.Recable([2]sim.Cable{cable(ca), cable(at)}, [2]sim.Cable{cable(other), cable(leaf)}))
		return []string{"topo.swapped:*"}
	}),
	planned("topo.moved", func(b *bench, ca, _ *fabric.Port) []string {
		other, at := b.host()
		if other == nil {
			return nil
		}
		b.must(b.subnet.Cables.Unlink(at.Node().GUID(), at.Num())) // the plan has nothing there
		b.run.Baseline = b.sweep()
		b.must(b.subnet.Cables.Recable([2]sim.Cable{cable(ca), cable(at)}))
		return []string{id("topo.moved", audit.OfLink(ca, at))}
	}),
	planned("topo.extra", func(b *bench, _, _ *fabric.Port) []string {
		up := b.upLink()
		if up == nil {
			return nil
		}
		b.must(b.subnet.Cables.Unlink(up.Node().GUID(), up.Num()))
		b.run.Baseline = b.sweep()
		b.must(b.subnet.Cables.Link(up.Node().GUID(), up.Num()))
		return []string{id("topo.extra", audit.OfLink(up, up.Peer()))}
	}),
	planned("topo.missing", func(b *bench, _, _ *fabric.Port) []string {
		up, other := b.upLink(), b.upLink()
		if up == nil || other == nil {
			return nil
		}
		b.must(b.subnet.Cables.Recable([2]sim.Cable{cable(up), cable(other)}))
		if other.Node().GUID() < up.Node().GUID() || other.Node() == up.Node() && other.Num() < up.Num() {
			up = other
		}
		return []string{id("topo.moved", audit.OfPort(up)), id("topo.missing", audit.OfPort(up))} // a plug moves, and then a cable is missing
	}),
	planned("topo.loopback", func(b *bench, ca, leaf *fabric.Port) []string {
		b.run.Baseline = nil
		for p := range leaf.Node().Ports() {
			if p != leaf && p.Peer() != nil && !p.Peer().Node().IsSwitch() && !b.used[p.Peer().Node().GUID()] {
				b.must(b.subnet.Cables.Recable([2]sim.Cable{cable(leaf), cable(p)}))
				return []string{id("topo.loopback", audit.OfLink(leaf, p))}
			}
		}
		return nil
	}),
	// The plan has no GUIDs, and another spelling of a name.
	planned("topo.names near", func(b *bench, ca, _ *fabric.Port) []string {
		b.run.Baseline = nil
		b.file("plan", b.code(`print(discover().dump("topo"))`))
		for name, text := range b.texts(`discover().dump("ibnl")`) {
			b.file("ibnl/"+name, text)
		}
		b.words = []string{"topology", "--expect", "plan"}
		b.node(ca.Node(), func(name *string, _ *mad.NodeInfo) {
			host, adapter, _ := strings.Cut(*name, " ")
			*name = strings.ToUpper(host) + ".example.com " + adapter
		})
		return []string{id("topo.names", audit.OfFabric())}
	}),
	planned("host.rails", func(b *bench, _, _ *fabric.Port) []string {
		b.run.Baseline = nil
		return b.rails(func(host, rail int) (int, int) {
			if host == 1 {
				return host, 3 - rail // the two are exchanged
			}
			return host, rail
		})
	}),
}

// rails names the hosts of two leaves like adapters of common hosts, by the numbers from 1 that name
// returns; it returns the IDs of the hosts that it gives another number.
func (b *bench) rails(name func(host, rail int) (int, int)) (ids []string) {
	rail := 0
	switches := b.fabric.OfType(mad.NodeTypeSwitch)
	for i := range switches {
		var ports []*fabric.Port
		for p := range switches[i].Ports() {
			if q := p.Peer(); q != nil && !q.Node().IsSwitch() {
				ports = append(ports, q)
			}
		}
		if len(ports) < 4 || rail == 2 {
			continue
		}
		rail++
		for j, p := range ports {
			host, number := name(j+1, rail)
			b.node(p.Node(), func(n *string, _ *mad.NodeInfo) { *n = fmt.Sprintf("host-%d mlx5_%d", host, number) })
			if host != j+1 || number != rail {
				ids = append(ids, id("host.rails", audit.OfPort(p)))
			}
		}
	}
	if rail < 2 {
		return nil
	}
	return ids
}

// routed is a fault of tables.
func routed(name, on string, words string, do func(b *bench, ca, leaf *fabric.Port) []string) fault {
	return fault{name: name, alone: true, on: on, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.words = append([]string{"routing"}, strings.Fields(words)...)
		if on == "" { // routes of the simulator's subnet manager have credit loops, except on trees
			b.code(fmt.Sprintf(writeRoutes, "updn"))
		}
		return do(b, ca, leaf)
	}}
}

// writeRoutes routes the fabric by an engine.
const writeRoutes = `
f = discover()
r = f.graph().route(%q)
for sw in r:
    set_lft(sw, [r[sw][lid] for lid in range(r.top + 1)])
`

// tableFaults are the faults that the audit routing finds.
var tableFaults = []fault{
	routed("rt.unreachable", "", "", func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Edit.LFT(leaf.Node().GUID(), ca.LID(), mad.NoPort))
		return []string{id("rt.unreachable", audit.OfFabric())}
	}),
	routed("rt.loop", "ring:n=5", "", func(b *bench, ca, leaf *fabric.Port) []string {
		for p := range leaf.Node().Ports() { // to a neighbour, which sends it back
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				b.must(b.subnet.Edit.LFT(leaf.Node().GUID(), ca.LID(), uint8(p.Num())))
				b.must(b.subnet.Edit.LFT(q.Node().GUID(), ca.LID(), uint8(q.Num())))
				break
			}
		}
		return []string{id("rt.loop", audit.OfFabric()), id("rt.creditloop", audit.OfFabric())}
	}),
	routed("rt.creditloop", "ring:n=7", "", func(b *bench, _, _ *fabric.Port) []string {
		b.code(fmt.Sprintf(writeRoutes, "minhop"))
		return []string{id("rt.creditloop", audit.OfFabric())}
	}),
	routed("rt.creditloop", "torus:dims=4/5,hosts=1", "", func(b *bench, _, _ *fabric.Port) []string {
		b.code(fmt.Sprintf(writeRoutes, "minhop"))
		return []string{id("rt.creditloop", audit.OfFabric())}
	}),
	routed("rt.deadport", "", "", func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Edit.LFT(leaf.Node().GUID(), ca.LID(), 200))
		return []string{id("rt.deadport", audit.OfNode(leaf.Node())), id("rt.unreachable", audit.OfFabric())}
	}),
	routed("rt.top", "", "", func(b *bench, _, leaf *fabric.Port) []string {
		b.sw(leaf.Node(), func(sw *mad.SwitchInfo) { sw.LinearFDBTop = 0 })
		return []string{id("rt.top", audit.OfNode(leaf.Node())), id("rt.unreachable", audit.OfFabric())}
	}),
	routed("rt.detour", "ring:n=7", "--engine minhop", func(b *bench, _, _ *fabric.Port) []string {
		b.code(fmt.Sprintf(writeRoutes, "updn"))
		return []string{id("rt.detour", audit.OfFabric())}
	}),
	routed("rt.balance", "pgft:m=4/4,w=1/2,p=1/2", "", func(b *bench, _, leaf *fabric.Port) []string {
		b.must(b.subnet.Cables.Unlink(leaf.Node().GUID(), leaf.Num())) // the tester is not behind it
		var up []*fabric.Port
		for p := range leaf.Node().Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() && (up == nil || up[0].Peer().Node() == q.Node()) {
				up = append(up, p)
			}
		}
		b.code(fmt.Sprintf(`
f = discover()
r = get_routes(f)[f.node(%q)]
set_lft(f.node(%[1]q), {lid: %d for lid in range(1, len(r)) if r[lid] == %d})
`, leaf.Node().Name(), up[0].Num(), up[1].Num()))
		return []string{id("rt.balance", audit.OfPort(up[0]))}
	}),
	routed("rt.drift", "fattree", "--tables lfts", func(b *bench, ca, leaf *fabric.Port) []string {
		b.file("lfts", b.code(`print(get_routes(discover()).dump())`))
		other, _ := b.host() // by another spine
		for p := range leaf.Node().Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				b.must(b.subnet.Edit.LFT(leaf.Node().GUID(), other.LID(), uint8(p.Num())))
				if strings.TrimSpace(b.code(`print(get_routes(discover()).diff(load_routes("lfts", discover())).entries)`)) == "1" {
					break
				}
			}
		}
		return []string{id("rt.drift", audit.OfNode(leaf.Node()))}
	}),
	routed("rt.sl", "fattree", "--tables lfts --sl sls --pairs 1000", func(b *bench, ca, leaf *fabric.Port) []string {
		b.file("lfts", b.code(`print(get_routes(discover()).dump())`))
		other, _ := b.host()
		b.file("sls", fmt.Sprintf("%v %d 3\n", ca.Node().GUID(), other.LID()))
		return []string{id("rt.sl", audit.OfPort(ca))}
	}),
}

// TestPlansOfCables: a fabric against plans of its cables, as fabsh and UFM write them.
func TestPlansOfCables(t *testing.T) {
	// ufm spells a plan of fabsh as UFM does, in upper case, with drivers' names of HCAs.
	ufm := func(own string) string {
		var b strings.Builder
		b.WriteString("#StartDevice,StartPort,EndDevice,EndPort,LinkType\n")
		for line := range strings.Lines(own) {
			if f := strings.Split(line, ","); f[1] != "a_port" {
				b.WriteString(strings.ReplaceAll(strings.ToUpper(f[0]+".SITE.ORG,Port "+f[1]+","+f[2]), " HCA-1", " mlx5_0") + ",Port " + f[3] + ",Data\n")
			}
		}
		return b.String()
	}
	only := func(words ...string) func(string) string { // the lines with one of these
		return func(own string) string {
			var b strings.Builder
			for line := range strings.Lines(own) {
				for _, w := range append(words, "a_port") {
					if strings.Contains(line, w) {
						b.WriteString(line)
						break
					}
				}
			}
			return b.String()
		}
	}
	const spelt = "info topo.names fabric: the plan spells 44 names differently: \"LEAF-1.SITE.ORG\" for \"leaf-1\", \"LEAF-2.SITE.ORG\" for \"leaf-2\", \"LEAF-3.SITE.ORG\" for \"leaf-3\"\n"
	replaced := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	for _, test := range []struct {
		name string
		plan func(own string) string
		do   func(s *sim.Subnet, at func(string, int) sim.Cable) error
		want string
	}{
		{"as it is", func(own string) string { return own }, nil, ""},
		{"as UFM spells it", ufm, nil, spelt},
		{"two swapped", ufm, func(s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Recable([][2]sim.Cable{{at("leaf-3", 5), at("spine-2", 3)}, {at("leaf-3", 6), at("spine-1", 3)}}...)
		}, "error topo.swapped leaf-3/5 - spine-2/3: cables are exchanged: swap the cables at leaf-3/5 and leaf-3/6\n" + spelt},
		{"a cable pulled", func(own string) string { return own }, func(s *sim.Subnet, at func(string, int) sim.Cable) error {
			return s.Cables.Unlink(at("leaf-3", 7).Node, 7)
		}, "warning topo.unverifiable leaf-3/7: the link of the plan is down at both ends: the cable is missing or dead\n"},
		{"between switches alone", only("spine"), nil, "info node.new fabric: 32 nodes are not in the plan, such as node-0001 HCA-1, node-0002 HCA-1, node-0003 HCA-1\n"},
		{"another name", replaced("leaf-3,", "leaf-33,"), nil, "warning topo.names leaf-3: the cables are those of \"leaf-33\" in the plan: one of the names is wrong\n"},
		{"another name, and a port of it", replaced("leaf-3,5,", "leaf-33,9,", "leaf-3,", "leaf-33,"), nil,
			"error topo.missing fabric: line 22: port 9 of leaf-33: the device has 8 ports\nwarning topo.names leaf-3: the cables are those of \"leaf-33\" in the plan: one of the names is wrong\n"},
		{"a port twice", func(own string) string {
			return strings.Replace(own, "a,a_port,b,b_port,width,speed", "A-Node,A-Port,Z-Node,Z-Port,Width,Speed", 1) + "leaf-2,1,node-0010 HCA-1,1,,\n"
		}, nil, "warning topo.conflict fabric: the plan uses port 1 of leaf-2 twice: line 10 (node-0005 HCA-1/1), line 66 (node-0010 HCA-1/1)\n"},
		{"a host without the number of its HCA", replaced("node-0010 HCA-1", "NODE-0010"), nil, "info topo.names fabric: the plan spells 1 name differently: \"NODE-0010\" for \"node-0010 HCA-1\"\n"},
		{"a GUID", func(own string) string { return strings.ReplaceAll(own, "leaf-3,", "0x2c90300100020,") }, nil, ""},
		{"another GUID", replaced("leaf-3,", "0x2c90300100021,"), nil, "info node.replaced leaf-3: the node with these cables was 0x0002c90300100021\n"},
		{"a port that is not there", replaced("leaf-3,5,", "leaf-3,50,"), nil, "error topo.missing fabric: line 22: port 50 of leaf-3: the device has 8 ports\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				var own strings.Builder
				if err := format.Dump(&own, base, format.KindCables); err != nil {
					t.Fatal(err)
				}
				write(t, f.fs, "/work/plan.csv", test.plan(own.String()))
				if test.do != nil {
					if err := test.do(f.Env.Sim, func(name string, num int) sim.Cable { return end(t, base, name, num) }); err != nil {
						t.Fatal(err)
					}
				}
				got := told(audited(t, f, audits.RunOptions{}, "topology", "--expect", "plan.csv"))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

// dumpOf writes a dump as ibnetdiscover does, of links such as "leaf1/1 spine2/3 4xHDR", or with
// two rates, one for each end. The first letters of a name are the kind of node: leaf, spine and
// core are switches.
func dumpOf(links []string) string {
	type end struct {
		num        int
		peer       string
		peerNum    int
		rate, name string
	}
	ports, order := map[string][]end{}, []string(nil)
	add := func(name string, e end) {
		if ports[name] == nil {
			order = append(order, name)
		}
		ports[name] = append(ports[name], e)
	}
	for _, l := range links {
		var a, b string
		rates := []string{"4xHDR"}
		words := strings.Fields(l)
		a, b = words[0], words[1]
		if len(words) > 2 {
			rates = words[2:]
		}
		cut := func(s string) (name string, num int) {
			i := strings.LastIndexByte(s, '/')
			fmt.Sscan(s[i+1:], &num)
			return strings.ReplaceAll(s[:i], "_", " "), num
		}
		an, ap := cut(a)
		bn, bp := cut(b)
		add(an, end{ap, bn, bp, rates[0], bn})
		add(bn, end{bp, an, ap, rates[len(rates)-1], an})
	}
	id := func(name string) string {
		letter := "H"
		if isSwitchName(name) {
			letter = "S"
		}
		return fmt.Sprintf("%s-%016x", letter, slices.Index(order, name)+1)
	}
	var out strings.Builder
	for i, name := range order {
		device, vendor := "0x101b", "0x2c9"
		switch {
		case isSwitchName(name):
			device = "0xd2f0"
		case strings.HasPrefix(name, "sharp"):
			device = "0xcf09"
		case strings.HasPrefix(name, "old"):
			device = "0x1003"
		}
		fmt.Fprintf(&out, "vendid=%s\ndevid=%s\nsysimgguid=%#x\n", vendor, device, i+1)
		if isSwitchName(name) {
			fmt.Fprintf(&out, "switchguid=%#x(%x)\nSwitch\t40 %q\t# %q enhanced port 0 lid %d lmc 0\n", i+1, i+1, id(name), name, i+1)
		} else {
			fmt.Fprintf(&out, "caguid=%#x\nCa\t4 %q\t# %q\n", i+1, id(name), name)
		}
		for _, e := range ports[name] {
			fmt.Fprintf(&out, "[%d]\t%q[%d]\t# ", e.num, id(e.peer), e.peerNum)
			if !isSwitchName(name) {
				fmt.Fprintf(&out, "lid %d lmc 0 ", i+1)
			}
			fmt.Fprintf(&out, "%q lid %d %s\n", e.name, slices.Index(order, e.peer)+1, e.rate)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func isSwitchName(name string) bool {
	return strings.HasPrefix(name, "leaf") || strings.HasPrefix(name, "spine") || strings.HasPrefix(name, "core")
}

// tree is a network of leaves and spines, each pair with so many cables, and hosts at the leaves.
func tree(leaves, spines, cables, hosts int, host string) (links []string) {
	for l := 1; l <= leaves; l++ {
		for h := 1; h <= hosts; h++ {
			links = append(links, fmt.Sprintf("leaf%d/%d %s%d_HCA-1/1", l, h, host, (l-1)*hosts+h))
		}
		for s := 1; s <= spines; s++ {
			for c := 1; c <= cables; c++ {
				links = append(links, fmt.Sprintf("leaf%d/%d spine%d/%d", l, 20+(s-1)*cables+c, s, (l-1)*cables+c))
			}
		}
	}
	return links
}

// pods is a network of three tiers: in each pod two leaves, with a host each, and two spines, each
// with links to two of four cores.
func pods(n int) (links []string) {
	for p := range n {
		for i := 1; i <= 2; i++ {
			links = append(links, fmt.Sprintf("leaf%d/1 node%d_HCA-1/1", 2*p+i, 2*p+i))
			for j := 1; j <= 2; j++ {
				links = append(links, fmt.Sprintf("leaf%d/%d spine%d/%d", 2*p+i, 20+j, 2*p+j, i), fmt.Sprintf("spine%d/%d core%d/%d", 2*p+i, 30+j, 2*i+j-2, p+1))
			}
		}
	}
	return links
}

// groups is a dragonfly: n groups of so many switches, with a host each, of which all are linked; and
// a link between each two groups.
func groups(n, size int) (links []string) {
	used := map[string]int{}
	link := func(a, b string) {
		used[a], used[b] = used[a]+1, used[b]+1
		links = append(links, fmt.Sprintf("%s/%d %s/%d", a, 1+used[a], b, 1+used[b]))
	}
	name := func(g, s int) string { return fmt.Sprintf("leaf%d-%d", g, s) }
	for g := range n {
		for s := range size {
			links = append(links, fmt.Sprintf("%s/1 node%d_HCA-1/1", name(g, s), size*g+s))
			for r := range s {
				link(name(g, r), name(g, s))
			}
		}
		for h := range g {
			link(name(h, (g-h-1)%size), name(g, (n-1-(g-h))%size))
		}
	}
	return links
}

// leafSpineGroups is a dragonfly+: n groups of as many leaves as spines, and a link between each two groups.
func leafSpineGroups(n, size int) (links []string) {
	for g := range n {
		for l := range size {
			links = append(links, fmt.Sprintf("leaf%d-%d/1 node%d_HCA-1/1", g, l, size*g+l))
			for s := range size {
				links = append(links, fmt.Sprintf("leaf%d-%d/%d spine%d-%d/%d", g, l, 2+s, g, s, 1+l))
			}
		}
	}
	for g := range n {
		for h := range g {
			links = append(links, fmt.Sprintf("spine%d-%d/%d spine%d-%d/%d", h, g-h-1, 1+size, g, size-(g-h), 1+size))
		}
	}
	return links
}

// circle is a ring of n switches with a host each.
func circle(n int) (links []string) {
	for i := range n {
		links = append(links, fmt.Sprintf("leaf%d/1 node%d_HCA-1/1", i, i), fmt.Sprintf("leaf%d/2 leaf%d/3", i, (i+1)%n))
	}
	return links
}

// between returns the end of the link between two switches.
func between(links []string, a, b string) string {
	for _, l := range links {
		if from, to, _ := strings.Cut(l, " "); strings.HasPrefix(from, a+"/") && strings.HasPrefix(to, b+"/") {
			return from
		}
	}
	return ""
}

// without leaves out links that begin with one of the ends.
func without(links []string, ends ...string) []string {
	return slices.DeleteFunc(slices.Clone(links), func(l string) bool {
		return slices.ContainsFunc(ends, func(e string) bool { return strings.HasPrefix(l, e+" ") })
	})
}

// TestRules: each rule of links and topology on a small network of its own, in a file without
// states of ports.
func TestRules(t *testing.T) {
	rails := func(swap bool) (links []string) {
		for h := 1; h <= 8; h++ {
			for r := 1; r <= 4; r++ {
				leaf, name := r, fmt.Sprintf("gpu%d_HCA-%d", h, r)
				if h == 3 { // another numbering
					name = fmt.Sprintf("gpu%d_mlx5_%d", h, r-1)
				}
				if swap && h == 5 && r < 3 {
					leaf = 3 - r
				}
				links = append(links, fmt.Sprintf("leaf%d/%d %s/1", leaf, h, name))
			}
		}
		return links
	}
	var planes []string // adapters of two ports, at two leaves
	for h := 1; h <= 8; h++ {
		planes = append(planes, fmt.Sprintf("leaf1/%d gpu%d_HCA-1/1", h, h), fmt.Sprintf("leaf2/%d gpu%d_HCA-1/2", h, h))
	}
	big, fly, pairs, plus := tree(8, 4, 1, 2, "node"), groups(5, 4), groups(5, 2), leafSpineGroups(4, 3)
	for _, x := range []struct {
		name  string
		links []string
		want  string
	}{
		{"a whole tree", big, ""},
		{"a leaf with fewer", without(big, "leaf3/22"), "warning link.uplinks leaf3: links to spines: 3; most similar leaves: 4; fewer than most to spine2 (0 of 1)\n"},
		{"a leaf with half", without(big, "leaf3/22", "leaf3/23"), "error link.uplinks leaf3: links to spines: 2; most similar leaves: 4; fewer than most to spine2 (0 of 1), spine3 (0 of 1)\n"},
		{"a spine with fewer", without(big, "leaf3/22", "leaf4/22", "leaf5/22", "leaf6/22", "leaf7/22"), ""}, // most leaves are so
		{"a spine with fewer of many", without(tree(20, 4, 1, 1, "node"), "leaf3/22", "leaf4/22", "leaf5/22", "leaf6/22"), "warning link.uplinks spine2: links to leaves: 16; 4 leaves have fewer links to this switch than most, such as leaf3, leaf4, leaf5\n"},
		{"a pair with fewer cables", without(tree(3, 4, 2, 2, "node"), "leaf2/24"), "warning link.uplinks leaf2: links to spine2: 1; most such pairs of switches: 2\n"},
		{"hosts on a spine", append(without(tree(6, 2, 4, 12, "node"), "leaf3/28"), "spine1/35 mgmt1_HCA-1/1", "spine1/36 mgmt2_HCA-1/1"), "warning link.uplinks leaf3: links to spines: 7; most similar leaves: 8; fewer than most to spine2 (3 of 4)\n"},
		{"three tiers", pods(5), ""},
		{"a link to a core", without(pods(5), "spine3/32"), "warning link.uplinks spine3: links to core2: 0; most such pairs of switches: 1\n"},
		{"two links to a core", without(pods(9), "spine3/32", "spine7/32"), "warning link.uplinks core2: links to 2 switches are missing that most such pairs of switches have: spine3, spine7\n"},
		{"a core without most links", without(pods(9), "spine1/32", "spine3/32", "spine5/32", "spine7/32", "spine9/32", "spine11/32", "spine13/32"), ""}, // too many to be a fault
		{"a spine is gone", slices.DeleteFunc(pods(5), func(l string) bool { return strings.Contains(l, "spine4/") }), "warning link.uplinks leaf3: switches above leaf3, leaf4: 1; above most such groups: 2\n"},
		{"a dragonfly", fly, ""},
		{"a link within a group", without(fly, between(fly, "leaf2-1", "leaf2-3")), "warning link.uplinks leaf2-1: links to leaf2-3: 0; most such pairs of switches: 1\n"},
		{"a link between groups", without(fly, between(fly, "leaf1-0", "leaf2-3")), "warning link.uplinks leaf1-0: links between the groups of leaf1-0 and leaf2-3: 0; most pairs of groups: 1\n"},
		{"a dragonfly+", plus, ""},
		{"a link between groups of a dragonfly+", without(plus, between(plus, "spine0-0", "spine1-2")), "warning link.uplinks spine0-0: links to such switches: 0, here and at spine1-2; most: 1: a cable between the two is missing\n"},
		{"a link within a group of a dragonfly+", without(plus, between(plus, "leaf1-1", "spine1-0")), "error link.uplinks leaf1-1: links to spines: 2; most similar leaves: 3; fewer than most to spine1-0 (0 of 1)\n"},
		{"a dragonfly with groups of two", pairs, ""},
		{"a link within a group of two", without(pairs, between(pairs, "leaf2-0", "leaf2-1")), "warning link.uplinks leaf2-0: links to such switches: 2, here and at leaf2-1; most: 3: a cable between the two is missing\n"},
		{"a link between groups of two", without(pairs, between(pairs, "leaf0-0", "leaf1-1")), "warning link.uplinks leaf0-0: links to such switches: 2, here and at leaf1-1; most: 3: a cable between the two is missing\n"},
		{"two links of groups of two", without(pairs, between(pairs, "leaf2-0", "leaf2-1"), between(pairs, "leaf0-0", "leaf0-1")), ""}, // not more than three quarters decide
		{"a ring", circle(12), ""},
		{"a ring of four", circle(4), ""},
		{"a link of a ring", without(circle(12), "leaf3/2"), "not judged link.uplinks: leaf3 and leaf4 have a link less than the other 10 switches, which is so in a line, and in a ring without one cable: a cable between the two may be missing\n"},
		{"a link of a ring of four", without(circle(4), "leaf1/2"), "not judged link.uplinks: leaf1 and leaf2 have a link less than the other 2 switches, which is so in a line, and in a ring without one cable: a cable between the two may be missing\n"},
		{"two groups of two", append(groups(2, 2), "leaf0-1/3 leaf1-1/3"), ""},
		{"a link between two groups of two", groups(2, 2), "not judged link.uplinks: leaf0-1 and leaf1-1 have a link less than the other 2 switches, which is so in a line, and in a ring without one cable: a cable between the two may be missing\n"},
		{"two groups of a dragonfly+", append(leafSpineGroups(2, 2), "spine0-1/3 spine1-0/3"), ""},
		{"a link between two groups of a dragonfly+", leafSpineGroups(2, 2), "not judged link.uplinks: spine0-1 and spine1-0 have a link less than the other 2 switches, which is too few to know what is usual: a cable between the two may be missing\n"},
		{"two leaves and two spines", tree(2, 2, 1, 2, "node"), ""},
		{"a link of two leaves and two spines", without(tree(2, 2, 1, 2, "node"), "leaf2/22"), "not judged link.uplinks: links of leaf2 to spine2: 0; 3 other pairs of switches: 1, which is too few to know what is usual: a cable may be missing\n"},
		{"a switch of a group is gone", slices.DeleteFunc(slices.Clone(fly), func(l string) bool { return strings.Contains(l, "leaf3-2/") }), "warning link.uplinks leaf3-0: switches of the group of leaf3-0: 3; most such groups: 4\n"},
		{"groups that differ", without(fly, between(fly, "leaf0-0", "leaf0-1"), between(fly, "leaf1-0", "leaf1-1"), between(fly, "leaf2-0", "leaf2-1"), between(fly, "leaf3-0", "leaf3-1")), ""}, // not more than three quarters decide
		{"leaves for storage", append(tree(5, 4, 1, 2, "node"), "leaf6/1 disk1_HCA-1/1", "leaf6/21 spine1/30", "leaf7/1 disk2_HCA-1/1", "leaf7/21 spine2/30"), ""},
		{"aggregation nodes", append(slices.Clone(big), "spine1/40 sharp1/1 4xEDR", "spine2/40 sharp2/1 4xEDR", "leaf1/40 sharp3/1 4xEDR"), ""},
		{"parallel links", slices.Replace(tree(2, 2, 2, 1, "node"), 1, 2, "leaf1/21 spine1/1 4xEDR"), "error link.siblings leaf1/21 - spine1/1: 4x edr; another link between these switches: 4x hdr\n"},
		{"ends that differ", slices.Replace(slices.Clone(big), 0, 1, "leaf1/1 node1_HCA-1/1 4xHDR 1xHDR"), "error link.asymmetric leaf1/1 - node1 HCA-1/1: the ends differ: width 4x and 1x\n"},
		{"siblings", slices.Replace(slices.Clone(big), 0, 1, "leaf1/1 node1_HCA-1/1 4xEDR"), "error link.siblings leaf1/1 - node1 HCA-1/1: 4x edr; most links between these models: 4x hdr\n"},
		{"below the generation", append(slices.Clone(big), "leaf1/9 old1_HCA-1/1 4xSDR", "leaf1/10 old2_HCA-1/1 4xFDR"), "warning link.speed leaf1/9 - old1 HCA-1/1: speed sdr; both devices support qdr or more\n"},
		{"a policy below the generation", append(slices.Clone(big), "leaf1/9 old1_HCA-1/1 4xSDR", "leaf1/10 old2_HCA-1/1 4xSDR"), "info link.speed leaf1/10 - old2 HCA-1/1: speed sdr; both devices support qdr or more, at all links of the model\ninfo link.speed leaf1/9 - old1 HCA-1/1: speed sdr; both devices support qdr or more, at all links of the model\n"},
		{"1x", append(slices.Clone(big), "leaf1/9 old1_HCA-1/1 1xFDR"), "warning link.width leaf1/9 - old1 HCA-1/1: width 1x; both devices support 4x\n"},
		{"a loop", append(slices.Clone(big), "leaf1/30 leaf1/31"), "warning topo.loopback leaf1/30 - leaf1/31: both ends of the cable are in one node\n"},
		{"rails", rails(false), ""},
		{"exchanged rails", rails(true), "warning host.rails gpu5 HCA-1/1: rail 1 by the names of adapters; leaf2 is a leaf of rail 2\nwarning host.rails gpu5 HCA-2/1: rail 2 by the names of adapters; leaf1 is a leaf of rail 1\n"},
		{"three hosts", rails(true)[8:20], ""},
		{"an adapter is missing", without(rails(false), "leaf2/5"), "error host.adapters gpu5 HCA-1: adapters of the host: 3 of model 0x101b; most of 7 hosts such as gpu1: 4 of model 0x101b\n"},
		{"a quarter lacks an adapter", without(rails(false), "leaf2/5", "leaf2/6"), ""}, // not more than three quarters decide
		{"three hosts, one without an adapter", without(rails(false)[:12], "leaf2/2"), ""},
		{"planes", planes, ""},
		{"a plane is missing", without(planes, "leaf2/5"), "error host.planes gpu5 HCA-1/2: no link at this port; most of 8 hosts such as gpu1 have one\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			f, err := format.Load(strings.NewReader(dumpOf(x.links)), "net", nil)
			if err != nil {
				t.Fatal(err)
			}
			file := ofFile(t, f)
			defer file.Close()
			var got []string
			r := audited(t, file, audits.RunOptions{}, "links", "topology")
			for _, f := range r.Findings {
				if f.Check == "topo.parts" { // networks of rails are not connected
					continue
				}
				got = append(got, fmt.Sprintf("%s %s %s: %s\n", f.Severity, f.Check, f.Subject.Name(), f.Message))
			}
			for _, u := range r.Unjudged {
				if u.Check == "link.uplinks" {
					got = append(got, fmt.Sprintf("not judged %s: %s\n", u.Check, u.Lacked))
				}
			}
			slices.Sort(got)
			if text := strings.Join(got, ""); text != x.want {
				t.Errorf("got\n%swant\n%s", text, x.want)
			}
		})
	}
}

// TestDisabledAtLeaf: where a disabled port of a leaf is why a host lacks an adapter or a link, it is
// one finding, about the host.
func TestDisabledAtLeaf(t *testing.T) {
	for _, x := range []struct {
		spec  string
		ports []string // by what they are linked to
		want  string
	}{
		{"fattree:k=8,rails=2", nil, ""},
		{"fattree:k=8,rails=2", []string{"node-0005 HCA-2/1"}, "error host.adapters node-0005 HCA-1: adapters of the host: 1 of model 0x101b; most of 16 hosts such as node-0001: 2 of model 0x101b; disabled at the leaf: leaf-4/1 [port.disabled]\n"},
		{"fattree:k=8,rails=2", []string{"node-0005 HCA-2/1", "node-0006 HCA-2/1"}, "error host.adapters node-0005 HCA-1: adapters of the host: 1 of model 0x101b; most of 16 hosts such as node-0001: 2 of model 0x101b; disabled at the leaf: leaf-4/1 [port.disabled]\n" +
			"error host.adapters node-0006 HCA-1: adapters of the host: 1 of model 0x101b; most of 16 hosts such as node-0001: 2 of model 0x101b; disabled at the leaf: leaf-4/2 [port.disabled]\n"},
		{"fattree:k=8,rails=2", []string{"node-0005 HCA-2/1", "node-0005 HCA-1/1"}, "warning port.disabled leaf-3/1: the port is disabled []\nwarning port.disabled leaf-4/1: the port is disabled []\n"}, // the host is unknown
	} {
		onSim(t, x.spec, nil, func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(context.Background(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept}
			for _, p := range b.hosts() {
				if q := p.Peer(); slices.Contains(x.ports, p.Name()) {
					b.must(b.subnet.Cables.Unlink(q.Node().GUID(), q.Num()))
					b.port(q, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysicalStateDisabled })
				}
			}
			got := ""
			for _, f := range audited(t, f, audits.RunOptions{}, "links", "topology").Findings {
				var checks []string
				for _, id := range f.Absorbed {
					check, _, _ := strings.Cut(id, ":")
					checks = append(checks, check)
				}
				got += fmt.Sprintf("%s %s %s: %s %v\n", f.Severity, f.Check, f.Subject.Name(), f.Message, checks)
			}
			if got != x.want {
				t.Errorf("%s without %q: got\n%swant\n%s", x.spec, x.ports, got, x.want)
			}
		})
	}
}

// TestLanesOfPeers: a mapping of service levels that differs from more than three quarters of the
// similar ports is reported.
func TestLanesOfPeers(t *testing.T) {
	for _, x := range []struct{ other, found int }{{0, 0}, {5, 5}, {9, 0}} { // of 32 ports
		onSim(t, "fattree:k=8", nil, func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(context.Background(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept}
			for _, p := range b.hosts()[:x.other] {
				leaf := p.Peer()
				for in := range leaf.Node().Ports() {
					b.table(mad.AttrSLtoVLMappingTable, leaf, uint32(in.Num())<<8|uint32(leaf.Num()), func(data []byte) { data[7] = 0 })
				}
			}
			r := audited(t, f, audits.RunOptions{}, "config", "--deep")
			if n := len(r.Findings); n != x.found || n > 0 && r.Findings[0].Check != "sl2vl.uniform" {
				t.Errorf("%d ports: got %s", x.other, told(r))
			}
		})
	}
}

// TestExpected: what a run says beforehand that it will send is within 10 % of what it
// sends, beyond the sweep, whatever agents have.
func TestExpected(t *testing.T) {
	for _, test := range []struct {
		spec  string
		deep  bool
		words []string
	}{
		{"fattree:k=8,levels=3", false, nil},
		{"fattree:k=8,levels=3", false, []string{"--over", "last"}},
		{"fattree:k=8,levels=3", true, nil},
		{"fattree:k=4,registers=yes", true, []string{"health"}},
		{"fattree:k=4", true, []string{"health"}},
	} {
		onSim(t, test.spec, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
			sent := func() int { return int(f.Env.Engine.Stats().Sent) }
			before := sent()
			if _, err := topology.SweepQuietly(context.Background(), f.Runtime); err != nil {
				t.Fatal(err)
			}
			sweep := sent() - before
			said := -1
			options := audits.RunOptions{Job: "x", Expected: func(n int) { said = n }}
			for range 2 { // of the second, what agents have is known
				set, err := audits.LoadAudits(context.Background(), f.Interpreter, test.words, nil, test.deep)
				if err != nil {
					t.Fatal(err)
				}
				before = sent()
				r, err := set.Run(context.Background(), f.Interpreter, options)
				if err != nil || len(r.Findings) > 0 && r.Findings[0].Check != "audit.window" {
					t.Fatal(err, told(r))
				}
			}
			const few = 20 // of which nobody is told
			if n := sent() - before - sweep; (said+few)*10 < n*9 || said*9 > (n+few)*10 {
				t.Errorf("%s, deep %t, %q: %d are sent, %d were said", test.spec, test.deep, test.words, n, said)
			}
		})
	}
}

// TestExpectedBroken: an audit that cannot say how many datagrams it will send is not done;
// the others are, also where it computes until the deadline.
func TestExpectedBroken(t *testing.T) {
	for _, test := range []struct{ body, told, undone string }{
		{`fail("no")`, "warning b.x fabric: found\n", "a: fail: no"},
		{"exit(0)", "warning b.x fabric: found\n", "a: exit(0): not supported in an audit; its findings set the exit status"},
		{`return "many"`, "warning b.x fabric: found\n", "a: a.star: datagrams(fabric) must return a number: got string, want int"},
		{"while True: pass", "", "a: deadline of 2s passed, b: deadline of 2s passed"},
	} {
		onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
			write(t, f.fs, "/work/a.star", "def datagrams(fabric):\n    "+test.body+"\n\ndef audit(fabric):\n    finding('a.x', fabric, 'found')\n")
			write(t, f.fs, "/work/b.star", "def audit(fabric):\n    finding('b.x', fabric, 'found', severity='warning')\n")
			all, err := audits.LoadAudits(context.Background(), f.Interpreter, []string{"a.star", "b.star"}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			begin := func(fabric.Subnet) (audit.Acks, error) {
				if test.told == "" {
					cancel(&lang.DeadlineError{After: 2 * time.Second})
				}
				return nil, nil
			}
			r, err := all.Run(ctx, f.Interpreter, audits.RunOptions{Begin: begin, Expected: func(int) {}})
			if err != nil {
				t.Fatal(err)
			}
			var undone []string
			for _, x := range r.Failures {
				undone = append(undone, x.Audit+": "+f.Explain(x.Err))
			}
			got := strings.Join(undone, ", ")
			if first, _, _ := strings.Cut(got, "\n"); told(r) != test.told || first != test.undone {
				t.Errorf("%s: told %q, undone %q", test.body, told(r), got)
			}
		})
	}
}
