package format

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Load reads a topology in any of the formats known, which its content tells
// apart. name is for messages. open opens the files that this one includes;
// nil: it may include none.
func Load(r io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	l := newLoader(open)
	in := bufio.NewReaderSize(r, sniffSize)
	head, _ := in.Peek(sniffSize) // an error comes again
	var err error
	switch kind := Recognise(head); kind {
	case KindSnapshot:
		s, err := ReadSnapshot(in, name)
		if err != nil {
			return nil, err
		}
		return s.Fabric, nil
	case KindCache:
		return readCache(in, name)
	case KindUnknown, KindIbnetdiscover:
		err = l.read(in, name)
	case KindSubnet:
		err = l.loadSubnet(in, name)
	case KindTopo:
		err = l.loadTopo(in, name)
	default:
		err = notTopology(name, kind)
	}
	if err != nil {
		return nil, err
	}
	return l.fabric(name)
}

// Opener opens a file that another includes. name is relative to where the
// including file is.
type Opener func(name string) (io.ReadCloser, error)

const (
	maxLine    = 1 << 16 // bytes; ibsim takes 255
	maxInclude = 16      // files inside one another; ibsim takes as many as it has memory for
)

// loader reads ibnetdiscover's and ibsim's records. ibsim reads the former as
// well; where both mean different things by the same words, the node id tells:
// ibnetdiscover's are S-, H- or R- and 16 digits.
type loader struct {
	opener Opener
	at     pos
	depth  int
	nodes  []node
	ids    map[string]int     // node by id
	alias  map[string]plugRef // port by alias
	from   string             // "node port", from the comment
	inNode bool               // port lines belong to the last of nodes

	// What the lines before a record have set.
	vendor   uint32
	device   uint16
	image    *mad.GUID
	guids    map[mad.NodeType]*guidBase
	portGUID *mad.GUID
	prefix   string
	rate     rate

	smLID mad.LID // of the master SM, where it is known
	ports int     // of all nodes

	grouped  bool // by ibnetdiscover -g
	routers  []routerEnd
	problems []fabric.Problem
}

// guidBase counts GUIDs up from a base that the file sets.
type guidBase struct{ base, next mad.GUID }

// pos is a line of a file.
type pos struct {
	file string
	line int
}

func (p pos) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// node is a record.
type node struct {
	at       pos
	id       string
	info     mad.NodeInfo
	name     string
	enhanced bool
	port0    bool // lid and lmc of port 0 were given
	lid      mad.LID
	lmc      uint8
	plugs    []plug // in file order
}

// plug is a port line: one end of a cable.
type plug struct {
	at      pos
	num     int
	far     string // id of the other node, or an alias with an @
	farPort int
	alias   bool // far is not where the cable leads, but this port's own name
	guid    mad.GUID
	farGUID mad.GUID
	lid     mad.LID
	lmc     uint8
	rate    rate
	state   mad.PortState // 0: not said
	implied bool          // by the line of the other end
	linked  bool          // the Builder has the link
}

type plugRef struct{ node, plug int }

func newLoader(open Opener) *loader {
	return &loader{
		opener: open, ids: map[string]int{}, alias: map[string]plugRef{},
		// ibsim's (ibsim/sim_net.c, absguids, and sim.h, DEFAULT_LINKWIDTH, DEFAULT_LINKSPEED)
		guids: map[mad.NodeType]*guidBase{
			mad.NodeTypeCA: {0x100000, 0x100000}, mad.NodeTypeSwitch: {0x200000, 0x200000}, mad.NodeTypeRouter: {}, 0: {}},
		rate: rate{widths: mad.LinkWidth4x, speeds: 1},
	}
}

// expected is an error at the line being read.
func (l *loader) expected(format string, args ...any) error {
	return fmt.Errorf("%s: expected %s", l.at, fmt.Sprintf(format, args...))
}

