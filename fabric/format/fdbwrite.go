package format

import (
	"bufio"
	"io"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// WriteFDBs writes the forwarding tables that row gives as OpenSM's opensm.fdbs,
// which ibdmchk reads. hops gives the lengths of paths; it may be nil. Where a
// path is not the shortest, OpenSM names the port that it would choose instead;
// here it is the first of those on shortest paths.
func WriteFDBs(w io.Writer, f *fabric.Fabric, row func(sw *fabric.Node) []byte, hops HopsFunc) error {
	out := bufio.NewWriterSize(w, 1<<16)
	if hops == nil {
		hops = func(*fabric.Node, mad.LID, []byte) bool { return false }
	}
	var line []byte
	d := distances{hops: hops}
	for _, n := range openSMOrder(f.OfType(mad.NodeTypeSwitch)) {
		entries := row(n)
		if len(entries) == 0 {
			continue
		}
		out.WriteString("dump_ucast_routes: Switch " + n.GUID().String() + "\nLID    : Port : Hops : Optimal\n")
		for lid := 1; lid < len(entries); lid++ {
			line = append(line[:0], "0x"...)
			line = append(appendHex(line, uint64(lid), 4, upperDigits), " : "...)
			line = d.append(line, n, f.PortByLID(mad.LID(lid)), mad.LID(lid), entries[lid])
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// writeFDBs writes opensm.fdbs with the lengths of paths.
func writeFDBs(w io.Writer, f *fabric.Fabric, t *Tables) error {
	hops, err := t.Hops()
	if err != nil {
		return err
	}
	return WriteFDBs(w, f, t.LFT, hops)
}

// distances formats the port of an entry and the length of its path
// (opensm/osm_dump.c, dump_ucast_routes).
type distances struct {
	hops HopsFunc
	row  []byte // of hops, reused
}

// append appends the entry of switch n for lid, which is a LID of to.
func (d *distances) append(line []byte, n *fabric.Node, to *fabric.Port, lid mad.LID, port byte) []byte {
	if to == nil || port == mad.NoPort {
		return append(line, "UNREACHABLE"...)
	}
	line = append(line, '0'+port/100, '0'+port/10%10, '0'+port%10)
	d.row = slices.Grow(d.row[:0], n.NumPorts()+1)[:n.NumPorts()+1]
	length, best, ok := byte(NoPath), byte(NoPath), int(port) <= n.NumPorts()
	switch {
	case !ok:
	case to.Node().IsSwitch():
		if ok = d.hops(n, to.LID(), d.row); ok {
			length, best = d.row[port], d.row[0]
		}
	case d.hops(n, lid, d.row) && d.row[port] != NoPath:
		length, best = d.row[port], d.row[0]
	default: // a LID without hops: one more than to the switch it is connected to
		sw := to.Peer()
		if ok = sw != nil && sw.Node().IsSwitch() && d.hops(n, sw.LID(), d.row); !ok {
			break
		}
		if length = d.row[port]; sw.Node() == n {
			length = 0
		}
		if best = d.row[0]; length != NoPath {
			length, best = length+1, best+1
		}
	}
	if !ok || length == NoPath {
		return append(line, "  : HOPS UNKNOWN"...)
	}
	line = append(line, "  : "...)
	if length < 10 {
		line = append(line, '0')
	}
	line = strconv.AppendInt(line, int64(length), 10)
	if line = append(line, "   : "...); length == best {
		return append(line, "yes"...)
	}
	shortest := slices.Index(d.row[1:], d.row[0]) + 1
	line = append(line, "No "...)
	line = strconv.AppendInt(line, int64(best), 10)
	line = append(line, " hop path possible via port "...)
	line = strconv.AppendInt(line, int64(shortest), 10)
	return append(line, '!')
}
