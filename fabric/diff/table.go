package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// table is an attribute whose blocks are compared as a table.
type table struct {
	attr *mad.Attribute
	kind string
	row  int // bytes
	one  string
	many string
}

// tableKinds are all of them. Counters differ always, and are not compared.
var tableKinds = []table{
	{mad.AttrPKeyTable, "table.pkeys", 2, "entry", "entries"},
	{mad.AttrSLtoVLMappingTable, "table.sl2vl", 8, "row", "rows"},
	{mad.AttrVLArbitrationTable, "table.vlarb", 2, "entry", "entries"},
	{mad.AttrMulticastForwardingTable, "table.mft", 2, "port mask", "port masks"},
}

// tables compares the tables that came with both sides, and SMInfo.
func (c *comparison) tables() {
	for i := range tableKinds {
		k := &tableKinds[i]
		var has [2]bool
		for side, f := range c.fabrics {
			has[side] = slices.ContainsFunc(f.Answers(), func(a fabric.Answer) bool { return a.Class == k.attr.Class && a.ID == k.attr.ID })
		}
		if !has[sideOld] || !has[sideNew] {
			c.lacking(k.attr.Name, has[sideOld], has[sideNew])
			continue
		}
		for id := range c.fabrics[sideOld].Nodes() {
			n := &c.fabrics[sideOld].Nodes()[id]
			if m := c.node(sideOld, n); m != nil {
				c.tablesOf(k, m, answersOf(n, k.attr), answersOf(m, k.attr))
			}
		}
	}
	c.records()
}

func answersOf(n *fabric.Node, attr *mad.Attribute) []fabric.Answer {
	var list []fabric.Answer
	for _, a := range n.Fabric().AnswersOf(n.ID()) {
		if a.Class == attr.Class && a.ID == attr.ID && len(a.Data) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// tablesOf compares the tables of node m, port by port. A port of which a side has no
// block was not read there.
func (c *comparison) tablesOf(k *table, m *fabric.Node, old, new []fabric.Answer) {
	for len(old)+len(new) > 0 {
		port := int16(255)
		for _, list := range [][]fabric.Answer{old, new} {
			if len(list) > 0 {
				port = min(port, list[0].Port)
			}
		}
		var sides [2][]fabric.Answer
		for side, list := range []*[]fabric.Answer{&old, &new} {
			n := 0
			for n < len(*list) && (*list)[n].Port == port {
				n++
			}
			sides[side], *list = (*list)[:n], (*list)[n:]
		}
		x := ofNode(k.kind, m)
		if p := m.Port(int(port)); port != fabric.NoPort && p != nil {
			x = ofPort(k.kind, p)
		}
		for side := range sides {
			if len(sides[side]) == 0 && c.linkedOn(side, m, port) {
				c.Unread = append(c.Unread, fmt.Sprintf("%s of %s: missing in %s fabric", k.attr.Name, x.Subject, sideNames[side]))
			}
		}
		if len(sides[sideOld]) == 0 || len(sides[sideNew]) == 0 {
			continue
		}
		if n := differingRows(k, sides[sideOld], sides[sideNew]); n > 0 {
			x.Effect = plural.Count(n, k.one+" differs", k.many+" differ")
			if k.attr == mad.AttrPKeyTable {
				x.Before, x.After = onlyKeys(sides[sideOld], sides[sideNew]), onlyKeys(sides[sideNew], sides[sideOld])
			}
			c.add(x)
		}
	}
}

// linkedOn reports whether the table of a port of m, a node of the newer side, should have been read
// on a side: the port has a link there. Tables of free ports are not asked for.
func (c *comparison) linkedOn(side int, m *fabric.Node, port int16) bool {
	if port == fabric.NoPort {
		return true
	}
	p := m.Port(int(port))
	if side == sideOld && p != nil {
		p = c.port(sideNew, p)
	}
	return p != nil && (p.Num() == 0 || p.Peer() != nil)
}

// differingRows counts the rows that differ in blocks of both sides, and those of
// blocks that one side has alone, unless they are 0.
func differingRows(k *table, old, new []fabric.Answer) int {
	n := 0
	for len(old)+len(new) > 0 {
		var a, b []byte
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].Modifier < new[0].Modifier:
			a, old = old[0].Data, old[1:]
		case len(old) == 0 || new[0].Modifier < old[0].Modifier:
			b, new = new[0].Data, new[1:]
		default:
			a, b, old, new = old[0].Data, new[0].Data, old[1:], new[1:]
		}
		if bytes.Equal(a, b) {
			continue
		}
		for at := 0; at < max(len(a), len(b)); at += k.row {
			if !bytes.Equal(rowAt(a, at, k.row), rowAt(b, at, k.row)) {
				n++
			}
		}
	}
	return n
}

