package sim

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
)

// The generated nodes are NVIDIA's Quantum switch and ConnectX-6 adapter, by
// their PCI identifiers, with GUIDs like theirs.
const (
	vendorID       = 0x02c9
	switchDevice   = 0xd2f0
	caDevice       = 0x101b
	caPartitions   = 128
	swPartitions   = 32
	firstSwitch    = mad.GUID(0x0002c903_00100000)
	firstCA        = mad.GUID(0x0002c903_10000000)
	guidStride     = 0x10 // a node's ports have GUIDs of their own
	maxSwitchPorts = 254  // IBA 14.2.5.3: 255 is no port number
)

// Limits of a subnet.
const (
	maxLIDs = int(mad.MaxUnicastLID) // 49,151
	maxHops = mad.MaxHops
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

func (p *builder) addCA(name string, ports int) int {
	p.cas++
	guid := firstCA + mad.GUID(p.cas-1)*guidStride
	id := p.AddNode(fabric.NodeSpec{
		Name: name,
		Info: nodeInfo(mad.NodeTypeCA, ports, guid, guid+1, caDevice, caPartitions),
	})
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
// and node ordering", 2012): nodes of level i-1 have w[i-1] parents of level i,
// those have m[i-1] children, and there are p[i-1] cables between each such pair.
// Level 0 are the hosts.
type tree struct{ m, w, p []int }

// fatTree is the full-bisection tree of switches with k ports: those of the top
// level have all ports down, the others half down, half up.
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
		t.m, t.w, t.p = append(t.m, down), append(t.w, up), append(t.p, 1)
	}
	return t
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

// count is the number of nodes of a level.
func (t tree) count(level int) int { return product(t.m[level:], t.w[:level]) }

// down and up are the numbers of ports of a level's nodes.
func (t tree) down(level int) int {
	if level == 0 {
		return 0
	}
	return t.m[level-1] * t.p[level-1]
}

func (t tree) up(level int) int {
	if level == len(t.m) {
		return 0
	}
	return t.w[level] * t.p[level]
}

// check returns an error if the tree does not fit into a subnet.
func (t tree) check() error {
	lids := 0
	for level := range len(t.m) + 1 {
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
	return nil
}

// build makes the tree. A node of level i has number a*W+b, where W is the product
// of w[:i]: a is the subtree below the switches above it, b, from 0 to W-1, the
// node within the subtree.
func (t tree) build() (*fabric.Fabric, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	p := &builder{Builder: fabric.NewBuilder()}
	levels := len(t.m)
	ids := make([][]int, levels+1)
	for level := 1; level <= levels; level++ {
		for i := range t.count(level) {
			name := fmt.Sprintf("%s-%d", switchName(level, levels), i+1)
			ids[level] = append(ids[level], p.addSwitch(name, t.down(level)+t.up(level)))
		}
	}
	for i := range t.count(0) {
		ids[0] = append(ids[0], p.addCA(hostName(i), t.up(0)))
	}
	for level, children := range ids[:levels] {
		m, w, cables := t.m[level], t.w[level], t.p[level]
		width := product(t.w[:level])
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

func hostName(i int) string { return fmt.Sprintf("node-%04d HCA-1", i+1) }

// ring makes a ring of n switches, each with its hosts. Two switches have one
// cable, one has none.
func ring(n, hosts int) (*fabric.Fabric, error) {
	switch {
	case n*(hosts+1) > maxLIDs:
		return nil, fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
	case hosts+2 > maxSwitchPorts:
		return nil, fmt.Errorf("switches with %d ports, more than %d", hosts+2, maxSwitchPorts)
	case n/2 > maxHops-2:
		return nil, fmt.Errorf("hosts %d hops apart, more than the %d of a directed route", n/2+2, maxHops)
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
