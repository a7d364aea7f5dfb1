package format

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// KindFAR is ibdiagnet2.far.
const KindFAR FormatName = "ibdiagnet-far"

var ibdiagnetFAR = fileFormat{
	kind:  KindFAR,
	about: "tables of adaptive routing (ibdiagnet2.far)",
	file:  "`ibdiagnet2.far`: port groups and forwarding tables of adaptive routing",
	sniff: func(l *headLine) bool { return l.belowVersion && bytes.HasPrefix(l.text, farSwitch) },
	fars:  readFARs,
}

var (
	fileVersion = []byte("File version:")
	farSwitch   = []byte("Switch 0x")
	farGroups   = []byte("Groups Definition:")
	farLFT      = []byte("LFT Definition:")
	farRule     = []byte("------")
	farPLFT     = []byte("PLFT_NUM:")
	farTop      = []byte("top:")
)

// FAR is the adaptive routing of a switch, as a file has it. The next one does not change
// it.
type FAR struct {
	NodeRef // the switch, and the line at which it begins
	// Tables are the tables of the private LFTs that the file has, by their numbers; the others
	// are nil. They share their groups.
	Tables []*adaptive.Table
}

// Check returns an error if the tables have ports that the switch does not have.
func (far *FAR) Check(n *fabric.Node) error {
	most := n.NumPorts()
	for _, t := range far.Tables {
		if t == nil {
			continue
		}
		for lid := range t.Top() + 1 {
			if port := t.Entry(lid).Port; int(port) > most && port != mad.NoPort {
				return fmt.Errorf("%s: expected a port from 0 to %d, which %s has, for LID %d, not %d", far.Position(), most, n.Label(), lid, port)
			}
		}
		for group := range t.Groups.Len() {
			for port := range t.Groups.All(group).All() {
				if int(port) > most {
					return fmt.Errorf("%s: expected ports from 0 to %d, which %s has, in group %d, not %d", far.Position(), most, n.Label(), group, port)
				}
			}
		}
	}
	return nil
}

// Switch makes a value of the tables. The file does not have, or not in a public form, for which
// service levels and transports adaptive routing is on: all, and the transports of OpenSM's default.
func (far *FAR) Switch() *adaptive.Switch {
	a := &adaptive.Switch{Assumed: true, Enabled: true, SLs: adaptive.AllSLs, Static: adaptive.OpenSMStatic, Tables: far.Tables}
	tables := 0
	for _, t := range far.Tables {
		if t == nil {
			continue
		}
		tables++
		for lid := range t.Top() + 1 {
			if t.Entry(lid).State == adaptive.HBF {
				a.HBF, a.HBFSLs = true, adaptive.AllSLs
				break
			}
		}
	}
	if tables > 1 || a.Table(0) == nil {
		a.Unknown = "private LFTs are in use; which packets use them is in ibdiagnet2.plft, whose format is not public"
	}
	return a
}

// FARs reads the tables of adaptive routing of a file, one switch after the other. An error
// is the last.
//
// The format is known from a public program that reads it: CrackedPoly/Rapimt, files ibfar.pest
// and far_extractor.py in crates/rapimt_io/src/ib/cmd_parser. Lines between the name of a
// switch and its groups have no public description and are ignored: whether adaptive routing
// is on, and for which service levels, is not read.
func FARs(r io.Reader, name string) iter.Seq2[*FAR, error] {
	return readRows(r, name, maxTables, readFARs, func(f *fileFormat) rowReader[*FAR] { return f.fars })
}

// readFARs reads what ibdiagnet writes as ibdiagnet2.far.
func readFARs(r io.Reader, name string) iter.Seq2[*FAR, error] {
	return func(yield func(*FAR, error) bool) {
		t := farReader{lines: newLines(r, name)}
		switches := 0
		for more := t.next(); t.err == nil; more = t.next() {
			if more && !bytes.HasPrefix(t.text, farSwitch) {
				t.line()
				continue
			}
			if far := t.take(); far != nil {
				if switches++; !yield(far, nil) {
					return
				}
			}
			if !more {
				break
			}
			t.begin()
		}
		if t.err == nil && switches == 0 {
			t.fail("switches that begin with Switch 0x and have a table LFT Definition (ibdiagnet2.far), and found none in %d lines", t.at.line)
		}
		if t.err != nil {
			yield(nil, t.err)
		}
	}
}

