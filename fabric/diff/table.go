package diff

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
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

// differingRows counts the rows that differ in blocks of both sides, and the rows of
// blocks that only one side has, unless they are 0.
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
	return joinFirst(list, " ")
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

// otherRecords are records of nodes and links, which are compared as nodes and links, and of the
// administrator itself.
var otherRecords = []mad.AttributeID{mad.AttrNodeRecord.ID, mad.AttrLinkRecord.ID, mad.AttrSubnAdmClassPortInfo.ID}

// records compares the records of the subnet administrator, as sets.
func (c *comparison) records() {
	var sides [2]map[mad.AttributeID][]string
	for side, f := range c.fabrics {
		sides[side] = map[mad.AttributeID][]string{}
		for _, a := range f.AnswersOf(fabric.NoNode) {
			if len(a.Data) == 0 || slices.Contains(otherRecords, a.ID) {
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
		gone, come := countMissing(sides[sideOld][id], sides[sideNew][id]), countMissing(sides[sideNew][id], sides[sideOld][id])
		if gone+come == 0 {
			continue
		}
		before, after := len(sides[sideOld][id]), len(sides[sideNew][id])
		c.add(&Change{Kind: "sa." + mad.SnakeName(attr.Name), Subject: strings.TrimSpace(attr.Name), Port: NoPort,
			Before: plural.Count(before, "record", "records"), After: plural.Count(after, "record", "records"),
			Effect: fmt.Sprintf("%d gone, %d new", gone, come)})
	}
}

// countMissing counts the records that are not among others.
func countMissing(records, others []string) int {
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

// routes compares the linear forwarding tables and adaptive routing, and counts what the change of tables
// and links does to paths.
func (c *comparison) routes(ctx context.Context) error {
	old, new := c.fabrics[sideOld], c.fabrics[sideNew]
	if !old.HasLFTs() || !new.HasLFTs() {
		c.lacking("linear forwarding tables", old.HasLFTs(), new.HasLFTs())
		return nil
	}
	x, switches := &Change{Kind: RoutesChanged, Port: NoPort}, 0
	for i := range old.Nodes() {
		n := &old.Nodes()[i]
		m := c.node(sideOld, n)
		if m == nil || !n.IsSwitch() || !m.IsSwitch() {
			continue
		}
		a, b := trimLFT(n.LFT()), trimLFT(m.LFT())
		before := len(x.Effects)
		switch {
		case (n.LFT() == nil) != (m.LFT() == nil):
			c.Unread = append(c.Unread, fmt.Sprintf("linear forwarding table of %s: missing in %s fabric", nodeName(m), sideNames[sideOf(n.LFT() != nil)]))
		case !bytes.Equal(a, b):
			y := ofNode(TableLFT, m)
			y.Before, y.After = entries(a), entries(b)
			y.Effect = plural.Count(countDiffering(a, b), "entry differs", "entries differ")
			x.Effects = append(x.Effects, y)
		}
		if y := c.adaptive(n, m); y != nil {
			x.Effects = append(x.Effects, y)
		}
		if len(x.Effects) > before {
			switches++
		}
	}
	c.lacking("adaptive routing", old.HasAdaptive(), new.HasAdaptive())
	if len(x.Effects) == 0 && !c.cablesDiffer() {
		return nil
	}
	if err := c.countPaths(ctx, x); err != nil {
		return err
	}
	if len(x.Effects) == 0 && x.Effect == "" {
		return nil
	}
	x.Subject = "paths, by the same forwarding tables"
	if switches > 0 {
		x.Subject = "forwarding tables of " + plural.Count(switches, "switch", "switches")
	}
	if cause := c.onlyCause(); cause != nil {
		cause.Effects = append(cause.Effects, x)
	} else {
		c.add(x)
	}
	return nil
}

// lacking reports that a side has no data of a kind to compare; where both have
// none there is nothing to report.
func (c *comparison) lacking(what string, old, new bool) {
	if old != new {
		c.NotCompared = append(c.NotCompared, fmt.Sprintf("%s: missing in %s fabric", what, sideNames[sideOf(old)]))
	}
}

// sideOf is the side that has none, where one has.
func sideOf(old bool) int {
	if old {
		return sideNew
	}
	return sideOld
}

// trimLFT returns a table without the LIDs at its end that it drops.
func trimLFT(lft []byte) []byte {
	for len(lft) > 0 && lft[len(lft)-1] == mad.NoPort {
		lft = lft[:len(lft)-1]
	}
	return lft
}

func countDiffering(a, b []byte) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := 0
	for i, p := range b {
		if i >= len(a) && p != mad.NoPort || i < len(a) && a[i] != p {
			n++
		}
	}
	return n
}

func entries(lft []byte) string {
	return plural.Count(len(lft)-bytes.Count(lft, []byte{mad.NoPort}), "LID", "LIDs")
}

// cablesDiffer reports whether some node or link is not on both sides.
func (c *comparison) cablesDiffer() bool {
	return slices.ContainsFunc(c.Changes, func(x *Change) bool {
		return strings.HasPrefix(x.Kind, "link.") || x.Kind == NodeGone || x.Kind == NodeNew
	})
}

// onlyCause is the change of a node or of links that explains the change of tables: it is
// the only one of its kind; else nil.
func (c *comparison) onlyCause() *Change {
	var cause *Change
	for _, x := range c.Changes {
		switch x.Kind {
		case NodeGone, NodeNew, NodeReplaced, LinkGone, LinkNew, LinkMoved, LinkSwapped:
			if cause != nil {
				return nil
			}
			cause = x
		}
	}
	return cause
}

// countPaths reports the pairs whose paths differ, and the change of the load on links, in the
// effect of x: "" where no path differs.
func (c *comparison) countPaths(ctx context.Context, x *Change) error {
	var r [2]*routes.Routes
	for side, f := range c.fabrics {
		var err error
		if r[side], err = routes.OfFabric(f); err != nil {
			return fmt.Errorf("%s fabric: %w", sideNames[side], err)
		}
	}
	paths, err := traffic.CountRerouted(ctx, r[sideNew], r[sideOld], func(p *fabric.Port) *fabric.Port { return c.port(sideNew, p) })
	if err != nil || paths.Pairs == 0 {
		return err
	}
	x.Effect = fmt.Sprintf("%s rerouted", plural.Count(int(paths.Pairs), "pair", "pairs"))
	if paths.Broken > 0 {
		x.Effect += fmt.Sprintf(", of which %d do not arrive", paths.Broken)
	}
	x.Effect += fmt.Sprintf(", max load %+d", paths.After-paths.Before)
	return nil
}

// adaptive compares the adaptive routing of two matched switches; nil: it is equal,
// or was not read on both sides.
func (c *comparison) adaptive(n, m *fabric.Node) *Change {
	a, b := n.Adaptive(), m.Adaptive()
	if (a == nil) != (b == nil) && n.Fabric().HasAdaptive() && m.Fabric().HasAdaptive() {
		c.Unread = append(c.Unread, fmt.Sprintf("adaptive routing of %s: missing in %s fabric", nodeName(m), sideNames[sideOf(a != nil)]))
	}
	if a == nil || b == nil || bytes.Equal(a.Append(nil), b.Append(nil)) {
		return nil
	}
	x := ofNode(TableAdaptive, m)
	x.Before, x.After = adaptiveText(a), adaptiveText(b)
	switch lids := differingLIDs(a, b); {
	case lids > 0:
		x.Effect = plural.Count(lids, "LID has", "LIDs have") + " other ports"
	case x.Before == x.After:
		x.Effect = "settings, or ports of groups that no LID uses, differ"
	}
	return x
}

// adaptiveText describes the adaptive routing of a switch.
func adaptiveText(s *adaptive.Switch) string {
	text := "off"
	switch {
	case s.Enabled:
		text = fmt.Sprintf("on, SLs 0x%04x", uint16(s.SLs))
	case s.HBF:
		text = "hashes only"
	}
	if s.Unknown != "" {
		text += ", unknown: " + s.Unknown
	}
	return text
}

// differingLIDs counts the LIDs for which the state, or the ports of the group, differ in some
// private LFT, while both are known to route adaptively. Static ports are compared with the forwarding
// tables.
func differingLIDs(a, b *adaptive.Switch) (n int) {
	if !a.Active() || !b.Active() || a.Unknown != "" || b.Unknown != "" {
		return 0
	}
	for lid := range max(a.Top(), b.Top()) + 1 {
		for id := range max(len(a.Tables), len(b.Tables)) {
			if !sameChoice(a.Table(uint8(id)), b.Table(uint8(id)), lid) {
				n++
				break
			}
		}
	}
	return n
}

// sameChoice reports whether two tables have equal states and sub-groups for a LID.
func sameChoice(t, u *adaptive.Table, lid mad.LID) bool {
	if t == nil || u == nil {
		return t == u
	}
	e, o := t.Entry(lid), u.Entry(lid)
	if e.State != o.State {
		return false
	}
	if e.State == adaptive.Static {
		return true
	}
	subs := 1
	for _, x := range []*adaptive.Table{t, u} {
		if x.Groups != nil {
			subs = max(subs, x.Groups.SubGroups())
		}
	}
	for sub := range subs {
		if t.Groups.Ports(int(e.Group), sub) != u.Groups.Ports(int(o.Group), sub) {
			return false
		}
	}
	return true
}
