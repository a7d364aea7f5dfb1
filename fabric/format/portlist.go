package format

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// portList makes a topology of a list of ports, each with its other end, as
// ibnetdiscover -p and iblinkinfo print. Nodes are named by GUIDs of ports; portnodes.go
// derives which ports are those of one node.
type portList struct {
	*topology
	*lines
	capture capture
	header  portEnd // iblinkinfo: the node of the lines below
	rows    []portRow
	names   int  // bytes in rows
	untyped bool // lines do not have the types of nodes
	lost    int  // ports that are up, without another end
	orphans int  // rows whose other end is unknown, and
	orphan  pos  // the first
}

// portRow is a line: a port, and the other end if it is connected.
type portRow struct {
	at        pos
	near, far portEnd
	connected bool
	rate      rate
	state     mad.PortState // 0: unknown
	physical  mad.PortPhysicalState
}

// portEnd is a port as a line names it.
type portEnd struct {
	t    mad.NodeType // 0: unknown
	guid mad.GUID     // of the port, of a switch of port 0; 0: unknown
	num  int
	lid  mad.LID
	name string
}

// maxListText is how many bytes the names of a list may have.
const maxListText = 128 << 20

// loadPortList reads a list with row, which parses a line; its error is that of a line the
// dump does not have.
func loadPortList(r io.Reader, name string, row func(p *portList, line string) error) (*fabric.Fabric, error) {
	p := &portList{topology: newTopology(), lines: newLines(r, name)}
	p.lacksLIDs = true
	var unknown error
	for p.next() {
		line := strings.TrimLeft(string(p.lines.text), "\r")
		if p.cut && beginsRow(line) {
			p.problems = append(p.problems, fabric.Problem{Kind: fabric.ProblemCut, Text: fmt.Sprintf("%s: the last line has no line end; the file may be cut short", p.at)})
		}
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		n := len(p.rows)
		err := row(p, line)
		if err == nil {
			if err = p.capture.begin(); err == nil && len(p.rows) > n {
				err = p.count(&p.rows[n])
			}
		} else {
			unknown = cmp.Or(unknown, err)
			if !p.capture.begun || !beginsRow(line) {
				err = p.capture.stray(p.at, line, err)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case len(p.rows) == 0 && unknown != nil:
		return nil, unknown
	case len(p.rows) == 0:
		return nil, fmt.Errorf("%s: no line has a port", name)
	}
	if err := p.build(); err != nil {
		return nil, err
	}
	p.notes(name)
	return p.fabric(name)
}

// rowWords are what lines of lists begin with.
var rowWords = []string{"0x", "CA ", "SW ", "RT ", "Switch: ", "CA: ", "Router: "}

// beginsRow reports whether s begins as lines of lists do, or is their beginning: a damaged
// line, such as the last one of a file that is cut short, not a prompt.
func beginsRow(s string) bool {
	if text := skipBlanks(s); len(text) < len(s) { // iblinkinfo indents rows
		s = text
		if s != "" && s[0] >= '0' && s[0] <= '9' {
			return true
		}
	}
	return slices.ContainsFunc(rowWords, func(w string) bool { return strings.HasPrefix(s, w) || strings.HasPrefix(w, s) })
}

// count checks the limits of a line.
func (p *portList) count(r *portRow) error {
	if p.names += len(r.near.name) + len(r.far.name); len(p.rows) > maxTotalPorts || p.names > maxListText {
		return p.expected("at most %d ports, and names of %d MB", maxTotalPorts, maxListText>>20)
	}
	for _, e := range []*portEnd{&r.near, &r.far} {
		switch {
		case e == &r.far && !r.connected:
			continue
		case e.num < 1 || e.num > maxPorts:
			return p.expected("ports from 1 to %d: %q", maxPorts, p.shown())
		case e.lid > mad.MaxUnicastLID:
			if e == &r.near {
				p.noLID(p.at)
			}
			e.lid = 0
		}
	}
	return nil
}

// notes are what a list lacks, and what was derived.
func (p *portList) notes(name string) {
	problem := func(kind fabric.ProblemKind, format string, args ...any) {
		p.problems = append(p.problems, fabric.Problem{Kind: kind, Text: name + " " + fmt.Sprintf(format, args...)})
	}
	problem(fabric.ProblemLeftOut, "is a list of ports: models, GUIDs of systems, and GUIDs of CAs are unknown; a CA has the GUID of its first port")
	if p.untyped {
		problem(fabric.ProblemLeftOut, "has no types of nodes: a GUID with several ports is taken for that of a switch; make it without -l")
	}
	if p.lost > 0 {
		problem(fabric.ProblemCut, "has %s up without another end", plural.Count(p.lost, "port that is", "ports that are"))
	}
	if p.orphans > 0 {
		problem(fabric.ProblemCut, "has %s without a line of the other end, which were left out (%s); make it of the whole fabric, or with -l", plural.Count(p.orphans, "link", "links"), p.orphan)
	}
	p.problems = append(p.problems, p.capture.problems()...)
}

// lidNumber parses a LID and the number of a port: "     3    1[  ] ". The number outside of
// a chassis may be in brackets.
func lidNumber(s string) (lid mad.LID, num int, rest string, ok bool) {
	l, s := number(skipBlanks(s))
	num, rest = number(skipBlanks(s))
	ok = true
	if strings.HasPrefix(rest, "[") {
		_, rest, ok = strings.Cut(rest, "]")
	}
	return mad.LID(l), num, skipBlanks(rest), ok && l >= 0 && l <= 0xffff && num >= 0
}

// listGUID parses 0x and a GUID.
func listGUID(s string) (mad.GUID, string, bool) {
	v, rest, ok := hex([]byte(skipBlanks(s)))
	return mad.GUID(v), skipBlanks(string(rest)), ok && v != 0
}
