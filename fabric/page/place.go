package page

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/mad"
)

// place is a spot of a section at which something is wrong. Its number is in the picture and
// in the list beside it.
type place struct {
	Anchor string
	Num    int
	Texts  []string // what is wrong, in words
	More   int      // texts that are left out
	spot   spot
	found  bool // by a finding
}

// spot is a cell of a section, or the name of a row or a column.
type spot struct {
	hosts       bool // in the picture of the links to hosts; else in the matrix
	row, column int  // one is heading: the name of the other
}

// heading is the row or the column of a name.
const heading = -1

// Limits of the places of a section, and of the texts of a place.
const (
	maxPlaces = 100
	maxTexts  = 20
)

// add adds a text to the place at a spot; nil: the section has too many.
func (s *section) add(at spot, text string) *place {
	p := s.at[at]
	if p == nil {
		if len(s.places) == maxPlaces {
			s.more++
			return nil
		}
		n := len(s.places) + 1
		p = &place{Num: n, spot: at}
		if anchor := s.anchor(); anchor != "" {
			p.Anchor = anchor + "-" + strconv.Itoa(n)
		}
		s.places, s.at[at] = append(s.places, p), p
	}
	if len(p.Texts) == maxTexts {
		p.More++
	} else {
		p.Texts = append(p.Texts, text)
	}
	return p
}

// irregular adds what no finding is about.
func (s *section) irregular(at spot, format string, args ...any) {
	if p := s.at[at]; p != nil && p.found {
		return
	}
	if s.add(at, fmt.Sprintf(format, args...)) == nil {
		s.moreToCheck++
	}
}

// toCheck returns the number of places without a finding.
func (s *section) toCheck() (n int) {
	for _, p := range s.places {
		if !p.found {
			n++
		}
	}
	return n + s.moreToCheck
}

// locate finds the places of all findings.
func (t *topology) locate(found []audit.Finding) {
	for i := range found {
		f := &found[i]
		for j, subject := range append([]audit.Subject{f.Subject}, f.Members...) {
			s, spots := t.spotsOf(&subject, f)
			if s == nil {
				continue
			}
			if j == 0 {
				s.found++
				t.anchors[f] = s.anchor()
			}
			text := clean(fmt.Sprintf("%s %s: %s", f.Check, subject.Name(), f.Message))
			for k, at := range spots {
				p := s.add(at, text)
				if p == nil {
					continue
				}
				p.found = true
				if j == 0 && k == 0 {
					t.anchors[f] = p.Anchor
				}
			}
		}
		t.mark(f)
	}
}

// mark counts a finding at the group, and at the edges, that it is about.
func (t *topology) mark(f *audit.Finding) {
	for _, e := range f.Subject.Ends {
		n := t.node(e)
		if n == nil {
			continue
		}
		t.found[t.GroupOf(n)]++
		edges := map[[2]*picture.Group]bool{}
		if q := peer(n, e.Num); q != nil {
			edges[pairOf(t.GroupOf(n), t.GroupOf(q.Node()))] = true
		} else if e.Num == audit.NoPort {
			for _, g := range peersOf(f) {
				for _, other := range t.Fabric.NodeByGUID(g) {
					edges[pairOf(t.GroupOf(n), t.GroupOf(other))] = true
				}
			}
		}
		for pair := range edges {
			t.foundAt[pair]++
		}
		return
	}
}

// node returns the node of an end; nil: the fabric does not have it.
func (t *topology) node(e audit.End) *fabric.Node {
	if nodes := t.Fabric.NodeByGUID(e.Node); len(nodes) > 0 {
		return nodes[0]
	}
	return nil
}

// peer returns the other end of a port's link; nil: it is unknown.
func peer(n *fabric.Node, num int) *fabric.Port {
	if p := n.Port(num); num != audit.NoPort && p != nil {
		return p.Peer()
	}
	return nil
}

// pairOf returns two groups, the lower ID first.
func pairOf(a, b *picture.Group) [2]*picture.Group {
	if a != nil && b != nil && b.ID < a.ID {
		a, b = b, a
	}
	return [2]*picture.Group{a, b}
}

// spotsOf returns the section of a subject of a finding, and where it is there: a link at the cell
// of its ends, a switch at its name, or if the finding names others, at the cells of these; a host
// at its leaf. nil: none.
func (t *topology) spotsOf(s *audit.Subject, f *audit.Finding) (at *section, spots []spot) {
	for _, e := range s.Ends {
		n := t.node(e)
		if n == nil {
			continue
		}
		if e.Num != audit.NoPort {
			if at, spots = t.portSpot(n, e.Num); at != nil {
				return at, spots
			}
			continue
		}
		for _, g := range peersOf(f) {
			for _, other := range t.Fabric.NodeByGUID(g) {
				if x, where := t.pairSpot(n, other); x != nil && (at == nil || at == x) {
					at, spots = x, append(spots, where)
				}
			}
		}
		if at != nil {
			return at, spots
		}
		if at, spots = t.nodeSpot(n); at != nil {
			return at, spots
		}
	}
	return nil, nil
}

