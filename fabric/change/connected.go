package change

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// CutOff describes nodes that lose their path to each other when links are down; "":
// none do.
func CutOff(f *fabric.Fabric, down map[*fabric.Port]bool) string {
	type group struct{ before, after string } // nodes with these are alike
	first, many := map[group]*fabric.Node{}, map[group]bool{}
	before, after := reach(f, nil), reach(f, down)
	sets := map[string][]int{}
	var groups []group
	for i := range f.Nodes() {
		g := group{fmt.Sprint(before[i]), fmt.Sprint(after[i])}
		sets[g.before], sets[g.after] = before[i], after[i]
		if many[g] = first[g] != nil; !many[g] {
			first[g] = &f.Nodes()[i]
			groups = append(groups, g)
		}
	}
	share := func(a, b string) bool {
		return slices.ContainsFunc(sets[a], func(part int) bool { return slices.Contains(sets[b], part) })
	}
	for i, g := range groups {
		for _, h := range groups[:i+1] {
			if (g != h || many[g]) && share(g.before, h.before) && !share(g.after, h.after) {
				return fmt.Sprintf("%s and %s would lose the last path between them", first[h].Label(), first[g].Label())
			}
		}
	}
	return ""
}

// lastPath names a CA or router whose links all go down; "": none does.
func lastPath(f *fabric.Fabric, down map[*fabric.Port]bool) string {
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.IsSwitch() {
			continue
		}
		lost, left := false, false
		for port := range n.Ports() {
			lost = lost || down[port]
			left = left || port.Peer() != nil && !down[port]
		}
		if lost && !left {
			return n.Label()
		}
	}
	return ""
}

// reach returns, by node id, the parts of f, connected by switches, that nodes are in
// or have a port to. Links that are down are left out.
func reach(f *fabric.Fabric, down map[*fabric.Port]bool) [][]int {
	parts := switchParts(f, down)
	all := make([][]int, len(f.Nodes()))
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.IsSwitch() {
			all[i] = []int{parts[i]}
			continue
		}
		for port := range n.Ports() {
			peer := port.Peer()
			if peer == nil || down[port] {
				continue
			}
			part := parts[peer.Node().ID()]
			if !peer.Node().IsSwitch() {
				part = -1 - min(port.ID(), peer.ID()) // these two alone
			}
			if !slices.Contains(all[i], part) {
				all[i] = append(all[i], part)
			}
		}
		slices.Sort(all[i])
	}
	return all
}

// switchParts numbers the parts of f that switches connect, by node id, from 1.
func switchParts(f *fabric.Fabric, down map[*fabric.Port]bool) []int {
	part := make([]int, len(f.Nodes()))
	count := 0
	switches := f.OfType(mad.NodeTypeSwitch)
	for i := range switches {
		if part[switches[i].ID()] != 0 {
			continue
		}
		count++
		part[switches[i].ID()] = count
		for queue := []*fabric.Node{&switches[i]}; len(queue) > 0; queue = queue[1:] {
			for port := range queue[0].Ports() {
				peer := port.Peer()
				if peer == nil || down[port] || !peer.Node().IsSwitch() || part[peer.Node().ID()] != 0 {
					continue
				}
				part[peer.Node().ID()] = count
				queue = append(queue, peer.Node())
			}
		}
	}
	return part
}
