package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Sizes in pixels.
const (
	margin    = 24
	boxWidth  = 124
	boxHeight = 87
	boxGap    = 12
	lineGap   = 20  // between lines of a tier
	tierGap   = 110 // between tiers
	tierText  = 130 // width of the names of tiers, beside the boxes
	perLine   = 36  // boxes
	lineText  = 14  // height of a line of text
	maxLines  = 5   // of text in a box
	named     = 16  // characters of a name in a box
	tooltip   = 200 // characters of a name in a tooltip
	minWidth  = 760
	labelled  = 40 // edges between two tiers: of more, the counts are only in tooltips

	cell      = 15  // width and height of a cell of a matrix
	sideText  = 22  // characters of a name beside a matrix
	charWidth = 6   // of these, about
	numbered  = 600 // cells of a matrix that may have their numbers
	allDrawn  = 12  // matrices: of more, uniform ones are only listed
)

// style is for light and dark screens; colors are distinct for the color-blind (Okabe and
// Ito), and numbers repeat what they show.
const style = `
.bg{fill:#fff}.t{fill:#222}.s{fill:#666}.bad{fill:#b34700;font-weight:bold}.box{fill:#eef3f8;stroke:#456}.centre{stroke-width:3}.odd{stroke:#d55e00;stroke-width:2.5}.edge{stroke:#678;stroke-opacity:.65;fill:none}.slow{stroke:#d55e00;stroke-opacity:1}
.n{fill:#222;stroke:#fff;stroke-width:3px;paint-order:stroke}.frame{fill:#fff;stroke:#999}.same{fill:#56b4e9}.less{fill:#e69f00}.more{fill:#0072b2}.none{fill:#d55e00}.cs{fill:none;stroke:#d55e00;stroke-width:2}.grid{stroke:#fff;stroke-width:1;fill:none}.w{fill:#fff}.k{fill:#000}
@media (prefers-color-scheme:dark){.bg{fill:#14181c}.t{fill:#eee}.s{fill:#aaa}.bad{fill:#e69f00}.box{fill:#22303c;stroke:#9ab}.edge{stroke:#9ab}.slow,.odd{stroke:#e69f00}.n{fill:#eee;stroke:#14181c}.frame{fill:#20262b;stroke:#777}.grid{stroke:#20262b}}
`

