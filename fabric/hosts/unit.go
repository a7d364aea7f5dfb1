package hosts

import (
	"cmp"
	"slices"

	"fabsh/fabric"
)

// manyLeaves is the number of leaves from which a name is not that of one host:
// several hosts have it.
const manyLeaves = 64

// joinUnits joins leaves that serve the same hosts: where hosts have an adapter for
// each rail, each at a leaf of its own, these leaves are one place to a scheduler.
// Two leaves are joined if they have in common more than half of the hosts of the smaller
// one: a cable at the wrong leaf, or a host with two adapters among others that have one,
// joins nothing.
func (n *network) joinUnits() {
	leaves := map[string][]int{}
	nodes := map[string]*fabric.Node{} // by their whole names; nil: several have it
	for _, a := range n.adapters {
		leaves[a.host] = append(leaves[a.host], a.leaf)
		if b, found := nodes[a.whole]; found && b != a.node {
			nodes[a.whole] = nil
		} else {
			nodes[a.whole] = a.node
		}
	}
	doubtful := map[string]bool{} // hosts: there may be several of the name
	for _, a := range n.adapters {
		if nodes[a.whole] == nil {
			doubtful[a.host] = true
		}
	}
	hosts := make([]int, len(n.names)) // of the leaf
	common := map[[2]int]int{}
	for host, list := range leaves {
		slices.Sort(list)
		list = slices.Compact(list)
		for i, a := range list {
			hosts[a]++
			if doubtful[host] || len(list) >= manyLeaves {
				continue
			}
			for _, b := range list[i+1:] {
				common[[2]int{a, b}]++
			}
		}
	}
	for pair, both := range common {
		if 2*both > min(hosts[pair[0]], hosts[pair[1]]) {
			n.unit.join(pair[0], pair[1])
		}
	}
}

// placeHosts are the hosts by the unit that most of their adapters are at; of units
// with as many, the first.
func (n *network) placeHosts() map[string]int {
	list := slices.Clone(n.adapters)
	slices.SortStableFunc(list, func(a, b adapter) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(n.unit.of(a.leaf), n.unit.of(b.leaf)), cmp.Compare(a.whole, b.whole))
	})
	hosts := map[string]int{}
	for len(list) > 0 {
		end := slices.IndexFunc(list, func(a adapter) bool { return a.host != list[0].host })
		if end < 0 {
			end = len(list)
		}
		own := list[:end]
		list = list[end:]
		if unit, ok := n.placeHost(own); ok {
			hosts[own[0].host] = unit
		}
	}
	return hosts
}

// placeHost is the unit of the host that has these adapters, which are sorted by units.
func (n *network) placeHost(own []adapter) (unit int, ok bool) {
	best, most, units := 0, 0, 0
	for i := 0; i < len(own); {
		u, first := n.unit.of(own[i].leaf), i
		for i < len(own) && n.unit.of(own[i].leaf) == u {
			i++
		}
		units++
		if i-first > most {
			best, most = u, i-first
		}
	}
	if units == 1 {
		return best, true
	}
	// Where two adapters of one name are far apart there are two hosts of that name.
	named := map[string]adapter{}
	for _, a := range own {
		b, found := named[a.whole]
		if found && b.node != a.node && n.unit.of(a.leaf) != n.unit.of(b.leaf) {
			n.notes.add("adapters of the same name at leaves of several units: host unclear; left out", a.whole)
			return 0, false
		}
		named[a.whole] = a
	}
	n.notes.add("adapters at leaves of several units: host placed where most of them are, or at the first", own[0].host)
	return best, true
}

// joined are sets of numbers, which are joined (union-find).
type joined []int

func newJoined(n int) joined {
	j := make(joined, n)
	for i := range j {
		j[i] = i
	}
	return j
}

// of is the lowest number of the set that i is in.
func (j joined) of(i int) int {
	for j[i] != i {
		j[i] = j[j[i]]
		i = j[i]
	}
	return i
}

func (j joined) join(a, b int) {
	a, b = j.of(a), j.of(b)
	j[max(a, b)] = min(a, b)
}
