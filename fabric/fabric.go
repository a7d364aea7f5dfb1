// Package fabric is the model of a subnet: nodes, ports, the links between
// them, their problems and names.
//
// A Fabric is a snapshot. A Builder makes it, from a sweep (package discover) or from a file
// (package format); Fabric.With adds the forwarding tables and attributes of a Reading.
// Fabrics, nodes and ports are immutable and safe for concurrent use, and have dense ids that
// index slices. A Dest is how SMPs reach a node. A Subnet is the key of what is kept of a subnet
// between runs.
//
// The packages below it: discover sweeps, sa is the client of the subnet administrator, device
// reads and writes tables and ports, diff compares two snapshots, routing computes and verifies
// tables, format reads and writes files, sim is a simulated subnet.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
package fabric

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Fabric is a snapshot of a subnet. It never changes after Build, and there is
// one Node and one Port value for each: compare their addresses within a snapshot, and use
// Same across two.
//
// It is safe for concurrent use, and so are its nodes and ports. Slices, and pointers to
// structs of package mad, that their methods return are the Fabric's: they must not be
// modified.
//
// Nodes are ordered by type (switches, CAs, routers, others), then GUID, then
// route; ports by node, then number.
type Fabric struct {
	nodes    []Node
	ports    []Port
	infos    []mad.PortInfo // one a port; zero where Port.known is false
	switches []mad.SwitchInfo
	groups   []int32 // first node of each type, in the order of typeRank, and the end
	byName   []int32 // node ids by name, then id
	byGUID   []int32 // port ids by port GUID, then id; switches with port 0 alone
	byLID    []int32 // port id, or -1
	links    int
	from     int32 // port id, or -1
	scope    string
	problems []Problem
	lfts     [][]byte           // by node id; nil: without tables
	adaptive []*adaptive.Switch // by node id; nil: without any
	answers  []Answer           // sorted
	labels   map[int32]string   // by port id, where the source has them
	derived  *derived
	endless  bool // EndUnknown
	sections []Section
	plan     *Plan // nil: not from a plan

	countersRead time.Time
}

// Nodes are all nodes, indexed by ID. Take addresses, not copies: &f.Nodes()[i].
func (f *Fabric) Nodes() []Node { return f.nodes }

// Ports are all ports, indexed by ID: 0 to NumPorts of switches, 1 to
// NumPorts of others.
func (f *Fabric) Ports() []Port { return f.ports }

// Links is the number of cables.
func (f *Fabric) Links() int { return f.links }

// From is the port the sweep began at, or nil.
func (f *Fabric) From() *Port { return f.port(f.from) }

// Unmanaged returns why there are no LIDs and paths, in words, if no subnet manager has activated the
// port that the sweep began at: "no subnet manager; port in Init". Directed routes work nevertheless. It
// returns "" otherwise, and if that is unknown.
func (f *Fabric) Unmanaged() string {
	p := f.From()
	if p == nil || p.Info() == nil {
		return ""
	}
	manager := "no subnet manager"
	if p.Info().MasterSMLID != 0 {
		manager = "not yet activated by the subnet manager"
	}
	switch {
	case p.State() == mad.PortStateInitialize:
		return manager + "; port in Init"
	case p.State() == mad.PortStateArmed:
		return manager + "; port in Armed"
	case p.num == 0 && p.LID() == 0 && p.Info().MasterSMLID == 0:
		return manager + "; switch without a LID"
	}
	return ""
}

// Scope describes in words which part of the subnet this is; "" for all of it.
func (f *Fabric) Scope() string { return f.scope }

// Problems are the problems of the fabric, and of the view of it.
func (f *Fabric) Problems() []Problem { return f.problems }

// Complete reports whether nothing that was requested, or that the source names, is missing. Where
// EndUnknown is true, other parts may be.
func (f *Fabric) Complete() bool {
	return !slices.ContainsFunc(f.problems, func(p Problem) bool { return p.Kind.Missing() })
}

// EndUnknown reports whether the fabric comes from a file of a format that does not show where it
// ends: one that was cut short may look as one that was not.
func (f *Fabric) EndUnknown() bool { return f.endless }

