package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
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
	beginnings:  []string{"dump_ucast_routes: ", "osm_ucast_mgr_dump_ucast_routes: "},
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

	lines   []int32 // of the entries; 0: no entry
	open    bool    // it lacks the last line that OpenSM and ibroute write
	failed  int     // line of a message of the tool, after which entries are missing; 0: none
	private int     // PLFT_NUM of ibdiagnet: above 0 a private table, beside the switch's main one
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
			case !bytes.HasSuffix(s, lidsDumped) && !t.whole():
			case t.open && len(s) > 2 && s[0] == '0' && s[1] == 'x':
				t.entry(s)
			case bytes.HasPrefix(s, unicastLIDs), bytes.HasPrefix(s, ucastRoutes), bytes.HasPrefix(s, olderUcastRoutes):
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
			case t.open && bytes.HasPrefix(s, plftNumber):
				again := t.lft.NodeRef
				if t.count > 0 {
					if t.take() && !yield(&t.lft, nil) {
						return
					}
					t.beginTable(again)
				}
				t.private(s)
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
	unicastLIDs = []byte("Unicast lids")
	ucastRoutes = []byte("dump_ucast_routes: ")
	// olderUcastRoutes begins tables of OpenSM before 3.3.6, and of ibdiagnet.
	olderUcastRoutes = []byte("osm_ucast_mgr_dump_ucast_routes: ")
	plftNumber       = []byte("PLFT_NUM:")
	multicastLIDs    = []byte("Multicast mlids ")
	portGUIDWord     = []byte("portguid 0x")
	lidsDumped       = []byte("lids dumped")
)

const unicastLIDCount = int(mad.MaxUnicastLID) + 1

type lftReader struct {
	*lines
	lft     LFT
	row     []byte     // ports by LID, of all LIDs
	owners  []mad.GUID // by LID
	seen    []int32    // line by LID; 0: no entry
	size    int        // of the table, in LIDs
	open    bool       // within a table
	skip    bool       // within a multicast table, which is skipped
	closed  bool       // the table had its last line
	spanned bool       // its first line has the LIDs, as OpenSM and ibroute write it
	message int        // line of the last message of the tool within the table; 0: none
	tables  int
	ended   int // tables that had their last line; opensm.fdbs has no such lines
	count   int // entries of the table
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
	t.beginTable(NodeRef{File: t.at.file, Line: t.at.line})
	t.header(s)
}

// beginTable begins a table of the node ref.
func (t *lftReader) beginTable(ref NodeRef) {
	for i := range t.row[:t.size] {
		t.row[i] = mad.NoPort
	}
	clear(t.seen[:t.size])
	t.lft.NodeRef, t.lft.private = ref, 0
	t.size, t.count, t.message, t.open, t.skip, t.closed, t.spanned = 0, 0, 0, true, false, false, false
	t.tables++
}

// private parses `PLFT_NUM: 0`.
func (t *lftReader) private(s []byte) {
	n, rest, ok := decimal(skipSpace(s[len(plftNumber):]))
	if !ok || len(rest) > 0 || n > 255 {
		t.fail("the number of the table, as in PLFT_NUM: 0: %q", t.shown())
	}
	t.lft.private = n
}

