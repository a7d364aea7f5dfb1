package fabric

import (
	"fmt"
	"strconv"

	"fabsh/mad"
)

// Label is n in messages: its name, quoted, and its GUID.
func (n *Node) Label() string { return NodeLabel(n.name, n.info.NodeGUID) }

// place names n where its GUID does not identify it: `switch "leaf-1" on route 0,1`.
func (n *Node) place() string {
	s := typeWord(n.Type()) + " " + strconv.Quote(n.name)
	if n.route != nil {
		s += " on route " + n.route.String()
	}
	return s
}

// Label is p in messages.
func (p *Port) Label() string { return "port " + strconv.Itoa(p.Num()) + " of " + p.Node().Label() }

// mellanox is NodeInfo.VendorID of Mellanox, and of NVIDIA after it.
const mellanox = 0x2c9

// twoInCage are the switches of which two ports share a cage, by NodeInfo.DeviceID:
// QM9700 and QM9790 (their user manual; Mellanox/ufm_sdk_3.0
// plugins/UFM_NDT_Plugin, ports "1/16/1").
const twoInCage = 0xd2f2

// Panel is the label of p on the front of its switch: "cage 2/1"; empty where
// unknown.
func (p *Port) Panel() string {
	n := p.Node()
	if !n.IsSwitch() || n.info.VendorID != mellanox || n.info.DeviceID != twoInCage || p.Num() < 1 || p.Num() > 64 {
		return ""
	}
	return fmt.Sprintf("cage %d/%d", (p.Num()+1)/2, 2-p.Num()%2)
}

// NodeLabel is a node in messages: its name, quoted, and its GUID, or its GUID
// alone where it has no name.
func NodeLabel(name string, guid mad.GUID) string {
	if name == "" {
		return guid.String()
	}
	return strconv.Quote(name) + " (" + guid.String() + ")"
}

// typeWord is the type of a node in messages.
func typeWord(t mad.NodeType) string {
	if t == mad.NodeTypeCA {
		return "CA"
	}
	return t.String()
}

// Clip shortens text from outside, such as a line of a file, for messages.
func Clip(s string) string {
	const most = 60 // bytes
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
