// Package sim is a simulated subnet in this process: an engine.Transport. It
// generates a topology, or reads one from a file, brings it up as a subnet
// manager does, and answers management datagrams as the agents of its nodes do.
//
// Topologies:
//
//	spec.go            Parse: a topology and its options, from text
//	specvalues.go      the keys of a spec, and their values
//	options.go         Options: loss, delay, dead ports, M_Keys, redirection
//	generate.go        fat trees and rings
//	lattice.go         meshes, tori, HyperX; dragonfly.go; regular.go: random ones
//	remove.go          without some switches and cables
//
// The subnet:
//
//	sim.go             Subnet, and the state of its nodes and ports
//	bringup.go         New: the state after bring-up
//	routing.go         the forwarding tables
//	event.go           cables pulled and plugged, the SM restarted
//	edit.go            faults of hardware, settings and hands
//	sweep.go           the sweep of the subnet manager
//
// From a MAD to its answer:
//
//	transport.go       Attach: a program at a port
//	faults.go          the fault model: loss, delay, duplicates, BUSY
//	delayqueue.go      what waits for the program
//	forward.go         forwarding, by LID and by directed route
//	rmppreceive.go     requests of several segments
//	rmppsend.go        answers of several segments
//	agent.go           which agent answers, and its tables of handlers
//
// Agents, a file or more for each class:
//
//	smp.go             subnet management: the table of its attributes
//	portinfo.go        PortInfo, and links that train
//	table.go           tables in blocks
//	pma.go             performance management; redirect.go: redirected
//	cc.go              congestion control
//	sa.go              subnet administration: the table of its records
//	query.go           a query, and the records that match
//	record.go          records of nodes, ports, tables and links
//	path.go            PathRecord; multipath.go: MultiPathRecord, TraceRecord
//	group.go           multicast groups; groupmatch.go: what a request must match
//	service.go         services
//	subscription.go    subscriptions and Reports
//
// Nothing depends on time or on the order of goroutines: the same requests get
// the same answers. Counters change only by a Set.
package sim

import (
	"sync"

	"fabsh/mad"
)

// Subnet is a simulated subnet. Its methods may be called from any goroutine.
type Subnet struct {
	options Options
	nodes   []node // in the order of the fabric
	ports   []port // of all nodes; each node has a part of it

	mu     sync.RWMutex // locked by Sets, for reading by Gets; guards all that a Set may change
	lids   []*port      // end ports by LID
	sm     *port        // that of the subnet manager
	sweeps uint32       // of the subnet manager, since its start
	blocks map[blockKey]*[smpSize]byte

	otherSMs map[*port]mad.SMInfo // that say they are subnet managers too
	mutedSA  bool                 // the subnet administrator answers nobody

	noSweep bool // for tests: the subnet manager does not sweep when a link changes

	subscriptions []subscription
	lastTID       uint64 // of a Report
	accepting     map[acceptKey]*conn
	settings      map[blockKey][]byte // of congestion control

	groups    []*group // multicast groups
	madeMGIDs uint32   // counts the MGIDs that were chosen for groups
	services  []mad.ServiceRecord
}

// smpSize is the size of an SMP's attribute in bytes (IBA 14.2.1).
const smpSize = 64

// node is the state of a node.
type node struct {
	label          string // for messages
	isSwitch       bool
	found          bool          // reached by the last sweep
	ports          []port        // by number; a CA's port 0 is not used
	info           [smpSize]byte // NodeInfo, but for PortGUID and LocalPortNum
	desc           [smpSize]byte
	sw             [smpSize]byte // SwitchInfo
	fdbTop         mad.LID       // SwitchInfo.LinearFDBTop
	lft            []uint8       // entries beyond its end are mad.NoPort
	redirectTo     *node         // its performance management is there; nil: here
	redirectedHere *node         // the node whose performance management is here too; nil: none
}

// port is the state of a port: PortInfo as on the wire, and of it what forwarding
// needs, decoded.
type port struct {
	node      *node
	num       uint8
	dead      bool
	unplugged bool // the cable is not plugged in
	inService bool // of an end port: reached by the last sweep
	up        bool // the link is trained; then there is a peer
	state     mad.PortState
	lmc       uint8
	keyLevel  uint8   // PortInfo.M_KeyProtectBits
	mtu       mad.MTU // PortInfo.NeighborMTU
	rate      uint16  // of the link, in units of half a Gb/s
	lid       mad.LID
	mkey      uint64
	guid      mad.GUID
	peer      *port // at the cable's other end; nil: no cable
	info      [smpSize]byte
	counters  counters // nil: all 0
}

// endPort is the port that has p's LID: of a switch port 0, else p itself.
func (p *port) endPort() *port {
	if p.node.isSwitch {
		return &p.node.ports[0]
	}
	return p
}
