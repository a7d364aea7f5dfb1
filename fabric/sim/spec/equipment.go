package spec

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// equipment is the devices of a topology. The zero value leaves it unchanged.
type equipment struct {
	Generation generation
	// Split puts adapters at the two halves of a switch's ports, which have half the lanes.
	// Halves n/1 and n/2 of port n have numbers 2n-1 and 2n; a port that is not split has
	// number 2n-1.
	Split bool
	// Aggregation gives each switch an aggregation node (SHARP) at its next port.
	Aggregation bool
	// Planes is the number of planes: 1 (also 0), 2 or 4. Each plane has switches of its own,
	// and each port of an adapter becomes one port a plane, with its share of the lanes. The
	// switches of a place are linked to each other by ports for management (FNM), their last
	// ones; which ports real switches use is not public.
	Planes int
}

// generation is a generation of devices.
type generation uint8

const (
	asGenerated   generation = iota // the devices of the other generators, without a speed
	generationHDR                   // Quantum and ConnectX-6
	generationNDR                   // Quantum-2, with two ports in a cage, and ConnectX-7
	generationXDR                   // Quantum-3 and ConnectX-8
)

// generations are the PCI identifiers of devices, and their speed.
var generations = [...]struct {
	switches, adapters uint16
	speed              mad.PortInfo
}{
	generationHDR: {switchDevice, caDevice, mad.PortInfo{LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtHDR}},
	generationNDR: {0xd2f2, 0x1021, mad.PortInfo{LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtNDR}},
	generationXDR: {0xd2f4, 0x1023, mad.PortInfo{LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtNDR, LinkSpeedExtActive2: mad.LinkSpeedExt2XDR}},
}

const (
	aggregationName   = "Mellanox Technologies Aggregation Node" // as they describe themselves
	aggregationDevice = 0xcf09
	aggregationGUID   = 1 << 29 // added to the GUID of the switch: they follow the adapters
	planeGUID         = 1 << 24 // added to the GUID of the switch in the plane before
)

// equip returns f, which a generator has made, with equipment.
func equip(f *fabric.Fabric, e equipment) (*fabric.Fabric, error) {
	e.Planes = max(e.Planes, 1)
	if e == (equipment{Planes: 1}) {
		return f, nil
	}
	x := &equipper{equipment: e, from: f, to: fabric.NewBuilder(), ends: make([][]equippedPort, len(f.Ports()))}
	if err := x.check(); err != nil {
		return nil, err
	}
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.IsSwitch() {
			x.addSwitches(n)
		} else {
			x.addAdapter(n)
		}
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil && p.ID() < p.Peer().ID() {
			x.addLinks(p)
		}
	}
	for _, s := range x.switches {
		x.addInner(s)
	}
	return x.to.Build(), x.err
}

// equipper builds a fabric with equipment.
type equipper struct {
	equipment
	from     *fabric.Fabric
	to       *fabric.Builder
	ends     [][]equippedPort // of each port of from, by plane
	switches []switchPlace
	err      error // the first
}

// equippedPort is a port of the new fabric.
type equippedPort struct{ handle, num int }

// switchPlace is a switch of the old fabric: its switches, by plane, and the first of their ports
// for other purposes than its links.
type switchPlace struct {
	handles []int
	guid    mad.GUID
	next    int
}

// numbers returns the new numbers of a switch's ports, and how many there are.
func (e *equipment) numbers(n *fabric.Node) (nums []int, count int) {
	nums = make([]int, n.NumPorts()+1)
	for num := 1; num <= n.NumPorts(); num++ {
		count++
		if e.Split && !leadsToAdapter(n.Port(num)) {
			count += 1 - count%2 // the next odd number
			nums[num] = count
			count++
			continue
		}
		nums[num] = count
	}
	return nums, count
}

// leadsToAdapter reports whether p has a cable to a node that is not a switch.
func leadsToAdapter(p *fabric.Port) bool { return p.Peer() != nil && !p.Peer().Node().IsSwitch() }

// inner returns the number of a switch's ports that have no link of the topology.
func (e *equipment) inner() (n int) {
	if e.Aggregation {
		n++
	}
	return n + e.Planes - 1
}

func (e *equipment) lanes(split bool) int {
	if split {
		return 4 / e.Planes / 2
	}
	return 4 / e.Planes
}

func (x *equipper) check() error {
	if x.Split && x.lanes(true) == 0 {
		return fmt.Errorf("ports have one lane in each of %d planes, and cannot be split", x.Planes)
	}
	lids := 0
	for i := range x.from.Nodes() {
		n := &x.from.Nodes()[i]
		if !n.IsSwitch() {
			lids += n.NumPorts() * x.Planes
			continue
		}
		_, ports := x.numbers(n)
		if ports += x.inner(); ports > maxSwitchPorts {
			return fmt.Errorf("switches with %d ports, more than %d", ports, maxSwitchPorts)
		}
		lids += x.Planes
		if x.Aggregation {
			lids += x.Planes
		}
	}
	if lids > maxLIDs {
		return fmt.Errorf("more than the %d LIDs of a subnet", maxLIDs)
	}
	return nil
}

