// Package lft computes the forwarding tables that the subnet manager of a simulated subnet
// sets: up*/down* routes in fat trees, minimal ones elsewhere; and for adaptive routing, the
// ports that may be chosen.
//
//	lft.go       Compute: the tables of a network
//	adaptive.go  computeAdaptiveLFTs: with the choices of ports
//	rank.go      is it a fat tree? the ranks of its switches
//	distance.go  the routes from all switches to one

package state

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"

	"fabsh/mad"
)

// Switch is a switch of the network.
type lftSwitch struct {
	Ports        int              // with port 0
	Links        lftLinks         // to other switches
	Destinations []lftDestination // its own LID, then those of the end ports at it
	Hosts        bool             // there are hosts among them
}

// Compute returns the tables of switches, with entries up to LID top.
func computeLFTs(switches []lftSwitch, top mad.LID) [][]uint8 {
	r := newRouter(switches)
	r.rankSwitches()
	return r.compute(top)
}

func (r *router) compute(top mad.LID) [][]uint8 {
	switches := r.links
	size := (int(top)/mad.LFTBlock + 1) * mad.LFTBlock
	inParallel(len(switches), func(at int) {
		r.tables[at] = bytes.Repeat([]byte{mad.NoPort}, size)
		if r.choices != nil {
			r.choices.add(at, r.tables[at])
		}
	})
	// Some destinations at a time, for all switches; a switch takes them in order.
	var some [64]*distances
	for first := 0; first < len(switches); first += len(some) {
		n := min(len(some), len(switches)-first)
		inParallel(n, func(i int) {
			if some[i] == nil {
				some[i] = r.newDistances()
			}
			some[i].compute(first + i)
		})
		inParallel(len(switches), func(at int) {
			for _, to := range some[:n] {
				r.fillEntries(at, to)
			}
		})
	}
	return r.tables
}

// router fills the forwarding tables.
//
// The rank of a switch is its distance from the nearest switch with hosts. If
// every link between switches joins neighbouring ranks, the network is a fat
// tree or similar, and gets up*/down* routes, which are free of credit loops:
// up by the destination's number (d-mod-k), then down to the destination. Other
// networks get minimal routes, through the port that is least loaded.
type router struct {
	tables       [][]uint8
	links        []lftLinks // of each switch
	ups          []lftLinks // those of them to switches of higher rank
	rank         []int      // nil: the links do not join neighbouring ranks
	stride       []int      // of d-mod-k, by rank
	digits       [][]int32  // of each rank, the numbers of hosts over stride
	destinations [][]lftDestination
	leaf         []bool    // it has hosts
	loads        [][]int32 // routes through each port of each switch

	order  []int32    // switches by falling rank
	group  []int32    // of each switch; those of one have the same links up
	groups []lftLinks // these links

	choices *choices // of adaptive routing; nil: none are computed
	dor     bool     // lowest ports first: dimension order, where ports are in the order of dimensions
}

// pathType is the type of a route.
type pathType uint8

const (
	minimalPath pathType = iota
	downPath             // down only
	upDownPath           // up first, then down
)

// Links are the links from one switch to others, by port. They are small, because they
// are read for each destination.
type lftLinks struct {
	to   []uint16 // the switch; there are fewer than LIDs
	port []uint8
}

func (l *lftLinks) Add(to uint16, port uint8) {
	l.to, l.port = append(l.to, to), append(l.port, port)
}

// Destination is a LID of a switch, or of a host at a switch.
type lftDestination struct {
	LID    mad.LID
	Port   uint8
	Number int32 // among hosts
}

func newRouter(switches []lftSwitch) *router {
	n := len(switches)
	r := &router{tables: make([][]uint8, n), links: make([]lftLinks, n), destinations: make([][]lftDestination, n), loads: make([][]int32, n), leaf: make([]bool, n)}
	for i, sw := range switches {
		r.links[i], r.destinations[i], r.loads[i], r.leaf[i] = sw.Links, sw.Destinations, make([]int32, sw.Ports), sw.Hosts
	}
	return r
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

// fillEntries writes the entries of switch at for all LIDs behind a switch.
func (r *router) fillEntries(at int, way *distances) {
	d := way.to
	lft := r.tables[at]
	if at == d {
		for _, t := range r.destinations[d] {
			lft[t.LID] = t.Port
		}
		return
	}
	if way.dist[at] < 0 {
		return
	}
	load := r.loads[at]
	if way.path[at] == upDownPath {
		ports := way.choices[r.group[at]]
		r.fillUp(lft, load, ports, r.digits[r.rank[at]], r.destinations[d])
		r.choices.set(at, way, ports, r.destinations[d])
		return
	}
	var choice [256]uint8
	ports := choice[:0]
	before, links := way.dist[at]-1, &r.links[at]
	next, down := -1, way.path[at] == downPath
	for i, to := range links.to {
		if way.dist[to] == before && (next < 0 || int(to) == next) && !(down && (way.path[to] != downPath || r.above(int32(to), int32(at)))) {
			ports = append(ports, links.port[i])
			if r.dor {
				next = int(to)
			}
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
		lft[t.LID] = port
	}
	r.choices.set(at, way, ports, r.destinations[d])
}

// fillUp writes the entries for destinations that are reached through ports up,
// by d-mod-k.
func (r *router) fillUp(lft []uint8, load []int32, ports []uint8, digits []int32, to []lftDestination) {
	digit, i := int32(-2), 0
	for _, t := range to {
		switch next := digits[t.Number]; next {
		case digit:
		case digit + 1: // as for neighbours: without a division
			digit = next
			if i++; i == len(ports) {
				i = 0
			}
		default:
			digit, i = next, int(next)%len(ports)
		}
		load[ports[i]]++
		lft[t.LID] = ports[i]
	}
}
