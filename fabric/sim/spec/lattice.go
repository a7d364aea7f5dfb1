package spec

import (
	"strconv"

	"fabsh/fabric"
)

// lattice is a network of switches at the points of a grid: a mesh, a torus or a
// hyperX (Ahn, Binkert, Davis, McLaren, Schreiber, "hyperX: topology, routing, and
// packaging of efficient large-scale networks", 2009).
type lattice struct {
	Dims  []int // switches in each dimension
	Hosts int   // on each switch
	Links int   // cables from one switch to another
	Shape latticeShape
}

// latticeShape is how the switches of a dimension are linked.
type latticeShape int

const (
	mesh   latticeShape = iota // a line
	torus                      // a ring
	hyperX                     // a complete graph
)

// Build makes the lattice. A switch's first ports are those of its hosts, then
// come those of each dimension.
func (l lattice) Build() (*fabric.Fabric, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	ports := l.Hosts
	first := make([]int, len(l.Dims)) // port of each dimension
	for d, n := range l.Dims {
		first[d] = ports + 1
		ports += len(l.Shape.neighbours(0, n)) * l.Links
	}
	p := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for i := range product(l.Dims) {
		name := "switch"
		for d := range l.Dims {
			name += "-" + strconv.Itoa(l.coordinate(i, d)+1)
		}
		switches = append(switches, p.addSwitch(name, ports))
	}
	p.addHosts(switches, l.Hosts)
	for i, sw := range switches {
		for d, n := range l.Dims {
			x := l.coordinate(i, d)
			for k, y := range l.Shape.neighbours(x, n) {
				if y < 0 {
					continue
				}
				j := i + (y-x)*l.stride(d)
				for c := range l.Links {
					p.link(sw, first[d]+k*l.Links+c, switches[j], first[d]+l.peerIndex(k, x, y, n)*l.Links+c)
				}
			}
		}
	}
	return p.build()
}

func (l lattice) check() error {
	far, ports := 0, l.Hosts
	for _, n := range l.Dims {
		far += l.Shape.diameter(n)
		ports += len(l.Shape.neighbours(0, n)) * l.Links
	}
	return checkSize(product(l.Dims), l.Hosts, ports, far)
}

// peerIndex is the index of x's k-th cable, to y, among y's.
func (l lattice) peerIndex(k, x, y, n int) int {
	if l.Shape == hyperX {
		if x > y {
			return x - 1
		}
		return x
	}
	return 1 - k
}

// stride is the difference of the numbers of switches next to each other in
// dimension d; that of the last dimension is 1.
func (l lattice) stride(d int) int { return product(l.Dims[d+1:]) }

// coordinate of switch i in dimension d.
func (l lattice) coordinate(i, d int) int { return i / l.stride(d) % l.Dims[d] }

// neighbours are the coordinates to which coordinate x of a dimension of n is
// linked, by port; -1: no cable. All switches have the same order of ports:
// towards higher coordinates first.
func (s latticeShape) neighbours(x, n int) []int {
	var next []int
	switch {
	case s == hyperX:
		for y := range n {
			if y != x {
				next = append(next, y)
			}
		}
	case n == 1:
	case s == torus && n > 2:
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
func (s latticeShape) diameter(n int) int {
	switch s {
	case hyperX:
		return min(1, n-1)
	case torus:
		return n / 2
	}
	return n - 1
}
