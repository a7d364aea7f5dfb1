package sim

import (
	"fmt"
	"strconv"

	"fabsh/fabric"
)

// lattice is a network of switches at the points of a grid: a mesh, a torus or a
// HyperX. Each dimension is a line, a ring, or a complete graph of switches.
type lattice struct {
	dims  []int // switches in each dimension
	hosts int   // on each switch
	links int   // cables from one switch to another
	shape shape
}

type shape int

const (
	lineShape shape = iota
	ringShape
	completeShape
)

// neighbours are the coordinates to which coordinate x of a dimension of n is
// linked, by port; -1: no cable. All switches have the same order of ports:
// towards higher coordinates first.
func (s shape) neighbours(x, n int) []int {
	var next []int
	switch {
	case s == completeShape:
		for y := range n {
			if y != x {
				next = append(next, y)
			}
		}
	case n == 1:
	case s == ringShape && n > 2:
		next = []int{(x + 1) % n, (x + n - 1) % n}
	default:
		next = []int{-1, x - 1}
		if x+1 < n {
			next[0] = x + 1
		}
	}
	return next
}

// diameter is the largest distance in a dimension of n.
func (s shape) diameter(n int) int {
	switch s {
	case completeShape:
		return min(1, n-1)
	case ringShape:
		return n / 2
	}
	return n - 1
}

func (l *lattice) check() error {
	far, ports := 0, l.hosts
	for _, n := range l.dims {
		far += l.shape.diameter(n)
		ports += len(l.shape.neighbours(0, n)) * l.links
	}
	return checkSize(product(l.dims), l.hosts, ports, far)
}

// checkSize returns an error if the topology does not fit into a subnet. -1
// switches are too many.
func checkSize(switches, hosts, ports, far int) error {
	switch {
	case switches < 0 || switches*(hosts+1) > maxLIDs:
		return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
	case ports > maxSwitchPorts:
		return fmt.Errorf("switches with %d ports, more than %d", ports, maxSwitchPorts)
	case far > maxHops-2:
		return fmt.Errorf("hosts %d hops apart, more than the %d of a directed route", far+2, maxHops)
	}
	return nil
}

// build makes the lattice. A switch's first ports are those of its hosts, then
// come those of each dimension.
func (l *lattice) build() (*fabric.Fabric, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	ports := l.hosts
	first := make([]int, len(l.dims)) // port of each dimension
	for d, n := range l.dims {
		first[d] = ports + 1
		ports += len(l.shape.neighbours(0, n)) * l.links
	}
	p := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for i := range product(l.dims) {
		name := "switch"
		for d := range l.dims {
			name += "-" + strconv.Itoa(l.coordinate(i, d)+1)
		}
		switches = append(switches, p.addSwitch(name, ports))
	}
	p.addHosts(switches, l.hosts)
	for i, sw := range switches {
		for d, n := range l.dims {
			x := l.coordinate(i, d)
			for k, y := range l.shape.neighbours(x, n) {
				if y < 0 {
					continue
				}
				j := i + (y-x)*l.stride(d)
				for c := range l.links {
					p.link(sw, first[d]+k*l.links+c, switches[j], first[d]+l.peerIndex(k, x, y, n)*l.links+c)
				}
			}
		}
	}
	return p.build()
}

// peerIndex is the index of x's k-th cable, to y, among y's.
func (l *lattice) peerIndex(k, x, y, n int) int {
	if l.shape == completeShape {
		if x > y {
			return x - 1
		}
		return x
	}
	return 1 - k
}

// stride is the difference of the numbers of switches next to each other in
// dimension d; that of the last dimension is 1.
func (l *lattice) stride(d int) int { return product(l.dims[d+1:]) }

// coordinate of switch i in dimension d.
func (l *lattice) coordinate(i, d int) int { return i / l.stride(d) % l.dims[d] }

// addHosts puts hosts on the first ports of switches.
func (p *builder) addHosts(switches []int, hosts int) {
	for i, sw := range switches {
		for j := range hosts {
			p.link(p.addCA(hostName(i*hosts+j), 1), 1, sw, j+1)
		}
	}
}