// addSwitches adds the switches of all planes at the place of n.
func (x *equipper) addSwitches(n *fabric.Node) {
	nums, count := x.numbers(n)
	s := switchPlace{guid: n.GUID(), next: count + 1}
	for plane := range x.Planes {
		info, name := *n.Info(), n.Name()
		info.NumPorts = uint8(count + x.inner())
		info.NodeGUID += mad.GUID(plane * planeGUID)
		info.PortGUID = info.NodeGUID
		if x.Planes > 1 {
			name = fmt.Sprintf("%s plane-%d", name, plane+1)
		}
		if x.Generation != asGenerated {
			info.DeviceID = generations[x.Generation].switches
		}
		h := x.to.AddNode(fabric.NodeSpec{Info: info, Name: name})
		s.handles = append(s.handles, h)
		x.setRate(equippedPort{h, 0}, 4)
		for p := range n.Ports() {
			x.ends[p.ID()] = append(x.ends[p.ID()], equippedPort{h, nums[p.Num()]})
		}
	}
	x.switches = append(x.switches, s)
}

func (x *equipper) addAdapter(n *fabric.Node) {
	info := *n.Info()
	info.NumPorts = uint8(n.NumPorts() * x.Planes)
	if x.Generation != asGenerated {
		info.DeviceID = generations[x.Generation].adapters
	}
	h := x.to.AddNode(fabric.NodeSpec{Info: info, Name: n.Name()})
	for p := range n.Ports() {
		for plane := range x.Planes {
			num := (p.Num()-1)*x.Planes + plane + 1
			x.to.SetPortGUID(h, num, n.GUID()+mad.GUID(num))
			x.ends[p.ID()] = append(x.ends[p.ID()], equippedPort{h, num})
		}
	}
}

// addLinks adds the link at p in all planes.
func (x *equipper) addLinks(p *fabric.Port) {
	lanes := x.lanes(x.Split && (leadsToAdapter(p) || leadsToAdapter(p.Peer())))
	for plane := range x.Planes {
		x.link(x.ends[p.ID()][plane], x.ends[p.Peer().ID()][plane], lanes)
	}
}

// addInner adds the aggregation nodes of a place, and links its switches to each other.
func (x *equipper) addInner(s switchPlace) {
	if x.Aggregation {
		for plane, h := range s.handles {
			guid := s.guid + mad.GUID(plane*planeGUID) + aggregationGUID
			info := nodeInfo(mad.NodeTypeCA, 1, guid, guid, aggregationDevice, caPartitions)
			info.SystemImageGUID = s.guid
			an := x.to.AddNode(fabric.NodeSpec{Info: info, Name: aggregationName})
			x.link(equippedPort{h, s.next}, equippedPort{an, 1}, 4)
		}
		s.next++
	}
	for a := range s.handles {
		for b := range a { // port s.next+b leads to plane b, or to the next one from its own on
			pa, pb := equippedPort{s.handles[a], s.next + b}, equippedPort{s.handles[b], s.next + a - 1}
			x.link(pa, pb, 4)
			x.markFNM(pa)
			x.markFNM(pb)
		}
	}
}

func (x *equipper) link(a, b equippedPort, lanes int) {
	if err := x.to.Link(a.handle, a.num, b.handle, b.num); err != nil && x.err == nil {
		x.err = err
	}
	x.setRate(a, lanes)
	x.setRate(b, lanes)
}

// setRate gives a port its width and, with a generation, its speed.
func (x *equipper) setRate(at equippedPort, lanes int) {
	info := mad.PortInfo{LinkSpeedActive: mad.LinkSpeedQDR, LinkSpeedExtActive: mad.LinkSpeedExtHDR}
	if x.Generation != asGenerated {
		info = generations[x.Generation].speed
	}
	info.LinkWidthActive = map[int]mad.LinkWidth{1: mad.LinkWidth1x, 2: mad.LinkWidth2x, 4: mad.LinkWidth4x}[lanes]
	x.to.SetPort(at.handle, at.num, &info)
}

// markFNM notes that a port is for the management of the network.
func (x *equipper) markFNM(at equippedPort) {
	data := make([]byte, mad.AttrExtendedPortInfo.Size)
	data[fnmBit/8] = 0x80
	x.to.AddAnswer(fabric.Answer{Node: int32(at.handle), Port: int16(at.num), Class: mad.ClassSubn, ID: mad.AttrExtendedPortInfo.ID, Modifier: uint32(at.num), Data: data})
}

const fnmBit = 352 // ExtendedPortInfo.IsFNMPort

