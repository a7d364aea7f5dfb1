// Package state holds a simulated subnet: its nodes, ports, links, LIDs, tables, multicast
// groups and counters, and how packets are forwarded between them.
//
// Subnet is all of it; a Node has Ports. Traffic moves counters by flows between hosts, Faults
// lose and delay MADs, Notices send traps and Reports, Hardware is what registers show. The
// agents of nodes and the subnet manager (package agent), and what changes the subnet while it
// runs (package sim), read and change it.
//
// The lock of Subnet guards everything; its doc has the rules. Packages above hold it when they
// call functions here, unless a function states otherwise.
package state

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Subnet is the state of a simulated subnet.
//
// Its lock guards the subnet, all its nodes and ports, and what other packages of the
// simulator store of it: a change needs the lock, a read needs it for reading. Functions
// here expect it to be held, unless they state otherwise. Two things are computed by the
// first reader that needs them: the forwarding tables (EnsureTables) and the growth of
// counters by traffic (Traffic.Update); each has a mutex of its own, which is locked after
// this lock.
type Subnet struct {
	sync.RWMutex
	Nodes  []Node // in the order of the fabric
	Ports  []Port // of all nodes; each node has a part of it
	SM     *Port  // where the subnet manager in this process is, or nil
	Groups []*Group

	LIDs      []*Port // end ports by LID
	Blocks    map[BlockKey]*[SMPSize]byte
	HasPlanes bool              // there are FNM ports
	Adaptive  *AdaptiveSettings // nil: switches do not support adaptive routing
	Router    Router            // makes the forwarding tables; nil: the subnet does, without memory
	clock     func() time.Time  // nil: the time of the machine
	time      sync.Mutex        // guards the two below, of readers too
	offset    time.Duration     // from clock to the time of the subnet
	latest    time.Time         // that Now returned; zero: none yet, by clock

	poweredAt time.Time // when the devices began, less initialUptime

	TablesStale atomic.Bool // the forwarding tables must be computed
	tablesMu    sync.Mutex  // held while they are computed
	tableTop    mad.LID     // the highest LID in them
}

// Router makes forwarding tables, and may remember its last ones.
type Router interface {
	// Tables returns the table of each switch.
	Tables(s *Subnet, switches []*Node) [][]uint8
	// Forget forgets the last tables, as a process that is restarted does.
	Forget()
}

// New returns a subnet of that many nodes and ports, without links.
func New(nodes, ports int) *Subnet {
	return &Subnet{Nodes: make([]Node, nodes), Ports: make([]Port, ports), LIDs: make([]*Port, mad.MaxUnicastLID+1), Blocks: map[BlockKey]*[SMPSize]byte{}, Groups: []*Group{broadcastGroup()}, poweredAt: time.Now()}
}

// SMPSize is the size of an SMP's attribute in bytes (IBA 14.2.1).
const SMPSize = 64

// Limits of the simulated hardware, and settings of the subnet.
const (
	GIDPrefix    = 0xfe80_0000_0000_0000 // the default subnet prefix (IBA 4.1.1)
	LinearCap    = 48 << 10              // entries of a linear forwarding table
	MulticastCap = 4 << 10               // entries of a multicast forwarding table
	GUIDCap      = 8                     // entries of a GUIDInfo table
	VLArbCap     = 8                     // entries of either VL arbitration table
	LifeTime     = 18                    // 4.096 us << 18: 1.07 s
)

// SetClock sets the clock by which leases expire and counters grow. The subnet's time
// continues without a jump.
func (s *Subnet) SetClock(clock func() time.Time) {
	s.Lock()
	defer s.Unlock()
	now := s.Now()
	s.clock = clock
	s.offset, s.latest = now.Sub(clock()), time.Time{}
}

// Now returns the time of the subnet. If its clock is set back, the time goes on from
// where it was.
func (s *Subnet) Now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	s.time.Lock()
	defer s.time.Unlock()
	now := s.clock().Add(s.offset)
	if back := s.latest.Sub(now); back > 0 {
		s.offset += back
		now = s.latest
	}
	s.latest = now
	return now
}

// initialUptime is how long devices have run when the subnet begins.
const initialUptime = 100 * time.Hour

// Uptime returns how long the devices have run.
func (s *Subnet) Uptime() time.Duration { return initialUptime + s.Now().Sub(s.poweredAt) }

// NodeByGUID returns the node that had a GUID when the subnet was made, else the first that has
// it now, or nil.
func (s *Subnet) NodeByGUID(guid mad.GUID) *Node {
	var now *Node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Origin == guid {
			return n
		}
		if now == nil && n.GUID() == guid {
			now = n
		}
	}
	return now
}

// NodesByGUID returns the results of NodeByGUID for all GUIDs.
func (s *Subnet) NodesByGUID() map[mad.GUID]*Node {
	nodes := make(map[mad.GUID]*Node, len(s.Nodes))
	for _, guid := range []func(*Node) mad.GUID{func(n *Node) mad.GUID { return n.Origin }, (*Node).GUID} {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; nodes[guid(n)] == nil {
				nodes[guid(n)] = n
			}
		}
	}
	return nodes
}

