package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// NodeSpec describes a node to a Builder.
type NodeSpec struct {
	// Info has the number of ports. Its PortGUID belongs to port LocalPortNum, of a switch
	// to port 0.
	Info   mad.NodeInfo
	Name   string
	FileID string            // see Node.FileID
	Switch *mad.SwitchInfo   // of switches, where known
	Route  mad.DirectedRoute // that Info was read on, if any
}

// Builder collects the parts of a Fabric. Nodes have the handles that
// AddNode returned, which differ from their ids in the Fabric. A Builder is not safe for
// concurrent use. It keeps the slices that it is given, and the Fabric has them after
// Build, which must be the last call.
type Builder struct {
	nodes    []builderNode
	from     int // handle, or -1
	fromPort int
	scope    string
	problems []Problem
	answers  []Answer // of handles
	read     time.Time
	endless  bool
	sections []Section
	plan     *Plan // by handles; nil: not a plan
}

// builderNode is a node of a Builder. ports has elements 0 to NumPorts.
type builderNode struct {
	NodeSpec
	ports    []builderPort
	lft      []byte
	adaptive *adaptive.Switch
}

// builderPort is a port of a node of a Builder.
type builderPort struct {
	info     mad.PortInfo
	known    bool
	guid     mad.GUID
	fdr10    bool
	label    string
	cable    *PlanCable // nil: nothing stated
	peer     int        // handle, or -1
	peerPort int
}

// NewBuilder returns an empty Builder.
func NewBuilder() *Builder { return &Builder{from: -1} }

// AddNode adds a node and returns its handle.
func (b *Builder) AddNode(s NodeSpec) int {
	n := builderNode{NodeSpec: s, ports: make([]builderPort, int(s.Info.NumPorts)+1)}
	for i := range n.ports {
		n.ports[i].peer = -1
	}
	b.nodes = append(b.nodes, n)
	h := len(b.nodes) - 1
	if s.Info.NodeType == mad.NodeTypeSwitch {
		b.SetPortGUID(h, 0, s.Info.PortGUID)
	} else {
		b.SetPortGUID(h, int(s.Info.LocalPortNum), s.Info.PortGUID)
	}
	return h
}

// SetLFT gives a switch its linear forwarding table, by LID.
func (b *Builder) SetLFT(node int, lft []byte) { b.nodes[node].lft = lft }

// SetAdaptive gives a switch its adaptive routing.
func (b *Builder) SetAdaptive(node int, s *adaptive.Switch) { b.nodes[node].adaptive = s }

// AddAnswer adds another attribute that a node, or the subnet administrator, answered
// with. Node is a handle.
func (b *Builder) AddAnswer(a Answer) { b.answers = append(b.answers, a) }

// AddSection adds a section of a file that is kept as text.
func (b *Builder) AddSection(s Section) { b.sections = append(b.sections, s) }

// SetCountersRead records when reading the counters among the answers began.
func (b *Builder) SetCountersRead(t time.Time) { b.read = t }

// SetPort gives a port its PortInfo, which is copied. Numbers of ports that
// the node does not have are ignored.
func (b *Builder) SetPort(node, num int, info *mad.PortInfo) {
	if p := b.port(node, num); p != nil {
		p.info, p.known = *info, true
	}
}

// SetPortGUID gives a port its GUID.
func (b *Builder) SetPortGUID(node, num int, guid mad.GUID) {
	if p := b.port(node, num); p != nil {
		p.guid = guid
	}
}

// SetFDR10 records whether a port whose PortInfo shows QDR runs FDR10, Mellanox'
// own speed.
func (b *Builder) SetFDR10(node, num int, fdr10 bool) {
	if p := b.port(node, num); p != nil {
		p.fdr10 = fdr10
	}
}

// SetLabel gives a port the label that its source has for it: see Port.PanelLabel.
func (b *Builder) SetLabel(node, num int, label string) {
	if p := b.port(node, num); p != nil {
		p.label = label
	}
}