// rowAt is a row; beyond the end of data it is 0.
func rowAt(data []byte, at, size int) []byte {
	row := make([]byte, size)
	if at < len(data) {
		copy(row, data[at:])
	}
	return row
}

// onlyKeys are the P_Keys of a table that another does not have.
func onlyKeys(of, not []fabric.Answer) string {
	other := keysOf(not)
	var list []string
	for _, key := range keysOf(of) {
		if _, ok := slices.BinarySearch(other, key); !ok {
			list = append(list, fmt.Sprintf("0x%04x", key))
		}
	}
	return listed(list, " ")
}

func keysOf(blocks []fabric.Answer) []uint16 {
	var keys []uint16
	for _, a := range blocks {
		for at := 0; at+1 < len(a.Data); at += 2 {
			if key := binary.BigEndian.Uint16(a.Data[at:]); key != 0 {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// elsewhere are records of nodes and links, compared elsewhere, and of the administrator
// itself.
var elsewhere = []mad.AttributeID{mad.AttrNodeRecord.ID, mad.AttrLinkRecord.ID, mad.AttrSubnAdmClassPortInfo.ID}

// records compares the records of the subnet administrator, as sets.
func (c *comparison) records() {
	var sides [2]map[mad.AttributeID][]string
	for side, f := range c.fabrics {
		sides[side] = map[mad.AttributeID][]string{}
		for _, a := range f.AnswersOf(fabric.NoNode) {
			if len(a.Data) == 0 || slices.Contains(elsewhere, a.ID) {
				continue
			}
			sides[side][a.ID] = append(sides[side][a.ID], string(a.Data))
		}
	}
	if len(sides[sideOld]) == 0 || len(sides[sideNew]) == 0 {
		c.lacking("records of the subnet administrator", len(sides[sideOld]) > 0, len(sides[sideNew]) > 0)
		return
	}
	ids := slices.AppendSeq(slices.Collect(maps.Keys(sides[sideOld])), maps.Keys(sides[sideNew]))
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		attr := mad.Lookup(mad.ClassSubnAdm, id)
		if attr == nil {
			continue
		}
		gone, come := without(sides[sideOld][id], sides[sideNew][id]), without(sides[sideNew][id], sides[sideOld][id])
		if gone+come == 0 {
			continue
		}
		before, after := len(sides[sideOld][id]), len(sides[sideNew][id])
		c.add(&Change{Kind: "sa." + mad.SnakeName(attr.Name), Subject: strings.TrimSpace(attr.Name), Port: NoPort,
			Before: plural.Count(before, "record", "records"), After: plural.Count(after, "record", "records"),
			Effect: fmt.Sprintf("%d gone, %d new", gone, come)})
	}
}

// without counts the records that are not among others.
func without(records, others []string) int {
	left := map[string]int{}
	for _, r := range others {
		left[r]++
	}
	n := 0
	for _, r := range records {
		if left[r]--; left[r] < 0 {
			n++
		}
	}
	return n
}