// farPart is the part of a switch that a line is in.
type farPart uint8

const (
	farOutside   farPart = iota // before, between and after the tables
	farGroupHead                // the titles of the groups
	farGroupRows
	farTableHead // the number of the private LFT, and the titles of its table
	farTableRows
)

type farReader struct {
	*lines
	far    *FAR
	part   farPart
	groups []farGroup
	lids   []bool // that the table has
	plft   int    // of the table; -1: not read yet
	top    int
}

// farGroup is the line of a sub-group. The number of sub-groups is known at the end.
type farGroup struct {
	group, sub int
	ports      adaptive.Ports
}

// begin parses `Switch 0x0002c90300001000 - name`; all that follows the GUID is ignored.
func (t *farReader) begin() {
	g, _, ok := hexDigits(t.text[len(farSwitch):])
	if !ok {
		t.fail("Switch 0x and the GUID of the switch: %q", t.shown())
		return
	}
	t.far = &FAR{NodeRef: NodeRef{File: t.at.file, Line: t.at.line, GUID: mad.GUID(g)}}
	t.part, t.groups = farOutside, nil
}

// line parses a line that does not begin a switch.
func (t *farReader) line() {
	s := t.text
	switch {
	case bytes.HasPrefix(s, farGroups), bytes.HasPrefix(s, farLFT):
		t.endTable()
		switch {
		case t.err != nil:
		case t.far == nil:
			t.fail("the line of the switch, Switch 0x..., first: %q", t.shown())
		case bytes.HasPrefix(s, farGroups):
			t.part = farGroupHead
		default:
			t.part, t.plft, t.top = farTableHead, -1, -1
			t.tableHead(s[len(farLFT):])
		}
	case t.part == farOutside:
	case t.part == farGroupHead && bytes.HasPrefix(s, farRule):
		t.part = farGroupRows
	case t.part == farTableHead && bytes.HasPrefix(s, farRule):
		t.beginTable()
	case t.part == farTableHead:
		t.tableHead(s)
	case len(s) == 0 || s[0] < '0' || s[0] > '9':
		if t.part == farGroupRows || t.part == farTableRows {
			t.endTable()
		}
	case t.part == farGroupRows:
		t.group(s)
	case t.part == farTableRows:
		t.entry(s)
	}
	if t.cut && t.part != farOutside && t.err == nil {
		t.fail("the end of the line: the file is cut short")
	}
}

// tableHead parses `PLFT_NUM: 0, top: 0x40`.
func (t *farReader) tableHead(s []byte) {
	if i := bytes.Index(s, farPLFT); i >= 0 {
		n, _, ok := decimal(skipSpace(s[i+len(farPLFT):]))
		if !ok || n >= maxPLFTs {
			t.fail("a number of a private LFT from 0 to %d after PLFT_NUM: %q", maxPLFTs-1, t.shown())
			return
		}
		t.plft = n
	}
	if i := bytes.Index(s, farTop); i >= 0 {
		n, _, ok := hex(skipSpace(s[i+len(farTop):]))
		if !ok || n > 1<<16-1 {
			t.fail("the highest LID, as in 0x40, after top: %q", t.shown())
			return
		}
		t.top = int(min(n, uint64(mad.MaxUnicastLID)))
	}
}

// maxPLFTs limits the private LFTs of a switch: PrivateLFTInfo counts them in a byte.
const maxPLFTs = 256

// beginTable begins the rows of a table.
func (t *farReader) beginTable() {
	switch {
	case t.plft < 0 || t.top < 0:
		t.fail("PLFT_NUM and top, as in PLFT_NUM: 0, top: 0x40, before the entries: %q", t.shown())
		return
	case t.plft < len(t.far.Tables) && t.far.Tables[t.plft] != nil:
		t.fail("one table for private LFT %d of the switch: %q", t.plft, t.shown())
		return
	}
	t.far.Tables = append(t.far.Tables, make([]*adaptive.Table, max(0, t.plft+1-len(t.far.Tables)))...)
	t.far.Tables[t.plft] = adaptive.NewTable(mad.LID(t.top), nil)
	t.part, t.lids = farTableRows, make([]bool, t.top+1)
}

