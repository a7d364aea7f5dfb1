package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// router fills the forwarding tables.
//
// The rank of a switch is its distance from the nearest switch with hosts. If
// every link between switches joins neighbouring ranks, the network is a fat
// tree or similar, and gets up*/down* routes, which are free of credit loops:
// up by the destination's number (d-mod-k), then down to the destination. Other
// networks get minimal routes, through the port that is least loaded.
type router struct {
	switches     []*node
	links        []switchLinks // of each switch
	ups          []switchLinks // those of them to switches of higher rank
	rank         []int         // nil: the links do not join neighbouring ranks
	stride       []int         // of d-mod-k, by rank
	digits       [][]int32     // of each rank, the numbers of hosts over stride
	destinations [][]destination
	loads        [][]int32 // routes through each port of each switch

	order  []int32       // switches by falling rank
	group  []int32       // of each switch; those of one have the same links up
	groups []switchLinks // these links
}

// pathType is the type of a route.
type pathType uint8

const (
	minimalPath pathType = iota
	downPath             // down only
	upDownPath           // up first, then down
)

// switchLinks are the links from one switch to others, by port. They are kept small,
// for they are read for each destination.
type switchLinks struct {
	to   []uint16 // the switch; there are fewer than LIDs
	port []uint8
}

func (l *switchLinks) add(to uint16, port uint8) {
	l.to, l.port = append(l.to, to), append(l.port, port)
}

// destination is a LID of a switch, or of a host at a switch.
type destination struct {
	lid    mad.LID
	port   uint8
	number int32 // among hosts
}

// fillTables gives all switches tables for the links that are up, which are computed
// when somebody needs one.
func (s *Subnet) fillTables() {
	s.stopTraffic()
	s.tableTop = s.topLID()
	for i := range s.nodes {
		if n := &s.nodes[i]; n.isSwitch {
			n.lft = nil
			n.setTop(s.tableTop)
		}
	}
	s.tablesStale.Store(true)
}

// manyNodes is from how many nodes on the tables take longer than a program likes to
// wait in Send.
const manyNodes = 5000

// tablesTakeLong: the tables are needed for a MAD, and will take a while.
func (s *Subnet) tablesTakeLong(d *engine.Datagram) bool {
	if len(s.nodes) < manyNodes || !s.tablesStale.Load() {
		return false
	}
	directed := mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSubnDirected && d.LID == mad.PermissiveLID
	method, attr := mad.Method(d.MAD[mad.MethodOffset]), mad.AttributeID(binary.BigEndian.Uint16(d.MAD[mad.AttributeOffset:]))
	return !directed || method != mad.MethodGet || attr == mad.AttrLinearForwardingTable.ID
}

// tables computes the tables of all switches, if they have changed. It must be done
// before a link or a LID changes, and before a table is read or written.
func (s *Subnet) tables() {
	if !s.tablesStale.Load() {
		return
	}
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	if !s.tablesStale.Load() {
		return
	}
	r := s.newRouter()
	size := (int(s.tableTop)/mad.LFTBlock + 1) * mad.LFTBlock
	inParallel(len(r.switches), func(at int) {
		r.switches[at].lft = bytes.Repeat([]byte{mad.NoPort}, size)
	})
	// Some destinations at a time, for all switches; a switch takes them in order.
	var some [64]*distances
	for first := 0; first < len(r.switches); first += len(some) {
		n := min(len(some), len(r.switches)-first)
		inParallel(n, func(i int) {
			if some[i] == nil {
				some[i] = r.newDistances()
			}
			some[i].compute(first + i)
		})
		inParallel(len(r.switches), func(at int) {
			for _, to := range some[:n] {
				r.fillEntries(at, to)
			}
		})
	}
	s.tablesStale.Store(false)
}

// inParallel calls f for 0 to n-1, as many at a time as there are processors.
func inParallel(n int, f func(i int)) {
	var wait sync.WaitGroup
	var next atomic.Int64
	const block = 16
	for range min(runtime.GOMAXPROCS(0), (n+block-1)/block) {
		wait.Go(func() {
			for {
				first := int(next.Add(block)) - block
				if first >= n {
					return
				}
				for i := first; i < min(first+block, n); i++ {
					f(i)
				}
			}
		})
	}
	wait.Wait()
}

func (s *Subnet) newRouter() *router {
	r := &router{}
	index := map[*node]uint16{}
	for i := range s.nodes {
		if n := &s.nodes[i]; n.isSwitch {
			index[n] = uint16(len(r.switches))
			r.switches = append(r.switches, n)
		}
	}
	r.links = make([]switchLinks, len(r.switches))
	r.destinations = make([][]destination, len(r.switches))
	r.loads = make([][]int32, len(r.switches))
	for i, n := range r.switches {
		r.destinations[i] = []destination{{lid: n.ports[0].lid, number: int32(i)}}
		r.loads[i] = make([]int32, len(n.ports))
		for j := range n.ports[1:] {
			p := &n.ports[1+j]
			if p.up && p.peer.node.isSwitch && p.peer.node != n {
				r.links[i].add(index[p.peer.node], p.num)
			}
		}
	}
	hosts := int32(0)
	for i := range s.ports {
		p := &s.ports[i]
		if p.node.isSwitch || p.lid == 0 || !p.up || !p.peer.node.isSwitch {
			continue
		}
		sw := index[p.peer.node]
		for l := range 1 << p.lmc {
			r.destinations[sw] = append(r.destinations[sw], destination{p.lid + mad.LID(l), p.peer.num, hosts})
		}
		hosts++
	}
	r.rankSwitches()
	return r
}

