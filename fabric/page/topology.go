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

// longest is how much of a text is shown, in characters. Names have at most 64 bytes.
const longest = 4000

// clean is text that anybody on the fabric may have chosen, on one line. The template
// escapes markup, and its elements bdi keep what is written from right to left apart.
func clean(s string) string {
	return strings.Trim(picture.Text(strings.NewReplacer("\n", " ", "\t", " ").Replace(s), longest), "\u2068\u2069")
}

// name is what a node is called.
func name(n *fabric.Node) string { return picture.NodeName(n, longest) }

// topology is a fabric as picture has it, and the sections of the page about its
// links: one for each matrix, and one for each group of switches that are in none.
type topology struct {
	*picture.Ladder
	sections []*section
	of       map[*fabric.Node][]*section // in which a switch is
	found    map[*picture.Group]int      // findings
}

// section is a matrix, and the links to hosts of the leaves in its rows.
type section struct {
	num    int             // from 1 on
	matrix *picture.Matrix // nil: its nodes are in none
	nodes  []*fabric.Node  // its rows
	hosts  []*fabric.Node  // of these, leaves
	found  int             // findings
}

func newTopology(f *fabric.Fabric, r *audit.Report) (*topology, error) {
	ladder, err := picture.New(context.Background(), f, picture.LadderOptions{})
	if err != nil {
		return nil, err
	}
	t := &topology{Ladder: ladder, of: map[*fabric.Node][]*section{}, found: map[*picture.Group]int{}}
	told := map[*fabric.Node]bool{} // their links to hosts
	add := func(m *picture.Matrix, nodes ...[]*fabric.Node) {
		s := &section{num: len(t.sections) + 1, matrix: m, nodes: nodes[0]}
		t.sections = append(t.sections, s)
		for _, n := range slices.Concat(nodes...) {
			if list := t.of[n]; len(list) == 0 || list[len(list)-1] != s {
				t.of[n] = append(list, s)
			}
		}
		for _, n := range nodes[0] {
			if !told[n] && len(hostPorts(n)) > 0 {
				told[n] = true
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
	for i := range r.Findings {
		s := &r.Findings[i].Subject
		if at := t.sectionAt(s); at != nil {
			at.found++
		}
		for _, e := range s.Ends {
			if nodes := f.NodeByGUID(e.Node); len(nodes) > 0 {
				t.found[t.GroupOf(nodes[0])]++
				break
			}
		}
	}
	return t, nil
}

// hostPorts are the ports of a switch to other nodes than switches.
func hostPorts(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil && !q.Node().IsSwitch() {
			list = append(list, p)
		}
	}
	return list
}

// sectionAt is the section that a subject is in: of a host, that of its leaf; of a link
// that of its matrix. Nil without one.
func (t *topology) sectionAt(s *audit.Subject) *section {
	var switches []*fabric.Node
	for _, e := range s.Ends {
		for _, n := range t.Fabric.NodeByGUID(e.Node) {
			if n.IsSwitch() {
				switches = append(switches, n)
			}
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() && (e.Num == p.Num() || e.Num == audit.NoPort && !n.IsSwitch()) {
					switches = append(switches, q.Node())
				}
			}
		}
	}
	if len(switches) == 0 || len(t.of[switches[0]]) == 0 {
		return nil
	}
	for _, at := range t.of[switches[0]] {
		if len(switches) > 1 && slices.Contains(t.of[switches[1]], at) {
			return at
		}
	}
	return t.of[switches[0]][0]
}

// anchor is the place of the page about s; "" without one.
func (s *section) anchor() string {
	if s == nil || s.num > maxSections {
		return ""
	}
	return fmt.Sprintf("g%d", s.num)
}

// anchorOf is the anchor of a group of the ladder: of hosts, that of their leaves.
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
