package audits

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
)

// Limits of the text.
const (
	maxDrawn = 24 // parts; equal parts count once
	maxLabel = 24 // columns for the names of rows
	maxPlain = 200
)

// Draw returns the matrix as text. If shaded, it has a mark in colour for each cell; else figures,
// if there is room, or one mark for each cell.
func (m *Matrix) Draw(width int, shaded bool) string {
	d := &drawing{Matrix: m, width: width, shaded: shaded}
	if m.known > 0 {
		d.scale = m.figure.scale(m.lowest, m.highest)
	}
	d.line("%s", m.title())
	alike, drawn := d.alike(), 0
	for i, p := range m.parts {
		switch {
		case alike[i] == 0: // equal to an earlier part
			continue
		case drawn == maxDrawn:
			d.line("more parts than can be drawn; choose fewer nodes")
			d.legend()
			return d.b.String()
		}
		drawn++
		if len(m.parts) > 1 {
			same := ""
			if n := alike[i] - 1; n > 0 {
				same = fmt.Sprintf(", and %d more that look alike", n)
			}
			d.line("")
			d.line("%d x %d: %s .. %s%s", len(p.Rows), len(p.Columns), nodeName(p.Rows[0]), nodeName(p.Rows[len(p.Rows)-1]), same)
		}
		d.part(p)
	}
	d.legend()
	return d.b.String()
}

// drawing is a matrix that is being drawn.
type drawing struct {
	*Matrix
	b          strings.Builder
	width      int
	shaded     bool
	scale      picture.Scale // nil if all values are unknown
	marked     bool          // there are cells that the legend explains
	absent     bool          // there are cells without a link
	unanswered bool          // there are cells whose value is unknown
}

// line writes a line, cut to the width.
func (d *drawing) line(format string, args ...any) {
	s := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	if d.width > 0 {
		s = text.Trim(s, d.width)
	}
	d.b.WriteString(s + "\n")
}

// title returns a description of the matrix in one line.
func (m *Matrix) title() string {
	what := m.figure.unit
	if what == "" {
		what = m.figure.name
	}
	s := fmt.Sprintf("%s (%d) x %s (%d), %s", m.from, len(m.rows), m.to, len(m.columns), what)
	if m.far {
		s += " of the ports at the columns"
	}
	switch {
	case len(m.parts) == 0:
		s += ": no link between them"
	case m.known == 0:
		s += ": unknown for all"
	case m.lowest == m.highest && m.unknown == 0:
		s += ": " + formatValue(m.highest) + " at all"
	default:
		s += ": " + formatValue(m.lowest) + " to " + formatValue(m.highest)
	}
	if m.unknown > 0 && m.known > 0 {
		s += fmt.Sprintf(", unknown for %s", plural.Count(m.unknown, "pair", "pairs"))
	}
	if m.alone > 0 {
		s += fmt.Sprintf("; %s without such a link", plural.Count(m.alone, "node", "nodes"))
	}
	return s
}

// alike returns for each part how many parts look like it; 0 if an earlier one does.
func (d *drawing) alike() []int {
	first, count := map[string]int{}, make([]int, len(d.parts))
	for i, p := range d.parts {
		var key strings.Builder
		for _, row := range p.figures {
			for _, f := range row {
				if d.shaded {
					key.WriteByte(byte('a' + d.shade(f)))
				} else {
					key.WriteString(d.figureText(f) + " ")
				}
			}
			key.WriteByte('\n')
		}
		at, ok := first[key.String()]
		if !ok {
			at = i
			first[key.String()] = i
		}
		count[at]++
	}
	return count
}

// shade returns the shade of a cell.
func (d *drawing) shade(f picture.Figure) int {
	switch {
	case f.Known > 0:
		return d.scale.Shade(f.Value)
	case f.Unknown > 0:
		return lang.ShadeUnknown
	}
	return lang.ShadeNone
}

