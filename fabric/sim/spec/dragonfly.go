package spec

import (
	"fmt"

	"fabsh/fabric"
)

// dragonfly makes groups of a switches that are all linked to each other, with
// p hosts each, and h cables each to other groups (Kim, Dally, Scott, Abts,
// "Technology-driven, highly-scalable dragonfly topology", 2008). The cables
// between groups are distributed evenly. groups 0 is the largest number.
func dragonfly(a, p, h, groups int) (*fabric.Fabric, error) {
	if groups == 0 {
		groups = a*h + 1
	}
	if groups > a*h+1 {
		return nil, fmt.Errorf("%d groups, but the %d cables of one lead to no more than %d", groups, a*h, a*h)
	}
	if err := checkSize(product([]int{a, groups}), p, p+a-1+h, 3); err != nil {
		return nil, err
	}
	d := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for g := range groups {
		for s := range a {
			switches = append(switches, d.addSwitch(fmt.Sprintf("group-%d switch-%d", g+1, s+1), p+a-1+h))
		}
	}
	d.addHosts(switches, p)
	for g := range groups {
		for s := range a {
			for t := s + 1; t < a; t++ { // a switch's ports are in the order of its neighbours
				d.link(switches[g*a+s], p+t, switches[g*a+t], p+s+1)
			}
		}
	}
	// In each round, one cable between each two groups that have one left.
	used := make([]int, groups)
	for linked := true; linked && groups > 1; {
		linked = false
		for g := range groups {
			for o := g + 1; o < groups; o++ {
				x, y := used[g], used[o]
				if x == a*h || y == a*h {
					continue
				}
				used[g], used[o], linked = x+1, y+1, true
				d.link(switches[g*a+x/h], p+a+x%h, switches[o*a+y/h], p+a+y%h)
			}
		}
	}
	return d.build()
}
