package format

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// planColumns say how a kind of plan names what a cable is.
type planColumns struct {
	names []string // in lower case; "": no such column
	clean func(name string) string
	// port is the number of the port that a plan names so, and what the name of
	// the device lacks of that of the node.
	port func(device, text string) (suffix string, num int, ok bool)
}

// sniffPlan takes the line with the names of the columns.
func sniffPlan(c *planColumns) func(l *headLine) bool {
	return func(l *headLine) bool {
		_, _, ok := columnsOf(bytes.TrimPrefix(l.text, []byte(byteOrderMark)), planNeeded, c.clean, c.names...)
		return ok
	}
}

// loadPlan reads a plan of cables: a line for each, below one with the names of the
// columns. Lines above that one, blank lines and those that begin with # do not count.
func loadPlan(r io.Reader, name string, columns *planColumns) (*fabric.Fabric, error) {
	p := planReader{topology: newTopology(), csvLines: &csvLines{lines: newLines(r, name)}, kind: columns}
	for p.next() {
		text := bytes.TrimPrefix(p.text, []byte(byteOrderMark))
		switch {
		case p.header == nil:
			if comma, at, ok := columnsOf(text, planNeeded, p.kind.clean, p.kind.names...); ok {
				p.text, p.columns = text, at
				p.setHeader(comma)
			}
		case len(bytes.TrimSpace(text)) > 0 && text[0] != '#' && p.split():
			p.cable()
		}
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case len(p.nodes) == 0:
		return nil, fmt.Errorf("%s: no cables below the line with the names of the columns", name)
	}
	p.types()
	p.guids()
	p.notes(name)
	return p.fabric(name)
}

type planReader struct {
	*topology
	*csvLines
	kind    *planColumns
	columns []int // by planA and so on; -1: no such column
	open    int   // lines without a far end
	out     int   // lines of cables that are not Active
}

// cable takes a line.
func (p *planReader) cable() {
	state := strings.ToLower(string(p.field(p.columns[planState])))
	switch {
	case len(p.field(p.columns[planB])) == 0 && len(p.field(p.columns[planBPort])) == 0:
		p.open++
		return
	case state != "" && state != "active":
		p.out++
		return
	}
	var r rate
	width, speed := string(p.field(p.columns[planWidth])), strings.ToLower(string(p.field(p.columns[planSpeed])))
	if r.inUse = true; width != "" && !r.setWidth(width) || speed != "" && !r.setSpeed(speed) {
		p.fail("a width and a speed as 4x and hdr, or neither: %q", p.shown())
		return
	}
	a, m := p.end(planA)
	b, n := p.end(planB)
	if p.err == nil && a == b && m == n {
		p.fail("two ends, not port %d of %s twice", m, fabric.Clip(p.nodes[a].id))
	}
	if p.err == nil {
		p.err = p.link(p.at, a, m, b, n, r)
	}
}

// maxPlanName is how long the name of a device may be, in bytes: NodeDescription has 64,
// and planners add what they like.
const maxPlanName = 255

// end is the node and the port that two columns name.
func (p *planReader) end(column int) (i, num int) {
	device, port := p.field(p.columns[column]), p.field(p.columns[column+1])
	suffix, num, ok := p.kind.port(string(device), string(port))
	switch {
	case p.err != nil:
		return 0, 0
	case len(device) == 0 || len(device) > maxPlanName:
		p.fail("a name of 1 to %d bytes, or a GUID, in column %s: %q", maxPlanName, fabric.Clip(p.header[p.columns[column]]), fabric.Clip(string(device)))
		return 0, 0
	case !ok || num < 1 || num > maxPorts:
		p.fail("a port from 1 to %d in column %s, not %q", maxPorts, fabric.Clip(p.header[p.columns[column+1]]), fabric.Clip(string(port)))
		return 0, 0
	}
	n := node{at: p.at, id: string(device) + suffix}
	if v, rest, isHex := hex(device); isHex && len(rest) == 0 && v != 0 {
		n.info.NodeGUID = mad.GUID(v)
		n.id = n.info.NodeGUID.String()
	} else {
		n.name = n.id
	}
	i, known := p.ids[n.id]
	if !known {
		if p.err = p.countPorts(p.at, 0, p.bytes); p.err != nil {
			return 0, 0
		}
		i = p.add(n)
	}
	if more := num - int(p.nodes[i].info.NumPorts); more > 0 {
		p.err = p.countPorts(p.at, more, p.bytes)
		p.nodes[i].info.NumPorts = uint8(num)
	}
	return i, num
}

// types gives each node the type that its cables suggest, which a plan lacks:
// a CA has one or two ports, unless its name says what it is.
func (p *planReader) types() {
	for i := range p.nodes {
		n := &p.nodes[i]
		n.info.BaseVersion, n.info.ClassVersion, n.info.PartitionCap = 1, 1, 1
		name := strings.ToLower(n.name)
		switch words := strings.Fields(name); {
		case strings.HasPrefix(name, "mf0;"), scans(name[strings.LastIndexByte(name, '/')+1:], "u%d", new(int)): // a switch of NVIDIA; a chip of one
			n.info.NodeType = mad.NodeTypeSwitch
		case len(words) > 1 && isHCA(words[len(words)-1]), n.info.NumPorts <= 2:
			n.info.NodeType = mad.NodeTypeCA
		default:
			n.info.NodeType = mad.NodeTypeSwitch
		}
	}
}

// isHCA reports whether a word, in lower case, is a driver's name of an HCA.
func isHCA(word string) bool {
	return scans(word, "hca-%d", new(int)) || scans(word, "mlx4_%d", new(int)) || scans(word, "mlx5_%d", new(int))
}

// guids gives the nodes without a GUID one that no other has.
func (p *planReader) guids() {
	taken := map[mad.GUID]bool{}
	for i := range p.nodes {
		taken[p.nodes[i].info.NodeGUID] = true
	}
	bases := newGUIDBases()
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.info.NodeGUID == 0 {
			base := bases[n.info.NodeType]
			for taken[base.next] {
				base.next += maxPorts + 1
			}
			n.info.NodeGUID = base.next
			taken[n.info.NodeGUID] = true
		}
		n.info.SystemImageGUID = n.info.NodeGUID
		if n.info.NodeType == mad.NodeTypeSwitch {
			n.info.PortGUID = n.info.NodeGUID
		}
	}
}

// notes are what the fabric has that the plan does not contain, and vice versa.
func (p *planReader) notes(name string) {
	p.problems = append(p.problems, fabric.Problem{Kind: fabric.ProblemPlan, Text: name + " has cables only; models of nodes are unknown, and types and numbers of ports are guessed"})
	if slices.ContainsFunc(p.nodes, func(n node) bool { return n.name != "" }) {
		p.problems = append(p.problems, fabric.Problem{Kind: fabric.ProblemAssignedGUIDs, Text: name + " has names instead of GUIDs, which were assigned in its order"})
	}
	for _, left := range []struct {
		lines int
		why   string
	}{{p.open, "without another end"}, {p.out, "whose state is not Active"}} {
		if left.lines > 0 {
			p.problems = append(p.problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s: %s %s", name, plural.Count(left.lines, "line", "lines"), left.why)})
		}
	}
}
