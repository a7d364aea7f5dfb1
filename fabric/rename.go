package fabric

import (
	"cmp"
	"slices"

	"fabsh/mad"
)

// Renamed is f with the names that names has; other nodes keep theirs.
func (f *Fabric) Renamed(names map[mad.GUID]string) *Fabric {
	if len(names) == 0 {
		return f
	}
	g := f.clone()
	for i := range g.nodes {
		g.nodes[i].name = cmp.Or(names[g.nodes[i].GUID()], g.nodes[i].name)
	}
	g.indexNames()
	return g
}

// clone is a copy whose nodes and ports are its own.
func (f *Fabric) clone() *Fabric {
	g := *f
	g.derived = new(derived)
	g.nodes, g.ports = slices.Clone(f.nodes), slices.Clone(f.ports)
	for i := range g.ports {
		g.ports[i].fabric = &g
	}
	for i := range g.nodes {
		g.nodes[i].fabric = &g
	}
	return &g
}

// indexNames makes the look-up table of names.
func (f *Fabric) indexNames() {
	f.byName = make([]int32, len(f.nodes))
	for i := range f.byName {
		f.byName[i] = int32(i)
	}
	slices.SortStableFunc(f.byName, func(i, j int32) int { return cmp.Compare(f.nodes[i].name, f.nodes[j].name) })
}
