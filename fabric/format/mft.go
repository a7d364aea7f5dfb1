package format

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Kinds of multicast forwarding tables.
const (
	KindMFTs        FormatName = "opensm-mcfdbs"
	KindIbrouteMFTs FormatName = "ibroute-M"
)

var opensmMFTs = fileFormat{
	kind:  KindMFTs,
	about: "multicast forwarding tables (opensm.mcfdbs)",
	file:  "`opensm.mcfdbs`: multicast tables",
	sniff: func(l *headLine) bool {
		return l.class == lineOther && bytes.HasPrefix(l.text, []byte("Switch 0x")) && !bytes.HasSuffix(l.text, []byte(":"))
	},
	mfts:      readMFTs,
	writeMFTs: WriteMFTs,
}

var ibrouteMFTs = fileFormat{
	kind:       KindIbrouteMFTs,
	about:      "multicast forwarding tables (ibroute -M, dump_fts -M)",
	file:       "multicast tables of `ibroute -M`, `dump_fts -M`, with `-n` or without",
	beginnings: []string{"Multicast mlids "},
	mfts:       readMFTs,
}

// MFT is the multicast forwarding table of a switch, as a file has it.
type MFT struct {
	NodeRef // the switch, and the line at which its table begins
	Entries []MFTEntry
}

// MFTEntry is the ports to which a switch forwards packets to a multicast LID,
// ascending.
type MFTEntry struct {
	MLID  mad.LID
	Ports []uint8
}

// MFTs reads the multicast forwarding tables of a file. An error is the last.
func MFTs(r io.Reader, name string) iter.Seq2[*MFT, error] {
	return readRows(r, name, maxTables, readMFTs, func(f *fileFormat) rowReader[*MFT] { return f.mfts })
}

// readMFTs reads what OpenSM writes as opensm.mcfdbs, which leaves out switches
// without a table, and what ibroute -M and dump_fts -M print.
func readMFTs(r io.Reader, name string) iter.Seq2[*MFT, error] {
	return func(yield func(*MFT, error) bool) {
		m := mftReader{lines: newLines(r, name)}
		for m.next() && m.whole() {
			s := skipSpace(m.text)
			switch {
			case m.table != nil && len(s) > 2 && s[0] == '0' && s[1] == 'x':
				m.entry(s)
			case bytes.HasPrefix(s, []byte("Switch 0x")), bytes.HasPrefix(s, multicastLIDs):
				if m.table != nil && !yield(m.table, nil) {
					return
				}
				m.begin(s)
			default:
				m.other(s)
			}
		}
		if m.err == nil && m.table != nil && !yield(m.table, nil) {
			return
		}
		if m.err != nil {
			yield(nil, m.err)
		}
	}
}

type mftReader struct {
	*lines
	table   *MFT
	dialect int
}

// How a table writes ports.
const (
	mftPorts   = iota // 0xC000 : 0x001  0x007
	mftColumns        // 0xc000        x     x
	mftMasks          // 0xc000      00820000
)

// begin parses the first line of a table.
func (m *mftReader) begin(s []byte) {
	m.table = &MFT{NodeRef: NodeRef{File: m.at.file, Line: m.at.line}}
	after, isOpenSM := bytes.CutPrefix(s, []byte("Switch "))
	if m.dialect = mftPorts; !isOpenSM {
		m.dialect = mftColumns
		before, rest, _ := bytes.Cut(s, []byte(" guid "))
		_, whom, _ := strings.Cut(string(before), " of switch ")
		m.table.parseDestination(whom)
		after = rest
	}
	g, rest, ok := hex(after)
	if !ok || isOpenSM && len(rest) > 0 {
		m.fail("0x and the GUID of the switch: %q", m.shown())
		return
	}
	m.table.GUID = mad.GUID(g)
	m.table.Name = nameInParentheses(rest)
}

