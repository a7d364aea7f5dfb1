package adaptive

import "fmt"

// Groups are the port groups of a switch, by number: each has primary and secondary
// sub-groups. Equal sets take their memory once.
type Groups struct {
	subGroups int
	index     []uint16 // by group and sub-group: the place in sets
	sets      []Ports  // different ones, in the order of their first use; the first is empty
	at        map[Ports]uint16
}

// MaxGroups is the number of groups that a switch can have: GroupCap has 12 bits.
const MaxGroups = 1 << 12

// MaxSubGroups is the most sub-groups of a group: SubGrpsActive has 4 bits.
const MaxSubGroups = 1<<4 - 1

// NewGroups makes groups without ports, of so many sub-groups each.
func NewGroups(subGroups int) *Groups {
	return &Groups{subGroups: min(max(subGroups, 1), MaxSubGroups), sets: make([]Ports, 1)}
}

// SubGroups is the number of sub-groups of each group.
func (g *Groups) SubGroups() int { return g.subGroups }

// Len is one more than the highest group that was set.
func (g *Groups) Len() int {
	if g == nil {
		return 0
	}
	return len(g.index) / g.subGroups
}

// Set sets the ports of a sub-group, 0 being the primary one.
func (g *Groups) Set(group, sub int, ports Ports) error {
	switch {
	case group < 0 || group >= MaxGroups:
		return fmt.Errorf("group %d: must be from 0 to %d", group, MaxGroups-1)
	case sub < 0 || sub >= g.subGroups:
		return fmt.Errorf("sub-group %d of group %d: must be from 0 to %d", sub, group, g.subGroups-1)
	}
	if n := (group + 1) * g.subGroups; n > len(g.index) {
		g.index = append(g.index, make([]uint16, n-len(g.index))...)
	}
	g.index[group*g.subGroups+sub] = g.place(ports)
	return nil
}

// place is that of a set, which is added if it is new.
func (g *Groups) place(ports Ports) uint16 {
	if ports.Empty() {
		return 0
	}
	if g.at == nil {
		g.at = make(map[Ports]uint16, len(g.sets))
		for i, set := range g.sets {
			g.at[set] = uint16(i)
		}
	}
	i, ok := g.at[ports]
	if !ok {
		i = uint16(len(g.sets)) // MaxGroups*MaxSubGroups fits
		g.sets = append(g.sets, ports)
		g.at[ports] = i
	}
	return i
}

// Ports are those of a sub-group: none if it was not set.
func (g *Groups) Ports(group, sub int) Ports {
	if group < 0 || sub < 0 || group >= g.Len() || sub >= g.subGroups {
		return Ports{}
	}
	return g.sets[g.index[group*g.subGroups+sub]]
}

// All are the ports of all sub-groups of a group.
func (g *Groups) All(group int) (all Ports) {
	for sub := range g.subGroupsOf(group) {
		all = all.Union(g.Ports(group, sub))
	}
	return all
}

// Sets are the different sets of All, and the place of that of each group, which may be memory
// of g.
func (g *Groups) Sets() (of []uint16, sets []Ports) {
	switch {
	case g == nil:
		return nil, nil
	case g.subGroups == 1:
		return g.index, g.sets
	}
	at := map[Ports]uint16{}
	for group := range g.Len() {
		all := g.All(group)
		i, ok := at[all]
		if !ok {
			i = uint16(len(sets))
			at[all] = i
			sets = append(sets, all)
		}
		of = append(of, i)
	}
	return of, sets
}

// SubGroupsOf are the sub-groups of a group, the primary one first; nil if it was not set.
func (g *Groups) SubGroupsOf(group int) []Ports {
	var list []Ports
	for sub := range g.subGroupsOf(group) {
		list = append(list, g.Ports(group, sub))
	}
	return list
}

// subGroupsOf is the number of sub-groups of a group; 0 if it was not set.
func (g *Groups) subGroupsOf(group int) int {
	if group < 0 || group >= g.Len() {
		return 0
	}
	return g.subGroups
}

// Place is the lowest group that has these ports in its primary sub-group and no others, which
// is added behind the last if it is missing.
func (g *Groups) Place(ports Ports) (int, error) {
	for group := range g.Len() {
		if g.Ports(group, 0) == ports && g.All(group) == ports {
			return group, nil
		}
	}
	return g.Len(), g.Set(g.Len(), 0, ports)
}

// Clone is a copy that shares nothing with g.
func (g *Groups) Clone() *Groups {
	if g == nil {
		return nil
	}
	c := NewGroups(g.subGroups)
	c.index = append(c.index, g.index...)
	c.sets = append(c.sets[:0], g.sets...)
	return c
}
