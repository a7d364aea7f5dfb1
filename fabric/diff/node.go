package diff

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// nodes reports nodes that are gone, new, replaced or renamed, with the links
// that went or came with them.
func (c *comparison) nodes() {
	c.nodeChange = [2]map[int32]*Change{{}, {}}
	c.onlyOn(sideOld, NodeGone, LinkGone)
	c.onlyOn(sideNew, NodeNew, LinkNew)
	old := c.fabrics[sideOld].Nodes()
	for i := range old {
		n := &old[i]
		same := c.node(sideOld, n)
		if same == nil {
			continue
		}
		if c.replaced[int32(i)] {
			x := ofNode(NodeReplaced, same)
			x.Before, x.After = replacedName(n, same), replacedName(same, n)
			c.add(x)
		} else if side := c.unnamed(n, same); side != none {
			c.Unread = append(c.Unread, fmt.Sprintf("name of %s: unread in %s fabric", nodeName([2]*fabric.Node{same, n}[side]), sideNames[side]))
		} else if n.Name() != same.Name() {
			x := ofNode(NodeName, same)
			x.Before, x.After = plain(n.Name()), plain(same.Name())
			c.add(x)
		}
	}
}

// unnamed is the side whose node has no name, for no answer came; else none.
func (c *comparison) unnamed(old, new *fabric.Node) int {
	for side, n := range [2]*fabric.Node{old, new} {
		if n.Name() == "" && old.Name() != new.Name() && !c.fabrics[side].Complete() {
			return side
		}
	}
	return none
}

// replacedName is the GUID of n, and its name where m has another name.
func replacedName(n, m *fabric.Node) string {
	if n.Name() == m.Name() {
		return n.GUID().String()
	}
	return n.GUID().String() + " " + nodeName(n)
}

// onlyOn reports the nodes that only one side has. A node whose cables all lead
// to a switch that went, or came, is an effect of that.
func (c *comparison) onlyOn(side int, nodeKind, linkKind string) {
	unread := c.unreadNodes(side)
	nodes := c.fabrics[side].Nodes()
	alone := func(n *fabric.Node) bool {
		id := int32(n.ID())
		return c.to[side][id] == none && !unread[id] && !c.ambiguous[side][id]
	}
	for i := range nodes {
		n := &nodes[i]
		switch id := int32(i); {
		case c.ambiguous[side][id]:
			c.NotCompared = append(c.NotCompared, fmt.Sprintf("%s, node GUID %s, of %s fabric: the GUID is not unique", nodeName(n), n.GUID(), sideNames[side]))
			continue
		case unread[id]:
			c.Unread = append(c.Unread, fmt.Sprintf("%s (%s): unread in %s fabric", nodeName(n), n.GUID(), sideNames[other(side)]))
			continue
		case !alone(n):
			continue
		}
		x := ofNode(nodeKind, n)
		text := typeWord(n)
		if side == sideOld {
			x.Before = text
		} else {
			x.After = text
		}
		c.nodeChange[side][int32(i)] = x
		if cause := c.behind(side, n, alone); cause != nil {
			cause.Effects = append(cause.Effects, x)
		} else {
			c.add(x)
		}
	}
	for i := range c.fabrics[side].Ports() {
		p := &c.fabrics[side].Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() {
			continue
		}
		x := c.nodeChange[side][int32(p.Node().ID())]
		if x == nil {
			x = c.nodeChange[side][int32(q.Node().ID())]
		}
		if x == nil || !c.linkKnown(side, p, unread) || !c.linkKnown(side, q, unread) {
			continue
		}
		l := ofLink(linkKind, p, q)
		if side == sideOld {
			l.Before = rateOf(p)
		} else {
			l.After = rateOf(p)
		}
		x.Effects = append(x.Effects, l)
	}
	for _, x := range c.nodeChange[side] {
		x.Effect = count(x.Effects)
	}
}

// linkKnown reports whether p's node is known well enough to judge whether its link exists.
func (c *comparison) linkKnown(side int, p *fabric.Port, unread map[int32]bool) bool {
	id := int32(p.Node().ID())
	return !unread[id] && !c.ambiguous[side][id]
}

// behind is the change of the switch that all cables of n lead to, or of the first
// of these, where n is not a switch and they have all gone or come; else nil.
func (c *comparison) behind(side int, n *fabric.Node, alone func(*fabric.Node) bool) *Change {
	if n.IsSwitch() {
		return nil
	}
	var cause *Change
	for p := range n.Ports() {
		q := p.Peer()
		if q == nil {
			continue
		}
		if !q.Node().IsSwitch() || !alone(q.Node()) {
			return nil
		}
		if cause == nil { // switches come first, and are reported before others
			cause = c.nodeChange[side][int32(q.Node().ID())]
		}
	}
	return cause
}

// count is the effects of a node that went or came: "36 links, 18 nodes".
func count(effects []*Change) string {
	links, nodes := 0, 0
	for _, e := range effects {
		switch e.Kind {
		case LinkGone, LinkNew:
			links++
		case NodeGone, NodeNew:
			nodes++
			for _, f := range e.Effects {
				if f.Kind == LinkGone || f.Kind == LinkNew {
					links++
				}
			}
		}
	}
	if len(effects) == 0 {
		return ""
	}
	text := plural.Count(links, "link", "links")
	if nodes > 0 {
		text += ", " + plural.Count(nodes, "node", "nodes") + " behind it"
	}
	return text
}

func typeWord(n *fabric.Node) string {
	return fmt.Sprintf("%s, %s", n.Type(), plural.Count(n.NumPorts(), "port", "ports"))
}