// entry parses a multicast LID and its ports.
func (m *mftReader) entry(s []byte) {
	v, rest, ok := hexDigits(s[2:])
	if !ok || v < uint64(mad.MinMulticastLID) || v >= uint64(mad.PermissiveLID) {
		m.fail("a multicast LID from 0x%04x to 0x%04x: %q", mad.MinMulticastLID, mad.PermissiveLID-1, m.shown())
		return
	}
	e := MFTEntry{MLID: mad.LID(v)}
	switch m.dialect {
	case mftPorts:
		e.Ports, ok = mftPortList(rest)
	case mftColumns:
		e.Ports, ok = mftPortColumns(rest)
	case mftMasks:
		e.Ports, ok = mftPortMasks(rest)
	}
	if n := len(m.table.Entries); n > 0 && m.table.Entries[n-1].MLID >= e.MLID {
		m.fail("multicast LIDs in ascending order: %q", m.shown())
		return
	}
	if !ok {
		m.fail("the ports of multicast LID 0x%04x, %s: %q", v, [...]string{
			"as in 0x001  0x007, ascending", "an x below each after six spaces", "as masks of four hexadecimal digits for each 16 ports"}[m.dialect], m.shown())
		return
	}
	m.table.Entries = append(m.table.Entries, e)
}

// mftPortList parses ` : 0x001  0x007`.
func mftPortList(s []byte) (ports []uint8, ok bool) {
	s, ok = bytes.CutPrefix(skipSpace(s), []byte(":"))
	last := -1
	for word, rest := field(s); ok && len(word) > 0; word, rest = field(rest) {
		v, end, isHex := hex(word)
		ok = isHex && len(end) == 0 && v <= maxPorts && int(v) > last
		last = int(v)
		ports = append(ports, uint8(v))
	}
	return ports, ok
}

// mftPortColumns parses six spaces, and an x or a space for each port, each with
// a space after it.
func mftPortColumns(s []byte) (ports []uint8, ok bool) {
	s, ok = bytes.CutPrefix(s, []byte("      "))
	ok = ok || len(s) == 0 // an entry without ports
	for i, c := range s {
		switch {
		case c == ' ':
		case c == 'x' && i%2 == 0 && i/2 <= maxPorts:
			ports = append(ports, uint8(i/2))
		default:
			ok = false
		}
	}
	return ports, ok
}

// mftPortMasks parses four digits for each 16 ports, from port 0.
func mftPortMasks(s []byte) (ports []uint8, ok bool) {
	s = skipSpace(s)
	ok = len(s) > 0 && len(s)%4 == 0 && len(s) <= 64
	for i := 0; ok && i < len(s); i += 4 {
		v, rest, isHex := hexDigits(s[i : i+4])
		ok = isHex && len(rest) == 0
		for bit := range 16 {
			if v>>bit&1 != 0 && i*4+bit <= maxPorts {
				ports = append(ports, uint8(i*4+bit))
			}
		}
	}
	return ports, ok
}

// other parses a line that is neither the first of a table nor an entry.
func (m *mftReader) other(s []byte) {
	switch {
	case len(s) == 0, s[0] == '#':
	case bytes.HasPrefix(s, []byte("MLid       Port Mask")):
		m.dialect = mftMasks
	case bytes.HasPrefix(s, []byte("LID    : Out Port(s)")), bytes.HasPrefix(s, []byte("Ports: ")), bytes.HasPrefix(s, []byte("MLid")):
	case bytes.HasSuffix(s, []byte("mlids dumped")), bytes.HasPrefix(s, []byte("Switch multicast mlid capability")):
	case m.dialect == mftColumns && len(bytes.Trim(s, " 0123456789")) == 0: // the tens digits of port numbers
	default:
		m.fail("an entry (0xC000 ...) or the first line of a table (Switch 0x..., Multicast mlids ...): %q", m.shown())
	}
}

// WriteMFTs writes multicast forwarding tables as OpenSM's opensm.mcfdbs,
// which ibdmchk reads. Entries of a table must be in ascending order.
func WriteMFTs(w io.Writer, f *fabric.Fabric, table func(sw *fabric.Node) []MFTEntry) error {
	out := bufio.NewWriter(w)
	var line []byte
	for _, n := range openSMOrder(f.OfType(mad.NodeTypeSwitch)) {
		begun := false
		for _, e := range table(n) {
			if len(e.Ports) == 0 {
				continue
			}
			if !begun {
				out.WriteString("\nSwitch " + n.GUID().String() + "\nLID    : Out Port(s)\n")
				begun = true
			}
			line = append(line[:0], "0x"...)
			line = append(appendHex(line, uint64(e.MLID), 4, upperDigits), " :"...)
			for _, p := range e.Ports {
				line = append(line, " 0x"...)
				line = append(appendHex(line, uint64(p), 3, upperDigits), ' ')
			}
			out.Write(append(line, '\n'))
		}
	}
	return out.Flush()
}
