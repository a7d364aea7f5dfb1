package format

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// openSMOrder sorts nodes as OpenSM on a little-endian machine does: by GUID, of
// which it compares the bytes in reverse order. Files of both can then be
// compared line by line.
func openSMOrder(nodes []fabric.Node) []*fabric.Node {
	sorted := make([]*fabric.Node, len(nodes))
	for i := range nodes {
		sorted[i] = &nodes[i]
	}
	slices.SortStableFunc(sorted, func(m, n *fabric.Node) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(m.GUID())), bits.ReverseBytes64(uint64(n.GUID())))
	})
	return sorted
}

// openSMPorts are port 0 of all switches and the connected ports of other nodes,
// by port GUID, in the order of openSMOrder.
func openSMPorts(f *fabric.Fabric) []*fabric.Port {
	var ports []*fabric.Port
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Node().IsSwitch() != (p.Num() == 0) || p.Num() > 0 && p.Peer() == nil {
			continue
		}
		ports = append(ports, p)
	}
	slices.SortStableFunc(ports, func(p, q *fabric.Port) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(p.GUID())), bits.ReverseBytes64(uint64(q.GUID())))
	})
	return ports
}

// typeName is the name of node type t in OpenSM and infiniband-diags (opensm
// include/iba/ib_types.h, ib_get_node_type_str).
func typeName(t mad.NodeType) string {
	switch t {
	case mad.NodeTypeCA:
		return "Channel Adapter"
	case mad.NodeTypeSwitch:
		return "Switch"
	case mad.NodeTypeRouter:
		return "Router"
	}
	return "UNKNOWN"
}

// description is the node description as OpenSM prints it, at most 63 bytes
// (opensm complib/cl_nodenamemap.c, clean_nodedesc).
func description(n *fabric.Node) string {
	name := printable(n.Name())
	return name[:min(len(name), 63)]
}

// parseHeader parses `Switch 0x0002c90300001000, base LID 2, "name"`, the line
// that begins the tables of a node.
func (r *NodeRef) parseHeader(s []byte) bool {
	for _, t := range []mad.NodeType{mad.NodeTypeSwitch, mad.NodeTypeCA, mad.NodeTypeRouter} {
		rest, ok := bytes.CutPrefix(s, []byte(typeName(t)+" "))
		if !ok {
			continue
		}
		g, rest, ok := hex(rest)
		*r = NodeRef{File: r.File, GUID: mad.GUID(g)}
		if after, found := bytes.CutPrefix(rest, []byte(", base LID ")); found {
			if lid, _, isLID := decimal(after); isLID && lid <= int(mad.MaxUnicastLID) {
				r.LID = mad.LID(lid)
			}
		}
		if i, j := bytes.IndexByte(rest, '"'), bytes.LastIndexByte(rest, '"'); i >= 0 && i < j {
			r.Name = string(rest[i+1 : j])
		}
		return ok && len(rest) > 0 && rest[0] == ','
	}
	return false
}

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// appendHex appends the last n hexadecimal digits of v.
func appendHex(b []byte, v uint64, n int, digits string) []byte {
	for n--; n >= 0; n-- {
		b = append(b, digits[v>>(4*n)&15])
	}
	return b
}
