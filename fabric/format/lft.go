package format

import (
	"bytes"
	"io"
	"iter"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Kinds of forwarding tables.
const (
	KindLFTs    FormatName = "opensm-lfts"
	KindIbroute FormatName = "ibroute"
	KindFDBs    FormatName = "opensm-fdbs"
)

var opensmLFTs = fileFormat{
	kind:        KindLFTs,
	about:       "forwarding tables (opensm-lfts.dump)",
	file:        "`opensm-lfts.dump`: forwarding tables",
	beginnings:  []string{"Unicast lids ["},
	lfts:        readLFTs,
	writeTables: func(w io.Writer, f *fabric.Fabric, t *Tables) error { return WriteLFTs(w, f, t.LFT) },
	dumpHelp:    `"opensm-lfts": what OpenSM's engine file reads`,
}

var ibroute = fileFormat{
	kind:       KindIbroute,
	about:      "forwarding tables (ibroute, dump_fts)",
	file:       "forwarding tables of `ibroute`, `dump_fts`, `dump_lfts`",
	beginnings: []string{"Unicast lids [0x"},
	lfts:       readLFTs,
}

var opensmFDBs = fileFormat{
	kind:        KindFDBs,
	about:       "forwarding tables (opensm.fdbs)",
	file:        "`opensm.fdbs`: forwarding tables for ibdmchk",
	beginnings:  []string{"dump_ucast_routes: "},
	lfts:        readLFTs,
	writeTables: writeFDBs,
	dumpHelp:    `"opensm-fdbs": what ibdmchk reads`,
}

// LFT is the linear forwarding table of a switch, as a file has it. It and its
// slices are valid until the next is read.
type LFT struct {
	NodeRef // the switch, and the line at which its table begins

	// Entries are the ports by LID, from 0 to the last LID that the table says
	// it has; mad.NoPort without one.
	Entries []byte
	// Owners are the GUIDs of the ports that had the LIDs when the file was
	// written; 0 where the file has not had it so far. It is as long as
	// Entries.
	Owners []mad.GUID

	lines []int32 // of the entries; 0: no entry
}

// LFTs reads the forwarding tables of a file, one after the other. An error is
// the last. The memory taken does not grow with the file.
func LFTs(r io.Reader, name string) iter.Seq2[*LFT, error] {
	return readRows(r, name, maxTables, readLFTs, func(f *fileFormat) rowReader[*LFT] { return f.lfts })
}

// readLFTs reads three dialects: what OpenSM writes as opensm-lfts.dump and as
// opensm.fdbs, and what ibroute and dump_fts print.
func readLFTs(r io.Reader, name string) iter.Seq2[*LFT, error] {
	return func(yield func(*LFT, error) bool) {
		t := newLFTReader(r, name)
		for t.next() {
			s := skipSpace(t.text)
			switch {
			case t.open && len(s) > 2 && s[0] == '0' && s[1] == 'x':
				t.entry(s)
			case bytes.HasPrefix(s, unicastLIDs), bytes.HasPrefix(s, ucastRoutes):
				if t.take() && !yield(&t.lft, nil) {
					return
				}
				t.begin(s)
			case bytes.HasPrefix(s, multicastLIDs):
				if t.take() && !yield(&t.lft, nil) {
					return
				}
				t.skip = true
			case t.skip:
			default:
				t.other(s)
			}
		}
		if t.take() && !yield(&t.lft, nil) {
			return
		}
		if t.err == nil && t.tables == 0 {
			t.fail("tables that begin with Unicast lids (OpenSM, ibroute, dump_fts) or dump_ucast_routes: (opensm.fdbs), and found none in %d lines", t.at.line)
		}
		if t.err != nil {
			yield(nil, t.err)
		}
	}
}

var (
	unicastLIDs   = []byte("Unicast lids")
	ucastRoutes   = []byte("dump_ucast_routes: ")
	multicastLIDs = []byte("Multicast mlids ")
	portGUIDWord  = []byte("portguid 0x")
	lidsDumped    = []byte("lids dumped")
)

const unicastLIDCount = int(mad.MaxUnicastLID) + 1

type lftReader struct {
	*lines
	lft    LFT
	row    []byte     // ports by LID, of all LIDs
	owners []mad.GUID // by LID
	seen   []int32    // line by LID; 0: no entry
	size   int        // of the table, in LIDs
	open   bool       // within a table
	skip   bool       // within a multicast table, which is skipped
	closed bool       // the table had its last line
	tables int
	ended  int // tables that had their last line; opensm.fdbs has no such lines
	count  int // entries of the table
}

func newLFTReader(r io.Reader, name string) *lftReader {
	t := &lftReader{lines: newLines(r, name), row: make([]byte, unicastLIDCount), owners: make([]mad.GUID, unicastLIDCount), seen: make([]int32, unicastLIDCount)}
	t.size = len(t.row)
	return t
}

// begin parses the first line of a table:
//
//	Unicast lids [0-15] of switch Lid 2 guid 0x0c42a10300001000 ('rack 1'):
//	Unicast lids [0x0-0xf] of switch DR path slid 0; dlid 0; 0,1 guid 0x0c42a10300001000 (rack 1):
//	dump_ucast_routes: Switch 0x0c42a10300001000
func (t *lftReader) begin(s []byte) {
	for i := range t.row[:t.size] {
		t.row[i] = mad.NoPort
	}
	clear(t.seen[:t.size])
	t.lft.NodeRef = NodeRef{File: t.at.file, Line: t.at.line}
	t.size, t.count, t.open, t.skip, t.closed = 0, 0, true, false, false
	t.tables++
	if rest, ok := bytes.CutPrefix(s, ucastRoutes); ok {
		g, rest, ok := hex(bytes.TrimPrefix(rest, []byte("Switch ")))
		if !ok || len(rest) > 0 {
			t.fail("dump_ucast_routes: Switch 0x and the GUID of the switch: %q", t.shown())
		}
		t.lft.GUID = mad.GUID(g)
		return
	}
	before, after, ok := bytes.Cut(s, []byte(" guid "))
	g, rest, isHex := hex(after)
	if !ok || !isHex || len(rest) > 0 && rest[0] != ' ' {
		t.fail("guid 0x and the GUID of the switch: %q", t.shown())
		return
	}
	t.lft.GUID = mad.GUID(g)
	t.lft.Name = nameInParentheses(rest)
	span, whom, _ := strings.Cut(string(before[len(unicastLIDs):]), " of switch")
	t.lft.parseDestination(strings.TrimSpace(whom))
	if span = strings.TrimSpace(span); !strings.HasPrefix(span, "[") {
		return // written by hand: OpenSM does not need the LIDs
	}
	top, ok := lastOfSpan(span)
	if !ok || top >= unicastLIDCount {
		t.fail("the LIDs of the table, as in [0-%d], of which the last is at most %d: %q", 100, mad.MaxUnicastLID, t.shown())
		return
	}
	t.size = top + 1
}

// lastOfSpan parses the 15 of [0-15] and [0x0-0xf].
func lastOfSpan(s string) (int, bool) {
	_, s, ok := strings.Cut(strings.TrimSuffix(s, "]"), "-")
	if !ok {
		return 0, false
	}
	if v, rest, ok := hex([]byte(s)); ok {
		return int(min(v, 1<<16)), len(rest) == 0
	}
	v, rest, ok := decimal([]byte(s))
	return v, ok && len(rest) == 0
}

// nameInParentheses parses ` ('rack 1'):`, or the same without quotes. Names may
// contain quotes and parentheses.
func nameInParentheses(s []byte) string {
	i, j := bytes.IndexByte(s, '('), bytes.LastIndexByte(s, ')')
	if i < 0 || j < i {
		return ""
	}
	s = s[i+1 : j]
	if len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'' {
		s = s[1 : len(s)-1]
	}
	return string(s)
}

// entry parses a LID, its port, and the port GUID of its owner where there is one:
//
//	0x0001 001 # Channel Adapter portguid 0x0c42a10300000101: 'node 1'
//	0x0001 001 : (Channel Adapter portguid 0x0c42a10300000101: 'node 1')
//	0x0002 001 : (path #2 out of 4: portguid 0x0c42a10300000101)
//	0x0001 : 001  : 01   : yes
//	0x0001 : UNREACHABLE
func (t *lftReader) entry(s []byte) {
	v, rest, ok := hexDigits(s[2:])
	if !ok || v >= uint64(unicastLIDCount) || len(rest) == 0 || rest[0] != ' ' && rest[0] != '\t' {
		t.fail("a LID from 0x0000 to 0x%04x and a space: %q", mad.MaxUnicastLID, t.shown())
		return
	}
	lid := int(v)
	rest = skipSpace(rest)
	if len(rest) > 0 && rest[0] == ':' {
		rest = skipSpace(rest[1:])
	}
	port, rest, ok := decimal(rest)
	switch {
	case !ok && string(rest) == "UNREACHABLE":
		port = mad.NoPort
	case !ok || port > 255 || len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t':
		t.fail("a port in decimal after LID %d: %q", lid, t.shown())
		return
	case t.cut && len(rest) == 0:
		t.fail("the end of the line after port %d of LID %d: the file is cut short", port, lid)
		return
	}
	if i := bytes.Index(rest, portGUIDWord); i >= 0 {
		guid, end, ok := hexDigits(rest[i+len(portGUIDWord):])
		if !ok || len(end) == 0 || end[0] != ':' && end[0] != ')' && end[0] != ' ' {
			t.fail("a port GUID in hexadecimal, which a colon, a parenthesis or a space ends: %q", t.shown())
			return
		}
		t.owners[lid] = mad.GUID(guid)
	} else if bytes.Contains(rest, []byte("illegal port")) {
		port = mad.NoPort
	}
	if t.seen[lid] != 0 && int(t.row[lid]) != port {
		t.fail("one port for LID %d, but line %d has %d and this line %d", lid, t.seen[lid], t.row[lid], port)
		return
	}
	t.row[lid], t.seen[lid] = byte(port), int32(t.at.line)
	t.size = max(t.size, lid+1)
	t.count++
}

// other parses a line that is neither the first of a table nor an entry.
func (t *lftReader) other(s []byte) {
	switch {
	case len(s) == 0, s[0] == '#':
	case bytes.HasPrefix(s, []byte("Lid  Out")), bytes.HasPrefix(s, []byte("Port  ")), bytes.HasPrefix(s, []byte("LID    : Port")):
	case t.open && bytes.HasSuffix(s, lidsDumped):
		n, _, ok := decimal(s)
		if !ok || bytes.Contains(s, []byte("valid")) && n != t.count {
			t.fail("as many entries as the last line of the table counts, not %d: %q", t.count, t.shown())
		}
		t.closed = true
		t.ended++
	default:
		t.fail("an entry (0x0001 001 ...) or the first line of a table (Unicast lids ..., dump_ucast_routes: ...): %q", t.shown())
	}
}

// take completes lft, if a table is open.
func (t *lftReader) take() bool {
	if !t.open || t.err != nil {
		return false
	}
	t.open = false
	if t.ended > 0 && !t.closed {
		t.fail("the table of switch %s, from line %d, to end with a line such as 100 lids dumped, as others do; the table is cut short", t.lft.GUID, t.lft.Line)
		return false
	}
	t.lft.Entries, t.lft.Owners, t.lft.lines = t.row[:t.size], t.owners[:t.size], t.seen[:t.size]
	return true
}