// portSpot returns where a port of a node is.
func (t *topology) portSpot(n *fabric.Node, num int) (*section, []spot) {
	q := peer(n, num)
	if q != nil && n.IsSwitch() && q.Node().IsSwitch() {
		if at, where := t.pairSpot(n, q.Node()); at != nil {
			return at, []spot{where}
		}
	}
	if q != nil && !n.IsSwitch() {
		n, num = q.Node(), q.Num()
	}
	if at := t.hostsAt[n]; at != nil {
		if column := slices.IndexFunc(hostPorts(n), func(p *fabric.Port) bool { return p.Num() == num }); column >= 0 {
			return at, []spot{{true, slices.Index(at.hosts, n), column}}
		}
	}
	return t.nodeSpot(n)
}

// pairSpot returns the cell of two switches.
func (t *topology) pairSpot(a, b *fabric.Node) (*section, spot) {
	for _, s := range t.of[a] {
		if s.matrix == nil || !slices.Contains(t.of[b], s) {
			continue
		}
		for _, x := range [2][2]*fabric.Node{{a, b}, {b, a}} {
			r, c := slices.Index(s.matrix.Rows, x[0]), slices.Index(s.matrix.Columns, x[1])
			if r >= 0 && c >= 0 && (s.matrix.Tiers[0] != s.matrix.Tiers[1] || x[0].ID() < x[1].ID()) {
				return s, spot{row: r, column: c}
			}
		}
	}
	return nil, spot{}
}

// nodeSpot returns where a node is: a switch at its name, a host at its first link.
func (t *topology) nodeSpot(n *fabric.Node) (*section, []spot) {
	if !n.IsSwitch() {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				return t.portSpot(n, p.Num())
			}
		}
		return nil, nil
	}
	if list := t.of[n]; len(list) > 0 {
		s := list[0]
		if s.matrix == nil {
			if r := slices.Index(s.hosts, n); r >= 0 {
				return s, []spot{{true, r, heading}}
			}
			return s, nil
		}
		if r := slices.Index(s.matrix.Rows, n); r >= 0 {
			return s, []spot{{false, r, heading}}
		}
		return s, []spot{{false, heading, slices.Index(s.matrix.Columns, n)}}
	}
	return nil, nil
}

// peersOf returns the nodes that a finding names as the other ends of links. Only its audit knows
// the type of a datum.
func peersOf(f *audit.Finding) (list []mad.GUID) {
	for _, d := range f.Data {
		if d.Name != "peers" && d.Name != "leaves" {
			continue
		}
		for _, text := range guid().FindAllString(fmt.Sprint(d.Value), maxPlaces) {
			if n, err := strconv.ParseUint(text, 0, 64); err == nil {
				list = append(list, mad.GUID(n))
			}
		}
	}
	return list
}

var guid = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b0x[0-9a-f]{16}\b`) })

// mark is a place in a picture.
type mark struct {
	X, Y, W, H, TextX, TextY, Num int
	Anchor, Title                 string
}

// Room for the number of a place beside a name, in pixels.
const numberWidth = 16

// mark marks the places of s in the picture of its matrix, or of its links to hosts.
func (g *grid) mark(s *section, hosts bool) {
	var places []*place
	for _, p := range s.places {
		if p.spot.hosts == hosts {
			places = append(places, p)
		}
	}
	has := func(named func(spot) bool) bool {
		return slices.ContainsFunc(places, func(p *place) bool { return named(p.spot) })
	}
	left, above := 0, 0
	if has(func(s spot) bool { return s.column == heading }) {
		left = numberWidth
	}
	if has(func(s spot) bool { return s.row == heading }) {
		above = numberWidth
	}
	g.Left, g.W, g.Above, g.H = g.Left+left, g.W+left, g.Above+above, g.H+above
	for _, p := range places {
		x, y := p.spot.column*cellSize, p.spot.row*cellSize
		m := mark{X: x - 1, Y: y - 1, W: cellSize + 1, H: cellSize + 1, TextX: x + cellSize/2, TextY: y + 12, Num: p.Num, Anchor: p.Anchor, Title: p.Texts[0]}
		switch {
		case p.spot.column == heading:
			m.X, m.W, m.TextX = 1-g.Left, g.Left-4, 10-g.Left
		case p.spot.row == heading:
			m.Y, m.H, m.TextY = 1-g.Above, g.Above-4, 12-g.Above
		}
		g.Marks = append(g.Marks, m)
	}
	slices.SortStableFunc(g.Marks, func(a, b mark) int { return cmp.Compare(a.W*a.H, b.W*b.H) * -1 }) // cells are above names
}