// LinksUnknown reports whether the fabric comes from a file that has no links at all.
func (f *Fabric) LinksUnknown() bool {
	return slices.ContainsFunc(f.problems, func(p Problem) bool { return p.Kind == ProblemNoLinks })
}

// OfType are the nodes of type t.
func (f *Fabric) OfType(t mad.NodeType) []Node {
	r := typeRank(t)
	lo, hi := f.groups[r], f.groups[r+1]
	return f.nodes[lo:hi:hi]
}

// NodeByGUID returns the nodes with that node GUID: more than one where it is
// duplicate.
func (f *Fabric) NodeByGUID(g mad.GUID) []*Node {
	var found []*Node
	for r := range len(f.groups) - 1 {
		group := f.nodes[f.groups[r]:f.groups[r+1]]
		i, _ := slices.BinarySearchFunc(group, g, func(n Node, g mad.GUID) int { return cmp.Compare(n.info.NodeGUID, g) })
		for ; i < len(group) && group[i].info.NodeGUID == g; i++ {
			found = append(found, &group[i])
		}
	}
	return found
}

// NodeByName returns the nodes with exactly that name.
func (f *Fabric) NodeByName(name string) []*Node {
	i, _ := slices.BinarySearchFunc(f.byName, name, func(id int32, name string) int {
		return strings.Compare(f.nodes[id].name, name)
	})
	var found []*Node
	for ; i < len(f.byName) && f.nodes[f.byName[i]].name == name; i++ {
		found = append(found, &f.nodes[f.byName[i]])
	}
	return found
}

// PortByGUID returns the ports with that port GUID; of a switch, port 0; of a
// port of several planes (XDR), the first.
func (f *Fabric) PortByGUID(g mad.GUID) []*Port {
	i, _ := slices.BinarySearchFunc(f.byGUID, g, func(id int32, g mad.GUID) int { return cmp.Compare(f.ports[id].guid, g) })
	var found []*Port
	for ; i < len(f.byGUID) && f.ports[f.byGUID[i]].guid == g; i++ {
		p := &f.ports[f.byGUID[i]]
		if !slices.ContainsFunc(found, p.isPlaneOf) {
			found = append(found, p)
		}
	}
	return found
}

// PortByLID returns the port that answers to lid, LMC included; of a switch,
// port 0. Nil when no port does.
func (f *Fabric) PortByLID(lid mad.LID) *Port {
	if int(lid) >= len(f.byLID) {
		return nil
	}
	return f.port(f.byLID[lid])
}

// TopLID is the highest unicast LID that a port answers to; 0 where none does.
func (f *Fabric) TopLID() mad.LID { return mad.LID(max(len(f.byLID)-1, 0)) }

// String is one line: the numbers of nodes and links, and whether that is all.
func (f *Fabric) String() string {
	var b strings.Builder
	b.WriteString("fabric: " + plural.Count(len(f.nodes), "node", "nodes") + " (")
	b.WriteString(plural.Count(len(f.OfType(mad.NodeTypeSwitch)), "switch", "switches"))
	b.WriteString(", " + plural.Count(len(f.OfType(mad.NodeTypeCA)), "CA", "CAs"))
	if n := len(f.OfType(mad.NodeTypeRouter)); n > 0 {
		b.WriteString(", " + plural.Count(n, "router", "routers"))
	}
	if n := len(f.OfType(0)); n > 0 {
		b.WriteString(", " + strconv.Itoa(n) + " of unknown type")
	}
	links := plural.Count(f.links, "link", "links")
	if f.LinksUnknown() {
		links = "links unknown"
	}
	b.WriteString("), " + links)
	switch missing := f.Missing(); {
	case missing == string(ProblemNoLinks):
		b.WriteString(", incomplete")
	case !f.Complete():
		b.WriteString(", incomplete: " + missing)
	case f.endless:
		b.WriteString("; the file does not state that it is whole")
	default:
		b.WriteString(", complete")
	}
	if f.scope != "" {
		b.WriteString(" " + f.scope)
	}
	if parts := f.PartsText(); parts != "" {
		b.WriteString("; " + parts)
	}
	if why := f.Unmanaged(); why != "" {
		b.WriteString("; " + why)
	}
	return b.String()
}

