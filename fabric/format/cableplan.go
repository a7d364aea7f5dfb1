package format

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// KindCables is fabsh's own list of cables.
const KindCables FormatName = "cables"

var cables = fileFormat{
	kind:  KindCables,
	about: "a plan of cables (columns a, a_port, b, b_port)",
	file:  "fabsh's own plan of cables, as CSV: `a,a_port,b,b_port`",
	sniff: sniffPlan(planOfCables),
	load: func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
		return loadPlan(r, name, planOfCables)
	},
	write:    writeCables,
	dumpHelp: `"cables", a plan as CSV`,
}

// KindNDT is a network definition table of UFM.
const KindNDT FormatName = "ndt"

var ndt = fileFormat{
	kind:  KindNDT,
	about: "a plan of cables of UFM (NDT)",
	file:  "plan of cables of UFM's NDT plug-in, as CSV, with the brief header or the full one",
	sniff: sniffPlan(planOfUFM),
	load:  func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) { return loadPlan(r, name, planOfUFM) },
}

// planColumns are the columns of a kind of plan, and the names that it has for ports.
type planColumns struct {
	names []string // in lower case; "": no such column
	clean func(name string) string
	// port returns the number of a port by its name in the plan, and the suffix that
	// makes the name of the device the name of the node.
	port func(device, text string) (suffix string, num int, ok bool)
}

// sniffPlan takes the line with the names of the columns.
func sniffPlan(c *planColumns) func(l *headLine) bool {
	return func(l *headLine) bool {
		_, _, ok := columnsOf(bytes.TrimPrefix(l.text, []byte(byteOrderMark)), planNeeded, c.clean, c.names...)
		return ok
	}
}

// loadPlan reads a plan of cables: a line for each, below the line with the names of the
// columns. Lines above it, blank lines and lines that begin with # are ignored.
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
	if p.cut {
		p.endsWithin(p.lines.at)
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

// end returns the node and the port that two columns name.
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

// guids assigns a unique GUID to each node without one.
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

// notes adds problems that name what the fabric has and the plan lacks, and vice versa.
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

// Columns of a plan, in the order of planColumns.columns.
const (
	planA = iota
	planAPort
	planB
	planBPort
	planState
	planWidth
	planSpeed
	planNeeded = planBPort + 1
)

// planOfCables are the columns of fabsh's own format; others are notes.
var planOfCables = &planColumns{
	names: []string{"a", "a_port", "b", "b_port", "state", "width", "speed"},
	clean: func(name string) string { return name },
	port:  planPort,
}

// planPort takes the number of a port.
func planPort(_, text string) (suffix string, num int, ok bool) {
	n, rest, ok := decimal([]byte(text))
	return "", n, ok && len(rest) == 0
}

// writeCables writes the cables of f as a plan, each from the end that comes first,
// with its active width and speed. Nodes are named; a node whose name
// is not unique, or does not fit in a line of text, is identified by its GUID.
func writeCables(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	out.WriteString("a,a_port,b,b_port,width,speed\n")
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || p == q {
			continue
		}
		for _, end := range []*fabric.Port{p, q} {
			out.WriteString(planName(end.Node()) + "," + strconv.Itoa(end.Num()) + ",")
		}
		out.WriteString(p.Width() + "," + p.Speed() + "\n")
	}
	return out.Flush()
}

// planName returns the name of a node in a plan.
func planName(n *fabric.Node) string {
	name := n.Name()
	plain := utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name
	if !plain || name == "" || name[0] == '#' || strings.HasPrefix(name, "0x") || strings.HasPrefix(name, byteOrderMark) || len(name) > maxPlanName || len(n.Fabric().NodeByName(name)) > 1 {
		return n.GUID().String()
	}
	if strings.ContainsAny(name, `",`) {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return name
}

// planOfUFM are the columns of an NDT file (Mellanox/ufm_sdk_3.0
// plugins/UFM_NDT_Plugin/ndt_file_creator.py, HEADER_BRIEF and HEADER_FULL). Its speed is
// in Mb/s of the whole link, not the name of a speed.
var planOfUFM = &planColumns{
	names: []string{"startdevice", "startport", "enddevice", "endport", "state", "", ""},
	clean: func(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "#"), "fields:") },
	port:  ndtPort,
}

// ndtPort parses the names that ports have in UFM. The suffix makes the name of the
// device the name of the node: a chip in a director, or an HCA in a host.
//
//	Port 21               of a switch or HCA
//	Port 1/16/1           chip, cage, port: of Quantum-2, where a cage has two ports
//	                      (ndt_file_creator.py; in its example this is port 31)
//	Blade 16_Port 2/20    port 20 of chip 2 of leaf board 16 of a director
//	                      (ibnetdiscover-to-ndt.py)
//	HOST mlx5_0           port 1 of that HCA
func ndtPort(device, text string) (suffix string, num int, ok bool) {
	// By the bytes of text: its lower case may have another length.
	if n := len(device); len(text) > n && text[n] == ' ' && strings.EqualFold(text[:n], device) {
		return text[n:], 1, !strings.Contains(text[n+1:], " ")
	}
	var blade, chip, cage, port int
	switch lower := strings.ToLower(text); {
	case scans(lower, "blade %d_port %d/%d", &blade, &chip, &port):
		return fmt.Sprintf("/L%d/U%d", blade, chip), port, true
	case scans(lower, "port %d/%d/%d", &chip, &cage, &port):
		return "", 2*(cage-1) + port, chip == 1 && cage > 0 && (port == 1 || port == 2)
	case scans(lower, "port %d", &port), scans(lower, "%d", &port):
		return "", port, true
	}
	return "", 0, false
}

// scans reports whether text has exactly the given format, with decimal numbers.
func scans(text, format string, numbers ...*int) bool {
	for i, part := range strings.Split(format, "%d") {
		if i > 0 {
			n, rest, ok := decimal([]byte(text))
			if !ok {
				return false
			}
			*numbers[i-1], text = n, string(rest)
		}
		var ok bool
		if text, ok = strings.CutPrefix(text, part); !ok {
			return false
		}
	}
	return text == ""
}
