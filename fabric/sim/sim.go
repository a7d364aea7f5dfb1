// Package sim is a simulated subnet in this process: an engine.Transport. It
// generates a topology, or reads one from a file, brings it up as a subnet
// manager does, and answers management datagrams as the agents of its nodes do.
//
// Topologies:
//
//	spec.go            Parse: a topology and its options, from text
//	generate/          a package of its own: fat trees, rings, meshes ...
//	specvalues.go      the keys of a spec, and their values
//	optionports.go     the keys that name ports
//	options.go         Options: loss, delay, dead ports, M_Keys, redirection
//
// The subnet:
//
//	sim.go             Subnet, and the state of its nodes and ports
//	bringup.go         New: the state after bring-up
//	routing.go         the forwarding tables; distance.go: routes to one switch
//	twin.go            settings, tables and counters that came with the fabric
//	event.go           cables pulled and plugged, the SM restarted
//	hand.go            what the console of a server does
//	edit.go            faults of hardware, settings and hands; editgroup.go: multicast groups
//	hardware.go        nodes without power, cables exchanged, slow links
//	setting.go         loss, delay, BUSY, M_Keys, traps, while it runs
//	sweep.go           the sweep of the subnet manager
//
// From a MAD to its answer:
//
//	transport.go       Attach: a program at a port
//	attach.go          AttachClient: a foreign program; forwardclient.go: what is for it; clientwait.go
//	faults.go          the fault model: loss, delay, duplicates, BUSY
//	loss.go            what ports lose
//	delayqueue.go      what waits for the program
//	forward.go         forwarding, by LID and by directed route
//	rmppreceive.go     requests of several segments
//	rmppsend.go        answers of several segments
//	agent.go           which agent answers, and its tables of handlers
//
// Agents, a file or more for each class:
//
//	smp.go             subnet management: the table of its attributes
//	portinfo.go        PortInfo, and links that train; mlnx.go: Mellanox' part of it,
//	                   and their registers; registers/ has what these show
//	sminfo.go          what subnet managers ask of each other
//	table.go           tables in blocks
//	mkey.go            M_Keys: who may, and what follows when one is wrong
//	trap.go            traps, and their repetition
//	growth.go          counters that grow with time; traffic.go: by traffic
//	pma.go             performance management; redirect.go: redirected
//	sample.go          measurements of counters for a while
//	cc.go              congestion control
//	sa.go              subnet administration: the table of its records
//	query.go           a query, and the records that match
//	record.go          records of nodes, ports, tables and links
//	path.go            PathRecord; multipath.go: MultiPathRecord, TraceRecord
//	group.go           multicast groups; groupmatch.go: what a request must match
//	service.go         services
//	tablerecord.go     records of tables in blocks
//	multicast.go       the multicast forwarding tables of groups
//	subscription.go    subscriptions and Reports
//
// Nothing depends on the order of goroutines: the same requests get the same
// answers. Of time only the lease of an M_Key, the repetition of traps, and rates of
// counters depend.
package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric/sim/registers"
	"fabsh/mad"
)

// Subnet is a simulated subnet. Its methods may be called from any goroutine.
type Subnet struct {
	options Options
	nodes   []node // in the order of the fabric
	ports   []port // of all nodes; each node has a part of it

	mu     sync.RWMutex // locked by Sets, for reading by Gets; guards all that a Set may change
	lids   []*port      // end ports by LID
	sm     *port        // that of the subnet manager; nil: there is none
	sweeps uint32       // of the subnet manager, since its start
	blocks map[blockKey]*[smpSize]byte

	otherSMs map[*port]mad.SMInfo // that say they are subnet managers too
	mutedSA  bool                 // the subnet administrator answers nobody
	faults   atomic.Pointer[faultOptions]
	lossy    bool // a port loses MADs

	noSweep bool // for tests: the subnet manager does not sweep when a link changes

	clock func() time.Time // nil: the time of the machine

	subscriptions []subscription
	lastTID       uint64 // of a Report
	lastTrap      uint64 // TID of a Trap
	repeated      map[trapKey]*repeatedTrap
	lights        map[*port]bool // LedInfo.LedMask, where it was set
	accepting     map[acceptKey]*conn
	clients       []*Client           // by number; nil: the place is free
	settings      map[blockKey][]byte // of congestion control

	tablesStale atomic.Bool // the tables are to be computed
	tablesMu    sync.Mutex  // held by who computes them
	tableTop    mad.LID     // the highest LID in them

	flows        []flow // traffic
	trafficStale atomic.Bool
	trafficSince time.Time  // when it became stale
	poweredAt    time.Time  // when the devices began, less upBefore
	trafficMu    sync.Mutex // held by the reader that makes counters grow by it

	groups    []*group // multicast groups
	madeMGIDs uint32   // counts the MGIDs that were chosen for groups
	madeGUIDs uint32   // counts the GUIDs that were chosen for ports
	services  []mad.ServiceRecord
}

// smpSize is the size of an SMP's attribute in bytes (IBA 14.2.1).
const smpSize = 64

// node is the state of a node.
type node struct {
	subnet         *Subnet
	label          string // for messages
	isSwitch       bool
	found          bool          // reached by the last sweep
	off            bool          // it has no power
	busy           atomic.Int64  // how many requests it will answer by BUSY
	ports          []port        // by number; a CA's port 0 is not used
	info           [smpSize]byte // NodeInfo, but for PortGUID and LocalPortNum
	desc           [smpSize]byte
	sw             [smpSize]byte       // SwitchInfo
	fdbTop         mad.LID             // SwitchInfo.LinearFDBTop
	lft            []uint8             // entries beyond its end are mad.NoPort
	samples        *samples            // the measurement of counters of a port; nil: there was none
	redirectTo     *node               // its performance management is there; nil: here
	redirectedHere *node               // the node whose performance management is here too; nil: none
	hardware       *registers.Hardware // what its registers show; nil: it has none
}

// port is the state of a port: PortInfo as on the wire, and of it what forwarding
// needs, decoded.
type port struct {
	node      *node
	peer      *port // at the cable's other end; nil: no cable
	num       uint8
	dead      bool
	fdr10     bool // what PortInfo shows as QDR is FDR10
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
	leaseEnd  time.Time // of the M_Key, if somebody tried a wrong one
	guid      mad.GUID
	info      [smpSize]byte
	counters  counters // nil: all 0
	growth    *growth  // of the counters, with time; nil: they stand still
	loss      *loss    // nil: it loses nothing
}

// SetClock gives the subnet a time of its own, by which leases run out and
// counters grow.
func (s *Subnet) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now()
	s.clock = now
	after := s.now()
	for i := range s.ports {
		p := &s.ports[i]
		if p.growth != nil {
			p.settle(before)
			p.growth.since = after
		}
		if !p.leaseEnd.IsZero() {
			p.leaseEnd = after.Add(p.leaseEnd.Sub(before))
		}
	}
	s.trafficSince = after.Add(s.trafficSince.Sub(before))
	s.poweredAt = after.Add(s.poweredAt.Sub(before))
}

// now is the time of the subnet.
func (s *Subnet) now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock()
}

// endPort is the port that has p's LID: of a switch port 0, else p itself.
func (p *port) endPort() *port {
	if p.node.isSwitch {
		return &p.node.ports[0]
	}
	return p
}