func (f *Fabric) port(id int32) *Port {
	if id < 0 {
		return nil
	}
	return &f.ports[id]
}

// Node is a switch, a channel adapter (CA) or a router. It is immutable and safe for
// concurrent use, as its Fabric is.
type Node struct {
	fabric *Fabric
	info   mad.NodeInfo
	name   string
	fileID string
	route  mad.DirectedRoute
	kind   NodeKind
	id     int32
	first  int32 // id of port 0 of a switch, of port 1 of others
	sw     int32 // index in Fabric.switches, or -1
}

// Fabric is the fabric that n is of.
func (n *Node) Fabric() *Fabric { return n.fabric }

// ID is the index of n in Fabric.Nodes.
func (n *Node) ID() int { return int(n.id) }

// GUID is the node GUID.
func (n *Node) GUID() mad.GUID { return n.info.NodeGUID }

// Type is the type of n.
func (n *Node) Type() mad.NodeType { return n.info.NodeType }

// IsSwitch reports whether n forwards packets and has a port 0.
func (n *Node) IsSwitch() bool { return n.info.NodeType == mad.NodeTypeSwitch }

// Name is the node description up to its first NUL, byte for byte: it may be
// empty, and need not be unique, printable or UTF-8. Renamed gives another.
func (n *Node) Name() string { return n.name }

// FileID is what the file that n was read from calls it, in formats that give a
// node an id beside its name; else empty.
func (n *Node) FileID() string { return n.fileID }

// NumPorts is the number of external ports.
func (n *Node) NumPorts() int { return int(n.info.NumPorts) }

// Info is the NodeInfo, as answered along Route. It must not be changed.
func (n *Node) Info() *mad.NodeInfo { return &n.info }

// SwitchInfo is nil where n is not a switch or did not answer. It must not be changed.
func (n *Node) SwitchInfo() *mad.SwitchInfo {
	if n.sw < 0 {
		return nil
	}
	return &n.fabric.switches[n.sw]
}

// Route is the directed route on which n was found first; nil in a fabric that
// comes from a file.
func (n *Node) Route() mad.DirectedRoute { return n.route }

// LID is the LID of port 0 of a switch, and of the first port with a LID of other nodes;
// 0: none.
func (n *Node) LID() mad.LID {
	if n.IsSwitch() {
		return n.Port(0).LID()
	}
	for p := range n.Ports() {
		if lid := p.LID(); lid != 0 {
			return lid
		}
	}
	return 0
}

// Port returns port num, or nil where it does not exist, as port 0 of a CA.
func (n *Node) Port(num int) *Port {
	first := 1
	if n.IsSwitch() {
		first = 0
	}
	if num < first || num > n.NumPorts() {
		return nil
	}
	return &n.fabric.ports[int(n.first)+num-first]
}

// Ports iterates over the external ports, 1 to NumPorts.
func (n *Node) Ports() iter.Seq[*Port] {
	return func(yield func(*Port) bool) {
		for num := 1; num <= n.NumPorts(); num++ {
			if !yield(n.Port(num)) {
				return
			}
		}
	}
}

// Port is one port of a node. It is immutable and safe for concurrent use, as its
// Fabric is.
type Port struct {
	fabric *Fabric
	guid   mad.GUID // 0 on external ports of switches, and where unknown
	id     int32
	node   int32
	peer   int32 // port id, or -1
	num    uint8
	known  bool // Fabric.infos has it
	fdr10  bool // what PortInfo shows as QDR is FDR10
}

// ID is the index of p in Fabric.Ports.
func (p *Port) ID() int { return int(p.id) }

// Node is the node that p is of.
func (p *Port) Node() *Node { return &p.fabric.nodes[p.node] }

// Num is the port number.
func (p *Port) Num() int { return int(p.num) }

