package audit

import "strings"

// Group is a finding with those that follow from it.
type Group struct {
	*Finding
	Effects []*Group
}

// Size is how many findings are in g.
func (g *Group) Size() int {
	n := 1
	for _, e := range g.Effects {
		n += e.Size()
	}
	return n
}

// Fold puts each finding below its cause: that which it names; else the nearest
// that explains it, of what it is a part of. A fault of a node (checks named
// node.x) explains those of its links (link.x, port.x), and a fault of a link
// those of the counters at its ends (ctr.x), unless they are worse. The order
// is that of list.
func Fold(list []Finding) []*Group {
	groups := make([]*Group, len(list))
	byID := make(map[string]int, len(list))
	at := map[string][]int{} // what may explain others, by the key of each end
	for i := range list {
		f := &list[i]
		groups[i] = &Group{Finding: f}
		byID[f.ID()] = i
		if rank(f.Check) > 0 {
			for _, key := range f.Subject.keys() {
				at[key] = append(at[key], i)
			}
		}
	}
	parent := make([]int, len(list))
	for i := range list {
		parent[i] = explains(list, at, i)
		if c, ok := byID[list[i].Cause]; ok && c != i {
			parent[i] = c
		}
	}
	var roots []*Group
	for i, g := range groups {
		if p := parent[i]; p >= 0 && !inCircle(parent, i) {
			groups[p].Effects = append(groups[p].Effects, g)
		} else {
			roots = append(roots, g)
		}
	}
	return roots
}

// rank is how much a check explains: a node more than a link, that more than a
// counter; 0: nothing.
func rank(check string) int {
	switch group, _, _ := strings.Cut(check, "."); group {
	case "node":
		return 3
	case "link", "port":
		return 2
	}
	return 0
}

// explainable is the rank above which findings explain this one; 3: none does.
func explainable(check string) int {
	switch group, _, _ := strings.Cut(check, "."); group {
	case "ctr":
		return 1
	case "link", "port":
		return 2
	}
	return 3
}

// explains is the index of the finding that explains i; -1: none does.
func explains(list []Finding, at map[string][]int, i int) int {
	f := &list[i]
	best := -1
	for _, e := range f.Subject.Ends {
		for _, key := range []string{e.key(), End{Node: e.Node, Num: NoPort}.key()} {
			for _, j := range at[key] {
				c := &list[j]
				if j == i || rank(c.Check) <= explainable(f.Check) || c.Severity < f.Severity {
					continue
				}
				if best < 0 || rank(c.Check) < rank(list[best].Check) || rank(c.Check) == rank(list[best].Check) && j < best {
					best = j
				}
			}
		}
	}
	return best
}

// inCircle reports whether following causes from i leads back to i.
func inCircle(parent []int, i int) bool {
	at := parent[i]
	for range parent {
		switch {
		case at < 0:
			return false
		case at == i:
			return true
		}
		at = parent[at]
	}
	return false // the circle is further up: its members become roots
}
