package trial

import (
	"cmp"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// perModel is the maximum number of devices of a model that are read.
const perModel = 3

// maxTimeouts is how many requests may time out before a device is not queried again.
const maxTimeouts = 3

// Model is the devices with the same type, vendor and device ID.
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
const protected = "an M_Key protects it"

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
		d.Unread = protected
	}
	return d
}