// Peer is the port at the other end of the cable, or nil.
func (p *Port) Peer() *Port { return p.fabric.port(p.peer) }

// PeerUnknown reports whether the link of p is up and the port at the other end is unknown, although
// the fabric should have it: it is not a part of a subnet, and not of a file without links.
func (p *Port) PeerUnknown() bool {
	return p.peer < 0 && p.PhysicalState() == mad.PortPhysicalStateLinkUp && p.fabric.scope == "" && !p.fabric.LinksUnknown()
}

// Info is the PortInfo, or nil where it is unknown. It must not be changed.
func (p *Port) Info() *mad.PortInfo {
	if !p.known {
		return nil
	}
	return &p.fabric.infos[p.id]
}

// GUID is the port GUID; all ports of a switch have port 0's. 0 where unknown.
func (p *Port) GUID() mad.GUID { return p.management().guid }

// GID is the port's first GID: the subnet prefix, the default one where that is
// unknown (IBA 4.1.1), and the port GUID.
func (p *Port) GID() mad.GID {
	m := p.management()
	return mad.MakeGID(cmp.Or(p.fabric.infos[m.id].GIDPrefix, DefaultPrefix), m.guid)
}

// LID is the base LID; all ports of a switch have port 0's. 0 where unknown.
func (p *Port) LID() mad.LID {
	if i := p.management().Info(); i != nil {
		return i.LID
	}
	return 0
}

// LMC is how many low bits of the LID the port ignores; as with LID.
func (p *Port) LMC() int {
	if i := p.management().Info(); i != nil {
		return int(i.LMC)
	}
	return 0
}

// State is the logical state; 0 where unknown. It and the accessors above check
// whether the port was read first: that spares routing the memory of PortInfo.
func (p *Port) State() mad.PortState {
	if i := p.Info(); i != nil {
		return i.PortState
	}
	return 0
}

// PhysicalState is the state of link training; 0 where unknown.
func (p *Port) PhysicalState() mad.PortPhysicalState {
	if i := p.Info(); i != nil {
		return i.PortPhysicalState
	}
	return 0
}

// Name is the node's name and the port number: "leaf-1/3". Where the node has
// no name its GUID stands in.
func (p *Port) Name() string {
	name := p.Node().name
	if name == "" {
		name = p.Node().GUID().String()
	}
	return name + "/" + strconv.Itoa(p.Num())
}

// Route is the directed route to p's node, of a CA or router the one that
// comes in through p. Nil without one.
func (p *Port) Route() mad.DirectedRoute {
	n := p.Node()
	if n.IsSwitch() || n.route == nil || p.num == n.info.LocalPortNum {
		return n.route
	}
	peer := p.Peer()
	if peer == nil || !peer.Node().IsSwitch() || peer.Node().route.Hops() == mad.MaxHops {
		return nil
	}
	return peer.Node().route.Append(peer.num)
}

// management is the port whose LID and GUID p answers to.
func (p *Port) management() *Port {
	if n := p.Node(); n.IsSwitch() {
		return n.Port(0)
	}
	return p
}

// derived is what other packages have derived from a fabric.
type derived struct {
	mu sync.Mutex
	by map[any]any
}

// Derived returns what make returns; make is called once for each key. A fabric never
// changes, so derived values can be kept with it. The key is of a type of the caller's own.
func (f *Fabric) Derived(key any, make func() any) any {
	f.derived.mu.Lock()
	defer f.derived.mu.Unlock()
	v, ok := f.derived.by[key]
	if !ok {
		v = make()
		if f.derived.by == nil {
			f.derived.by = map[any]any{}
		}
		f.derived.by[key] = v
	}
	return v
}

// clone is a copy whose nodes and ports are its own.
func (f *Fabric) clone() *Fabric {
	g := *f
	g.derived = new(derived)
	g.nodes, g.ports = slices.Clone(f.nodes), slices.Clone(f.ports)
	for i := range g.ports {
		g.ports[i].fabric = &g
	}
	for i := range g.nodes {
		g.nodes[i].fabric = &g
	}
	return &g
}

