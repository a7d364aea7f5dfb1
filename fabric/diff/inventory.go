package diff

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// The kinds of changes of hardware, as registers of the devices have it.
const (
	Firmware    = "node.firmware"
	ModuleNew   = "module.new"
	ModuleGone  = "module.gone"
	ModuleMoved = "module.moved" // by its serial number
	CableNew    = "link.replaced"
)

// inventory compares firmware and modules, where both sides have registers of them.
func (c *comparison) inventory() {
	var firmware, modules [2]bool
	mgir, pddr := mad.RegisterNamed("MGIR"), mad.RegisterNamed("PDDR")
	for side, f := range c.fabrics {
		for _, a := range f.Answers() {
			switch {
			case !isRegister(a):
			case a.Modifier == uint32(mgir.Register):
				firmware[side] = true
			case a.Modifier == uint32(pddr.Register) && len(a.Data) >= pddr.Size: // other pages are of faults
				modules[side] = modules[side] || pddr.Resolve(a.Data, 0).Field("vendor_sn") != nil
			}
		}
	}
	if c.lacking("firmware", firmware[sideOld], firmware[sideNew]); firmware[sideOld] && firmware[sideNew] {
		c.firmware()
	}
	if c.lacking("modules", modules[sideOld], modules[sideNew]); modules[sideOld] && modules[sideNew] {
		c.modules()
	}
}

func isRegister(a fabric.Answer) bool {
	return a.Class == mad.ClassVendor0A && a.ID == mad.AttrAccessRegister.ID && len(a.Data) > 0
}

// registersOf returns a register of the ports of a node, by port.
func registersOf(n *fabric.Node, name string) map[int][]byte {
	layout := mad.RegisterNamed(name)
	all := map[int][]byte{}
	for _, a := range n.Fabric().AnswersOf(n.ID()) {
		if isRegister(a) && a.Modifier == uint32(layout.Register) && len(a.Data) >= layout.Size {
			all[int(a.Port)] = a.Data
		}
	}
	return all
}

// firmware compares the firmware of nodes that both sides have.
func (c *comparison) firmware() {
	for i := range c.fabrics[sideOld].Nodes() {
		n := &c.fabrics[sideOld].Nodes()[i]
		m := c.node(sideOld, n)
		if m == nil {
			continue
		}
		before, after := firmwareOf(n), firmwareOf(m)
		if before != "" && after != "" && before != after {
			x := ofNode(Firmware, m)
			x.Before, x.After = before, after
			c.add(x)
		}
	}
}

// firmwareOf is the version of the firmware of n, and its PSID; "": unknown.
func firmwareOf(n *fabric.Node) string {
	for _, data := range registersOf(n, "MGIR") {
		var g mad.MGIR
		g.Decode(data)
		version := fmt.Sprintf("%d.%d.%d", g.FWMajor, g.FWMinor, g.FWSubMinor)
		if g.ExtFWMajor != 0 {
			version = fmt.Sprintf("%d.%d.%d", g.ExtFWMajor, g.ExtFWMinor, g.ExtFWSubMinor)
		}
		if psid := mad.RegisterNamed("MGIR").Field("psid").Text(data); psid != "" {
			version += " " + plain(psid)
		}
		return version
	}
	return ""
}

// module is a module in a port.
type module struct {
	port *fabric.Port
	text string // vendor, part and serial number
	id   string // vendor and serial number; "": it has none
}

// modulesOf returns the modules of a side by port ID.
func (c *comparison) modulesOf(side int) map[int]*module {
	pddr, list := mad.RegisterNamed("PDDR"), map[int]*module{}
	f := c.fabrics[side]
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		for num, data := range registersOf(n, "PDDR") {
			p, page := n.Port(num), pddr.Resolve(data, 0)
			if p == nil || page.Field("vendor_sn") == nil || page.Field("cable_type").Uint(data) == uint64(mad.CableTypeUnplugged) {
				continue
			}
			text := func(field string) string { return strings.TrimSpace(page.Field(field).Text(data)) }
			m := &module{port: p, text: plain(strings.Join(strings.Fields(text("vendor_name")+" "+text("vendor_pn")+" "+text("vendor_sn")), " "))}
			if sn := text("vendor_sn"); sn != "" {
				m.id = text("vendor_name") + " " + sn
			}
			list[p.ID()] = m
		}
	}
	return list
}

// modules compares the modules of ports that both sides have. A module, or a cable with two ends of one
// serial number, that is at another port now has moved.
func (c *comparison) modules() {
	old, new := c.modulesOf(sideOld), c.modulesOf(sideNew)
	places := func(list map[int]*module) map[string][]*module {
		by := map[string][]*module{}
		for _, id := range sortedPorts(list) {
			if m := list[id]; m.id != "" {
				by[m.id] = append(by[m.id], m)
			}
		}
		return by
	}
	was, is := places(old), places(new)
	for _, id := range sortedPorts(new) {
		m := new[id]
		before := c.port(sideNew, m.port)
		var o *module
		if before != nil {
			o = old[before.ID()]
		}
		if o != nil && (o.id == m.id && o.text == m.text || o.id == "" || m.id == "") {
			continue
		}
		x := ofPort(ModuleNew, m.port)
		x.After = m.text
		if o != nil {
			x.Before = o.text
		}
		if from := c.leftFrom(was[m.id], new); m.id != "" && len(is[m.id]) == len(was[m.id]) && len(from) == 1 {
			x.Kind, x.Effect = ModuleMoved, "it was at "+portName(from[0].port)
		} else if m.id != "" && len(is[m.id]) == 2 && len(from) == 2 { // both ends of a cable
			x.Kind, x.Effect = ModuleMoved, fmt.Sprintf("it was at %s and %s", portName(from[0].port), portName(from[1].port))
			if q := m.port.Peer(); q != nil && new[q.ID()] != nil && new[q.ID()].id == m.id {
				if q.ID() < m.port.ID() {
					continue // reported at the other end
				}
				x.Subject = linkName(m.port, q)
			}
		} else if q := m.port.Peer(); o != nil && q != nil && before.Peer() != nil && len(was[m.id]) == 0 {
			if far, farBefore := new[q.ID()], old[before.Peer().ID()]; far != nil && farBefore != nil && far.id == m.id && farBefore.id == o.id && c.port(sideNew, q) == before.Peer() {
				if q.ID() < m.port.ID() {
					continue // reported at the other end
				}
				x.Kind, x.Subject = CableNew, linkName(m.port, q)
			}
		}
		c.add(x)
	}
	for _, id := range sortedPorts(old) {
		o := old[id]
		after := c.port(sideOld, o.port)
		if after == nil || new[after.ID()] != nil || len(is[o.id]) > 0 && o.id != "" || after.Peer() == nil {
			continue // it is reported where it is now, or the port was not read
		}
		x := ofPort(ModuleGone, after)
		x.Before = o.text
		c.add(x)
	}
}

// leftFrom are those of the places where a module was that have another module now, or none.
func (c *comparison) leftFrom(was []*module, new map[int]*module) (left []*module) {
	for _, o := range was {
		if after := c.port(sideOld, o.port); after == nil || new[after.ID()] == nil || new[after.ID()].id != o.id {
			left = append(left, o)
		}
	}
	return left
}

func sortedPorts(list map[int]*module) []int {
	ids := make([]int, 0, len(list))
	for id := range list {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
