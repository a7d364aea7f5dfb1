package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// perModel is the maximum number of devices of a model that are read.
const perModel = 3

// maxTimeouts is how many requests may time out before a device is not queried again.
const maxTimeouts = 3

// Model is the devices with equal type, vendor and device ID.
type Model struct {
	Type     mad.NodeType
	Vendor   uint32
	DeviceID uint16
	Found    int // in the fabric
	Devices  []*Device
}

// String returns the numbers of a model: "switch 0x0002c9:0xd2f0".
func (m *Model) String() string {
	return fmt.Sprintf("%v 0x%06x:0x%04x", m.Type, m.Vendor, m.DeviceID)
}

// Device is a device that is read.
type Device struct {
	Node    *fabric.Node
	Name    string // in the report: "switch 1"
	Results []*Result
	// Unread is why the device is not queried after the sweep; "": it is.
	Unread string

	port     *fabric.Port // that answers: port 0 of a switch
	timeouts int
	// unannounced is set if the device did not answer what it announces.
	unannounced bool
}

// protected is Device.Unread of a device with an M_Key.
const mkeyProtected = "an M_Key protects it"

// Answer returns the answer of the device to a Get of an attribute; nil without one.
func (d *Device) Answer(a *mad.Attribute, modifier uint32) []byte {
	for _, r := range d.Results {
		if r.attr == a && r.modifier == modifier && r.Outcome == Answered {
			return r.data
		}
	}
	return nil
}

// Port returns the number of the port that the device answers at.
func (d *Device) Port() int { return d.port.Num() }

// LID returns the LID that the device answers at.
func (d *Device) LID() mad.LID { return d.port.LID() }

// isNVIDIA reports whether the device is of NVIDIA or Mellanox.
func (d *Device) isNVIDIA() bool {
	return mad.IsNVIDIA(d.Node.Info().VendorID, d.Node.GUID())
}

// models chooses the devices: the nearest of each model, in the order of their routes, which
// a recording with other GUIDs has too.
func models(f *fabric.Fabric) []*Model {
	nodes := make([]*fabric.Node, 0, len(f.Nodes()))
	for i := range f.Nodes() {
		nodes = append(nodes, &f.Nodes()[i])
	}
	slices.SortStableFunc(nodes, func(a, b *fabric.Node) int {
		return cmp.Or(cmp.Compare(len(a.Route()), len(b.Route())), slices.Compare(a.Route(), b.Route()))
	})
	var list []*Model
	count := map[mad.NodeType]int{}
	for _, n := range nodes {
		info := n.Info()
		i := slices.IndexFunc(list, func(m *Model) bool {
			return m.Type == n.Type() && m.Vendor == info.VendorID && m.DeviceID == info.DeviceID
		})
		if i < 0 {
			i = len(list)
			list = append(list, &Model{Type: n.Type(), Vendor: info.VendorID, DeviceID: info.DeviceID})
		}
		m := list[i]
		m.Found++
		if len(m.Devices) == perModel || n.Route() == nil {
			continue
		}
		count[n.Type()]++
		m.Devices = append(m.Devices, newDevice(n, count[n.Type()]))
	}
	return list
}

func newDevice(n *fabric.Node, number int) *Device {
	d := &Device{Node: n, Name: fmt.Sprintf("%v %d", n.Type(), number)}
	if d.port = n.Port(int(n.Info().LocalPortNum)); n.IsSwitch() {
		d.port = n.Port(0)
	}
	switch {
	case d.port == nil || d.port.Info() == nil:
		d.Unread = "its PortInfo is unknown: an M_Key may protect it"
	case d.port.Info().MKey != 0 || d.port.Info().MKeyProtectBits != 0:
		d.Unread = mkeyProtected
	}
	return d
}

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

// variants returns the contents of a request for a register, one for each of its pages, which
// select its variants.
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
