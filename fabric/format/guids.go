package format

import (
	"bufio"
	"bytes"
	"cmp"
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

// Kinds of files with a GUID in each line.
const (
	KindGUID2LID  FormatName = "guid2lid"
	KindNodeNames FormatName = "node-name-map"
	KindGUIDs     FormatName = "guids" // perhaps with more in its lines
)

var guid2LID = fileFormat{
	kind:  KindGUID2LID,
	about: "LIDs by port GUID (guid2lid)",
	file:  "OpenSM's LIDs by port GUID",
	sniff: func(l *headLine) bool {
		words := bytes.Fields(l.text)
		return l.class == lineNumber && len(words) == 3 && isHexWord(words[1], 4) && isHexWord(words[2], 4)
	},
	guids:    readLIDLines,
	answers:  compareLIDs,
	write:    WriteGUID2LID,
	dumpHelp: `"guid2lid", of OpenSM`,
}

func readLIDLines(r io.Reader, name string) iter.Seq2[GUIDLine, error] {
	return readGUIDs(r, name, true)
}

// compareLIDs compares OpenSM's file of LIDs in a directory or archive with those of the topology. Ports that
// are in one of the two only are usual: OpenSM keeps those of hosts that are gone.
func compareLIDs(r io.Reader, name string, f *fabric.Fabric) (fabric.Reading, error) {
	var reading fabric.Reading
	var others []string
	compared := 0
	for g, err := range readLIDLines(r, name) {
		if err != nil {
			return reading, err
		}
		word, _, _ := strings.Cut(g.Rest, " ")
		lid, ok := cNumber(word)
		if !ok || lid > uint64(mad.MaxUnicastLID) {
			return reading, fmt.Errorf("%s: expected a LID after the GUID, not %q", g.Position(), fabric.Clip(word))
		}
		for _, p := range f.PortByGUID(g.GUID) {
			if p.LID() == 0 {
				continue
			}
			if compared++; p.LID() != mad.LID(lid) {
				others = append(others, fmt.Sprintf("%s: %d, there %d", p.Name(), p.LID(), lid))
			}
		}
	}
	if len(others) > 0 {
		reading.Problems = append(reading.Problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s has other LIDs than the topology for %d of %s: %s", name, len(others), plural.Count(compared, "port", "ports"), some(others))})
	}
	return reading, nil
}

var nodeNameMap = fileFormat{
	kind:  KindNodeNames,
	about: "a node-name map",
	file:  "names by node GUID",
	sniff: func(l *headLine) bool {
		words := bytes.Fields(l.text)
		return l.class == lineNumber && len(words) > 1 && words[1][0] == '"'
	},
	guids:    readGUIDLines,
	write:    writeNodeNames,
	dumpHelp: `"node-name-map"`,
}

var guidList = fileFormat{
	kind:  KindGUIDs,
	about: "a list of GUIDs",
	file:  "lists of GUIDs: roots, compute and I/O nodes, orders, ids, hop weights",
	sniff: func(l *headLine) bool {
		_, rest := field(l.text)
		return l.class == lineNumber || l.class == lineOther && l.digitFirst() && len(rest) == 0
	},
	guids: readGUIDLines,
}

// GUIDLine is a line with a GUID.
type GUIDLine struct {
	NodeRef
	Rest string // what follows the GUID, without spaces around it
}

// GUIDLines reads files with a GUID in each line: lists of roots, compute and
// I/O nodes, ids, hop weights, port orders, node names. An error is the last.
func GUIDLines(r io.Reader, name string) iter.Seq2[GUIDLine, error] {
	rows := readRows(r, name, maxList, readGUIDLines, func(f *fileFormat) rowReader[GUIDLine] { return f.guids })
	return func(yield func(GUIDLine, error) bool) {
		n := 0
		for g, err := range rows {
			if n++; n > maxTotalPorts { // of a port each; lists of them are kept
				yield(GUIDLine{}, fmt.Errorf("%s: expected at most %d GUIDs", g.Position(), maxTotalPorts))
				return
			}
			if !yield(g, err) {
				return
			}
		}
	}
}

// readGUIDLines reads files of GUIDs as OpenSM does (opensm
// complib/cl_nodenamemap.c). Numbers are as in C: hexadecimal after 0x, octal
// after 0, else decimal. Blank lines and lines that begin with # are skipped.
func readGUIDLines(r io.Reader, name string) iter.Seq2[GUIDLine, error] {
	return readGUIDs(r, name, false)
}

// readGUIDs is readGUIDLines; written: a program wrote the file, and its last line has an end too.
func readGUIDs(r io.Reader, name string, written bool) iter.Seq2[GUIDLine, error] {
	return func(yield func(GUIDLine, error) bool) {
		l := newLines(r, name)
		for l.next() && (!written || l.whole()) {
			s := skipSpace(l.text)
			if len(s) == 0 || s[0] == '#' {
				continue
			}
			word, rest := field(s)
			if i := bytes.IndexByte(word, '#'); i >= 0 {
				word, rest = s[:i], s[i:]
			}
			g, ok := cNumber(string(word))
			if !ok {
				l.fail("a GUID, as in 0x0002c90300001000, and then nothing, a space or a #: %q", l.shown())
				break
			}
			if !yield(GUIDLine{NodeRef: NodeRef{File: name, Line: l.at.line, GUID: mad.GUID(g)}, Rest: string(skipSpace(rest))}, nil) {
				return
			}
		}
		if l.err != nil {
			yield(GUIDLine{}, l.err)
		}
	}
}

// cNumber parses s as C's strtoull does with base 0.
func cNumber(s string) (uint64, bool) {
	if strings.ContainsAny(s, "_bBoO+-") && !strings.HasPrefix(s, "0x") && !strings.HasPrefix(s, "0X") || strings.Contains(s, "_") {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return v, err == nil
}

// Numbers returns the numbers after the GUID, up to a #, each at most limit: in hop
// weights the port and its weight, in port orders the ports, in ids the id.
func (g *GUIDLine) Numbers(limit int) ([]int, error) {
	text, _, _ := strings.Cut(g.Rest, "#")
	var numbers []int
	for word := range strings.FieldsSeq(text) {
		v, ok := cNumber(word)
		if !ok || v > uint64(limit) {
			if fabric.HoldsKey(g.GUID.String() + " " + g.Rest) {
				word = fabric.HiddenLine
			}
			return nil, fmt.Errorf("%s: expected numbers from 0 to %d after GUID %s, not %q", g.Position(), limit, g.GUID, fabric.Clip(word))
		}
		numbers = append(numbers, int(v))
	}
	return numbers, nil
}

// NodeName returns the name in a line of a node-name map: with or without a quote
// before it, up to the next quote or #; "" without one.
func (g *GUIDLine) NodeName() string {
	s := g.Rest
	if strings.HasPrefix(s, "#") {
		return ""
	}
	s = strings.TrimLeft(s, `"`)
	if i := strings.IndexAny(s, "\"#"); i >= 0 {
		return s[:i]
	}
	return s
}

// ReadGUIDs reads a list of GUIDs, in the order of the file.
func ReadGUIDs(r io.Reader, name string) ([]mad.GUID, error) {
	var guids []mad.GUID
	for g, err := range GUIDLines(r, name) {
		if err != nil {
			return nil, err
		}
		guids = append(guids, g.GUID)
	}
	return guids, nil
}

// ReadNodeNames reads a node-name map. Of several lines with one GUID the last
// counts. A line that may hold a key, as in guid2mkey, is an error: names are shown.
func ReadNodeNames(r io.Reader, name string) (map[mad.GUID]string, error) {
	names := map[mad.GUID]string{}
	for g, err := range GUIDLines(r, name) {
		if err != nil {
			return nil, err
		}
		if fabric.HoldsKey(g.GUID.String() + " " + g.Rest) {
			return nil, fmt.Errorf("%s: expected a GUID and a name: %s", g.Position(), fabric.HiddenLine)
		}
		if s := g.NodeName(); s != "" {
			names[g.GUID] = s
		}
	}
	return names, nil
}

// writeNodeNames writes the names of f's nodes as a node-name map, with spaces for
// what it cannot hold: quotes, # and bytes that are not printable ASCII.
func writeNodeNames(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		name := strings.TrimSpace(strings.NewReplacer(`"`, " ", "#", " ").Replace(printable(n.Name())))
		if name != "" {
			fmt.Fprintf(out, "%s \"%s\"\n", n.GUID(), name)
		}
	}
	return out.Flush()
}

// WriteGUID2LID writes the LIDs of f's ports as OpenSM's file guid2lid, with
// which OpenSM assigns these LIDs again after a restart. It is sorted by GUID;
// OpenSM's own is not sorted.
func WriteGUID2LID(w io.Writer, f *fabric.Fabric) error {
	ports := slices.DeleteFunc(openSMPorts(f), func(p *fabric.Port) bool { return p.LID() == 0 || p.GUID() == 0 })
	slices.SortStableFunc(ports, func(p, q *fabric.Port) int { return cmp.Compare(p.GUID(), q.GUID()) })
	out := bufio.NewWriter(w)
	for _, p := range ports {
		fmt.Fprintf(out, "%s 0x%04x 0x%04x\n\n", p.GUID(), uint16(p.LID()), min(int(p.LID())+1<<p.LMC()-1, int(mad.MaxUnicastLID)))
	}
	return out.Flush()
}