// Port returns what has been set of a port: its PortInfo, nil where it is unknown,
// and whether it is linked. ok is false where the node has no such port.
func (b *Builder) Port(node, num int) (info *mad.PortInfo, linked, ok bool) {
	p := b.port(node, num)
	if p == nil {
		return nil, false, false
	}
	if p.known {
		info = &p.info
	}
	return info, p.peer >= 0, true
}

// SetFrom records the port that the sweep began at.
func (b *Builder) SetFrom(node, num int) { b.from, b.fromPort = node, num }

// SetScope describes in words which part of the subnet this is: "within 2 hops of 0,1".
func (b *Builder) SetScope(s string) { b.scope = s }

// AddProblem adds p to what Fabric.Problems returns.
func (b *Builder) AddProblem(p Problem) { b.problems = append(b.problems, p) }

// SetEndUnknown notes that the source does not show where it ends: parts may be missing that
// nothing in it names.
func (b *Builder) SetEndUnknown() { b.endless = true }

// Link connects two external ports, which may be the same port (a loopback
// plug). It is an error when one of them does not exist or is connected to
// another.
func (b *Builder) Link(n, num, m, mnum int) error {
	p, q := b.port(n, num), b.port(m, mnum)
	for _, e := range []struct {
		p         *builderPort
		node, num int
	}{{p, n, num}, {q, m, mnum}} {
		if e.p == nil || e.num == 0 {
			return fmt.Errorf("%s has no port %d", b.Label(e.node), e.num)
		}
	}
	if p.peer == m && p.peerPort == mnum && q.peer == n && q.peerPort == num {
		return nil
	}
	if p.peer >= 0 {
		return fmt.Errorf("port %d of %s is already connected to port %d of %s", num, b.Label(n), p.peerPort, b.Label(p.peer))
	}
	if q.peer >= 0 {
		return fmt.Errorf("port %d of %s is already connected to port %d of %s", mnum, b.Label(m), q.peerPort, b.Label(q.peer))
	}
	p.peer, p.peerPort = m, mnum
	q.peer, q.peerPort = n, num
	return nil
}

// Build makes the Fabric. The Builder must not be used afterwards.
func (b *Builder) Build() *Fabric {
	order := make([]int32, len(b.nodes)) // id to handle
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(i, j int32) int {
		m, n := &b.nodes[i], &b.nodes[j]
		return cmp.Or(
			cmp.Compare(typeRank(m.Info.NodeType), typeRank(n.Info.NodeType)),
			cmp.Compare(m.Info.NodeGUID, n.Info.NodeGUID),
			m.Route.Compare(n.Route))
	})
	f := &Fabric{from: -1, scope: b.scope, problems: b.problems, derived: new(derived), endless: b.endless}
	f.place(b, order)
	f.connect(b, order)
	f.setPlan(b, order)
	f.index()
	f.inspect()
	slices.SortStableFunc(f.problems, compareProblems)
	f.problems = slices.Compact(f.problems) // a file may have had what inspect finds
	return f
}

// place makes nodes and ports in the order given.
func (f *Fabric) place(b *Builder, order []int32) {
	ports, switches := 0, 0
	for i := range b.nodes {
		ports += len(b.nodes[i].external())
		if b.nodes[i].Switch != nil {
			switches++
		}
	}
	f.nodes = make([]Node, len(order))
	f.ports = make([]Port, 0, ports)
	f.infos = make([]mad.PortInfo, 0, ports)
	f.switches = make([]mad.SwitchInfo, 0, switches)
	f.groups = make([]int32, len(typeOrder)+2)
	for id, h := range order {
		from := &b.nodes[h]
		n := &f.nodes[id]
		*n = Node{fabric: f, info: from.Info, name: from.Name, fileID: from.FileID, route: from.Route, kind: kindOf(&from.Info, from.Name), id: int32(id), first: int32(len(f.ports)), sw: -1}
		if from.Switch != nil {
			n.sw = int32(len(f.switches))
			f.switches = append(f.switches, *from.Switch)
		}
		for r := typeRank(n.info.NodeType) + 1; r < len(f.groups); r++ {
			f.groups[r]++
		}
		if from.lft != nil {
			if f.lfts == nil {
				f.lfts = make([][]byte, len(order))
			}
			f.lfts[id] = from.lft
		}
		if from.adaptive != nil {
			if f.adaptive == nil {
				f.adaptive = make([]*adaptive.Switch, len(order))
			}
			f.adaptive[id] = from.adaptive
		}
		num := len(from.ports) - len(from.external())
		for _, p := range from.external() {
			f.ports = append(f.ports, Port{fabric: f, guid: p.guid, id: int32(len(f.ports)), node: int32(id), peer: -1, num: uint8(num), known: p.known, fdr10: p.fdr10})
			f.infos = append(f.infos, p.info)
			if p.label != "" {
				if f.labels == nil {
					f.labels = map[int32]string{}
				}
				f.labels[f.ports[len(f.ports)-1].id] = p.label
			}
			num++
		}
	}
}

