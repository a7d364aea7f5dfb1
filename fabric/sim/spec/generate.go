package spec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Generators build the nodes and cables of a topology, without the state of any port. The same
// arguments, including the seed, give the same fabric. Arguments are counts: the caller
// ensures that none is negative or above maxLIDs, and that no number of switches is 0.

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

// lidProduct returns the product of the numbers, or -1 if it exceeds the LIDs of a subnet.
func lidProduct(numbers ...[]int) int {
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

// The generated nodes are NVIDIA's Quantum switch and ConnectX-6 adapter, by
// their PCI identifiers, with GUIDs like theirs.
const (
	vendorID     = 0x02c9
	switchDevice = 0xd2f0
	caDevice     = 0x101b
	caPartitions = 128
	swPartitions = 32
	firstSwitch  = mad.GUID(0x0002c903_00100000)
	firstCA      = mad.GUID(0x0002c903_10000000)
	guidStride   = 0x10 // a node's ports have GUIDs of their own
)

// builder builds a topology.
type builder struct {
	*fabric.Builder
	switches, cas int
	err           error // the first
}

func (p *builder) addSwitch(name string, ports int) int {
	p.switches++
	guid := firstSwitch + mad.GUID(p.switches-1)*guidStride
	return p.AddNode(fabric.NodeSpec{
		Name: name,
		Info: nodeInfo(mad.NodeTypeSwitch, ports, guid, guid, switchDevice, swPartitions),
	})
}

// addAdapter adds adapter r of a host, both from 0. image is the SystemImageGUID of the host,
// which is the GUID of its first adapter: it is set if it is 0.
func (p *builder) addAdapter(host, r, ports int, image *mad.GUID) int {
	p.cas++
	guid := firstCA + mad.GUID(p.cas-1)*guidStride
	if *image == 0 {
		*image = guid
	}
	info := nodeInfo(mad.NodeTypeCA, ports, guid, guid+1, caDevice, caPartitions)
	info.SystemImageGUID = *image
	id := p.AddNode(fabric.NodeSpec{Name: fmt.Sprintf("node-%04d HCA-%d", host+1, r+1), Info: info})
	for num := 2; num <= ports; num++ {
		p.SetPortGUID(id, num, guid+mad.GUID(num))
	}
	return id
}

func (p *builder) link(a, pa, b, pb int) {
	if err := p.Link(a, pa, b, pb); err != nil && p.err == nil {
		p.err = err
	}
}

// addHosts puts hosts on the first ports of switches.
func (p *builder) addHosts(switches []int, hosts int) {
	for i, sw := range switches {
		for j := range hosts {
			p.link(p.addAdapter(i*hosts+j, 0, 1, new(mad.GUID)), 1, sw, j+1)
		}
	}
}

func (p *builder) build() (*fabric.Fabric, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.Build(), nil
}

func nodeInfo(t mad.NodeType, ports int, node, port mad.GUID, device uint16, partitions uint16) mad.NodeInfo {
	return mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1,
		NodeType: t, NumPorts: uint8(ports),
		SystemImageGUID: node, NodeGUID: node, PortGUID: port,
		PartitionCap: partitions, DeviceID: device, VendorID: vendorID, LocalPortNum: 1,
	}
}

// tree is a parallel-ports generalised fat tree (Zahavi, "Fat-trees routing
// and node ordering", 2012): nodes of level i-1 have W[i-1] parents of level i,
// those have M[i-1] children, and there are P[i-1] cables between each such pair.
// Level 0 are the adapters. M, W and P have equal lengths.
type tree struct {
	M, W, P []int
	// Rails is the number of adapters of each host; 0 and 1: one. In each group of Rails
	// leaves, adapter r of every host is at leaf r.
	Rails int
}

