package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
)

// longest limits a text of the page, in characters. Names have at most 64 bytes.
const longest = 4000

// clean returns untrusted text on one line. The template escapes markup, and isolates text that
// is written from right to left with its elements bdi.
func clean(s string) string {
	return strings.Trim(picture.Text(strings.NewReplacer("\n", " ", "\t", " ").Replace(s), longest), "\u2068\u2069")
}

// name returns the name of a node.
func name(n *fabric.Node) string { return picture.NodeName(n, longest) }

// topology is the ladder of a fabric, and the sections of the page about its
// links: one for each matrix, and one for each group of switches that are in none.
type topology struct {
	*picture.Ladder
	sections []*section
	of       map[*fabric.Node][]*section // in which a switch is
	hostsAt  map[*fabric.Node]*section   // with the links of a switch to hosts
	found    map[*picture.Group]int      // findings
	foundAt  map[[2]*picture.Group]int   // findings about links between two groups
	anchors  map[*audit.Finding]string
}

// section is a matrix, and the links to hosts of the leaves in its rows.
type section struct {
	num         int             // from 1 on
	matrix      *picture.Matrix // nil: its nodes are in none
	nodes       []*fabric.Node  // its rows
	hosts       []*fabric.Node  // of these, leaves
	found       int             // findings
	places      []*place
	at          map[spot]*place
	more        int // places that are not listed
	moreToCheck int // of these, without a finding
}

func newTopology(f *fabric.Fabric, r *audit.Report) (*topology, error) {
	ladder, err := picture.NewLadder(context.Background(), f, picture.LadderOptions{})
	if err != nil {
		return nil, err
	}
	t := &topology{
		Ladder: ladder, of: map[*fabric.Node][]*section{}, hostsAt: map[*fabric.Node]*section{},
		found: map[*picture.Group]int{}, foundAt: map[[2]*picture.Group]int{}, anchors: map[*audit.Finding]string{},
	}
	add := func(m *picture.Matrix, nodes ...[]*fabric.Node) {
		s := &section{num: len(t.sections) + 1, matrix: m, nodes: nodes[0], at: map[spot]*place{}}
		t.sections = append(t.sections, s)
		for _, n := range slices.Concat(nodes...) {
			if list := t.of[n]; len(list) == 0 || list[len(list)-1] != s {
				t.of[n] = append(list, s)
			}
		}
		for _, n := range nodes[0] {
			if t.hostsAt[n] == nil && len(hostPorts(n)) > 0 {
				t.hostsAt[n] = s
				s.hosts = append(s.hosts, n)
			}
		}
	}
	for _, m := range ladder.Matrices {
		add(m, m.Rows, m.Columns)
	}
	for _, g := range ladder.Groups() {
		if g.Tier == 0 {
			continue
		}
		if rest := slices.DeleteFunc(slices.Clone(g.Nodes), func(n *fabric.Node) bool { return len(t.of[n]) > 0 }); len(rest) > 0 {
			add(nil, rest)
		}
	}
	t.locate(r.Findings)
	return t, nil
}

// hostPorts returns the ports of a switch that lead to other nodes than switches, or whose other end
// is unknown: that may be a host.
func hostPorts(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil && !q.Node().IsSwitch() || p.PeerUnknown() {
			list = append(list, p)
		}
	}
	return list
}

// anchor returns the anchor of s in the page; "": none.
func (s *section) anchor() string {
	if s == nil || s.num > maxSections {
		return ""
	}
	return fmt.Sprintf("g%d", s.num)
}

// anchorOf returns the anchor of a group of the ladder; for hosts the anchor of their leaf.
func (t *topology) anchorOf(g *picture.Group) string {
	n := g.Nodes[0]
	if !n.IsSwitch() {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				n = q.Node()
				break
			}
		}
	}
	if list := t.of[n]; len(list) > 0 {
		return list[0].anchor()
	}
	return ""
}

// span names nodes by the first and the last.
func span(list []*fabric.Node) string {
	if len(list) == 1 {
		return name(list[0])
	}
	return name(list[0]) + " … " + name(list[len(list)-1])
}
