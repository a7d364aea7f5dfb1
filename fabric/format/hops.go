package format

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// HopRow is how far a LID is from a switch. It and its slices are lent until
// the next.
type HopRow struct {
	Where // of the switch, and the line of the row
	LID   mad.LID
	// Owner is the GUID of the port that had the LID; 0 where the file does not say.
	Owner mad.GUID
	// Hops are the numbers of hops by port of the switch, NoPath where there
	// is no way. Element 0 is the fewest of all.
	Hops []byte
}

// NoPath is the number of hops where there is no way.
const NoPath = 255

// HopRows reads what OpenSM writes as opensm-lid-matrix.dump. An error is the last.
//
// Of a CA's LID there may be no row: it is one hop beyond its switch.
func HopRows(r io.Reader, name string) iter.Seq2[*HopRow, error] {
	return func(yield func(*HopRow, error) bool) {
		l := newLines(r, name)
		var row HopRow
		switches, ports := 0, 0
		for l.next() {
			s := skipSpace(l.text)
			switch {
			case len(s) == 0, s[0] == '#':
			case bytes.HasPrefix(s, []byte("Switch")):
				_, after, ok := bytes.Cut(s, []byte(" guid "))
				g, rest, isHex := hex(after)
				if !ok || !isHex || len(skipSpace(rest)) > 0 {
					l.fail("Switch: guid 0x and the GUID of the switch: %q", l.shown())
					continue
				}
				row.Where = Where{File: l.at.file, GUID: mad.GUID(g)}
				ports = 0
				switches++
			case switches == 0:
				l.fail("the first line of a switch, Switch: guid 0x...: %q", l.shown())
			default:
				if !row.parse(l, s) {
					continue
				}
				if ports == 0 {
					ports = len(row.Hops)
				}
				if len(row.Hops) != ports {
					l.fail("%d numbers of hops, as for other LIDs of the switch, not %d", ports, len(row.Hops))
					continue
				}
				if !yield(&row, nil) {
					return
				}
			}
		}
		if l.err == nil && switches == 0 {
			l.fail("switches that begin with Switch: guid 0x (opensm-lid-matrix.dump), and found none in %d lines", l.at.line)
		}
		if l.err != nil {
			yield(nil, l.err)
		}
	}
}

// parse reads `0x0002: 00 ff 02 02 # portguid 0x0c42a10300001000`.
func (h *HopRow) parse(l *lines, s []byte) bool {
	lid, rest, ok := hex(s)
	if !ok || lid > uint64(mad.MaxUnicastLID) || len(rest) == 0 || rest[0] != ':' {
		l.fail("a LID from 0x0000 to 0x%04x and a colon: %q", mad.MaxUnicastLID, l.shown())
		return false
	}
	h.LID, h.Line, h.Owner, h.Hops = mad.LID(lid), l.at.line, 0, h.Hops[:0]
	numbers, comment, _ := bytes.Cut(rest[1:], []byte("#"))
	for word, rest := field(numbers); len(word) > 0; word, rest = field(rest) {
		v, end, ok := hexDigits(word)
		if !ok || v > NoPath || len(end) > 0 || len(h.Hops) > maxPorts {
			l.fail("numbers of hops by port, in hexadecimal up to ff, of %d ports at most: %q", maxPorts+1, clip(string(word)))
			return false
		}
		h.Hops = append(h.Hops, byte(v))
	}
	if i := bytes.Index(comment, portGUIDWord); i >= 0 {
		g, _, _ := hexDigits(comment[i+len(portGUIDWord):])
		h.Owner = mad.GUID(g)
	}
	if l.cut && h.Owner == 0 || len(h.Hops) == 0 {
		l.fail("numbers of hops, and the end of the line: %q", l.shown())
		return false
	}
	return true
}

const maxPorts = 254 // external ports of a node (IBA 14.2.5.3)

// HopsFunc fills in how many hops lid is away from sw by each of sw's ports,
// from 0: element 0 is the fewest. It is false where the LID has no row.
type HopsFunc func(sw *fabric.Node, lid mad.LID, hops []byte) bool

// WriteHops writes opensm-lid-matrix.dump as OpenSM does, for LIDs up to the
// last of the fabric. OpenSM's engine file reads it (-R file -M FILE).
func WriteHops(w io.Writer, f *fabric.Fabric, hops HopsFunc) error {
	out := bufio.NewWriterSize(w, 1<<16)
	top := f.TopLID()
	owners := make([]string, top+1)
	for lid := range owners {
		if p := f.PortByLID(mad.LID(lid)); p != nil {
			owners[lid] = " # portguid " + p.GUID().String()
		}
	}
	var line, row []byte
	for _, n := range openSMOrder(f.OfType(mad.NodeTypeSwitch)) {
		out.WriteString("Switch: guid " + n.GUID().String() + "\n")
		for lid := mad.LID(1); lid <= top; lid++ {
			row = slices.Grow(row[:0], n.NumPorts()+1)[:n.NumPorts()+1]
			if !hops(n, lid, row) {
				continue
			}
			line = append(line[:0], "0x"...)
			line = append(appendHex(line, uint64(lid), 4, lowerDigits), ':')
			for _, h := range row {
				line = appendHex(append(line, ' '), uint64(h), 2, lowerDigits)
			}
			line = append(append(line, owners[lid]...), '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// WriteFDBs writes forwarding tables as WriteLFTs does, but as OpenSM's
// opensm.fdbs, which ibdmchk reads. Hops tell how long the paths are, and may
// be nil. Where a path is not the shortest OpenSM names the port it would
// choose instead; here it is the first that is as short as can be.
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

// distances says how long paths are (opensm/osm_dump.c, dump_ucast_routes).
type distances struct {
	hops HopsFunc
	row  []byte
}

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
	default: // by the switch that it is on
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
