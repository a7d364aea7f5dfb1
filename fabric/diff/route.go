package diff

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

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
		a, b := trimmed(n.LFT()), trimmed(m.LFT())
		before := len(x.Effects)
		switch {
		case (n.LFT() == nil) != (m.LFT() == nil):
			c.Unread = append(c.Unread, fmt.Sprintf("linear forwarding table of %s: missing in %s fabric", nodeName(m), sideNames[sideOf(n.LFT() != nil)]))
		case !bytes.Equal(a, b):
			y := ofNode(TableLFT, m)
			y.Before, y.After = entries(a), entries(b)
			y.Effect = plural.Count(differing(a, b), "entry differs", "entries differ")
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

// trimmed is a table without the LIDs at its end that it drops.
func trimmed(lft []byte) []byte {
	for len(lft) > 0 && lft[len(lft)-1] == mad.NoPort {
		lft = lft[:len(lft)-1]
	}
	return lft
}

func differing(a, b []byte) int {
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

// onlyCause is the change of a node or of links that explains that of tables: it is
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

// countPaths reports the pairs whose paths differ, and of the load on links, in the
// effect of x. It is "" where none does.
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
