// Package generate builds the topologies of simulated subnets: the nodes and
// cables, without the state of any port.
//
//	generate.go   what a subnet has room for
//	builder.go    switches, hosts and cables
//	tree.go       fatTree, Tree: parallel-ports generalised fat trees
//	ring.go       Ring
//	lattice.go    Lattice: meshes, tori, hyperX
//	dragonfly.go  Dragonfly
//	regular.go    Regular: random regular graphs
//	equip.go      Equip: a fabric of a generation of devices, with planes, aggregation nodes, split ports
//	remove.go     Remove: a fabric without some switches and cables
//
// The same arguments, including the seed, give the same fabric. A topology that does not
// fit into a subnet is an error. Arguments are counts: the caller ensures that none is
// negative or above maxLIDs, and that no number of switches is 0.

package spec

import (
	"errors"
	"fmt"

	"fabsh/mad"
)

// Limits of a subnet.
const (
	maxLIDs        = int(mad.MaxUnicastLID) // 49,151
	maxSwitchPorts = 254                    // IBA 14.2.5.3: 255 is not a port number
	maxHops        = mad.MaxHops
)

// checkSize returns an error if a topology does not fit into a subnet: so many
// switches (-1: too many), each with hosts and ports, at most far hops apart.
func checkSize(switches, hosts, ports, far int) error {
	switch {
	case switches < 0 || switches*(hosts+1) > maxLIDs:
		return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
	case ports == 0:
		return errors.New("switches without ports")
	case ports > maxSwitchPorts:
		return fmt.Errorf("switches with %d ports, more than %d", ports, maxSwitchPorts)
	case far > maxHops-2:
		return fmt.Errorf("hosts %d hops apart, more than the %d of a directed route", far+2, maxHops)
	}
	return nil
}

// product of the numbers, or -1 if it is more than the LIDs of a subnet.
func product(numbers ...[]int) int {
	n := 1
	for _, list := range numbers {
		for _, x := range list {
			if n *= x; n > maxLIDs {
				return -1
			}
		}
	}
	return n
}