// endTable ends the part that is open.
func (t *farReader) endTable() {
	if t.part == farGroupHead || t.part == farTableHead {
		t.fail("a line of dashes below the titles of a table: %q", t.shown())
	}
	t.part = farOutside
}

// group parses `12 0 1 5,6,7,`: the group, the sub-group, the weight for HBF, and ports,
// which may be missing.
func (t *farReader) group(s []byte) {
	group, s, isGroup := decimal(s)
	sub, s, isSub := decimal(skipSpace(s))
	_, s, isWeight := decimal(skipSpace(s))
	if !isGroup || !isSub || !isWeight || group >= adaptive.MaxGroups || sub >= adaptive.MaxSubGroups {
		t.fail("a group up to %d, a sub-group up to %d, a weight, and ports: %q", adaptive.MaxGroups-1, adaptive.MaxSubGroups-1, t.shown())
		return
	}
	var ports adaptive.Ports
	for s = skipSpace(s); len(s) > 0; {
		port, rest, ok := decimal(s)
		if !ok || port > maxPorts || len(rest) > 0 && rest[0] != ',' && rest[0] != ' ' && rest[0] != '\t' {
			t.fail("ports from 0 to %d, separated by commas: %q", maxPorts, t.shown())
			return
		}
		ports.Add(uint8(port))
		s = skipSpace(bytes.TrimPrefix(skipSpace(rest), []byte(",")))
	}
	t.groups = append(t.groups, farGroup{group, sub, ports})
}

// farStates are the words for the states of LIDs.
var farStates = map[string]adaptive.State{"Bounded": adaptive.Bounded, "Free": adaptive.Free, "Static": adaptive.Static, "HBF": adaptive.HBF}

// entry parses `0x0011 5 Free 12`: the LID, the static port, the state, the group.
func (t *farReader) entry(s []byte) {
	lid, s, isLID := hex(s)
	port, s, isPort := decimal(skipSpace(s))
	word, s := field(s)
	state, known := farStates[string(word)]
	group, s, isGroup := decimal(skipSpace(s))
	switch {
	case !isLID || !isPort || !known || !isGroup || len(skipSpace(s)) > 0 || port > int(mad.NoPort) || group >= adaptive.MaxGroups:
		t.fail("a LID in hexadecimal, a port, a state (Bounded, Free, Static, HBF) and a group up to %d: %q", adaptive.MaxGroups-1, t.shown())
	case lid >= uint64(len(t.lids)):
		t.fail("LIDs up to 0x%x, the top of the table: %q", t.top, t.shown())
	case t.lids[lid]:
		t.fail("one entry for LID 0x%x: %q", lid, t.shown())
	default:
		t.lids[lid] = true
		t.far.Tables[t.plft].Set(mad.LID(lid), adaptive.Entry{State: state, Port: uint8(port), Group: uint16(group)})
	}
}

// take completes the switch that is open, if it has a table.
func (t *farReader) take() *FAR {
	far := t.far
	t.far = nil
	if far == nil {
		return nil
	}
	if t.endTable(); t.err != nil || len(far.Tables) == 0 {
		return nil
	}
	subs := 1
	for _, g := range t.groups {
		subs = max(subs, g.sub+1)
	}
	groups := adaptive.NewGroups(subs)
	slices.SortStableFunc(t.groups, func(a, b farGroup) int { return (a.group-b.group)*adaptive.MaxSubGroups + a.sub - b.sub })
	for i, g := range t.groups {
		if i > 0 && g.group == t.groups[i-1].group && g.sub == t.groups[i-1].sub {
			t.fail("one line for sub-group %d of group %d of switch %s, above this line", g.sub, g.group, far.GUID)
			return nil
		}
		if err := groups.Set(g.group, g.sub, g.ports); err != nil {
			t.fail("groups of switch %s: %v", far.GUID, err)
			return nil
		}
	}
	for _, table := range far.Tables {
		if table != nil {
			table.Groups = groups
		}
	}
	return far
}
