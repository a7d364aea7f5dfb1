package spec

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// tree is a parallel-ports generalised fat tree (Zahavi, "Fat-trees routing
// and node ordering", 2012): nodes of level i-1 have W[i-1] parents of level i,
// those have M[i-1] children, and there are P[i-1] cables between each such pair.
// Level 0 are the adapters. M, W and P are of the same length.
type tree struct {
	M, W, P []int
	// Rails is the number of adapters of each host; 0 and 1: one. In each group of Rails
	// leaves, adapter r of every host is at leaf r.
	Rails int
}

// fatTree is the full-bisection tree of switches with k ports, an even number:
// those of the top level have all ports down, the others half down, half up.
func fatTree(k, levels int) tree {
	var t tree
	for i := range levels {
		down, up := k/2, k/2
		if i == 0 {
			up = 1
		}
		if i == levels-1 {
			down = k
		}
		t.M, t.W, t.P = append(t.M, down), append(t.W, up), append(t.P, 1)
	}
	return t
}

// Build makes the tree. A node of level i has number a*width+b, where width is the
// product of W[:i]: a is the subtree below the switches above it, b, from 0 to
// width-1, the node within the subtree.
func (t tree) Build() (*fabric.Fabric, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	p := &builder{Builder: fabric.NewBuilder()}
	levels := len(t.M)
	ids := make([][]int, levels+1)
	for level := 1; level <= levels; level++ {
		for i := range t.count(level) {
			name := fmt.Sprintf("%s-%d", switchName(level, levels), i+1)
			ids[level] = append(ids[level], p.addSwitch(name, t.down(level)+t.up(level)))
		}
	}
	ids[0] = t.addHosts(p)
	for level, children := range ids[:levels] {
		m, w, cables := t.M[level], t.W[level], t.P[level]
		width := product(t.W[:level])
		for i, child := range children {
			a, b := i/width, i%width
			for up := range w {
				parent := ids[level+1][a/m*width*w+up*width+b]
				for c := range cables {
					p.link(child, t.down(level)+c*w+up+1, parent, c*m+a%m+1)
				}
			}
		}
	}
	return p.build()
}

// addHosts adds the adapters, host by host, and returns them by number.
func (t tree) addHosts(p *builder) []int {
	rails, m := max(t.Rails, 1), t.M[0]
	ids := make([]int, t.count(0))
	for host := range len(ids) / rails {
		group, place := host/m, host%m
		var image mad.GUID
		for r := range rails {
			ids[(group*rails+r)*m+place] = p.addAdapter(host, r, t.up(0), &image)
		}
	}
	return ids
}

// count is the number of nodes of a level.
func (t tree) count(level int) int { return product(t.M[level:], t.W[:level]) }

// down and up are the numbers of ports of a level's nodes.
func (t tree) down(level int) int {
	if level == 0 {
		return 0
	}
	return t.M[level-1] * t.P[level-1]
}

func (t tree) up(level int) int {
	if level == len(t.M) {
		return 0
	}
	return t.W[level] * t.P[level]
}

// check returns an error if the tree does not fit into a subnet.
func (t tree) check() error {
	lids := 0
	for level := range len(t.M) + 1 {
		n := t.count(level)
		if n < 0 {
			return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
		}
		if level == 0 {
			n *= t.up(0)
		}
		if lids += n; lids > maxLIDs {
			return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
		}
		if ports := t.down(level) + t.up(level); ports > maxSwitchPorts {
			return fmt.Errorf("nodes with %d ports, more than %d", ports, maxSwitchPorts)
		}
	}
	if leaves := t.count(0) / t.M[0]; t.Rails > 1 && leaves%t.Rails != 0 {
		return fmt.Errorf("%s, but each host needs a group of %d, one for each rail", plural.Count(leaves, "leaf", "leaves"), t.Rails)
	}
	return nil
}

// switchName is the name of the switches of a level.
func switchName(level, levels int) string {
	switch {
	case level == 1:
		return "leaf"
	case level == levels && levels > 2:
		return "core"
	case level == 2:
		return "spine"
	}
	return fmt.Sprintf("spine%d", level-1)
}
