package diff

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/plural"
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

// replacedName is the GUID of n, and its name where that of m is another.
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
