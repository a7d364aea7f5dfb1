package hosts

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
)

// inferRoles leaves out adapters at leaves of services, such as a storage or management network beside
// compute rails: these leaves serve hosts of several units, and the hosts have more adapters elsewhere.
// The error names a leaf whose role is ambiguous: hosts have as many adapters there as elsewhere.
func (n *network) inferRoles() error {
	o := n.overlaps()
	bridges := n.bridges(o)
	at := map[string][2]int{} // adapters of a host: at other leaves, at bridges
	for _, a := range n.adapters {
		x := at[a.host]
		x[boolInt(bridges[a.leaf])]++
		at[a.host] = x
	}
	service := map[int]bool{}
	for leaf, hosts := range n.hostsAt(bridges) {
		elsewhere, here := 0, 0
		for _, h := range hosts {
			switch x := at[h]; {
			case x[0] > x[1]:
				elsewhere++
			case x[0] < x[1]:
				here++
			}
		}
		switch {
		case n.stated[leaf]:
		case 4*elsewhere >= 3*len(hosts), n.isService(leaf):
			service[leaf] = true
		case 2*here <= len(hosts):
			return n.ambiguous(leaf, len(hosts))
		}
	}
	n.leaveOut(service)
	return n.inferTies()
}

// bridges are the leaves that have most hosts of each of two leaves that are not alike.
func (n *network) bridges(o *overlaps) map[int]bool {
	near := map[int][]int{} // leaves of which a leaf has most hosts
	for pair, both := range o.common {
		for i, a := range pair {
			if b := pair[1-i]; 2*both > o.hosts[b] {
				near[a] = append(near[a], b)
			}
		}
	}
	found := map[int]bool{}
	for leaf, list := range near {
		for i, a := range list {
			if slices.ContainsFunc(list[i+1:], func(b int) bool { return !o.alike(a, b) }) {
				found[leaf] = true
				break
			}
		}
	}
	return found
}

// inferTies finds the role of leaves where most hosts have as many adapters as in another unit,
// although no leaf is alike.
func (n *network) inferTies() error {
	n.joinUnits(n.overlaps())
	defer func() { n.unit = newDisjointSets(len(n.names)) }()
	counts := map[string]map[int]int{} // adapters by host and unit
	for _, a := range n.adapters {
		if counts[a.host] == nil {
			counts[a.host] = map[int]int{}
		}
		counts[a.host][n.unit.of(a.leaf)]++
	}
	all, ties := map[int]int{}, map[int]int{} // hosts by unit
	for _, units := range counts {
		most, equal := 0, 0
		for _, c := range units {
			if c > most {
				most, equal = c, 0
			}
			if c == most {
				equal++
			}
		}
		for u, c := range units {
			all[u]++
			if c == most && equal > 1 {
				ties[u]++
			}
		}
	}
	service := map[int]bool{}
	var unclear []int
	for leaf, is := range n.leaf() {
		u := n.unit.of(leaf)
		if !is || n.stated[leaf] || ties[u] < 2 || 2*ties[u] <= all[u] {
			continue
		}
		if n.isService(leaf) {
			service[leaf] = true
		} else {
			unclear = append(unclear, leaf)
		}
	}
	if len(service) > 0 {
		n.leaveOut(service)
		return nil
	}
	if len(unclear) > 0 {
		return n.ambiguous(unclear[0], all[n.unit.of(unclear[0])])
	}
	return nil
}

// hostsAt returns the hosts of leaves, in the order of names.
func (n *network) hostsAt(leaves map[int]bool) map[int][]string {
	hosts := map[int][]string{}
	for _, a := range n.adapters {
		if leaves[a.leaf] {
			hosts[a.leaf] = append(hosts[a.leaf], a.host)
		}
	}
	for leaf, list := range hosts {
		slices.Sort(list)
		hosts[leaf] = slices.Compact(list)
	}
	return hosts
}

// isService reports whether a leaf has the name of a service, or adapters of one.
func (n *network) isService(leaf int) bool {
	if n.services[leaf] {
		return true
	}
	for _, r := range slices.Concat(ServiceRules(), graph.DefaultRules()) {
		if r.Class&graph.ClassIO != 0 && graph.Glob(r.Name, n.names[leaf]) {
			return true
		}
	}
	return false
}

// leaveOut leaves out the adapters at leaves, with a note for each.
func (n *network) leaveOut(leaves map[int]bool) {
	if len(leaves) == 0 {
		return
	}
	elsewhere := map[string]bool{}
	for _, a := range n.adapters {
		elsewhere[a.host] = elsewhere[a.host] || !leaves[a.leaf]
	}
	for leaf := range leaves {
		n.notes.add("role inferred: the leaf serves hosts of several groups, as storage and management do, and groups none (--class 'LEAF=cn' if it does)", n.names[leaf])
	}
	for _, a := range n.adapters {
		if !elsewhere[a.host] {
			n.notes.add("all adapters are at leaves of storage or management; left out", a.host)
		}
	}
	n.adapters = slices.DeleteFunc(n.adapters, func(a adapter) bool { return leaves[a.leaf] })
}

// ambiguous is the error of a leaf without a role.
func (n *network) ambiguous(leaf, hosts int) error {
	name := n.names[leaf]
	if name == "" {
		name = n.guids[leaf].String()
	}
	return fmt.Errorf("leaf %.80q: its role is ambiguous: %d of its hosts have as many adapters at other leaves; name the leaves of storage or management, such as --class '%s=io'", name, hosts, strings.ReplaceAll(name, "'", "?"))
}

// planeOf returns the number of a port of an adapter with links to several switches, which may be planes
// (XDR); else 0.
func planeOf(p *fabric.Port) int {
	for q := range p.Node().Ports() {
		if r := q.Peer(); r != nil && r.Node() != p.Peer().Node() {
			return p.Num()
		}
	}
	return 0
}

// cutPlanes removes the links between switches of different planes, which are for management (FNM): paths
// between hosts do not use them. A leaf is in the plane of the ports of adapters that are all there, and
// a switch above in that of all switches below. A switch that connects ports of several numbers has none.
func (n *network) cutPlanes() {
	if len(n.plane) == 0 {
		return
	}
	distance := n.distances()
	order := make([]int, len(n.names))
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(a, b int) int { return distance[a] - distance[b] })
	plane := make([]int, len(n.names))
	for _, s := range order {
		if plane[s] = n.plane[s]; distance[s] <= 0 {
			continue
		}
		for _, e := range n.links[s] {
			if distance[e.to] != distance[s]-1 || plane[e.to] == 0 {
				continue
			}
			if plane[s] != 0 && plane[s] != plane[e.to] {
				plane[s] = 0
				break
			}
			plane[s] = plane[e.to]
		}
	}
	for s := range n.links {
		n.links[s] = slices.DeleteFunc(n.links[s], func(e edge) bool {
			return plane[s] != 0 && plane[e.to] != 0 && plane[s] != plane[e.to]
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
