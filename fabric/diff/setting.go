package diff

import (
	"fmt"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Fields that are not settings: what links show, what depends on the route to the
// node, counters, and requests of agents.
var (
	notOfNode = words("base_version class_version node_guid port_guid local_port_num")
	notOfPort = words("m_key local_port_num link_width_active link_speed_active link_speed_ext_active link_speed_ext_active2 port_state port_physical_state " +
		"m_key_violations p_key_violations q_key_violations client_reregister init_type init_type_reply link_round_trip_latency max_credit_hint")
	notOfSwitch = words("port_state_change")
	// Fields without a meaning at external ports of switches: port 0 has them for
	// all (IBA 14.2.5.6).
	notOfExternal = words("gid_prefix lid master_sm_lid capability_mask capability_mask2 m_key_lease_period m_key_protect_bits lmc master_sm_sl guid_cap subnet_time_out resp_time_value")
	// Fields that a file without LIDs has made up.
	ofLIDs = words("lid master_sm_lid")
)

func words(list string) map[string]bool {
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
		if answered(n) && answered(m) && !c.replaced[int32(i)] {
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
			left[sideOld], left[sideNew] = left[sideOld] || !whole(p), left[sideNew] || !whole(q)
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

// whole reports whether the port has answered with its PortInfo, all of which have an MTU. Readers
// of files that have none make one of LID, width and speed.
func whole(p *fabric.Port) bool { return p.Info() != nil && p.Info().MTUCap != 0 }

// answered reports whether the node has answered itself.
func answered(n *fabric.Node) bool {
	if n.IsSwitch() {
		return whole(n.Port(0))
	}
	for p := range n.Ports() {
		if whole(p) {
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
	both := whole(p) && whole(q)
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
