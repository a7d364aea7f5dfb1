package trial

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// place is a part of an attribute: a port, a block of a table.
type place struct {
	modifier uint32
	text     string // "port 1, block 0"
}

// places returns the parts of an attribute of device d to read: of its ports one with a link
// and one without, of its tables the first two blocks.
func (d *Device) places(a *mad.Attribute) []place {
	list := []place{{}}
	for _, part := range a.Modifier {
		values := d.values(a, part.Name)
		var next []place
		for _, p := range list {
			for _, v := range values {
				q := place{p.modifier | uint32(v)<<part.Shift, p.text}
				if v != 0 || len(values) > 1 {
					q.text = strings.TrimPrefix(fmt.Sprintf("%s, %s %d", p.text, strings.ReplaceAll(part.Name, "_", " "), v), ", ")
				}
				next = append(next, q)
			}
		}
		list = next
	}
	return list
}

// values returns the values of a part of a modifier.
func (d *Device) values(a *mad.Attribute, part string) []int {
	switch {
	case part == "block" && a == mad.AttrVLArbitrationTable:
		return []int{1, 3} // low and high priority (IBA 14.2.5.9)
	case part == "block":
		return []int{0, 1}
	case part == "form":
		return []int{mad.GeneralInfoFormCapabilities, 0}
	case part == "port" || part == "out_port":
		return d.ports(a)
	}
	return []int{0}
}

// ports returns the ports whose attribute is read.
func (d *Device) ports(a *mad.Attribute) []int {
	if !d.Node.IsSwitch() {
		switch a {
		case mad.AttrPKeyTable, mad.AttrVLArbitrationTable, mad.AttrSLtoVLMappingTable:
			return []int{0} // of the port that answers
		}
		return []int{d.Port()}
	}
	list := []int{}
	switch a {
	case mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrPortInfoExtended:
		list = append(list, 0)
	}
	return append(list, d.externalPorts()...)
}

// externalPorts returns a port with a link and one without, as far as the device has them.
func (d *Device) externalPorts() (list []int) {
	if !d.Node.IsSwitch() {
		return []int{d.Port()}
	}
	pick := func(wanted func(*fabric.Port) bool) {
		for p := range d.Node.Ports() {
			if wanted(p) {
				list = append(list, p.Num())
				return
			}
		}
	}
	pick(func(p *fabric.Port) bool { return p.Peer() != nil })
	pick(func(p *fabric.Port) bool { return p.Peer() == nil })
	return list
}

// variants returns the contents of a request for a register, one for each of its pages:
// those that its variants are chosen by.
func variants(a *mad.Attribute) (list []content) {
	for _, v := range a.Variants {
		c := content{make([]byte, a.Size), strings.ReplaceAll(v.Name, "_", " ")}
		for _, when := range v.When {
			if f := a.Field(when.Name); f != nil && !f.ReadOnly && !when.Modifier {
				f.SetUint(c.data, when.Values[0][0])
			}
		}
		list = append(list, c)
	}
	if list == nil {
		list = []content{{make([]byte, a.Size), ""}}
	}
	return list
}

// content is the content of a request, and what it selects.
type content struct {
	data []byte
	text string
}
