package picture

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Sizes in pixels.
const (
	cell      = 15
	sideText  = 22  // characters of a name beside a matrix
	charWidth = 6   // of these, about
	numbered  = 600 // cells of a matrix that may have their numbers
	allDrawn  = 12  // matrices: of more, uniform ones are only listed
)

// matrices are side by side as far as the width goes.
func (d *drawing) matrices(list []*Matrix) {
	if len(list) == 0 {
		return
	}
	list, alike := apart(list)
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

// apart are the matrices that are drawn, and lines on those in which all is alike.
func apart(list []*Matrix) (drawn []*Matrix, alike []string) {
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

// title is which switches m is of, and what most cells have; of uniform ones, all have.
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

// side is the room for names beside a matrix.
func side(nodes []*fabric.Node) int {
	longest := 0
	for _, n := range nodes {
		longest = max(longest, utf8.RuneCountInString(NodeName(n, sideText)))
	}
	return longest*charWidth + 2*lineText
}

// numbers are in cells that differ from most, unless these are many.
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

// class is how a cell is drawn; "" for none where most have none, and for a switch with
// itself.
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

// cells is the path round the cells for which is holds, neighbours in a row as one.
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
