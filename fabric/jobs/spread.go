package jobs

import (
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/hosts"
)

// Places are the leaves and pods of a fabric's hosts.
type Places struct {
	leaf, pod           map[string]int // by host
	leafSizes, podSizes []int          // hosts of each, the largest first
}

// Spread is the number of leaves and pods that a job is on, and the smallest possible number;
// 0: unknown. A network of one or two levels has no pods.
type Spread struct{ Leaves, LeastLeaves, Pods, LeastPods int }

// FindPlaces finds the leaves and pods of f, as [hosts.Find] groups its hosts: the leaves of a
// scalable unit count as one, and a pod is a group of the level below a root. It returns
// nil if no hosts are known.
func FindPlaces(f *fabric.Fabric) *Places {
	g, err := hosts.Find(f, hosts.GroupOptions{})
	if err != nil {
		return nil
	}
	p := &Places{leaf: map[string]int{}, pod: map[string]int{}}
	put := func(in map[string]int, sizes *[]int, x *hosts.Group) {
		for _, host := range x.Hosts {
			in[host] = len(*sizes)
		}
		*sizes = append(*sizes, len(x.Hosts))
	}
	var visit func(x *hosts.Group)
	visit = func(x *hosts.Group) {
		if x.Level == 0 {
			put(p.leaf, &p.leafSizes, x)
		}
		for _, below := range x.Groups {
			visit(below)
		}
	}
	for _, root := range g.Roots {
		visit(root)
		for _, x := range root.Groups {
			if x.Level > 0 {
				put(p.pod, &p.podSizes, x)
			}
		}
	}
	slices.SortFunc(p.leafSizes, func(a, b int) int { return b - a })
	slices.SortFunc(p.podSizes, func(a, b int) int { return b - a })
	return p
}

// Spread returns that of hosts, by their names in the fabric.
func (p *Places) Spread(names []string) (s Spread) {
	if p == nil {
		return s
	}
	s.Leaves, s.LeastLeaves = spread(names, p.leaf, p.leafSizes)
	s.Pods, s.LeastPods = spread(names, p.pod, p.podSizes)
	return s
}

// spread counts the groups that hosts are in, and how few of the largest have room for them.
func spread(names []string, in map[string]int, sizes []int) (used, least int) {
	groups := map[int]bool{}
	n := 0
	for _, name := range names {
		if i, ok := in[name]; ok {
			groups[i] = true
			n++
		}
	}
	for n > 0 && least < len(sizes) {
		n -= sizes[least]
		least++
	}
	return len(groups), least
}
