package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/plural"
)

// Part is a part of a fabric whose links lead to no other part: a subnet of its own, or what a split
// network has left. A node with ports in several subnets, such as a host, is in several parts.
type Part struct {
	Nodes []*Node // by ID
	Links int
}

// Label returns the number of nodes and the name, in quotes, of the first one.
func (p *Part) Label() string {
	n := p.Nodes[0]
	return fmt.Sprintf("%s with %q", plural.Count(len(p.Nodes), "node", "nodes"), cmp.Or(n.Name(), n.GUID().String()))
}

// parts are the parts of a fabric.
type parts struct {
	list []Part
	of   []int32 // by port ID; -1: without a link
}

// partsKey is the key of Fabric.Derived.
type partsKey struct{}

// Parts returns the parts with links that are not connected, the largest first. A fabric from a sweep has
// one.
func (f *Fabric) Parts() []Part { return f.parts().list }

// PartOf returns the index in Parts of the part that p is in, -1 if p has no link. Port 0 of a switch is
// in the part of its other ports.
func (f *Fabric) PartOf(p *Port) int { return int(f.parts().of[p.ID()]) }

// PartsText describes the parts in words, "" if all is connected.
func (f *Fabric) PartsText() string {
	const most = 3
	list := f.Parts()
	if len(list) < 2 {
		return ""
	}
	var labels []string
	for i := range list[:min(len(list), most)] {
		labels = append(labels, list[i].Label())
	}
	if n := len(list) - most; n > 0 {
		labels = append(labels, fmt.Sprintf("%d more", n))
	}
	return fmt.Sprintf("%d parts that are not connected: %s", len(list), strings.Join(labels, ", "))
}

func (f *Fabric) parts() *parts {
	return f.Derived(partsKey{}, func() any { return f.findParts() }).(*parts)
}

// findParts joins the ends of links, the ports of switches, which forward, and the planes of a port.
func (f *Fabric) findParts() *parts {
	root := make([]int32, len(f.ports))
	for i := range root {
		root[i] = int32(i)
	}
	find := func(i int32) int32 {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	join := func(i, j int32) {
		if i, j = find(i), find(j); i != j {
			root[max(i, j)] = min(i, j)
		}
	}
	linked := make([]bool, len(f.ports)) // by root, below
	for i := range f.ports {
		p := &f.ports[i]
		n := p.Node()
		switch {
		case n.IsSwitch():
			join(p.id, n.first)
		case p.id > n.first && p.guid != 0 && f.ports[p.id-1].guid == p.guid: // planes
			join(p.id, p.id-1)
		}
		if p.peer >= 0 {
			join(p.id, p.peer)
		}
	}
	for i := range f.ports {
		linked[find(int32(i))] = linked[find(int32(i))] || f.ports[i].peer >= 0
	}
	index := map[int32]int{}
	var list []Part
	of := make([]int32, len(f.ports))
	for i := range f.ports {
		p := &f.ports[i]
		r := find(p.id)
		if of[i] = -1; !linked[r] {
			continue
		}
		k, ok := index[r]
		if !ok {
			k, index[r] = len(list), len(list)
			list = append(list, Part{})
		}
		of[i] = int32(k)
		part, n := &list[k], p.Node()
		if len(part.Nodes) == 0 || part.Nodes[len(part.Nodes)-1] != n {
			part.Nodes = append(part.Nodes, n)
		}
		if p.peer >= p.id {
			part.Links++
		}
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(list[b].Nodes), len(list[a].Nodes)) })
	x := &parts{of: of}
	rank := make([]int32, len(list))
	for i, k := range order {
		x.list, rank[k] = append(x.list, list[k]), int32(i)
	}
	for i, k := range of {
		if k >= 0 {
			of[i] = rank[k]
		}
	}
	return x
}