// connect resolves handles to ids.
func (f *Fabric) connect(b *Builder, order []int32) {
	ids := make([]int32, len(order))
	for id, h := range order {
		ids[h] = int32(id)
	}
	f.answers, f.countersRead, f.sections = b.answers, b.read, b.sections
	for i, a := range f.answers {
		if a.Node != NoNode {
			f.answers[i].Node = ids[a.Node]
		}
	}
	sortAnswers(f.answers)
	for i := range f.ports {
		p := &f.ports[i]
		from := &b.nodes[order[p.node]].ports[p.num]
		if from.peer < 0 {
			continue
		}
		p.peer = f.nodes[ids[from.peer]].Port(from.peerPort).id
		if p.peer >= p.id {
			f.links++
		}
	}
	if b.from >= 0 {
		if p := f.nodes[ids[b.from]].Port(b.fromPort); p != nil {
			f.from = p.id
		}
	}
}

// index makes the look-up tables.
func (f *Fabric) index() {
	f.indexNames()
	for i := range f.ports {
		if f.ports[i].guid != 0 {
			f.byGUID = append(f.byGUID, int32(i))
		}
	}
	slices.SortStableFunc(f.byGUID, func(i, j int32) int { return cmp.Compare(f.ports[i].guid, f.ports[j].guid) })
	for i := range f.ports {
		p := &f.ports[i]
		if p.management() != p || p.LID() == 0 || p.LID() > mad.MaxUnicastLID {
			continue
		}
		for lid := int(p.LID()); lid <= p.lastLID(); lid++ {
			for len(f.byLID) <= lid {
				f.byLID = append(f.byLID, -1)
			}
			if f.byLID[lid] < 0 {
				f.byLID[lid] = p.id
			}
		}
	}
}

// lastLID is the highest LID that p answers to.
func (p *Port) lastLID() int { return min(int(p.LID())+1<<p.LMC()-1, int(mad.MaxUnicastLID)) }

// external are the ports that n has: of a switch, port 0 too.
func (n *builderNode) external() []builderPort {
	if n.Info.NodeType == mad.NodeTypeSwitch {
		return n.ports
	}
	return n.ports[1:]
}

// port is port num of a node, or nil.
func (b *Builder) port(node, num int) *builderPort {
	n := &b.nodes[node]
	if num < len(n.ports)-len(n.external()) || num >= len(n.ports) {
		return nil
	}
	return &n.ports[num]
}

// Label names a node in messages.
func (b *Builder) Label(node int) string {
	return NodeLabel(b.nodes[node].Name, b.nodes[node].Info.NodeGUID)
}

// typeOrder is the order of node types in a Fabric; all others come last.
var typeOrder = [...]mad.NodeType{mad.NodeTypeSwitch, mad.NodeTypeCA, mad.NodeTypeRouter}

func typeRank(t mad.NodeType) int {
	if i := slices.Index(typeOrder[:], t); i >= 0 {
		return i
	}
	return len(typeOrder)
}

// CompareTypes orders node types as the nodes of a Fabric are.
func CompareTypes(a, b mad.NodeType) int { return cmp.Compare(typeRank(a), typeRank(b)) }