// part draws the cells of a part, in several bands if they are too wide for one.
func (d *drawing) part(p matrixPart) {
	label := 0
	for _, n := range p.Rows {
		label = max(label, text.StringWidth(nodeName(n)))
	}
	label = min(label, maxLabel)
	room := math.MaxInt32
	if d.width > 0 {
		label = min(label, max(0, (d.width-2)/2-1))
		room = max(1, d.width-label-2)
	}
	if !d.shaded && d.table(p, label, min(room, maxPlain)) {
		return
	}
	wide := 1
	if 2*len(p.Columns) <= room {
		wide = 2
	}
	for from := 0; from < len(p.Columns); from += room / wide {
		to := min(len(p.Columns), from+room/wide)
		d.line("%s %s .. %s", text.Pad("", label, ' '), nodeName(p.Columns[from]), nodeName(p.Columns[to-1]))
		for r, n := range p.Rows {
			line := text.Pad(tail(nodeName(n), label), label, ' ') + " "
			for c := from; c < to; c++ {
				line += strings.Repeat(d.cell(d.noteShade(p.figures[r][c])), wide)
			}
			d.line("%s", line)
		}
	}
	d.marked = true
}

// cell returns the character for a cell of a shade.
func (d *drawing) cell(shade int) string {
	if d.shaded {
		return string(lang.Cell(shade))
	}
	return lang.ShadeMark(shade)
}

// noteShade returns the shade of a cell, and records it for the legend.
func (d *drawing) noteShade(f picture.Figure) int {
	shade := d.shade(f)
	d.unanswered = d.unanswered || shade == lang.ShadeUnknown
	d.absent = d.absent || shade == lang.ShadeNone
	return shade
}

// table draws the figures themselves, if there is room for them.
func (d *drawing) table(p matrixPart, label, room int) bool {
	widths := make([]int, len(p.Columns))
	for c, n := range p.Columns {
		widths[c] = min(text.StringWidth(nodeName(n)), 12)
		for r := range p.Rows {
			widths[c] = max(widths[c], len(d.figureText(p.figures[r][c])))
		}
		if room -= widths[c] + 2; room < 0 {
			return false
		}
	}
	line := func(first string, cell func(c int) string) {
		var b strings.Builder
		b.WriteString(text.Pad(tail(first, label), label, ' '))
		for c, w := range widths {
			s := tail(cell(c), w)
			b.WriteString("  " + strings.Repeat(" ", w-text.StringWidth(s)) + s)
		}
		d.line("%s", b.String())
	}
	line("", func(c int) string { return nodeName(p.Columns[c]) })
	for r, n := range p.Rows {
		line(nodeName(n), func(c int) string { return d.figureText(p.figures[r][c]) })
	}
	return true
}

// figureText returns the text of a cell.
func (d *drawing) figureText(f picture.Figure) string {
	switch {
	case f.Known > 0:
		return formatValue(f.Value)
	case f.Unknown > 0:
		return "?"
	}
	return "-"
}

// legend explains the cells.
func (d *drawing) legend() {
	if !d.marked {
		return
	}
	var list []string
	for i := range d.scale {
		list = append(list, d.cell(d.scale.ShadeOf(i))+" "+d.classText(i))
	}
	if d.unanswered {
		list = append(list, d.cell(lang.ShadeUnknown)+" unknown")
	}
	if d.absent {
		list = append(list, "blank: no link")
	}
	line := ""
	for _, s := range list {
		if line != "" && d.width > 0 && text.StringWidth(line+"  "+s) > d.width {
			d.line("%s", line)
			line = ""
		}
		if line != "" {
			line += "  "
		}
		line += s
	}
	d.line("%s", line)
}

