package builtins

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
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

// planFaults are those of topology.
var planFaults = []fault{
	planned("link.down", func(b *bench, _, _ *fabric.Port) []string {
		up := b.upLink()
		if up == nil {
			return nil
		}
		b.must(b.subnet.Cables.Unlink(up.Node().GUID(), up.Num()))
		return []string{id("link.down", audit.OfLink(up, up.Peer()))}
	}),
	// What links finds there is the same fault.
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
		return []string{id("node.gone", audit.OfNode(ca.Node())), id("link.down", audit.OfLink(ca, leaf))}
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
		return []string{id("topo.missing", audit.OfPort(up)), id("topo.missing", audit.OfPort(other))}
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
	// The plan has no GUIDs, and another name for a node, or two of one name.
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
		return []string{id("topo.names", audit.OfNode(ca.Node()))}
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

// rails gives the hosts of two leaves the names of adapters of the same hosts, as
// name says by number, from 1; it returns the IDs of those that it gives another
// number.
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
		if on == "" { // those of the simulator's subnet manager have credit loops, but on trees
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

// tableFaults are those of routing.
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
