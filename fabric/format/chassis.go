package format

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// WriteChassis writes a topology as ibnetdiscover -g prints it: nodes by chassis, those of a
// director by slot, then all others (rdma-core libibnetdisc/chassis.c group_nodes,
// infiniband-diags/ibnetdiscover.c dump_topology). Chassis are numbered in the order of f. It
// differs in two ways: routers in a chassis have records, which -g leaves out; and devices of
// Voltaire and Xsigo, whose chassis the tool derives from cables, are in none.
func WriteChassis(w io.Writer, f *fabric.Fabric) error {
	d := recordWriter{Writer: bufio.NewWriter(w), ids: nodeIDs(f), group: groupByChassis(f)}
	d.begin(f)
	for _, c := range d.group.list {
		d.printf("\nChassis %d (guid 0x%x)\n", c.number, c.guid)
		for _, part := range []struct {
			title string
			in    func(n *fabric.Node, s slot) bool
		}{
			{"Spine Nodes", func(_ *fabric.Node, s slot) bool { return s.kind == spineSlot }},
			{"Line Nodes", func(_ *fabric.Node, s slot) bool { return s.kind == lineSlot }},
			{"Chassis Switches", func(n *fabric.Node, s slot) bool { return s.kind == noSlot && n.IsSwitch() }},
			{"Chassis CAs", func(n *fabric.Node, _ slot) bool { return n.Type() == mad.NodeTypeCA }},
			{"Chassis Routers", func(n *fabric.Node, _ slot) bool { return n.Type() == mad.NodeTypeRouter }},
		} {
			var nodes []*fabric.Node
			for _, n := range c.nodes {
				if part.in(n, d.group.slots[n.ID()]) {
					nodes = append(nodes, n)
				}
			}
			if part.title == "Chassis Routers" && nodes == nil {
				continue
			}
			slices.SortStableFunc(nodes, func(a, b *fabric.Node) int {
				return d.group.slots[a.ID()].number - d.group.slots[b.ID()].number
			})
			d.printf("\n# %s", part.title)
			for _, n := range nodes {
				d.node(n)
			}
		}
	}
	d.printf("\nNon-Chassis Nodes\n")
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; d.group.of[n.ID()] == nil {
			d.node(n)
		}
	}
	return d.Flush()
}

// chassis is a group of nodes with one SystemImageGUID.
type chassis struct {
	number int // from 1
	guid   uint64
	nodes  []*fabric.Node
}

// grouping is the chassis of the nodes of a fabric, by the ID of the node.
type grouping struct {
	list  []*chassis
	of    []*chassis // nil: in none
	slots []slot
}

// slot is the place of a switch in a director.
type slot struct {
	kind   slotKind
	number int
	chip   int
	system string // its type: SX6536
}

type slotKind uint8

const (
	noSlot slotKind = iota
	spineSlot
	lineSlot
)

// String returns the comment of ibnetdiscover: "SX6536 Line 3 Chip 1".
func (s slot) String() string {
	if s.kind == noSlot {
		return ""
	}
	return s.system + " " + []string{spineSlot: "Spine", lineSlot: "Line"}[s.kind] + " " + strconv.Itoa(s.number) + " Chip " + strconv.Itoa(s.chip)
}

// panelPort returns the number of port num outside of the director; 0: it is inside, or the node is not
// in one (libibnetdisc/chassis.c fill_mellanox_chassis_record).
func (s slot) panelPort(num int) int {
	if s.kind == lineSlot && num <= panelPorts {
		return num
	}
	return 0
}

// Vendors, and the device of directors whose nodes have slots in their names
// (libibnetdisc/internal.h, chassis.h).
const (
	vendorMellanox  = 0x2c9
	vendorVoltaire  = 0x8f1
	vendorTopspin   = 0x5ad
	vendorSilver    = 0x66a // SilverStorm
	oidXsigo        = 0x001397
	deviceInfiScale = 0xbd36 // InfiniScale IV

	maxSpineSlot, maxLineSlot = 18, 36

	panelPorts = 18 // of a line, which are ports of the director
)

// groupByChassis finds the chassis of a fabric: the nodes with one SystemImageGUID, if there are at
// least two.
func groupByChassis(f *fabric.Fabric) *grouping {
	g := &grouping{of: make([]*chassis, len(f.Nodes())), slots: make([]slot, len(f.Nodes()))}
	nodes := map[uint64][]*fabric.Node{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if guid := chassisGUID(n.Info()); guid != 0 {
			nodes[guid] = append(nodes[guid], n)
		}
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		guid := chassisGUID(n.Info())
		if len(nodes[guid]) < 2 || g.of[n.ID()] != nil {
			continue
		}
		c := &chassis{number: len(g.list) + 1, guid: guid, nodes: nodes[guid]}
		g.list = append(g.list, c)
		taken := map[slot]bool{}
		for _, n := range c.nodes {
			g.of[n.ID()] = c
			if s := slotOf(n); s.kind != noSlot && !taken[slot{kind: s.kind, number: s.number}] {
				g.slots[n.ID()] = s
				taken[slot{kind: s.kind, number: s.number}] = true
			}
		}
	}
	return g
}

// chassisGUID returns what nodes of one chassis have in common; 0: the node is in none.
func chassisGUID(i *mad.NodeInfo) uint64 {
	guid := uint64(i.SystemImageGUID)
	switch {
	case i.VendorID == vendorVoltaire, guid>>40 == oidXsigo:
		return 0
	case i.VendorID == vendorTopspin, i.VendorID == vendorSilver: // byte 4 is the slot
		return guid &^ 0xff000000
	}
	return guid
}

// slotOf returns the slot in the name of a chip of a director, "MF0;NAME:TYPE/SLOT[:BOARD]/UCHIP".
func slotOf(n *fabric.Node) slot {
	name, ok := strings.CutPrefix(n.Name(), "MF0;")
	_, name, hasType := strings.Cut(name, ":")
	system, name, hasSlot := strings.Cut(name, "/")
	place, chip, hasChip := strings.Cut(name, "/U")
	if !ok || !hasType || !hasSlot || !hasChip || n.Info().VendorID != vendorMellanox || n.Info().DeviceID != deviceInfiScale {
		return slot{}
	}
	place, _, _ = strings.Cut(place, ":")
	s := slot{system: system}
	if len(place) < 2 {
		return slot{}
	}
	at, err := strconv.ParseUint(place[1:], 10, 8)
	s.number = int(at)
	unit, rest := number(chip)
	s.chip = unit
	switch {
	case err != nil || at == 0 || unit < 0 || rest != "":
		return slot{}
	case place[0] == 'S' && at <= maxSpineSlot:
		s.kind = spineSlot
	case place[0] == 'L' && at <= maxLineSlot:
		s.kind = lineSlot
	default:
		return slot{}
	}
	return s
}