// classText returns a class of the scale in words.
func (d *drawing) classText(i int) string {
	v := d.scale[i]
	whole := d.scale == nil || !slices.ContainsFunc(d.scale, func(v float64) bool { return v != math.Trunc(v) && v != math.SmallestNonzeroFloat64 })
	switch next := i + 1; {
	case v == math.SmallestNonzeroFloat64, i == 0 && v == 0:
		return d.scale.Text(i)
	case whole && (next < len(d.scale) && d.scale[next] == v+1 || next == len(d.scale) && v == d.highest):
		return formatValue(v) // the only value in the class
	}
	return "from " + formatValue(v)
}

// nodeName returns the name of a node as text on one line.
func nodeName(n *fabric.Node) string {
	if strings.TrimSpace(n.Name()) == "" {
		return n.GUID().String()
	}
	return lang.OneLine(n.Name())
}

// formatValue returns v with three digits, or as an integer.
func formatValue(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e7 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// tail returns the end of s, which distinguishes names, in width columns.
func tail(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	runes := []rune(s)
	from := len(runes)
	for room := width - 1; from > 0 && text.RuneWidth(runes[from-1]) <= room; from-- {
		room -= text.RuneWidth(runes[from-1])
	}
	return "~" + string(runes[from:])
}

// Sizes in the image, in pixels.
const (
	svgCell   = 12
	svgLabel  = 180 // width of the names of rows
	svgLine   = 16
	svgLetter = 25 // letters in a label
	svgMargin = 8
)

// SaveAs returns a function that writes the matrix as an image, with a shaded square for each cell
// and its value as a tooltip; nil: the format of the suffix is not supported.
func (m *Matrix) SaveAs(suffix string) func(io.Writer) error {
	if suffix != "svg" {
		return nil
	}
	return func(w io.Writer) error {
		out := bufio.NewWriter(w)
		m.svg(out)
		return out.Flush()
	}
}

// svg writes the matrix as an image.
func (m *Matrix) svg(w io.Writer) {
	var scale picture.Scale
	if m.known > 0 {
		scale = m.figure.scale(m.lowest, m.highest)
	}
	width, height := 600, svgMargin+svgLine
	for _, p := range m.parts {
		width = max(width, svgLabel+len(p.Columns)*svgCell)
		height += svgLine*2 + len(p.Rows)*svgCell
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="10">`+"\n", width+svgMargin, height+svgMargin)
	fmt.Fprintf(w, `<text x="%d" y="%d" font-size="12">%s</text>`+"\n", svgMargin, svgLine, escape(m.title()))
	y := svgMargin + svgLine
	for _, p := range m.parts {
		y += svgLine * 2
		fmt.Fprintf(w, `<text x="%d" y="%d">%s</text>`+"\n", svgLabel, y-4, escape(fmt.Sprintf("%s .. %s", nodeName(p.Columns[0]), nodeName(p.Columns[len(p.Columns)-1]))))
		for r, row := range p.figures {
			label := []rune(nodeName(p.Rows[r]))
			if len(label) > svgLetter {
				label = append(label[:svgLetter-3], '.', '.', '.')
			}
			fmt.Fprintf(w, `<text x="%d" y="%d">%s</text>`+"\n", svgMargin, y+svgCell-2, escape(string(label)))
			for c, f := range row {
				fill, value := "none", "unknown"
				switch {
				case f.Known > 0:
					shade := 235 - 30*scale.Shade(f.Value)
					fill, value = fmt.Sprintf("rgb(%d,%d,255)", max(0, shade), max(0, shade)), formatValue(f.Value)
				case f.Unknown == 0:
					continue // no link
				}
				fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#888"><title>%s</title></rect>`+"\n", svgLabel+c*svgCell, y, svgCell-1, svgCell-1, fill,
					escape(fmt.Sprintf("%s - %s: %s", nodeName(p.Rows[r]), nodeName(p.Columns[c]), value)))
			}
			y += svgCell
		}
	}
	io.WriteString(w, "</svg>\n")
}

// escape returns text of the fabric for an image.
func escape(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(lang.OneLine(text)))
	return b.String()
}