// header parses what the first line of a table has of the switch and its LIDs.
func (t *lftReader) header(s []byte) {
	rest, ok := bytes.CutPrefix(s, ucastRoutes)
	if !ok {
		rest, ok = bytes.CutPrefix(s, olderUcastRoutes)
	}
	if ok {
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
	t.size, t.spanned = top+1, true
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

// nameInParentheses parses ` ('rack 1'):`, with or without quotes. Names may
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
	case string(s) == strings.TrimSpace(messageMark):
		t.message = t.at.line
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
	if t.lft.failed = 0; t.message > 0 && t.spanned && !t.closed && !t.complete() {
		t.lft.failed = t.message
	}
	if t.ended > 0 && !t.closed && t.message == 0 {
		t.fail("the table of switch %s, from line %d, to end with a line such as 100 lids dumped, as others do; the table is cut short", t.lft.GUID, t.lft.Line)
		return false
	}
	t.lft.open = t.spanned && !t.closed
	t.lft.Entries, t.lft.Owners, t.lft.lines = t.row[:t.size], t.owners[:t.size], t.seen[:t.size]
	return true
}

// complete reports whether the table has an entry of its last LID. dump_fts leaves that out if it
// is a multiple of 64.
func (t *lftReader) complete() bool {
	last := t.size - 1
	if last%64 == 0 {
		last--
	}
	return last > 0 && t.seen[last] != 0
}

// ReadLFTs reads the forwarding tables of a file into the tables of f's switches. For
// each table of the file row returns the table of the switch, ports by LID; where it
// is nil the table of the file is skipped. LIDs for which the file has no entry
// get mad.NoPort.
//
// As in OpenSM's engine file, an entry whose owner the file has goes to the LID
// that this port has in f, and a port number that the switch does not have is an
// error. Notes are the differences between file and fabric, as texts.
func ReadLFTs(r io.Reader, name string, f *fabric.Fabric, row func(sw *fabric.Node) []byte) (notes []string, err error) {
	m := lftMatcher{f: f, row: row, read: make([]bool, len(f.Nodes()))}
	last := 0 // line of the last table if it has no end; else 0
	for t, err := range LFTs(r, name) {
		if err != nil {
			return nil, err
		}
		if err := m.match(t); err != nil {
			return nil, err
		}
		if last = 0; t.open && t.failed == 0 {
			last = t.Line
		}
	}
	if notes = m.notes(name); last > 0 {
		notes = append(notes, fmt.Sprintf("%s:%d: the last table does not end with a line such as 15 lids dumped; the file may be cut short", name, last))
	}
	return notes, nil
}

// lftMatcher matches tables of a file with the switches of a fabric.
type lftMatcher struct {
	f   *fabric.Fabric
	row func(*fabric.Node) []byte

	read    []bool      // by node id: the file has a table of the switch
	failed  strayLines  // tables that end with a message of the tool
	private strayLines  // private tables
	unknown []string    // switches of the file that are not in the fabric
	twice   []string    // switches with two tables
	owner   []mad.GUID  // by LID of the file: for which to and state hold
	to      []mad.LID   // by LID of the file: where its entries go
	state   []portState // by LID of the file
	moved   int         // LIDs whose port has another now
	further int         // LIDs that ports have by an LMC unknown to the fabric
	stale   int         // entries left out: the LID is another port's now
	beyond  int         // entries left out: the LID is above the last of the fabric
}

// portState is what has become of the port that had a LID of the file.
type portState uint8

const (
	portUnresolved portState = iota
	portSame                 // it still has the LID, or the file lacks the owner
	portMoved                // it has another LID
	portGone                 // it is not in the fabric, and neither is the LID
	portStale                // it is not in the fabric, and the LID is another port's
	portFurther              // it has the LID beside its first one, by an LMC that is missing in the fabric
)

// match copies the entries of a table to the row of its switch.
func (m *lftMatcher) match(t *LFT) error {
	n, err := m.node(t)
	if n == nil || err != nil {
		return err
	}
	switch {
	case t.failed > 0:
		m.failed.add(pos{t.File, t.failed}, n.Label())
		return nil
	case t.private > 0:
		m.private.add(pos{t.File, t.Line}, n.Label())
		return nil
	}
	if m.read[n.ID()] {
		m.twice = append(m.twice, n.Label())
	}
	m.read[n.ID()] = true
	row := m.row(n)
	for i := range row {
		row[i] = mad.NoPort
	}
	if row == nil {
		return nil
	}
	for lid, port := range t.Entries {
		if port == mad.NoPort {
			continue
		}
		if int(port) > n.NumPorts() {
			return fmt.Errorf("%s: expected a port from 0 to %d, which %s has, for LID %d, not %d", pos{t.File, int(t.lines[lid])}, n.NumPorts(), n.Label(), lid, port)
		}
		switch to, state := m.resolve(lid, t.Owners); {
		case state == portStale:
			m.stale++
		case int(to) >= len(row):
			m.beyond++
		default:
			row[to] = port
		}
	}
	return nil
}

// node returns the switch of a table, or nil where f has none.
func (m *lftMatcher) node(t *LFT) (*fabric.Node, error) {
	var switches []*fabric.Node
	for _, n := range m.f.NodeByGUID(t.GUID) {
		if n.IsSwitch() {
			switches = append(switches, n)
		}
	}
	switch len(switches) {
	case 0:
		m.unknown = append(m.unknown, t.GUID.String())
		return nil, nil
	case 1:
		return switches[0], nil
	}
	return nil, fmt.Errorf("%s: expected the GUID of one switch, but %s is that of %s", t.Position(), t.GUID, labels(switches))
}

// resolve returns the LID that entries for a LID of the file go to. The tables of a dump have
// equal owners, so each LID is looked up once.
func (m *lftMatcher) resolve(lid int, owners []mad.GUID) (mad.LID, portState) {
	if m.state == nil {
		m.owner, m.to, m.state = make([]mad.GUID, unicastLIDCount), make([]mad.LID, unicastLIDCount), make([]portState, unicastLIDCount)
	}
	if m.state[lid] == portUnresolved || m.owner[lid] != owners[lid] {
		m.owner[lid] = owners[lid]
		m.to[lid], m.state[lid] = m.find(mad.LID(lid), owners)
		switch m.state[lid] {
		case portMoved:
			m.moved++
		case portFurther:
			m.further++
		}
	}
	return m.to[lid], m.state[lid]
}

// find returns the LID in the fabric of the port that had a LID in the file.
func (m *lftMatcher) find(lid mad.LID, owners []mad.GUID) (mad.LID, portState) {
	owner := owners[lid]
	if owner == 0 {
		return lid, portSame
	}
	ports := m.f.PortByGUID(owner)
	for _, p := range ports {
		if p.LID() <= lid && int(lid) < int(p.LID())+1<<p.LMC() {
			return lid, portSame
		}
	}
	switch {
	case len(ports) == 1 && isFurther(lid, ports[0].LID(), owners):
		return lid, portFurther
	case len(ports) == 1 && ports[0].LID() != 0:
		return ports[0].LID() + lid&(1<<ports[0].LMC()-1), portMoved
	case m.f.PortByLID(lid) != nil:
		return lid, portStale
	}
	return lid, portGone
}

// isFurther reports whether in the file a port has the first LID that it has in
// the fabric, and lid too: then it has an LMC, which opensm-subnet.lst does not
// contain. LMC has three bits, so that a port has at most 128 LIDs.
func isFurther(lid, first mad.LID, owners []mad.GUID) bool {
	return 0 < first && first < lid && lid < first+128 && owners[first] == owners[lid]
}

// notes returns the differences between file and fabric.
func (m *lftMatcher) notes(name string) []string {
	var notes []string
	note := func(format string, args ...any) {
		notes = append(notes, fmt.Sprintf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if len(m.unknown) > 0 {
		note("%d of its switches are not in the fabric: %s", len(m.unknown), some(m.unknown))
	}
	if m.failed.n > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s with a message of the tool before the last LID, and %s not used: the first is that of %s", m.failed.first, plural.Count(m.failed.n, "table ends", "tables end"), map[bool]string{true: "is", false: "are"}[m.failed.n == 1], m.failed.text))
	}
	if m.private.n > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s not used (PLFT_NUM above 0), the first of %s: packets that use it may take other paths", m.private.first, plural.Count(m.private.n, "private table is", "private tables are"), m.private.text))
	}
	var missing []string
	for i := range m.f.Nodes() {
		if n := &m.f.Nodes()[i]; n.IsSwitch() && !m.read[i] {
			missing = append(missing, n.Label())
		}
	}
	if len(missing) > 0 {
		note("no table of %s of the fabric: %s", plural.Count(len(missing), "switch", "switches"), some(missing))
	}
	if len(m.twice) > 0 {
		note("it has two tables of %s; the last counts", some(m.twice))
	}
	if m.moved > 0 {
		note("%d LIDs have changed since the file was written; their entries follow the ports, by port GUID", m.moved)
	}
	if m.further > 0 {
		note("%d LIDs are additional LIDs of their ports (LMC), which the fabric does not have: paths to these are not judged; a topology of ibnetdiscover has them", m.further)
	}
	if m.stale > 0 {
		note("%s left out: ports that are not in the fabric, and LIDs that now belong to others", plural.Count(m.stale, "entry is", "entries are"))
	}
	if m.beyond > 0 {
		note("%s left out: LIDs above the last of the fabric", plural.Count(m.beyond, "entry is", "entries are"))
	}
	return notes
}

// some returns the first few of names, with commas between.
func some(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// WriteLFTs writes forwarding tables as OpenSM writes opensm-lfts.dump, byte for
// byte. row gives the ports of a switch by LID; nil: no table. OpenSM's
// engine file reads the file (-R file,no_fallback -U FILE).
func WriteLFTs(w io.Writer, f *fabric.Fabric, row func(sw *fabric.Node) []byte) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var tails []string // of lines, after the port, by LID
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

// owner returns the comment that names p, which has the LID.
func owner(p *fabric.Port) string {
	if p == nil {
		return " # unknown node and type\n"
	}
	return " # " + typeName(p.Node().Type()) + " portguid " + p.GUID().String() + ": '" + description(p.Node()) + "'\n"
}

// WriteFDBs writes the forwarding tables that row gives as OpenSM's opensm.fdbs,
// which ibdmchk reads. hops gives the lengths of paths; it may be nil. Where a
// path is not the shortest, OpenSM names the port that it would choose instead;
// here it is the first port on a shortest path.
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
