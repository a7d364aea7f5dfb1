package format

import (
	"bufio"
	"fmt"
	"io"

	"fabsh/fabric"
)

// SL2VLFunc is the VL of each SL from port in to port out of a switch. For
// another node in is nil. It is false where there is no table.
type SL2VLFunc func(in, out *fabric.Port) ([16]uint8, bool)

// WriteSL2VLs writes tables as OpenSM's opensm-sl2vl.dump, which ibdmchk reads.
// Like OpenSM it leaves out ports without a cable.
func WriteSL2VLs(w io.Writer, f *fabric.Fabric, table SL2VLFunc) error {
	const rule = "#--------------------------------------------------------\n"
	out := bufio.NewWriter(w)
	for _, p := range openSMPorts(f) {
		n := p.Node()
		fmt.Fprintf(out, "%s %s, base LID %d, \"%s\"\n#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n"+rule,
			typeName(n.Type()), p.GUID(), p.LID(), description(n))
		if !n.IsSwitch() {
			if vls, ok := table(nil, p); ok {
				sl2vlRow(out, 0, 0, vls)
			}
		} else {
			for q := range n.Ports() {
				for num := 0; q.Peer() != nil && num <= n.NumPorts(); num++ {
					if vls, ok := table(n.Port(num), q); ok {
						sl2vlRow(out, num, q.Num(), vls)
					}
				}
			}
		}
		if _, err := out.WriteString(rule + "\n"); err != nil {
			return err
		}
	}
	return out.Flush()
}

// sl2vlRow writes the VLs from port in to port out.
func sl2vlRow(out io.Writer, in, port int, vls [16]uint8) {
	fmt.Fprintf(out, "%-3d %-3d :", in, port)
	for _, vl := range vls {
		fmt.Fprintf(out, " %-2d", vl)
	}
	io.WriteString(out, "\n")
}

// WriteShortSL2VLs writes tables in ibdmchk's short form, one line for each, in
// the order of the fabric.
func WriteShortSL2VLs(w io.Writer, f *fabric.Fabric, table SL2VLFunc) error {
	out := bufio.NewWriter(w)
	row := func(n *fabric.Node, in, port int, vls [16]uint8) {
		fmt.Fprintf(out, "%s %d %d", n.GUID(), in, port)
		for sl := 0; sl < len(vls); sl += 2 {
			fmt.Fprintf(out, " 0x%x%x", vls[sl]&15, vls[sl+1]&15)
		}
		io.WriteString(out, "\n")
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		for q := range n.Ports() {
			switch {
			case q.Peer() == nil:
			case !n.IsSwitch():
				if vls, ok := table(nil, q); ok {
					row(n, 0, q.Num(), vls)
				}
			default:
				for num := range n.NumPorts() + 1 {
					if vls, ok := table(n.Port(num), q); ok {
						row(n, num, q.Num(), vls)
					}
				}
			}
		}
	}
	return out.Flush()
}
