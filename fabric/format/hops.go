package format

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindHops is opensm-lid-matrix.dump.
const KindHops FormatName = "opensm-lid-matrix"

var opensmHops = fileFormat{
	kind:        KindHops,
	about:       "numbers of hops (opensm-lid-matrix.dump)",
	file:        "`opensm-lid-matrix.dump`: numbers of hops",
	beginnings:  []string{"Switch: guid 0x"},
	hops:        readHops,
	writeTables: writeHops,
	dumpHelp:    `"opensm-lid-matrix": distances`,
}

// HopRow is the numbers of hops from a switch to a LID. It and its slices are
// valid until the next row is read.
type HopRow struct {
	NodeRef // the switch, and the line of the row
	LID     mad.LID
	// Owner is the GUID of the port that had the LID; 0 where the file lacks it.
	Owner mad.GUID
	// Hops are the numbers of hops by port of the switch, NoPath where no path
	// begins at the port. Element 0 is the least of them.
	Hops []byte
}

// NoPath is the number of hops where there is no path.
const NoPath = 255

// HopRows reads numbers of hops. An error is the last. There may be no row for
// the LID of a CA: it is one hop further away than the switch it is connected to.
func HopRows(r io.Reader, name string) iter.Seq2[*HopRow, error] {
	return readRows(r, name, maxTables, readHops, func(f *fileFormat) rowReader[*HopRow] { return f.hops })
}

// readHops reads what OpenSM writes as opensm-lid-matrix.dump.
func readHops(r io.Reader, name string) iter.Seq2[*HopRow, error] {
	return func(yield func(*HopRow, error) bool) {
		l := newLines(r, name)
		var row HopRow
		switches, ports := 0, 0
		for l.next() && l.whole() {
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
				row.NodeRef = NodeRef{File: l.at.file, GUID: mad.GUID(g)}
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

// parse parses `0x0002: 00 ff 02 02 # portguid 0x0c42a10300001000`.
func (h *HopRow) parse(l *lines, s []byte) bool {
	lid, rest, ok := hex(s)
	if !ok || lid > uint64(mad.MaxUnicastLID) || len(rest) == 0 || rest[0] != ':' {
		l.fail("a LID from 0x0000 to 0x%04x and a colon: %q", mad.MaxUnicastLID, l.shown())
		return false
	}
	if h.Line > 0 && mad.LID(lid) <= h.LID {
		l.fail("a LID above %d, as OpenSM writes them; the first line of a switch may be missing: %q", h.LID, l.shown())
		return false
	}
	h.LID, h.Line, h.Owner, h.Hops = mad.LID(lid), l.at.line, 0, h.Hops[:0]
	numbers, comment, _ := bytes.Cut(rest[1:], []byte("#"))
	for word, rest := field(numbers); len(word) > 0; word, rest = field(rest) {
		v, end, ok := hexDigits(word)
		if !ok || v > NoPath || len(end) > 0 || len(h.Hops) > maxPorts {
			l.fail("numbers of hops by port, in hexadecimal up to ff, of %d ports at most: %q", maxPorts+1, fabric.Clip(string(word)))
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

// HopsFunc sets hops to the numbers of hops from sw to lid, by port of sw;
// element 0 is the least of them. It is false where the LID has no row.
type HopsFunc func(sw *fabric.Node, lid mad.LID, hops []byte) bool

// WriteHops writes opensm-lid-matrix.dump as OpenSM does, for LIDs up to the last
// of the fabric. OpenSM's engine file reads the file (-R file -M FILE).
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

// writeHops writes opensm-lid-matrix.dump.
func writeHops(w io.Writer, f *fabric.Fabric, t *Tables) error {
	hops, err := t.Hops()
	if err != nil {
		return err
	}
	return WriteHops(w, f, hops)
}