// indexNames makes the look-up table of names.
func (f *Fabric) indexNames() {
	f.byName = make([]int32, len(f.nodes))
	for i := range f.byName {
		f.byName[i] = int32(i)
	}
	slices.SortStableFunc(f.byName, func(i, j int32) int { return cmp.Compare(f.nodes[i].name, f.nodes[j].name) })
}

// Same reports whether n and m are one node, also across two snapshots: they have the
// same node GUID. A node whose GUID is 0, or not unique in its snapshot, has no
// counterpart in another snapshot.
func (n *Node) Same(m *Node) bool {
	switch {
	case n == m:
		return true
	case n.fabric == m.fabric || n.GUID() != m.GUID() || n.GUID() == 0:
		return false
	}
	return len(n.fabric.NodeByGUID(n.GUID())) == 1 && len(m.fabric.NodeByGUID(m.GUID())) == 1
}

// Same reports whether p and q are one port: the same number of the same node.
func (p *Port) Same(q *Port) bool { return p.num == q.num && p.Node().Same(q.Node()) }

// Dest is how SMPs reach a node: along Route, by LID where that is nil.
type Dest struct {
	Route mad.DirectedRoute
	LID   mad.LID
	// Start is the LID at which Route begins, of a combined route, and Source the LID of the
	// local port. 0: it begins at the local port.
	Start, Source mad.LID
	// Guard is the node whose M_Key they need, as far as known.
	Guard engine.Guard
}

// Put makes c an SMP to d and returns c. data is the payload of a Set.
func (d Dest) Put(c *engine.Call, m mad.Method, a *mad.Attribute, modifier uint32, data []byte) *engine.Call {
	c.PutSMP(m, a.ID, modifier, data)
	d.Address(c)
	return c
}

// Address sends c, an SMP, to d.
func (d Dest) Address(c *engine.Call) {
	c.Guard = d.Guard
	switch {
	case d.Route == nil:
		c.SetLID(d.LID)
	case d.Start != 0:
		c.SetCombinedRoute(d.Start, d.Source, d.Route)
	default:
		c.SetRoute(d.Route)
	}
}

// Guard is whose M_Key SMPs to n need, along its route or by its LID.
func (n *Node) Guard() engine.Guard {
	return engine.Guard{Port: n.info.PortGUID, Node: n.info.NodeGUID}
}

// Guard is whose M_Key SMPs to p need.
func (p *Port) Guard() engine.Guard { return engine.Guard{Port: p.GUID(), Node: p.Node().GUID()} }

// LMCs are the LIDs that ports have, and their LMCs, which engines need
// (engine.Engine.KnowLMCs).
func (f *Fabric) LMCs() iter.Seq2[mad.LID, uint8] {
	return func(yield func(mad.LID, uint8) bool) {
		for i := range f.ports {
			if p := &f.ports[i]; p.management() == p && p.LID() != 0 && !yield(p.LID(), uint8(p.LMC())) {
				return
			}
		}
	}
}

// NodeInfos are the NodeInfos of the nodes, which engines need (engine.Engine.KnowNodes).
func (f *Fabric) NodeInfos() iter.Seq[*mad.NodeInfo] {
	return func(yield func(*mad.NodeInfo) bool) {
		for i := range f.nodes {
			if info := f.nodes[i].Info(); info != nil && !yield(info) {
				return
			}
		}
	}
}

// PortAt is the port that a directed route comes in through, in a fabric that
// was discovered from the local port; nil where f does not know.
func (f *Fabric) PortAt(route mad.DirectedRoute) *Port {
	p := f.From()
	if p == nil || p.Node().route.Hops() > 0 {
		return nil
	}
	return p.Along(route)
}

// Along is the port that a directed route from p's node comes in through: p itself without hops;
// nil where the fabric does not know.
func (p *Port) Along(route mad.DirectedRoute) *Port {
	if len(route) == 0 {
		return nil
	}
	for _, num := range route[1:] {
		if p = p.Node().Port(int(num)); p == nil || p.Peer() == nil {
			return nil
		}
		p = p.Peer()
	}
	return p
}
