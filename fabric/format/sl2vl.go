package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"

	"fabsh/fabric"
	"fabsh/mad"
)

// Kinds of tables of virtual lanes.
const (
	KindSL2VL         FormatName = "opensm-sl2vl"
	KindShortSL2VL    FormatName = "ibdm-sl2vl"
	KindSmpquerySL2VL FormatName = "smpquery-sl2vl"
)

var opensmSL2VL = fileFormat{
	kind:  KindSL2VL,
	about: "tables of virtual lanes (opensm-sl2vl.dump)",
	file:  "`opensm-sl2vl.dump`: virtual lanes of service levels",
	sniff: func(l *headLine) bool {
		if l.class == lineComment {
			return l.belowNode && bytes.HasPrefix(l.text, []byte("#in out"))
		}
		return l.belowNode && l.class != lineNumber
	},
	sl2vls:      readSL2VLs,
	writeTables: func(w io.Writer, f *fabric.Fabric, t *Tables) error { return WriteSL2VLs(w, f, t.SL2VL) },
	dumpHelp:    `"opensm-sl2vl", "ibdm-sl2vl" (for ibdmchk), "path-sl": virtual lanes and service levels`,
}

var ibdmSL2VL = fileFormat{
	kind:  KindShortSL2VL,
	about: "tables of virtual lanes (ibdmchk's short form)",
	file:  "virtual lanes in ibdmchk's short form",
	sniff: func(l *headLine) bool {
		words := bytes.Fields(l.text)
		return l.class == lineNumber && len(words) == 11 && isHexWord(words[3], 2)
	},
	sl2vls:      readSL2VLs,
	writeTables: func(w io.Writer, f *fabric.Fabric, t *Tables) error { return WriteShortSL2VLs(w, f, t.SL2VL) },
}

var smpquerySL2VL = fileFormat{
	kind:       KindSmpquerySL2VL,
	about:      "tables of virtual lanes (smpquery sl2vl)",
	file:       "virtual lanes of `smpquery sl2vl`",
	beginnings: []string{"# SL2VL table: ", "ports: in "},
	sl2vls:     readSL2VLs,
}

// SL2VL is the virtual lane of each service level from one port of a switch to
// another. In and Out of other nodes are 0. It is valid until the next is read.
type SL2VL struct {
	NodeRef // the node, and the line of the row
	In, Out int
	VLs     [16]uint8
}

// SL2VLs reads tables of service levels. An error is the last.
func SL2VLs(r io.Reader, name string) iter.Seq2[*SL2VL, error] {
	return readRows(r, name, maxTables, readSL2VLs, func(f *fileFormat) rowReader[*SL2VL] { return f.sl2vls })
}

// readSL2VLs reads three dialects: OpenSM's opensm-sl2vl.dump, which names CAs by
// port GUID; ibdmchk's short form; and what smpquery sl2vl prints, which names
// nodes by LID or directed route.
func readSL2VLs(r io.Reader, name string) iter.Seq2[*SL2VL, error] {
	return func(yield func(*SL2VL, error) bool) {
		l := newLines(r, name)
		row := SL2VL{NodeRef: NodeRef{File: name}}
		rows := 0
		for l.next() && l.whole() {
			s := skipSpace(l.text)
			switch {
			case len(s) == 0:
			case bytes.HasPrefix(s, sl2vlTable):
				row.NodeRef = NodeRef{File: name}
				row.parseDestination(string(s[len(sl2vlTable):]))
			case s[0] == '#':
			case s[0] == '0' && len(s) > 1 && s[1] == 'x':
				if !row.short(s) {
					l.fail("0x and the GUID of the node, the ports in and out, and VLs for 16 SLs in eight bytes, as in 0x01: %q", l.shown())
				}
			case bytes.HasPrefix(s, sl2vlPorts):
				if !row.smpquery(s) || row.LID == 0 && row.Route == nil {
					l.fail("ports: in 0, out 1: | 0| 1|, with VLs for 16 SLs, below # SL2VL table: and whose it is: %q", l.shown())
				}
			case s[0] >= '0' && s[0] <= '9':
				if !row.opensm(s) || row.GUID == 0 {
					l.fail("the ports in and out, a colon and VLs for 16 SLs, below the line that names their node: %q", l.shown())
				}
			default:
				if !row.parseHeader(s) {
					l.fail("a node, as in Switch 0x0002c90300001000, base LID 2, \"name\": %q", l.shown())
				}
				continue
			}
			if l.err == nil && len(s) > 0 && s[0] != '#' {
				row.Line = l.at.line
				rows++
				if !yield(&row, nil) {
					return
				}
			}
		}
		if l.err == nil && rows == 0 {
			l.fail("tables of service levels of OpenSM, ibdmchk or smpquery sl2vl, and found none in %d lines", l.at.line)
		}
		if l.err != nil {
			yield(nil, l.err)
		}
	}
}

var (
	sl2vlTable = []byte("# SL2VL table: ")
	sl2vlPorts = []byte("ports: in ")
)

// opensm parses `14  11  : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 7`.
func (v *SL2VL) opensm(s []byte) bool {
	s, ok := v.ports(s)
	s, colon := bytes.CutPrefix(skipSpace(s), []byte(":"))
	ok = ok && colon
	for sl := range v.VLs {
		ok = ok && v.vl(sl, &s)
	}
	return ok && len(skipSpace(s)) == 0
}

// short parses `0x0002c90000000201 5 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xe7`.
func (v *SL2VL) short(s []byte) bool {
	g, s, ok := hex(s)
	v.NodeRef = NodeRef{File: v.File, GUID: mad.GUID(g)}
	s, isPorts := v.ports(s)
	ok = ok && isPorts
	for sl := 0; sl < len(v.VLs); sl += 2 {
		var word []byte
		word, s = field(s)
		pair, rest, isHex := hex(word)
		ok = ok && isHex && len(rest) == 0 && pair <= 0xff
		v.VLs[sl], v.VLs[sl+1] = uint8(pair>>4&15), uint8(pair&15)
	}
	return ok && len(skipSpace(s)) == 0
}

// smpquery parses `ports: in  0, out  1: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6| 7|`.
func (v *SL2VL) smpquery(s []byte) bool {
	in, s, ok := decimal(skipSpace(s[len(sl2vlPorts):]))
	s, comma := bytes.CutPrefix(s, []byte(", out "))
	out, s, isOut := decimal(skipSpace(s))
	s, bar := bytes.CutPrefix(s, []byte(": |"))
	ok = ok && comma && isOut && bar && in <= maxPorts && out <= maxPorts
	v.In, v.Out = in, out
	for sl := range v.VLs {
		ok = ok && v.vl(sl, &s)
		s, bar = bytes.CutPrefix(s, []byte("|"))
		ok = ok && bar
	}
	return ok && len(s) == 0
}

// ports parses the port in and the port out.
func (v *SL2VL) ports(s []byte) (rest []byte, ok bool) {
	in, s, isIn := decimal(skipSpace(s))
	out, s, isOut := decimal(skipSpace(s))
	v.In, v.Out = in, out
	return s, isIn && isOut && in <= maxPorts && out <= maxPorts
}

// vl parses the VL of sl, and removes it from s.
func (v *SL2VL) vl(sl int, s *[]byte) bool {
	vl, rest, ok := decimal(skipSpace(*s))
	v.VLs[sl], *s = uint8(vl), rest
	return ok && vl < 16
}

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