// removeParts returns f without some switches and cables between switches, chosen by the seed,
// and without hosts that have no cable left. switches and cables return, for the number
// that exists, how many to remove, from 0 to all; cables is called with the number of
// cables between the remaining switches.
func removeParts(f *fabric.Fabric, seed int64, switches, cables func(all int) int) *fabric.Fabric {
	r := rand.New(rand.NewPCG(uint64(seed), 2))
	gone := map[*fabric.Node]bool{}
	var all []*fabric.Node
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.IsSwitch() {
			all = append(all, n)
		}
	}
	for _, n := range chooseRandom(r, all, switches(len(all))) {
		gone[n] = true
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if had, has := countCables(n, gone); !n.IsSwitch() && had > 0 && has == 0 {
			gone[n] = true
		}
	}
	var links []*fabric.Port
	for _, n := range all {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.ID() > p.ID() && q.Node().IsSwitch() && !gone[n] && !gone[q.Node()] {
				links = append(links, p)
			}
		}
	}
	cut := map[*fabric.Port]bool{}
	for _, p := range chooseRandom(r, links, cables(len(links))) {
		cut[p] = true
	}
	return withoutParts(f, gone, cut)
}

// countCables counts the cables of n, before and after the nodes are gone.
func countCables(n *fabric.Node, gone map[*fabric.Node]bool) (had, has int) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil {
			had++
			if !gone[q.Node()] {
				has++
			}
		}
	}
	return had, has
}

func chooseRandom[T any](r *rand.Rand, list []T, n int) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}

// renumber returns f, which a generator has made, with the GUIDs of nodes that have equally many ports
// exchanged, and the cables of switches in other ports, at random.
func renumber(f *fabric.Fabric, seed int64) *fabric.Fabric {
	type kind struct {
		of    mad.NodeType
		ports int
	}
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	var kinds []kind // in the order of the fabric
	alike := map[kind][]*fabric.Node{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		k := kind{n.Type(), n.NumPorts()}
		if alike[k] == nil {
			kinds = append(kinds, k)
		}
		alike[k] = append(alike[k], n)
	}
	b := fabric.NewBuilder()
	handles, ports := map[*fabric.Node]int{}, map[*fabric.Node][]int{}
	for _, k := range kinds {
		for i, other := range chooseRandom(r, alike[k], len(alike[k])) {
			n := alike[k][i]
			info := *n.Info()
			info.NodeGUID, info.PortGUID, info.SystemImageGUID = other.GUID(), other.Info().PortGUID, other.Info().SystemImageGUID
			h := b.AddNode(fabric.NodeSpec{Info: info, Name: n.Name(), FileID: n.FileID(), Switch: n.SwitchInfo()})
			handles[n] = h
			for num := range n.NumPorts() + 1 {
				ports[n] = append(ports[n], num)
			}
			if n.IsSwitch() {
				r.Shuffle(n.NumPorts(), func(i, j int) { p := ports[n][1:]; p[i], p[j] = p[j], p[i] })
			}
			for num, at := range ports[n] {
				p := n.Port(num)
				if p == nil {
					continue
				}
				if !n.IsSwitch() || num == 0 {
					b.SetPortGUID(h, at, other.Port(num).GUID())
				}
				if p.Info() != nil {
					b.SetPort(h, at, p.Info())
				}
			}
		}
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil && p.ID() < p.Peer().ID() {
			// It cannot fail: f has this link.
			_ = b.Link(handles[p.Node()], ports[p.Node()][p.Num()], handles[p.Peer().Node()], ports[p.Peer().Node()][p.Peer().Num()])
		}
	}
	return b.Build()
}

// withoutParts is f without some nodes and cables.
func withoutParts(f *fabric.Fabric, gone map[*fabric.Node]bool, cut map[*fabric.Port]bool) *fabric.Fabric {
	b := fabric.NewBuilder()
	handles := map[*fabric.Node]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if gone[n] {
			continue
		}
		h := b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name(), FileID: n.FileID(), Switch: n.SwitchInfo()})
		handles[n] = h
		for num := 0; num <= n.NumPorts(); num++ {
			p := n.Port(num)
			if p == nil {
				continue
			}
			if !n.IsSwitch() || num == 0 {
				b.SetPortGUID(h, num, p.GUID())
			}
			if p.Info() != nil {
				b.SetPort(h, num, p.Info())
			}
		}
		for _, a := range f.AnswersOf(i) {
			a.Node = int32(h)
			b.AddAnswer(a)
		}
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || cut[p] || gone[p.Node()] || gone[q.Node()] {
			continue
		}
		// It cannot fail: f has this link.
		_ = b.Link(handles[p.Node()], p.Num(), handles[q.Node()], q.Num())
	}
	for _, p := range f.Problems() {
		if p.Kind == fabric.ProblemAssignedLIDs { // Build finds the others again
			b.AddProblem(p)
		}
	}
	return b.Build()
}
