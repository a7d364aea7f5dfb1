package picture

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// TierName returns a tier in words.
func TierName(t int) string {
	switch t {
	case -1:
		return "outside of the tiers"
	case 0:
		return "hosts"
	case 1:
		return "tier 1 (leaves)"
	}
	return "tier " + strconv.Itoa(t)
}

// CountText returns how many nodes of which kind a group has: "2 switches, 1 router".
func (g *Group) CountText() string {
	var switches, cas, aggregation, routers, others int
	for _, n := range g.Nodes {
		switch n.Kind() {
		case fabric.KindSwitch:
			switches++
		case fabric.KindHost, fabric.KindGateway:
			cas++
		case fabric.KindAggregation:
			aggregation++
		case fabric.KindRouter:
			routers++
		default:
			others++
		}
	}
	var parts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{{switches, "switch", "switches"}, {cas, "CA", "CAs"}, {aggregation, "aggregation node", "aggregation nodes"}, {routers, "router", "routers"}, {others, "node", "nodes"}} {
		if c.n > 0 {
			parts = append(parts, plural.Count(c.n, c.one, c.many))
		}
	}
	return strings.Join(parts, ", ")
}

// names returns the first and the last name of a group.
func (g *Group) names(limit int) []string {
	list := []string{NodeName(g.Nodes[0], limit)}
	if n := len(g.Nodes); n > 1 {
		list = append(list, NodeName(g.Nodes[n-1], limit))
	}
	return list
}

// LinkText returns how many links each switch of g has to the next tier up, and down, in words.
func (g *Group) LinkText() []string {
	var parts []string
	add := func(least, most int, way string) {
		switch {
		case most == 0:
		case least < most:
			parts = append(parts, fmt.Sprintf("%d to %d %s", least, most, way))
		case len(g.Nodes) == 1:
			parts = append(parts, fmt.Sprintf("%d %s", most, way))
		default:
			parts = append(parts, fmt.Sprintf("%d %s each", most, way))
		}
	}
	add(g.MinUp, g.MaxUp, "up")
	add(g.MinDown, g.MaxDown, "down")
	return parts
}

// Text returns an edge in words: "4 links, 1 not active".
func (e *Edge) Text() string {
	text := plural.Count(e.Links, "link", "links")
	for s := Slow; s < states; s++ {
		if e.States[s] > 0 {
			text += fmt.Sprintf(", %d %s", e.States[s], s)
		}
	}
	if e.Missing > 0 {
		text += fmt.Sprintf(", %d missing", e.Missing)
	}
	return text
}

// NodeName returns the name of a node on one line, with at most limit characters; its GUID if it
// has no name.
func NodeName(n *fabric.Node, limit int) string {
	if strings.TrimSpace(n.Name()) == "" {
		return n.GUID().String()
	}
	return Text(n.Name(), limit)
}

// Text returns untrusted text made printable, with at most limit characters. Text that is written
// from right to left is isolated, so that it reorders nothing around it (Unicode annex 9).
func Text(text string, limit int) string {
	const isolate, end = "\u2068", "\u2069"
	var b strings.Builder
	n, turned := 0, false
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(text[i:])
		piece := text[i : i+size]
		switch {
		case r == utf8.RuneError && size == 1:
			piece = fmt.Sprintf(`\x%02x`, text[i])
		case !unicode.IsPrint(r):
			piece = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		case 0x590 <= r && r < 0x900 || 0xfb1d <= r && r < 0xff00 || 0x10800 <= r && r < 0x11000 || 0x1e800 <= r && r < 0x1f000: // the ranges of such scripts
			turned = true
		case r >= 0x1100: // may be as wide as two
			n++
		}
		if n += utf8.RuneCountInString(piece); n > limit {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
	}
	if turned {
		return isolate + b.String() + end
	}
	return b.String()
}
