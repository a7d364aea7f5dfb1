package discover

import (
	"errors"
	"fmt"

	"fabsh/fabric/plural"
	"fabsh/mad"
)

// What a subnet can have at most: a node needs a LID, of 16 bits (IBA 4.1.3), and
// of the ports nearly all are switches'. A faulty node may invent as many behind it
// as requests are sent.
const (
	maxNodes = 1 << 16
	maxPorts = 1 << 20
)

// errTooMany ends a sweep that has found more. What was found is kept.
var errTooMany = errors.New("more nodes than a subnet can have")

// tooMany reports whether with one more node there are too many, and notes it: that ends
// the sweep.
func (f *findings) tooMany(info *mad.NodeInfo) bool {
	f.full = f.full || len(f.nodes) >= maxNodes || f.ports+int(info.NumPorts)+1 > maxPorts
	return f.full
}

// tooManyText names where they are.
func (f *findings) tooManyText() string {
	return fmt.Sprintf("the sweep stopped at %s with %s, the most that a subnet can have; most are behind %s at route %s; check its management agent",
		plural.Count(len(f.nodes), "node", "nodes"), plural.Count(f.ports, "port", "ports"), f.crowded().label(), f.crowded().route)
}

// crowded is the node furthest from the local port with more than half of all
// nodes behind it: the node that invents them, or the nearest to it.
func (f *findings) crowded() *found {
	at := f.nodes[0]
	behind := f.nodes
	for {
		hops := len(at.route)
		var next [256][]*found // by the port that the route leaves at
		for _, n := range behind {
			if len(n.route) > hops {
				next[n.route[hops]] = append(next[n.route[hops]], n)
			}
		}
		further := at
		for _, nodes := range next {
			if 2*len(nodes) > len(f.nodes) {
				behind = nodes
				for _, n := range nodes {
					if len(n.route) == hops+1 {
						further = n
					}
				}
			}
		}
		if further == at {
			return at
		}
		at = further
	}
}
