package format

import (
	"bufio"
	"cmp"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// WriteLFTs writes the forwarding tables that row gives by LID, nil for
// switches that have none, as OpenSM writes opensm-lfts.dump, byte for byte.
// OpenSM's engine file reads it (-R file,no_fallback -U FILE).
func WriteLFTs(w io.Writer, f *fabric.Fabric, row func(sw *fabric.Node) []byte) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var tails []string // by LID: what follows the port
	var line []byte
	for _, n := range openSMOrder(f.OfType(mad.NodeTypeSwitch)) {
		entries := row(n)
		if len(entries) == 0 {
			continue
		}
		for lid := len(tails); lid < len(entries); lid++ {
			tails = append(tails, owner(f.PortByLID(mad.LID(lid))))
		}
		line = append(line[:0], "Unicast lids [0-"...)
		line = strconv.AppendInt(line, int64(len(entries)-1), 10)
		line = append(line, "] of switch Lid "...)
		line = strconv.AppendInt(line, int64(n.LID()), 10)
		line = append(line, " guid "...)
		line = append(line, n.GUID().String()...)
		line = append(line, " ('"...)
		line = append(line, description(n)...)
		line = append(line, "'):\n"...)
		out.Write(line)
		for lid, port := range entries {
			if int(port) > n.NumPorts() {
				continue
			}
			line = append(line[:0], "0x"...)
			line = appendHex(line, uint64(lid), 4, lowerDigits)
			line = append(line, ' ', '0'+port/100, '0'+port/10%10, '0'+port%10)
			line = append(line, tails[lid]...)
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
		line = strconv.AppendInt(line[:0], int64(len(entries)-1), 10)
		out.Write(append(line, " lids dumped\n"...))
	}
	return out.Flush()
}

// owner says whose a LID is.
func owner(p *fabric.Port) string {
	if p == nil {
		return " # unknown node and type\n"
	}
	return " # " + typeName(p.Node().Type()) + " portguid " + p.GUID().String() + ": '" + description(p.Node()) + "'\n"
}

// typeName is what OpenSM and infiniband-diags call nodes of type t (opensm
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

// description is the node description as OpenSM prints it: 63 bytes at most
// (opensm complib/cl_nodenamemap.c, clean_nodedesc).
func description(n *fabric.Node) string {
	name := printable(n.Name())
	return name[:min(len(name), 63)]
}

// openSMOrder sorts nodes as OpenSM does, by GUID as a little-endian machine
// sees the bytes, so that our files and its can be compared line by line.
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

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// appendHex appends the last n digits of v.
func appendHex(b []byte, v uint64, n int, digits string) []byte {
	for n--; n >= 0; n-- {
		b = append(b, digits[v>>(4*n)&15])
	}
	return b
}
