package page

import (
	"fmt"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
)

// sectionView is the view of a section: the links between two tiers, or within one, as a matrix
// of switches by switches; and the links to hosts, with a row for each leaf.
type sectionView struct {
	Anchor, Name   string
	Size           string // in words
	tiers          string
	Findings, Look string // how many, in words; "": none
	Unknown        string // how many links, in words; "": none
	Matrix, Hosts  *grid
	Places         []*place
	More           int // of these
	Note           string
	unknown        int    // links
	kind           string // equal for matrices that look alike; "": with findings or irregular links
}

// folded is sections that look alike: they are folded to one line if there are several.
type folded struct {
	Anchor, Name string
	Sections     []*sectionView
}

// fold collects matrices that look alike at the place of the first of them.
func fold(list []*sectionView) (all []*folded) {
	same := map[string]*folded{}
	for _, v := range list {
		f := same[v.kind]
		if f == nil || v.kind == "" {
			f = &folded{}
			all, same[v.kind] = append(all, f), f
		}
		f.Sections = append(f.Sections, v)
	}
	for _, f := range all {
		if n := len(f.Sections); n > 1 {
			first := f.Sections[0]
			// The script opens what has such an anchor only if it is selected.
			f.Anchor, f.Name = first.Anchor+"-same", fmt.Sprintf("%s: %d identical matrices of %s each", first.tiers, n, first.Size)
			if first.Unknown != "" {
				f.Name += ", " + first.Unknown + " in each"
			}
		}
	}
	return all
}

// grid is a picture of cells, with names beside it.
type grid struct {
	W, H, Left, Above       int // sizes of the picture, and of its labels, in pixels
	RowLabels, ColumnLabels []label
	Layers                  []layer
	Marks                   []mark
}

// plain reports whether all links of g are up or unknown.
func (g *grid) plain() bool {
	return g == nil || !slices.ContainsFunc(g.Layers, func(l layer) bool {
		return l.Class != picture.Up.Class() && l.Class != picture.Unknown.Class()
	})
}

// Describe returns a description of g for those who do not see it.
func (g *grid) Describe() string { return "Matrix of links; the text beside it lists the problems" }

type label struct {
	X, Y int
	Text string
}

type layer struct{ Class, Path string }

// Limits of the drawing of a matrix, and of the text about it.
const (
	maxMatrixRows = 128
	cellSize      = 16
	labelled      = 64 // columns that have names
	labelText     = 24 // characters
	charWidth     = 6  // of labels, about
)

// show returns the view of s.
func (s *section) show() *sectionView {
	v := &sectionView{Anchor: s.anchor()}
	if s.found > 0 {
		v.Findings = plural.Count(s.found, "finding", "findings")
	}
	if m := s.matrix; m != nil {
		v.tiers = picture.TierName(m.Tiers[0]) + " x " + picture.TierName(m.Tiers[1])
		v.Name = fmt.Sprintf("%s: %s × %s", v.tiers, span(m.Rows), span(m.Columns))
		v.Size = fmt.Sprintf("%d × %d switches", len(m.Rows), len(m.Columns))
		v.links(s)
	} else {
		v.Name, v.Size = span(s.nodes), plural.Count(len(s.nodes), "switch", "switches")
	}
	v.hosts(s)
	if v.Matrix != nil {
		v.Matrix.mark(s, false)
	}
	if v.Hosts != nil {
		v.Hosts.mark(s, true)
	}
	if v.unknown > 0 {
		v.Unknown = plural.Count(v.unknown, "link", "links") + " of unknown state"
	}
	v.Places, v.More = s.places, s.more
	if n := s.toCheck(); n > 0 {
		v.Look = plural.Count(n, "place", "places") + " to check"
	}
	if v.Matrix != nil && len(v.Places) == 0 && v.Findings == "" && v.Matrix.plain() && v.Hosts.plain() {
		v.kind = fmt.Sprint(v.tiers, v.Size, v.Unknown, v.Matrix.Layers)
		if v.Hosts != nil {
			v.kind += fmt.Sprint(v.Hosts.Layers)
		}
	}
	return v
}

