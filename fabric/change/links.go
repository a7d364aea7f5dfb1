package change

import (
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// linkFields are the fields of PortInfo whose Sets a subnet manager sees as links that go
// down and come up.
var linkFields = []string{"port_physical_state", "link_speed_enabled", "link_speed_ext_enabled", "link_speed_ext_enabled2"}

// OfLinks reports whether a Set of these fields changes only the state or the speeds of a
// link. A running subnet manager handles such changes as those of cables.
func OfLinks(attr *mad.Attribute, fields []string) bool {
	return attr == mad.AttrPortInfo && len(fields) > 0 && !slices.ContainsFunc(fields, func(name string) bool { return !slices.Contains(linkFields, name) })
}

// Isolates reports whether p takes a link down that stays down. Others train again.
func (p *Plan) Isolates(f *fabric.Fabric) bool {
	return slices.ContainsFunc(p.Changes(), func(c Change) bool {
		port, stays := takenDown(f, &c)
		return port != nil && port.Peer() != nil && stays
	})
}

// OnlyLinks reports whether all changes of p are OfLinks.
func (p *Plan) OnlyLinks() bool {
	changes := p.Changes()
	for _, c := range changes {
		var names []string
		for _, f := range c.Fields {
			names = append(names, f.Name)
		}
		if !OfLinks(c.Attr, names) {
			return false
		}
	}
	return len(changes) > 0
}
