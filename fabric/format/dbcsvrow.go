package format

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// dbAbsent is the least of the numbers that stand for a missing value: counters that a device does
// not have are 0xfffffffffffffffe.
const dbAbsent = 1<<64 - 2

// dbNumber is a number, in decimal or with 0x. It is unknown where a cell is empty or
// N/A, and not ok where it is something else.
func dbNumber(cell []byte) (v uint64, known, ok bool) {
	switch string(cell) {
	case "", "N/A", "NA":
		return 0, false, true
	}
	if v, rest, ok := hex(cell); ok && len(rest) == 0 {
		return v, v < dbAbsent, true
	}
	for _, c := range cell {
		digit := uint64(c - '0')
		if digit > 9 || v > (1<<64-1-digit)/10 {
			return 0, false, false
		}
		v = 10*v + digit
	}
	return v, v < dbAbsent, true
}

// number is that of a column; 0 where it is unknown, and an error where it must be.
func (d *dbReader) number(column string, limit uint64, must bool) uint64 {
	v, known, ok := dbNumber(d.cell(column))
	if d.err == nil && (!ok || v > limit && known || must && !known) {
		d.fail("a number up to %d in column %s, not %q", limit, column, fabric.Clip(string(d.cell(column))))
	}
	if !known {
		return 0
	}
	return v
}

func (d *dbReader) guid(column string) mad.GUID {
	return mad.GUID(d.number(column, dbAbsent-1, true))
}

// node takes a line of NODES.
func (d *dbReader) node() {
	s := fabric.NodeSpec{Name: string(d.cell("NodeDesc"))}
	i := &s.Info
	i.NodeGUID, i.NodeType = d.guid("NodeGUID"), mad.NodeType(d.number("NodeType", 255, true))
	i.NumPorts, i.LocalPortNum = uint8(d.number("NumPorts", maxPorts, true)), uint8(d.number("LocalPortNum", 255, false))
	i.BaseVersion, i.ClassVersion = uint8(d.number("BaseVersion", 255, false)), uint8(d.number("ClassVersion", 255, false))
	i.SystemImageGUID, i.PortGUID = mad.GUID(d.number("SystemImageGUID", dbAbsent-1, false)), mad.GUID(d.number("PortGUID", dbAbsent-1, false))
	i.VendorID, i.DeviceID = uint32(d.number("VendorID", 1<<24-1, false)), uint16(d.number("DeviceID", 1<<16-1, false))
	i.Revision, i.PartitionCap = uint32(d.number("revision", 1<<32-1, false)), uint16(d.number("PartitionCap", 1<<16-1, false))
	if d.err != nil {
		return
	}
	if _, twice := d.ids[i.NodeGUID]; twice {
		d.fail("one node with GUID %s", i.NodeGUID)
		return
	}
	d.total += int(i.NumPorts) + 1
	if want := tooManyPorts(d.total, d.bytes); want != "" || len(d.nodes) >= maxNodes {
		if want == "" {
			want = fmt.Sprintf("at most %d nodes", maxNodes)
		}
		d.fail("%s", want)
		return
	}
	d.ids[i.NodeGUID] = len(d.nodes)
	d.nodes = append(d.nodes, s)
}

// nodeOf is the index of the node whose GUID a column has.
func (d *dbReader) nodeOf(column string) int {
	guid := d.guid(column)
	i, ok := d.ids[guid]
	if d.err == nil && !ok {
		d.fail("the GUID of a node of section NODES, above, in column %s, not %s", column, guid)
	}
	return i
}

// dbKey is what there is one of: an attribute of a port, or of a node (port 0).
type dbKey struct {
	node, num int
	attr      mad.AttributeID
}

// place is the node and the port that columns name. The node has the port, of which this
// is the first line in the section.
func (d *dbReader) place(node, port string, attr mad.AttributeID) (i, num int) {
	i, num = d.nodeOf(node), int(d.number(port, maxPorts, true))
	if d.err != nil {
		return 0, 0
	}
	n := &d.nodes[i].Info
	if num > int(n.NumPorts) || num == 0 && n.NodeType != mad.NodeTypeSwitch || d.seen[dbKey{i, num, attr}] {
		d.fail("a port that node %s has, and one line for it, not port %d", n.NodeGUID, num)
	}
	d.seen[dbKey{i, num, attr}] = true
	return i, num
}