// PortByGUID is a port by the GUID of its node; port 0 of a CA stands for the node.
func (s *Subnet) PortByGUID(node mad.GUID, num int) (*Port, error) {
	return portOfNode(s.NodeByGUID(node), node, num)
}

// portOfNode returns the port of n, which has that GUID; nil: the node does not exist.
func portOfNode(n *Node, guid mad.GUID, num int) (*Port, error) {
	switch {
	case n == nil:
		return nil, fmt.Errorf("the simulated fabric has no node with GUID %v", guid)
	case num < 0 || num >= len(n.Ports):
		return nil, fmt.Errorf("%s has ports up to %d, no port %d", n.Label, len(n.Ports)-1, num)
	}
	return &n.Ports[num], nil
}

// Index is the index of a node.
func (s *Subnet) Index(n *Node) int {
	for i := range s.Nodes { // only the console needs it
		if &s.Nodes[i] == n {
			return i
		}
	}
	return -1
}

// PortOf returns the port that was made from p.
func (s *Subnet) PortOf(p *fabric.Port) *Port {
	return &s.Nodes[p.Node().ID()].Ports[p.Num()]
}

// End is a port.
type End struct{ Node, Num int }

// Cable is one end of a cable.
type Cable struct {
	Node mad.GUID
	Num  int
}

// PortByIndex returns a port by the index of its node; its number is at least least.
func (s *Subnet) PortByIndex(at End, least int) (*Port, error) {
	if at.Node < 0 || at.Node >= len(s.Nodes) || at.Num < least || at.Num >= len(s.Nodes[at.Node].Ports) {
		return nil, errors.New("is not a port")
	}
	return &s.Nodes[at.Node].Ports[at.Num], nil
}

// WithPort calls change with a port, with the lock held. It must not change routes or links.
func (s *Subnet) WithPort(node mad.GUID, num int, change func(*Port)) error {
	s.Lock()
	defer s.Unlock()
	p, err := s.PortByGUID(node, num)
	if err == nil {
		change(p)
	}
	return err
}

// hasLID reports whether lid is one of p's 2^LMC LIDs, or the LID of a virtual port of p.
func (p *Port) hasLID(lid mad.LID) bool {
	return p.LID != 0 && (lid&^(1<<p.LMC-1) == p.LID || p.hasVirtual(lid))
}

// SetLID gives p another LID in the table of LIDs; its PortInfo follows.
func (s *Subnet) SetLID(p *Port, lid mad.LID, lmc uint8) {
	if p != p.EndPort() || p.LID == lid && p.LMC == lmc {
		return
	}
	for i, q := range s.LIDs[p.LID : int(p.LID)+1<<p.LMC] {
		if q == p {
			s.LIDs[int(p.LID)+i] = nil
		}
	}
	if lid &^= 1<<lmc - 1; lid == 0 {
		return
	}
	for i := int(lid); i < int(lid)+1<<lmc && i < len(s.LIDs); i++ {
		if s.LIDs[i] == nil { // of two ports with one LID, packets reach the first
			s.LIDs[i] = p
		}
	}
}

// ReserveLIDs gives p its LIDs; false if they are not valid, or another port has
// one of them.
func (s *Subnet) ReserveLIDs(p *Port) bool {
	last := int(p.LID) + 1<<p.LMC - 1
	if p.LID == 0 || p.LID&(1<<p.LMC-1) != 0 || last >= len(s.LIDs) {
		return false
	}
	mine := s.LIDs[p.LID : last+1]
	if slices.ContainsFunc(mine, func(q *Port) bool { return q != nil }) {
		return false
	}
	for i := range mine {
		mine[i] = p
	}
	return true
}

// topLID returns the highest LID in use.
func (s *Subnet) topLID() mad.LID {
	top := mad.LID(0)
	for i := range s.Ports { // the table of LIDs is mostly empty, and large
		if p := &s.Ports[i]; p.LID != 0 && p == p.EndPort() {
			top = max(top, p.LID+1<<p.LMC-1)
			for _, v := range p.Virtual {
				top = max(top, v.LID)
			}
		}
	}
	return top
}

// EndPortByGUID returns the port with that GUID that the latest sweep reached, or nil.
func (s *Subnet) EndPortByGUID(guid mad.GUID) *Port {
	for _, p := range s.LIDs {
		if p != nil && p.InService && p.GUID == guid {
			return p
		}
	}
	return nil
}

// EndPortsWith lists the end ports that the latest sweep reached, and for which ok
// holds, by LID.
func (s *Subnet) EndPortsWith(ok func(*Port) bool) (ports []*Port) {
	for p := range EndPorts(s.LIDs) {
		if p.InService && ok(p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// EndPorts returns the end ports of a part of the table of LIDs, each once.
func EndPorts(lids []*Port) iter.Seq[*Port] {
	return func(yield func(*Port) bool) {
		var before *Port
		for _, p := range lids {
			if p != nil && p != before && !yield(p) {
				return
			}
			before = p
		}
	}
}

// HasGID reports whether an end port has the GID.
func (s *Subnet) HasGID(gid mad.GID) bool {
	return slices.ContainsFunc(s.LIDs, func(p *Port) bool { return p != nil && p.GID() == gid })
}