// fatTree is the full-bisection tree of switches with k ports, an even number:
// switches of the top level have all ports down, the others half down, half up.
func fatTree(k, levels int) tree {
	var t tree
	for i := range levels {
		down, up := k/2, k/2
		if i == 0 {
			up = 1
		}
		if i == levels-1 {
			down = k
		}
		t.M, t.W, t.P = append(t.M, down), append(t.W, up), append(t.P, 1)
	}
	return t
}

// Build makes the tree. A node of level i has number a*width+b, where width is the
// product of W[:i]: a is the subtree below the switches above it, b, from 0 to
// width-1, the node within the subtree.
func (t tree) Build() (*fabric.Fabric, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	p := &builder{Builder: fabric.NewBuilder()}
	levels := len(t.M)
	ids := make([][]int, levels+1)
	for level := 1; level <= levels; level++ {
		for i := range t.count(level) {
			name := fmt.Sprintf("%s-%d", switchName(level, levels), i+1)
			ids[level] = append(ids[level], p.addSwitch(name, t.down(level)+t.up(level)))
		}
	}
	ids[0] = t.addHosts(p)
	for level, children := range ids[:levels] {
		m, w, cables := t.M[level], t.W[level], t.P[level]
		width := lidProduct(t.W[:level])
		for i, child := range children {
			a, b := i/width, i%width
			for up := range w {
				parent := ids[level+1][a/m*width*w+up*width+b]
				for c := range cables {
					p.link(child, t.down(level)+c*w+up+1, parent, c*m+a%m+1)
				}
			}
		}
	}
	return p.build()
}

// addHosts adds the adapters, host by host, and returns them by number.
func (t tree) addHosts(p *builder) []int {
	rails, m := max(t.Rails, 1), t.M[0]
	ids := make([]int, t.count(0))
	for host := range len(ids) / rails {
		group, place := host/m, host%m
		var image mad.GUID
		for r := range rails {
			ids[(group*rails+r)*m+place] = p.addAdapter(host, r, t.up(0), &image)
		}
	}
	return ids
}

// count is the number of nodes of a level.
func (t tree) count(level int) int { return lidProduct(t.M[level:], t.W[:level]) }

// down and up are the numbers of ports of a level's nodes.
func (t tree) down(level int) int {
	if level == 0 {
		return 0
	}
	return t.M[level-1] * t.P[level-1]
}

func (t tree) up(level int) int {
	if level == len(t.M) {
		return 0
	}
	return t.W[level] * t.P[level]
}

// check returns an error if the tree does not fit into a subnet.
func (t tree) check() error {
	lids := 0
	for level := range len(t.M) + 1 {
		n := t.count(level)
		if n < 0 {
			return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
		}
		if level == 0 {
			n *= t.up(0)
		}
		if lids += n; lids > maxLIDs {
			return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
		}
		if ports := t.down(level) + t.up(level); ports > maxSwitchPorts {
			return fmt.Errorf("nodes with %d ports, more than %d", ports, maxSwitchPorts)
		}
	}
	if leaves := t.count(0) / t.M[0]; t.Rails > 1 && leaves%t.Rails != 0 {
		return fmt.Errorf("%s, but each host needs a group of %d, one for each rail", plural.Count(leaves, "leaf", "leaves"), t.Rails)
	}
	return nil
}

// switchName is the name of the switches of a level.
func switchName(level, levels int) string {
	switch {
	case level == 1:
		return "leaf"
	case level == levels && levels > 2:
		return "core"
	case level == 2:
		return "spine"
	}
	return fmt.Sprintf("spine%d", level-1)
}

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