// link takes a line of LINKS.
func (d *dbReader) link() {
	l := dbLink{line: int32(d.at.line)}
	for i, end := range []string{"1", "2"} {
		l.nodes[i], l.nums[i] = int32(d.nodeOf("NodeGuid"+end)), uint8(d.number("PortNum"+end, maxPorts, true))
	}
	d.links = append(d.links, l)
}

type dbLink struct {
	line  int32
	nodes [2]int32
	nums  [2]uint8
}

// port takes a line of PORTS.
func (d *dbReader) port() {
	p := dbPort{guid: mad.GUID(d.number("PortGuid", dbAbsent-1, false))}
	p.node, p.num = d.place("NodeGuid", "PortNum", mad.AttrPortInfo.ID)
	if data := d.attribute(0); data != nil {
		p.fdr10 = dbSpeeds(d, data)
		p.info = new(mad.PortInfo)
		p.info.Decode(data)
	}
	d.ports = append(d.ports, p)
}

type dbPort struct {
	node, num int
	guid      mad.GUID
	fdr10     bool
	info      *mad.PortInfo // nil: unknown
}

// switchInfo takes a line of SWITCHES.
func (d *dbReader) switchInfo() {
	i := d.nodeOf("NodeGUID")
	if data := d.attribute(0); data != nil {
		d.nodes[i].Switch = new(mad.SwitchInfo)
		d.nodes[i].Switch.Decode(data)
	}
}

// counters takes a line of PM_INFO.
func (d *dbReader) counters() {
	i, num := d.place("NodeGUID", "PortNumber", mad.AttrPortCounters.ID)
	for k := range d.blocks {
		attr := d.blocks[k].attr
		data := d.attribute(k)
		if data == nil {
			continue
		}
		attr.Field("port_select").SetUint(data, uint64(num))
		d.answers = append(d.answers, fabric.Answer{Node: int32(i), Port: int16(num), Class: attr.Class, ID: attr.ID, Data: slices.Clone(data[:attr.Size])})
	}
}

// build makes the fabric of all that was read.
func (d *dbReader) build() (*fabric.Fabric, error) {
	b := fabric.NewBuilder()
	for i := range d.nodes {
		b.AddNode(d.nodes[i])
	}
	for i := range d.ports {
		p := &d.ports[i]
		if p.info != nil {
			b.SetPort(p.node, p.num, p.info)
			b.SetFDR10(p.node, p.num, p.fdr10)
		}
		if p.guid != 0 && (p.num == 0 || d.nodes[p.node].Info.NodeType != mad.NodeTypeSwitch) {
			b.SetPortGUID(p.node, p.num, p.guid)
		}
	}
	for i := range d.links {
		l := &d.links[i]
		if err := b.Link(int(l.nodes[0]), int(l.nums[0]), int(l.nodes[1]), int(l.nums[1])); err != nil {
			return nil, fmt.Errorf("%s: expected ports that are free: %w", pos{d.at.file, int(l.line)}, err)
		}
	}
	for _, a := range d.answers {
		b.AddAnswer(a)
	}
	d.addLacks(b)
	return b.Build(), nil
}

// addLacks reports what the file lacks, and what is not read of it.
func (d *dbReader) addLacks(b *fabric.Builder) {
	if d.unread > 0 {
		slices.Sort(d.unreadNames)
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s: %s not read: %s", d.at.file, plural.Count(d.unread, "section was", "sections were"), strings.Join(d.unreadNames, ", "))})
	}
	for what, n := range d.lacks {
		text := fmt.Sprintf("%s %s", d.at.file, what)
		if n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		b.AddProblem(fabric.Problem{Kind: fabric.ProblemLeftOut, Text: text})
	}
}