// links draws the matrix of s, and lists irregular links.
func (v *sectionView) links(s *section) {
	m := s.matrix
	drawn := sheet{wide: cellSize, high: cellSize, gap: 1}
	for r, n := range m.Rows {
		for c, o := range m.Columns {
			links, missing, states := len(m.Links[r][c]), m.Missing(r, c), m.States(r, c)
			worst := states.Worst()
			if m.Tiers[0] != m.Tiers[1] || n.ID() < o.ID() { // else it is listed twice
				v.unknown += states[picture.Unknown]
				at, pair := spot{row: r, column: c}, name(n)+" – "+name(o)
				switch {
				case worst > picture.Unknown:
					s.irregular(at, "%s: %d of %s %s", pair, states[worst], plural.Count(links, "link", "links"), worst)
				case missing > 0 && links == 0:
					s.irregular(at, "%s: no link; most pairs here have %d", pair, m.Expected)
				case missing > 0:
					s.irregular(at, "%s: %s; most pairs here have %d", pair, plural.Count(links, "link", "links"), m.Expected)
				}
			}
			switch {
			case worst > picture.Up || links > 0 && missing == 0:
				drawn.add(worst.Class(), c, r)
			case missing > 0:
				drawn.add("missing", c, r)
			}
		}
	}
	if len(m.Rows) > maxMatrixRows {
		v.Note = fmt.Sprintf("%d × %d cells are too many for a picture.", len(m.Rows), len(m.Columns))
		return
	}
	v.Matrix = newGrid(&drawn, m.Rows, m.Columns, len(m.Columns))
}

// hosts draws the links of leaves of s to hosts, and lists irregular ones.
func (v *sectionView) hosts(s *section) {
	drawn, most := sheet{wide: cellSize, high: cellSize, gap: 1}, 0
	for y, n := range s.hosts {
		ports := hostPorts(n)
		most = max(most, len(ports))
		for x, p := range ports {
			if p.Peer() == nil {
				s.irregular(spot{true, y, x}, "%s: the other end is unknown", clean(p.Name()))
				drawn.add(picture.Unknown.Class(), x, y)
				continue
			}
			state := picture.StateOf(p)
			switch {
			case state == picture.Unknown:
				v.unknown++
			case state > picture.Unknown:
				s.irregular(spot{true, y, x}, "%s – %s: %s", clean(p.Name()), clean(p.Peer().Name()), state)
			}
			drawn.add(state.Class(), x, y)
		}
	}
	if len(s.hosts) > 0 && len(s.hosts) <= maxMatrixRows {
		v.Hosts = newGrid(&drawn, s.hosts, nil, most)
	}
}

// newGrid gives cells the names of their rows and columns, where there is room for them.
func newGrid(drawn *sheet, rows, columns []*fabric.Node, across int) *grid {
	g := &grid{Layers: drawn.layers(), Above: 4}
	for y, n := range rows {
		text := picture.NodeName(n, labelText)
		g.Left = max(g.Left, 8+charWidth*len([]rune(text)))
		g.RowLabels = append(g.RowLabels, label{-5, y*cellSize + cellSize - 3, text})
	}
	if len(columns) <= labelled {
		for x, n := range columns {
			text := picture.NodeName(n, labelText)
			g.Above = max(g.Above, 8+charWidth*len([]rune(text)))
			g.ColumnLabels = append(g.ColumnLabels, label{x*cellSize + cellSize - 3, -5, text})
		}
	}
	g.W, g.H = g.Left+across*cellSize+4, g.Above+len(rows)*cellSize+4
	return g
}

// sheet is cells of a grid, each with a style sheet class.
type sheet struct {
	wide, high int // of a cell, with its gap
	gap        int
	order      []string // of classes
	of         map[string]*cells
}

// add adds the cell of column x and row y. Cells of a row follow one another.
func (s *sheet) add(class string, x, y int) {
	c := s.of[class]
	if c == nil {
		if s.of == nil {
			s.of = map[string]*cells{}
		}
		c = &cells{wide: s.wide, high: s.high, gap: s.gap}
		s.of[class] = c
		s.order = append(s.order, class)
	}
	c.add(x, y)
}

func (s *sheet) layers() (list []layer) {
	for _, class := range s.order {
		list = append(list, layer{class, s.of[class].path()})
	}
	return list
}

// cells is a path of SVG that covers cells of a grid: one element for thousands of
// cells keeps the page small, and quick to draw.
type cells struct {
	d          []byte
	wide, high int // of a cell, with its gap
	gap        int
	x, y, run  int // the cells that have not been written
}

// add adds the cell of column x and row y. Cells side by side become one.
func (c *cells) add(x, y int) {
	if c.run > 0 && c.gap == 0 && y == c.y && x == c.x+c.run {
		c.run++
		return
	}
	c.flush()
	c.x, c.y, c.run = x, y, 1
}

func (c *cells) flush() {
	if c.run == 0 {
		return
	}
	num := func(letter byte, n int) { c.d = strconv.AppendInt(append(c.d, letter), int64(n), 10) }
	w, h := c.run*c.wide-c.gap, c.high-c.gap
	num('M', c.x*c.wide)
	num(' ', c.y*c.high)
	num('h', w)
	num('v', h)
	num('h', -w)
	c.d = append(c.d, 'z')
	c.run = 0
}

// path returns the attribute d of the path element; "": no cells.
func (c *cells) path() string {
	c.flush()
	return string(c.d)
}