// Fields that are not settings: what links show, what depends on the route to the
// node, counters, and requests of agents.
var (
	notOfNode = wordSet("base_version class_version node_guid port_guid local_port_num")
	notOfPort = wordSet("m_key local_port_num link_width_active link_speed_active link_speed_ext_active link_speed_ext_active2 port_state port_physical_state " +
		"m_key_violations p_key_violations q_key_violations client_reregister init_type init_type_reply link_round_trip_latency max_credit_hint")
	notOfSwitch = wordSet("port_state_change")
	// Fields without a meaning at external ports of switches: port 0 has them for
	// all (IBA 14.2.5.6).
	notOfExternal = wordSet("gid_prefix lid master_sm_lid capability_mask capability_mask2 m_key_lease_period m_key_protect_bits lmc master_sm_sl guid_cap subnet_time_out resp_time_value")
	// Fields that a file without LIDs has made up.
	ofLIDs = wordSet("lid master_sm_lid")
)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// settings compares the attributes of nodes and ports that both sides have.
func (c *comparison) settings() {
	noLIDs := c.assignedLIDs()
	var left [2]bool // sides whose attributes are made of what a file says
	for i := range c.fabrics[sideOld].Nodes() {
		n := &c.fabrics[sideOld].Nodes()[i]
		m := c.node(sideOld, n)
		if m == nil {
			continue
		}
		if hasAnswered(n) && hasAnswered(m) && !c.replaced[int32(i)] {
			c.fields("node.", mad.AttrNodeInfo, n.Info().Encode, m.Info().Encode, ofNode("", m), func(name string) bool { return notOfNode[name] })
		}
		if a, b := n.SwitchInfo(), m.SwitchInfo(); a != nil && b != nil && a.LinearFDBCap != 0 && b.LinearFDBCap != 0 && *a != *b {
			c.fields("switch.", mad.AttrSwitchInfo, a.Encode, b.Encode, ofNode("", m), func(name string) bool { return notOfSwitch[name] })
		}
		first := 1
		if n.IsSwitch() {
			first = 0
		}
		for num := first; num <= n.NumPorts(); num++ {
			p, q := n.Port(num), m.Port(num)
			if q == nil || p.Info() == nil || q.Info() == nil {
				continue
			}
			left[sideOld], left[sideNew] = left[sideOld] || !isWhole(p), left[sideNew] || !isWhole(q)
			c.portFields(p, q, noLIDs)
		}
	}
	switch who := "a file of"; {
	case left[sideOld] && left[sideNew]:
		who = "both fabrics are files of"
		fallthrough
	case left[sideOld] || left[sideNew]:
		for side, is := range left {
			if is && !left[other(side)] {
				who = sideNames[side] + " fabric is a file of"
			}
		}
		c.NotCompared = append(c.NotCompared, "settings of nodes and ports: "+who+" LIDs, widths and speeds alone")
	}
}

// isWhole reports whether the port has answered with its PortInfo, all of which have an MTU. Readers
// of files that have none make one of LID, width and speed.
func isWhole(p *fabric.Port) bool { return p.Info() != nil && p.Info().MTUCap != 0 }

// hasAnswered reports whether the node has answered itself.
func hasAnswered(n *fabric.Node) bool {
	if n.IsSwitch() {
		return isWhole(n.Port(0))
	}
	for p := range n.Ports() {
		if isWhole(p) {
			return true
		}
	}
	return false
}

// portFields compares PortInfo: all of it, or LIDs alone where a side has no more.
func (c *comparison) portFields(p, q *fabric.Port, noLIDs bool) {
	a, b := *p.Info(), *q.Info()
	a.MKey, b.MKey = 0, 0
	if a == b {
		return
	}
	external := p.Node().IsSwitch() && p.Num() > 0
	both := isWhole(p) && isWhole(q)
	linked := p.Peer() != nil && q.Peer() != nil
	c.fields("port.", mad.AttrPortInfo, a.Encode, b.Encode, ofPort("", q), func(name string) bool {
		switch {
		case noLIDs && ofLIDs[name], external && notOfExternal[name], !both && name != "lid" && name != "lmc":
			return true
		case name == "port_state": // a link that went, or came, is reported as such
			return !linked
		case name == "port_physical_state": // of free ports that were disabled
			return linked || a.PortPhysicalState != mad.PortPhysicalStateDisabled && b.PortPhysicalState != mad.PortPhysicalStateDisabled
		}
		return notOfPort[name]
	})
}

// fields reports each field that differs. x has the subject.
func (c *comparison) fields(prefix string, attr *mad.Attribute, old, new func([]byte), x *Change, skip func(name string) bool) {
	a, b := make([]byte, attr.Size), make([]byte, attr.Size)
	old(a)
	new(b)
	for i := range attr.Flat() {
		f := &attr.Flat()[i]
		if f.Key || skip(f.Script) {
			continue
		}
		if before, after := fieldText(f, a), fieldText(f, b); before != after {
			y := *x
			y.Kind, y.Before, y.After = prefix+f.Script, before, after
			c.add(&y)
		}
	}
}

// fieldText is a field as scripts show it: a word, words, or a number.
func fieldText(f *mad.Field, data []byte) string {
	v := f.Uint(data)
	switch {
	case f.Type == mad.FieldTypeMask:
		return strings.Join(f.Words.Split(v), " ")
	case f.Type == mad.FieldTypeEnum:
		return f.Words.Text(v)
	case f.Type == mad.FieldTypeGUID:
		return mad.GUID(v).String()
	case f.Hex:
		return fmt.Sprintf("0x%0*x", (f.Bits+3)/4, v)
	}
	return fmt.Sprint(v)
}
