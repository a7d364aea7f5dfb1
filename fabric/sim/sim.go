// Package sim is a simulated subnet: it makes a topology, or takes one from a
// file, brings it up as a subnet manager would, and answers management
// datagrams the way the agents of its nodes would. It runs in process, as a
// engine.Transport.
//
// The package is organised by what a reader looks for:
//
//	spec.go values.go       how a topology is asked for
//	options.go fate.go      loss, delay, duplicates, BUSY, dead ports
//	generate.go             topologies that are made
//	sim.go bringup.go       the subnet and its state when it is up
//	routing.go              the forwarding tables it is up with
//	transport.go queue.go   what a program attaches to
//	walk.go                 the way of a MAD from port to port
//	agent.go                which agent it is for, and whether it may ask
//	smp.go portinfo.go table.go       subnet management
//	pma.go redirect.go                performance management
//	sa.go record.go path.go   subnet administration
//	rmpp.go arrival.go        its tables, and requests, of many MADs
//	event.go sweep.go inform.go       cables pulled, and who is told
//	group.go groupmatch.go service.go   what it lets others change
//
// Nothing depends on time or on the order of goroutines: the same requests get
// the same answers. Counters stand still unless they are Set.
package sim

import (
	"sync"

	"fabsh/mad"
)

// Subnet is a simulated subnet. Its methods may be called from any goroutine.
type Subnet struct {
	options Options
	nodes   []node // as in the fabric it was made from
	ports   []port // of all nodes, for the nodes to share

	mu     sync.RWMutex // Sets hold it, Gets share it; guards all that a Set may change
	lids   []*port      // end ports by LID
	sm     *port        // the subnet manager's
	sweeps uint32       // its, since it began
	blocks map[blockKey]*[smpSize]byte

	noSweep bool // of the subnet manager: a link that trains again stays in Initialize

	subscriptions []subscription // subscriptions
	lastTID       uint64         // of a report
	accepting     map[acceptKey]*conn
	settings      map[blockKey][]byte // of congestion control

	groups    []*group // multicast groups by MGID
	madeMGIDs uint32   // MGIDs that were chosen for groups
	services  []mad.ServiceRecord
}

// smpSize is the size of an SMP's attribute in bytes (IBA 14.2.1).
const smpSize = 64

// node is a node's state.
type node struct {
	label          string // for messages
	isSwitch       bool
	found          bool          // by the last sweep
	ports          []port        // by number; a CA's port 0 is not used
	info           [smpSize]byte // NodeInfo, but for PortGUID and LocalPortNum
	desc           [smpSize]byte
	sw             [smpSize]byte // SwitchInfo
	fdbTop         mad.LID       // SwitchInfo.LinearFDBTop
	lft            []uint8       // ends where only mad.NoPort would follow
	redirectTo     *node         // where its performance management is; nil: here
	redirectedHere *node         // whose performance management is here too; nil: nobody's
}

// port is a port's state: PortInfo as on the wire, and beside it what moving
// a packet needs.
type port struct {
	node *node
	num  uint8
	dead bool
	// The cable is not plugged in; the subnet manager has found the end port.
	unplugged, inService bool
	up                   bool // the link is trained; then there is a peer
	state                mad.PortState
	lmc                  uint8
	keyLevel             uint8   // PortInfo.M_KeyProtectBits
	mtu                  mad.MTU // PortInfo.NeighborMTU
	rate                 uint16  // of the link, in units of half a Gb/s
	lid                  mad.LID
	mkey                 uint64
	guid                 mad.GUID
	peer                 *port // at the cable's other end; nil: no cable
	info                 [smpSize]byte
	counters             counters // nil: all 0
}

// endPort is the port that stands for p's node in LID routing: a switch's port 0.
func (p *port) endPort() *port {
	if p.node.isSwitch {
		return &p.node.ports[0]
	}
	return p
}