// SVG writes the ladder, and below it the matrices, as a self-contained SVG image. The output is
// deterministic.
func (l *Ladder) SVG(w io.Writer) error {
	d := &drawing{ladder: l, width: minWidth}
	d.place()
	body := &d.body
	d.head()
	d.edges()
	d.boxes()
	d.matrices(l.Matrices)
	for _, note := range l.Notes {
		d.y += lineText + 2
		d.text("s", margin, d.y, note)
	}
	title := "Fabric"
	if l.Around != nil {
		title = "Neighbourhood of nodes of a fabric"
	}
	height := d.y + margin
	if _, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11" role="img">
<title>%s</title>
<style>%s</style>
<rect class="bg" width="%[1]d" height="%[2]d"/>
`, d.width, height, title, style); err != nil {
		return err
	}
	if _, err := body.WriteTo(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</svg>\n")
	return err
}

// drawing is an SVG image that grows downwards.
type drawing struct {
	ladder *Ladder
	body   bytes.Buffer
	width  int
	y      int
	boxAt  [][2]int // by group: left and upper edge
	tierAt []int    // by index of Tiers: its upper edge
}

// place computes where boxes are.
func (d *drawing) place() {
	groups := 0
	for _, t := range d.ladder.Tiers {
		n := min(len(t.Groups), perLine)
		d.width = max(d.width, 2*margin+tierText+n*(boxWidth+boxGap)-boxGap)
		groups += len(t.Groups)
	}
	d.boxAt = make([][2]int, groups)
	d.y = margin + 4*lineText
	for i, t := range d.ladder.Tiers {
		if i > 0 {
			d.y += tierGap
		} else {
			d.y += 2 * lineText
		}
		d.tierAt = append(d.tierAt, d.y)
		for j := 0; j < len(t.Groups); j += perLine {
			if j > 0 {
				d.y += lineGap
			}
			line := t.Groups[j:min(j+perLine, len(t.Groups))]
			x := (d.width + tierText - len(line)*(boxWidth+boxGap) + boxGap) / 2
			for k, g := range line {
				d.boxAt[g.ID] = [2]int{x + k*(boxWidth+boxGap), d.y}
			}
			d.y += boxHeight
		}
	}
}

// head draws the title and the legend.
func (d *drawing) head() {
	l := d.ladder
	y := margin
	if l.Around != nil {
		var names []string
		for i, n := range l.Around {
			if i == 8 {
				names = append(names, fmt.Sprintf("%d more", len(l.Around)-i))
				break
			}
			names = append(names, NodeName(n, 64))
		}
		d.printf(`<text class="t" x="%d" y="%d" font-size="14" font-weight="bold">links of %s</text>`, margin, y, escape(strings.Join(names, ", ")))
		y += lineText + 4
	}
	class := "t"
	if !l.Fabric.Complete() {
		class = "bad"
	}
	d.printf(`<text class="%s" x="%d" y="%d" font-size="13">%s</text>`, class, margin, y, escape(Text(l.Fabric.String(), tooltip)))
	d.text("s", margin, y+lineText+2, "Tiers are distances from the hosts. A box stands for nodes with the same connections, a line for the links between them.")
	d.text("s", margin, y+2*lineText+2, "Orange: a box that lacks links up or down, or whose switches have different numbers of them; a line with links that are missing, slow or not active.")
}

// edges draws lines from box to box, below the boxes, bad ones above the others; a box has the
// count of links within it.
func (d *drawing) edges() {
	type tiers [2]int
	between := map[tiers]int{}
	for _, e := range d.ladder.Edges {
		between[tiers{e.A.Tier, e.B.Tier}]++
	}
	var labels bytes.Buffer
	for _, e := range badLast(d.ladder.Edges) {
		a, b := d.boxAt[e.A.ID], d.boxAt[e.B.ID]
		x1, y1, x2, y2 := a[0]+boxWidth/2, a[1]+boxHeight, b[0]+boxWidth/2, b[1]
		path, x, y := fmt.Sprintf("M%d %dL%d %d", x1, y1, x2, y2), x1+(x2-x1)*2/5, y1+(y2-y1)*2/5
		if e.A.Tier == e.B.Tier { // an arc above the boxes of the tier
			y1 = a[1]
			top := min(y1, y2) - 16 - min(max(x2-x1, x1-x2)/12, tierGap/2)
			path, x, y = fmt.Sprintf("M%d %dQ%d %d %d %d", x1, y1, (x1+x2)/2, top, x2, y2), (x1+x2)/2, (min(y1, y2)+top)/2
		}
		class, width := "edge", thickness(e.Links)
		if e.Bad() {
			class, width = "edge slow", thickness(max(e.Links, 8)) // else it is hard to see
		}
		d.printf(`<path class="%s" stroke-width="%s" d="%s"><title>%s: %s</title></path>`, class, width, path, escape(ends(e)), e.Text())
		if between[tiers{e.A.Tier, e.B.Tier}] <= labelled {
			fmt.Fprintf(&labels, `<text class="n" x="%d" y="%d" text-anchor="middle">%d</text>`+"\n", x, y, e.Links)
		}
	}
	labels.WriteTo(&d.body)
}

// badLast returns the edges between two groups, bad ones last, so that others do not cover them.
func badLast(edges []Edge) (list []*Edge) {
	for _, bad := range []bool{false, true} {
		for i := range edges {
			if e := &edges[i]; e.A != e.B && e.Bad() == bad {
				list = append(list, e)
			}
		}
	}
	return list
}

// ends returns the names of both groups of an edge.
func ends(e *Edge) string {
	return strings.Join(e.A.names(named), " … ") + " - " + strings.Join(e.B.names(named), " … ")
}

// thickness returns the width of a line for a number of links: it grows with their logarithm.
func thickness(links int) string {
	w := 1.0
	for ; links > 1; links /= 2 {
		w += 0.6
	}
	return fmt.Sprintf("%.1f", min(w, 8))
}

// boxes draws the groups, and the names of tiers.
func (d *drawing) boxes() {
	within := map[*Group]*Edge{}
	for i := range d.ladder.Edges {
		if e := &d.ladder.Edges[i]; e.A == e.B {
			within[e.A] = e
		}
	}
	for i, t := range d.ladder.Tiers {
		d.printf(`<text class="t" x="%d" y="%d" font-weight="bold">%s</text>`, margin, d.tierAt[i]+boxHeight/2, TierName(t.Num))
		for _, g := range t.Groups {
			x, y := d.boxAt[g.ID][0], d.boxAt[g.ID][1]
			lines := []string{g.CountText()}
			if len(g.Nodes) == 1 {
				lines = []string{g.CountText()[2:]} // without the 1
			}
			names := g.names(named)
			lines = append(lines, names[0])
			if len(names) > 1 {
				lines = append(lines, "… "+names[1])
			}
			lines = append(lines, g.LinkText()...)
			if e := within[g]; e != nil {
				text := fmt.Sprintf("%d within", e.Links)
				if len(lines) == maxLines {
					lines[maxLines-1] += ", " + text
				} else {
					lines = append(lines, text)
				}
			}
			class := "box"
			if g.Uneven() {
				class = "box odd"
			}
			if l := d.ladder; l.Around != nil && l.isCentre(g) {
				class = "box centre"
			}
			d.printf(`<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="5"/>`, escape(strings.Join(append(g.names(tooltip), g.CountText()), "\n")), class, x, y, boxWidth, boxHeight)
			for j, line := range lines {
				weight := ""
				if j == 0 {
					weight = ` font-weight="bold"`
				}
				d.printf(`<text class="t" x="%d" y="%d" text-anchor="middle"%s>%s</text>`, x+boxWidth/2, y+16+j*(lineText+1), weight, escape(line))
			}
			d.printf(`</g>`)
		}
	}
}

func (d *drawing) text(class string, x, y int, text string) {
	d.printf(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, escape(text))
}

func (d *drawing) printf(format string, args ...any) {
	fmt.Fprintf(&d.body, format+"\n", args...)
}

// escape returns text as XML.
func escape(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // a builder does not fail
	return b.String()
}

// matrices draws list side by side, in as many rows as the width requires.
func (d *drawing) matrices(list []*Matrix) {
	if len(list) == 0 {
		return
	}
	list, alike := splitUniform(list)
	for _, m := range list {
		d.width = max(d.width, 2*margin+side(m.Rows)+len(m.Columns)*cell)
	}
	d.y += 3 * lineText
	d.printf(`<text class="t" x="%d" y="%d" font-size="13">Links between switches</text>`, margin, d.y)
	legend := margin
	for _, l := range []struct{ class, text string }{{"same", "as most of the matrix"}, {"less", "fewer"}, {"none", "none"}, {"more", "more"}, {"cs", "some slower than possible or not active"}} {
		d.printf(`<rect class="%s" x="%d" y="%d" width="11" height="11"/>`, l.class, legend, d.y+8)
		d.text("s", legend+16, d.y+17, l.text)
		legend += 40 + 6*len(l.text)
	}
	d.y += lineText
	for _, text := range alike {
		d.y += lineText + 2
		d.text("t", margin, d.y+6, text)
	}
	x, bottom := margin, d.y
	for _, m := range list {
		width := max(side(m.Rows)+len(m.Columns)*cell, 7*len(m.title()))
		if x > margin && x+width > d.width-margin {
			x, d.y = margin, bottom
		}
		height := d.matrix(m, x, d.y+2*lineText)
		bottom = max(bottom, d.y+2*lineText+height)
		x += width + 2*margin
	}
	d.y = bottom
}

// matrix draws m at a place and returns its height.
func (d *drawing) matrix(m *Matrix, x, y int) int {
	d.printf(`<g font-size="10"><text class="t" x="%d" y="%d" font-size="11">%s</text>`, x, y, m.title())
	left, top := x+side(m.Rows), y+side(m.Columns)
	d.printf(`<rect class="frame" x="%d" y="%d" width="%d" height="%d"/>`, left, top, len(m.Columns)*cell, len(m.Rows)*cell)
	for i, n := range m.Rows {
		d.printf(`<text class="t" x="%d" y="%d" text-anchor="end">%s</text>`, left-4, top+i*cell+11, escape(NodeName(n, sideText)))
	}
	for i, n := range m.Columns {
		d.printf(`<text class="t" transform="translate(%d %d)rotate(-90)">%s</text>`, left+i*cell+11, top-4, escape(NodeName(n, sideText)))
	}
	for _, class := range []string{"same", "less", "none", "more"} {
		if path := m.cells(func(r, c int) bool { return m.class(r, c) == class }, left, top); path != "" {
			d.printf(`<path class="%s" d="%s"/>`, class, path)
		}
	}
	if path := m.cells(func(r, c int) bool { return m.bad(r, c) }, left, top); path != "" {
		d.printf(`<path class="cs" d="%s"/>`, path)
	}
	var grid strings.Builder
	for c := 1; c < len(m.Columns); c++ {
		fmt.Fprintf(&grid, "M%d.5 %dv%d", left+c*cell-1, top+1, len(m.Rows)*cell-2)
	}
	d.printf(`<path class="grid" d="%s"/>`, grid.String())
	d.numbers(m, left, top)
	d.printf(`</g>`)
	return side(m.Columns) + len(m.Rows)*cell + lineText
}

// splitUniform returns the matrices that are drawn, and a line of text for each kind of uniform
// matrices, which are not.
func splitUniform(list []*Matrix) (drawn []*Matrix, alike []string) {
	if len(list) <= allDrawn {
		return list, nil
	}
	count := map[string]int{}
	for _, m := range list {
		if !m.uniform() {
			drawn = append(drawn, m)
			continue
		}
		if count[m.title()]++; count[m.title()] == 1 {
			alike = append(alike, m.title())
		}
	}
	for i, title := range alike {
		alike[i] = fmt.Sprintf("%s, in all cells: %s", title, plural.Count(count[title], "matrix", "matrices"))
	}
	return drawn, alike
}

// bad reports whether a link of the cell is slow or not active.
func (m *Matrix) bad(r, c int) bool {
	s := m.States(r, c)
	return s.Worst() >= Slow
}

// uniform reports whether no cell differs from another and no link is slow or not active.
func (m *Matrix) uniform() bool {
	for r := range m.Rows {
		for c := range m.Columns {
			if len(m.Links[r][c]) != m.Expected || m.bad(r, c) {
				return false
			}
		}
	}
	return true
}

// title returns the tiers and the size of m, and the number of links in most cells; in a uniform
// matrix, in all cells.
func (m *Matrix) title() string {
	usual := plural.Count(m.Expected, "link", "links")
	if m.Expected == 0 {
		usual = "none"
	}
	if !m.uniform() {
		usual = "most " + usual
	}
	return fmt.Sprintf("%s x %s: %d x %d, %s", TierName(m.Tiers[0]), TierName(m.Tiers[1]), len(m.Rows), len(m.Columns), usual)
}

// side returns the room for names beside a matrix, in pixels.
func side(nodes []*fabric.Node) int {
	longest := 0
	for _, n := range nodes {
		longest = max(longest, utf8.RuneCountInString(NodeName(n, sideText)))
	}
	return longest*charWidth + 2*lineText
}

// numbers draws the number of links in cells that differ from most, unless these are many.
func (d *drawing) numbers(m *Matrix, left, top int) {
	var b bytes.Buffer
	n := 0
	for r, line := range m.Links {
		for c, links := range line {
			if class := m.class(r, c); class != "" && class != "same" {
				ink := "k"
				if class == "more" || class == "none" {
					ink = "w"
				}
				fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d" text-anchor="middle">%d</text>`+"\n", ink, left+c*cell+cell/2, top+r*cell+11, len(links))
				n++
			}
		}
	}
	if n <= numbered {
		b.WriteTo(&d.body)
	}
}

// class returns the style sheet class of a cell; "" for no links where most cells have none, and
// for a switch with itself.
func (m *Matrix) class(r, c int) string {
	switch n := len(m.Links[r][c]); {
	case n == 0 && (m.Expected == 0 || m.Rows[r] == m.Columns[c]):
		return ""
	case n == m.Expected:
		return "same"
	case n == 0:
		return "none"
	case n < m.Expected:
		return "less"
	}
	return "more"
}

// cells returns the path around the cells for which is holds, neighbours in a row as one.
func (m *Matrix) cells(is func(r, c int) bool, left, top int) string {
	var b strings.Builder
	for r := range m.Rows {
		for c := 0; c < len(m.Columns); {
			run := c
			for run < len(m.Columns) && is(r, run) {
				run++
			}
			if run == c {
				c++
				continue
			}
			w, h := (run-c)*cell-1, strconv.Itoa(cell-1)
			fmt.Fprintf(&b, "M%d %dh%dv%sh-%dz", left+c*cell, top+r*cell, w, h, w)
			c = run
		}
	}
	return b.String()
}