// read takes in one file, line by line.
func (l *loader) read(r io.Reader, name string) error {
	if l.depth++; l.depth > maxInclude {
		return l.expected("at most %d files that include one another: does %s include itself?", maxInclude, name)
	}
	outer := l.at
	defer func() { l.depth, l.at = l.depth-1, outer }()
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	l.at = pos{name, 0}
	for in.Scan() {
		l.at.line++
		if err := l.line(in.Text()); err != nil {
			return err
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		l.at.line++
		return l.expected("a line of at most %d bytes", maxLine)
	}
	if in.Err() != nil {
		return fmt.Errorf("%s: after line %d: %w", name, l.at.line, in.Err())
	}
	l.inNode = false
	return nil
}

// fabric makes a Fabric of what was read.
func (l *loader) fabric(name string) (*fabric.Fabric, error) {
	if len(l.nodes) == 0 {
		return nil, fmt.Errorf("%s: expected a topology of ibnetdiscover, OpenSM or ibdm, a net file of ibsim or a snapshot: there is no record of a node (Switch, Ca, Rt)", name)
	}
	l.addRouters(name)
	b := fabric.NewBuilder()
	for i := range l.nodes {
		n := &l.nodes[i]
		s := fabric.NodeSpec{Info: n.info, Name: n.name}
		if n.port0 {
			s.Switch = &mad.SwitchInfo{EnhancedPort0: n.enhanced}
		}
		b.AddNode(s)
	}
	if err := l.assignLIDs(b, name); err != nil {
		return nil, err
	}
	for i := range l.nodes {
		if l.nodes[i].info.NodeType == mad.NodeTypeSwitch {
			b.SetPort(i, 0, &mad.PortInfo{LID: l.nodes[i].lid, LMC: l.nodes[i].lmc, MasterSMLID: l.smLID, CapabilityMask: capabilities, CapabilityMask2: capabilities2})
		}
		for j := range l.nodes[i].plugs {
			if err := l.connect(b, i, j); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range l.problems {
		b.AddProblem(p)
	}
	l.setFrom(b)
	return b.Build(), nil
}

// maxTotalPorts bounds the memory that a file may ask for by a few words a
// node: a subnet has at most 48k LIDs.
const maxTotalPorts = 1 << 20

// room sees to it that there is some for a node with that many ports more.
func (l *loader) room(at pos, ports int) error {
	if l.ports += ports; l.ports > maxTotalPorts {
		return fmt.Errorf("%s: expected nodes of at most %d ports in all", at, maxTotalPorts)
	}
	return nil
}

// add makes a record of a node.
func (l *loader) add(n node) int {
	l.ids[n.id] = len(l.nodes)
	l.nodes = append(l.nodes, n)
	return len(l.nodes) - 1
}

// assignLIDs gives out LIDs in file order if the file has none at all.
func (l *loader) assignLIDs(b *fabric.Builder, name string) error {
	var lids []*mad.LID
	for i := range l.nodes {
		n := &l.nodes[i]
		if n.info.NodeType == mad.NodeTypeSwitch {
			lids = append(lids, &n.lid)
			continue
		}
		for j := range n.plugs {
			lids = append(lids, &n.plugs[j].lid)
		}
	}
	for _, lid := range lids {
		if *lid != 0 {
			return nil
		}
	}
	if len(lids) > int(mad.MaxUnicastLID) {
		return fmt.Errorf("%s: expected at most %d ports that need a LID, which is all there are; there are %d", name, mad.MaxUnicastLID, len(lids))
	}
	for i, lid := range lids {
		*lid = mad.LID(i + 1)
	}
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemAssignedLIDs, Text: fmt.Sprintf("%s has no LIDs; they were given out in its order, from 1 to %d", name, len(lids))})
	return nil
}

// connect makes a link of port line j of node i and the line at its other end.
func (l *loader) connect(b *fabric.Builder, i, j int) error {
	n := &l.nodes[i]
	p := &n.plugs[j]
	if p.alias || p.linked { // the other end names it, or did
		return nil
	}
	far, err := l.otherEnd(i, p)
	if err != nil {
		return err
	}
	m := &l.nodes[far.node]
	q := &m.plugs[far.plug]
	p.linked, q.linked = true, true
	for _, e := range []struct {
		node int
		p, q *plug
	}{{i, p, q}, {far.node, q, p}} {
		info, fdr10 := portInfo(e.p.rate.common(e.q.rate))
		if l.nodes[e.node].info.NodeType != mad.NodeTypeSwitch {
			info.LID, info.LMC, info.MasterSMLID = e.p.lid, e.p.lmc, l.smLID
		}
		info.VLCap = e.p.rate.vls
		if info.PortState = e.p.state; info.PortState == mad.PortStateDown {
			info.PortPhysicalState = 0
		}
		b.SetPort(e.node, e.p.num, &info)
		b.SetFDR10(e.node, e.p.num, fdr10)
		if l.nodes[e.node].info.NodeType != mad.NodeTypeSwitch {
			b.SetPortGUID(e.node, e.p.num, l.nodes[e.node].portGUID(e.p, e.q))
		}
	}
	if err := b.Link(i, p.num, far.node, q.num); err != nil {
		return fmt.Errorf("%s: expected a port that is free: %w", p.at, err)
	}
	return nil
}

// otherEnd finds the line of the port that p is connected to. It must say so.
func (l *loader) otherEnd(i int, p *plug) (plugRef, error) {
	n := &l.nodes[i]
	if strings.Contains(p.far, "@") {
		r, ok := l.alias[p.far]
		if !ok {
			return r, fmt.Errorf("%s: expected a port with the alias %q, but there is none", p.at, p.far)
		}
		return r, nil
	}
	k, ok := l.ids[p.far]
	if !ok {
		return plugRef{}, fmt.Errorf("%s: expected a record of node %q, to which port %d of %q is connected, but there is none", p.at, p.far, p.num, n.id)
	}
	m := &l.nodes[k]
	for j := range m.plugs {
		q := &m.plugs[j]
		if q.num != p.farPort {
			continue
		}
		switch {
		case q.alias:
		case q.far == n.id && q.farPort == p.num:
			return plugRef{k, j}, nil
		case strings.Contains(q.far, "@"):
			if r, ok := l.alias[q.far]; ok && r.node == i && n.plugs[r.plug].num == p.num {
				return plugRef{k, j}, nil
			}
		}
		return plugRef{}, fmt.Errorf("%s: expected %q[%d] to be connected to %q[%d], but %s says %q[%d]", p.at, m.id, q.num, n.id, p.num, q.at, q.far, q.farPort)
	}
	return plugRef{}, fmt.Errorf("%s: expected %q[%d] to be connected to %q[%d], but its record at %s has no line for that port", p.at, m.id, p.farPort, n.id, p.num, m.at)
}

// portGUID is what the line of the port, or that of the other end, says; else
// ibsim's: the node GUID and the port number.
func (n *node) portGUID(p, q *plug) mad.GUID {
	switch {
	case p.guid != 0:
		return p.guid
	case q.farGUID != 0:
		return q.farGUID
	}
	return n.info.NodeGUID + mad.GUID(p.num)
}

// setFrom finds the port that the comment in an ibnetdiscover file names.
func (l *loader) setFrom(b *fabric.Builder) {
	var nodeGUID, portGUID uint64
	if _, err := fmt.Sscanf(l.from, "%x port %x", &nodeGUID, &portGUID); err != nil {
		return
	}
	for i := range l.nodes {
		n := &l.nodes[i]
		if n.info.NodeGUID != mad.GUID(nodeGUID) {
			continue
		}
		num := 0
		for _, p := range n.plugs {
			if n.info.NodeType != mad.NodeTypeSwitch && n.portGUID(&p, &p) == mad.GUID(portGUID) {
				num = p.num
			}
		}
		b.SetFrom(i, num)
		return
	}
}