// rankSwitches ranks the switches. It sets rank only if all links join neighbouring
// ranks.
func (r *router) rankSwitches() {
	rank := slices.Repeat([]int{-1}, len(r.switches))
	var queue []int32
	for i := range r.switches {
		if len(r.destinations[i]) > 1 {
			rank[i] = 0
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range r.links[at].to {
			if rank[to] < 0 {
				rank[to] = rank[at] + 1
				queue = append(queue, int32(to))
			}
		}
	}
	highest := 0
	for i := range r.switches {
		for _, to := range r.links[i].to {
			if d := rank[i] - rank[to]; rank[i] < 0 || d != 1 && d != -1 {
				return
			}
		}
		highest = max(highest, rank[i])
	}
	r.rank = rank
	r.order = make([]int32, len(rank))
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return rank[b] - rank[a] })
	// d-mod-k: rank i chooses its up port by the digit of the destination's
	// number that the ranks below have not used.
	ups := make([]int, highest+1)
	r.ups = make([]switchLinks, len(rank))
	r.group = make([]int32, len(rank))
	known := map[string]int32{}
	for i := range r.switches {
		for k, to := range r.links[i].to {
			if rank[to] > rank[i] {
				r.ups[i].add(to, r.links[i].port[k])
			}
		}
		key := fmt.Sprint(r.ups[i])
		if _, ok := known[key]; !ok {
			known[key] = int32(len(r.groups))
			r.groups = append(r.groups, r.ups[i])
		}
		r.group[i] = known[key]
		if rank[i] >= 0 {
			ups[rank[i]] = max(ups[rank[i]], len(r.ups[i].to))
		}
	}
	hosts := int32(0)
	for _, list := range r.destinations {
		for _, t := range list {
			hosts = max(hosts, t.number+1)
		}
	}
	stride := 1
	for _, n := range ups {
		digits := make([]int32, hosts)
		for number := range digits {
			digits[number] = int32(number / stride)
		}
		r.stride, r.digits = append(r.stride, stride), append(r.digits, digits)
		stride *= max(1, n)
	}
}

// fillEntries writes the entries of switch at for all LIDs behind a switch.
func (r *router) fillEntries(at int, way *distances) {
	d := way.to
	lft := r.switches[at].lft
	if at == d {
		for _, t := range r.destinations[d] {
			lft[t.lid] = t.port
		}
		return
	}
	if way.dist[at] < 0 {
		return
	}
	load := r.loads[at]
	if way.path[at] == upDownPath {
		r.fillUp(lft, load, way.choices[r.group[at]], r.digits[r.rank[at]], r.destinations[d])
		return
	}
	var choice [256]uint8
	ports := choice[:0]
	before, links := way.dist[at]-1, &r.links[at]
	for i, to := range links.to {
		if way.dist[to] == before {
			ports = append(ports, links.port[i])
		}
	}
	for _, t := range r.destinations[d] {
		port := ports[0]
		for _, p := range ports[1:] {
			if load[p] < load[port] {
				port = p
			}
		}
		load[port]++
		lft[t.lid] = port
	}
}

// fillUp writes the entries for destinations that are reached through ports up,
// by d-mod-k.
func (r *router) fillUp(lft []uint8, load []int32, ports []uint8, digits []int32, to []destination) {
	digit, i := int32(-2), 0
	for _, t := range to {
		switch next := digits[t.number]; next {
		case digit:
		case digit + 1: // as of neighbours: without a division
			digit = next
			if i++; i == len(ports) {
				i = 0
			}
		default:
			digit, i = next, int(next)%len(ports)
		}
		load[ports[i]]++
		lft[t.lid] = ports[i]
	}
}

// topLID is the highest LID in use.
func (s *Subnet) topLID() mad.LID {
	top := mad.LID(0)
	for i := range s.ports { // the table of LIDs is mostly empty, and large
		if p := &s.ports[i]; p.lid != 0 && p == p.endPort() {
			top = max(top, p.lid+1<<p.lmc-1)
		}
	}
	return top
}

// setTop sets the LinearFDBTop of switch n.
func (n *node) setTop(top mad.LID) {
	var sw mad.SwitchInfo
	sw.Decode(n.sw[:])
	sw.LinearFDBTop = uint16(top)
	sw.Encode(n.sw[:])
	n.fdbTop = top
}
