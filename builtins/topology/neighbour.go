package topology

import (
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// beside returns the ports of sw with a cable to another switch, by switch in the order of their IDs.
func beside(sw *fabric.Node) [][]*fabric.Port {
	var ports []*fabric.Port
	for p := range sw.Ports() {
		if q := p.Peer(); q != nil && q.Node().Kind() == fabric.KindSwitch && q.Node() != sw {
			ports = append(ports, p)
		}
	}
	peer := func(p *fabric.Port) int { return p.Peer().Node().ID() }
	slices.SortStableFunc(ports, func(a, b *fabric.Port) int { return peer(a) - peer(b) })
	var out [][]*fabric.Port
	for i, p := range ports {
		if i == 0 || peer(p) != peer(ports[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// neighboursOf returns the switches with a cable to another one.
func neighboursOf(f *fabric.Fabric) starlark.Value {
	all := new(starlark.Dict)
	for _, sw := range switchesOf(f) {
		peers := beside(sw)
		if len(peers) == 0 {
			continue
		}
		here := starlark.NewDict(len(peers))
		if other, ok, _ := all.Get(Node{sw}); ok { // another switch has the GUID
			here = other.(*starlark.Dict)
		}
		for _, ports := range peers {
			m, n := ports[0].Peer().Node(), len(ports)
			if other, ok, _ := here.Get(Node{m}); ok {
				before, _ := lang.ToInt(other.(starlark.Int))
				n += before
			}
			here.SetKey(Node{m}, starlark.MakeInt(n))
		}
		all.SetKey(Node{sw}, here)
	}
	return all
}

// trunksOf returns the cables between two switches that have several.
func trunksOf(f *fabric.Fabric) []starlark.Value {
	var out []starlark.Value
	for _, sw := range switchesOf(f) {
		for _, ports := range beside(sw) {
			if len(ports) > 1 && ports[0].Peer().Node().ID() > sw.ID() {
				out = append(out, lang.List(ports, func(p *fabric.Port) starlark.Value { return Link{p, p.Peer()} }))
			}
		}
	}
	return out
}

// leavesOf returns the switches with nodes at the edge of the network.
func leavesOf(f *fabric.Fabric) starlark.Value {
	all := new(starlark.Dict)
	for _, sw := range switchesOf(f) {
		var here []starlark.Value
		for p := range sw.Ports() {
			if q := p.Peer(); q != nil && q.Node().IsEdge() {
				here = append(here, Node{q.Node()})
			}
		}
		if here != nil {
			all.SetKey(Node{sw}, starlark.NewList(here))
		}
	}
	return all
}

// switchesOf returns the switches of f.
func switchesOf(f *fabric.Fabric) []*fabric.Node {
	nodes := f.OfType(mad.NodeTypeSwitch)
	out := make([]*fabric.Node, len(nodes))
	for i := range nodes {
		out[i] = &nodes[i]
	}
	return out
}