// Build makes the lattice. A switch's first ports lead to its hosts, the next ones to its
// neighbours, dimension by dimension.
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
	for i := range lidProduct(l.Dims) {
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
	return checkSize(lidProduct(l.Dims), l.Hosts, ports, far)
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
// dimension d; it is 1 for the last dimension.
func (l lattice) stride(d int) int { return lidProduct(l.Dims[d+1:]) }

// coordinate of switch i in dimension d.
func (l lattice) coordinate(i, d int) int { return i / l.stride(d) % l.Dims[d] }

// neighbours are the coordinates to which coordinate x of a dimension of n is
// linked, by port; -1: no cable. All switches order their ports alike:
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

// ring makes a ring of n switches, each with its hosts. Two switches have one
// cable, one has none.
func ring(n, hosts int) (*fabric.Fabric, error) {
	if err := checkSize(n, hosts, hosts+2, n/2); err != nil {
		return nil, err
	}
	p := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for i := range n {
		switches = append(switches, p.addSwitch(fmt.Sprintf("switch-%d", i+1), hosts+2))
	}
	p.addHosts(switches, hosts)
	for i, sw := range switches {
		if next := (i + 1) % n; next > i || n > 2 {
			p.link(sw, hosts+2, switches[next], hosts+1)
		}
	}
	return p.build()
}

// randomRegular returns a random regular graph of n switches, each with cables to degree
// others, and its hosts.
func randomRegular(n, degree, hosts int, seed int64) (*fabric.Fabric, error) {
	switch {
	case degree >= n:
		return nil, fmt.Errorf("%d switches, but cables from each to %d others", n, degree)
	case n*degree%2 != 0:
		return nil, fmt.Errorf("%d switches with %d cables each: the product must be even", n, degree)
	}
	if err := checkSize(n, hosts, degree+hosts, 0); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	var cables [][2]int
	for try, paired := 0, false; !paired; try++ {
		if try == 100 {
			return nil, errors.New("no such network was found; try another seed")
		}
		cables, paired = pairRandomly(r, n, degree)
	}
	p := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for i := range n {
		switches = append(switches, p.addSwitch(fmt.Sprintf("switch-%d", i+1), degree+hosts))
	}
	p.addHosts(switches, hosts)
	next := slices.Repeat([]int{hosts + 1}, n)
	for _, c := range cables {
		p.link(switches[c[0]], next[c[0]], switches[c[1]], next[c[1]])
		next[c[0]]++
		next[c[1]]++
	}
	return p.build()
}

// pairRandomly chooses random pairs of different switches, none twice, until each
// has degree cables; false if the last ones cannot be paired (Steger, Wormald,
// "Generating random regular graphs quickly", 1999).
func pairRandomly(r *rand.Rand, n, degree int) (cables [][2]int, paired bool) {
	var points []int
	for i := range n {
		for range degree {
			points = append(points, i)
		}
	}
	linked := map[[2]int]bool{}
	for misses := 0; len(points) > 0; {
		i, j := r.IntN(len(points)), r.IntN(len(points))
		c := [2]int{min(points[i], points[j]), max(points[i], points[j])}
		if c[0] == c[1] || linked[c] {
			if misses++; misses > 100*n*degree {
				return nil, false
			}
			continue
		}
		misses = 0
		linked[c] = true
		cables = append(cables, c)
		for _, k := range []int{max(i, j), min(i, j)} {
			points[k] = points[len(points)-1]
			points = points[:len(points)-1]
		}
	}
	slices.SortFunc(cables, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return cables, true
}

// linkGroups links groups evenly, each with so many cables to others: in each round, one cable
// between each two groups that have one left. end returns the switch and the port of a cable.
func (d *builder) linkGroups(groups, cables int, end func(g, cable int) (n, port int)) {
	used := make([]int, groups)
	for linked := true; linked && groups > 1; {
		linked = false
		for g := range groups {
			for o := g + 1; o < groups; o++ {
				x, y := used[g], used[o]
				if x == cables || y == cables {
					continue
				}
				used[g], used[o], linked = x+1, y+1, true
				n, port := end(g, x)
				m, far := end(o, y)
				d.link(n, port, m, far)
			}
		}
	}
}

// checkGroups returns the number of groups, 0 being the largest, if the cables of each lead to all others.
func checkGroups(groups, cables int) (int, error) {
	if groups > cables+1 {
		return 0, fmt.Errorf("%d groups, but the %d cables of one lead to no more than %d", groups, cables, cables)
	}
	if groups == 0 {
		groups = cables + 1
	}
	return groups, nil
}

// dragonfly makes groups of a switches that are all linked to each other, with
// p hosts each, and h cables each to other groups (Kim, Dally, Scott, Abts,
// "Technology-driven, highly-scalable dragonfly topology", 2008). The cables
// between groups are distributed evenly, by an arrangement. groups 0 is the largest number.
func dragonfly(a, p, h, groups int, arrange arrangement, seed int64) (*fabric.Fabric, error) {
	groups, err := checkGroups(groups, a*h)
	if err != nil {
		return nil, err
	}
	if groups > 1 && arrange.offset != nil && a*h%(groups-1) != 0 {
		return nil, fmt.Errorf("%d cables of a group, which are not a multiple of the %d other groups: only the arrangements absolute and random have them", a*h, groups-1)
	}
	if err := checkSize(lidProduct([]int{a, groups}), p, p+a-1+h, 3); err != nil {
		return nil, err
	}
	d := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for g := range groups {
		for s := range a {
			switches = append(switches, d.addSwitch(fmt.Sprintf("group-%d switch-%d", g+1, s+1), p+a-1+h))
		}
	}
	d.addHosts(switches, p)
	for g := range groups {
		for s := range a {
			for t := s + 1; t < a; t++ { // a switch's ports are in the order of its neighbours
				d.link(switches[g*a+s], p+t, switches[g*a+t], p+s+1)
			}
		}
	}
	end := func(g, cable int) (n, port int) { return switches[g*a+cable/h], p + a + cable%h }
	switch {
	case arrange.offset != nil:
		d.linkByOffset(groups, a*h, arrange.offset, end)
	case arrange.shuffled:
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		places := make([][]int, groups)
		for g := range places {
			places[g] = random.Perm(a * h)
		}
		d.linkGroups(groups, a*h, func(g, cable int) (n, port int) { return end(g, places[g][cable]) })
	default:
		d.linkGroups(groups, a*h, end)
	}
	return d.build()
}

// arrangement is which of the cables of a group lead to which groups: Hastings, Rincon-Cruz, Spehlmann,
// Meyers, Xu, Bunde, Leung, "Comparing global link arrangements for Dragonfly networks", 2015.
type arrangement struct {
	name string
	// offset is how many groups further cable k of a group leads, where there are n others.
	offset   func(k, n int) int
	shuffled bool // the cables of each group are in random order
}

var arrangements = []arrangement{
	{name: "absolute"}, // cable k leads to group k, or k+1 from there on
	{name: "relative", offset: func(k, n int) int { return k + 1 }},
	{name: "circulant", offset: func(k, n int) int { // to the next group, the one before, and so on
		if k%2 == 1 {
			return n + 1 - (k/2 + 1)
		}
		return k/2 + 1
	}},
	{name: "random", shuffled: true},
}

// linkByOffset links groups by cables that lead to a group so many groups further: each other group gets
// one, then a second, and so on. cables are a multiple of the number of other groups.
func (d *builder) linkByOffset(groups, cables int, offset func(k, n int) int, end func(g, cable int) (n, port int)) {
	others := groups - 1
	for round := 0; round < cables && others > 0; round += others {
		back := make([]int, groups) // by offset: the cable
		for k := range others {
			back[offset(k, others)] = k
		}
		for g := range groups {
			for o := g + 1; o < groups; o++ {
				n, port := end(g, round+back[o-g])
				m, far := end(o, round+back[groups-(o-g)])
				d.link(n, port, m, far)
			}
		}
	}
}

// dragonflyPlus makes groups of leaves with p hosts each and spines, each leaf linked to each spine
// of its group, and each spine by h cables to spines of other groups (Shpiner, Haramaty, Eliad,
// Zdornov, Gafni, Zahavi, "Dragonfly+: low cost topology for scaling datacenters", 2017). The
// cables between groups are distributed evenly. groups 0 is the largest number.
func dragonflyPlus(leaves, spines, p, h, groups int) (*fabric.Fabric, error) {
	groups, err := checkGroups(groups, spines*h)
	if err != nil {
		return nil, err
	}
	// Every switch may have as many LIDs behind it as a leaf.
	if err := checkSize(lidProduct([]int{leaves + spines, groups}), p, max(p+spines, leaves+h), 5); err != nil {
		return nil, err
	}
	d := &builder{Builder: fabric.NewBuilder()}
	var low, high []int
	for g := range groups {
		for s := range leaves {
			low = append(low, d.addSwitch(fmt.Sprintf("group-%d leaf-%d", g+1, s+1), p+spines))
		}
		for s := range spines {
			high = append(high, d.addSwitch(fmt.Sprintf("group-%d spine-%d", g+1, s+1), leaves+h))
		}
	}
	d.addHosts(low, p)
	for g := range groups {
		for l := range leaves {
			for s := range spines {
				d.link(low[g*leaves+l], p+s+1, high[g*spines+s], l+1)
			}
		}
	}
	d.linkGroups(groups, spines*h, func(g, cable int) (n, port int) { return high[g*spines+cable/h], leaves + 1 + cable%h })
	return d.build()
}

// slimFly links two halves of q*q switches, a McKay-Miller-Siran graph, in which any two switches are at most
// two links apart (Besta, Hoefler, "Slim Fly: a cost effective low-diameter network topology", 2014).
// q is an odd prime. Switch x, y of the first half is linked to switch m, c of the second where y = m*x + c.
func slimFly(q, hosts int) (*fabric.Fabric, error) {
	first, second, err := slimFlySets(q)
	if err != nil {
		return nil, err
	}
	ports := hosts + len(first) + q
	if err := checkSize(2*q*q, hosts, ports, 2); err != nil {
		return nil, err
	}
	d := &builder{Builder: fabric.NewBuilder()}
	var switches []int
	for half := range 2 {
		for x := range q {
			for y := range q {
				switches = append(switches, d.addSwitch(fmt.Sprintf("switch-%d-%d-%d", half+1, x+1, y+1), ports))
			}
		}
	}
	d.addHosts(switches, hosts)
	next := slices.Repeat([]int{hosts + 1}, len(switches))
	link := func(a, b int) {
		d.link(switches[a], next[a], switches[b], next[b])
		next[a]++
		next[b]++
	}
	for half, set := range [][]int{first, second} {
		for x := range q {
			for y := range q {
				for z := y + 1; z < q; z++ {
					if slices.Contains(set, z-y) { // with a number, a set has its negative
						link(half*q*q+x*q+y, half*q*q+x*q+z)
					}
				}
			}
		}
	}
	for x := range q {
		for m := range q {
			for c := range q {
				link(x*q+(m*x+c)%q, q*q+m*q+c)
			}
		}
	}
	return d.build()
}

// slimFlySets are the differences modulo q, an odd prime, by which switches of one column of the halves are
// linked: powers of a primitive element.
func slimFlySets(q int) (first, second []int, err error) {
	prime := q > 2
	for n := 2; n*n <= q; n++ {
		prime = prime && q%n > 0
	}
	if !prime || q > maxSwitchPorts {
		return nil, nil, fmt.Errorf("q is %d, want an odd prime, at most %d", q, maxSwitchPorts)
	}
	var powers []int // of the least primitive element
	for e := 2; len(powers) < q-1; e++ {
		powers = powers[:0]
		for x := 1; len(powers) == 0 || x != 1; x = x * e % q {
			powers = append(powers, x)
		}
	}
	if q%4 == 1 {
		for n := 0; n < q-1; n += 2 {
			first, second = append(first, powers[n]), append(second, powers[n+1])
		}
		return first, second, nil
	}
	half := (q + 1) / 2
	for n := 0; n < half-1; n += 2 {
		first, second = append(first, powers[n], powers[n+half-1]), append(second, powers[n+1], powers[(n+half)%(q-1)])
	}
	return first, second, nil
}
