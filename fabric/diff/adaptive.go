package diff

import (
	"bytes"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// adaptive compares the adaptive routing of two switches that are one; nil: it is the same,
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

// sameChoice reports whether two tables have the same state and sub-groups for a LID.
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
