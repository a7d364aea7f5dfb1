package audits

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/picture"
)

// Sizes in the image, in pixels.
const (
	svgCell   = 12
	svgLabel  = 180 // width of the names of rows
	svgLine   = 16
	svgLetter = 25 // letters in a label
	svgMargin = 8
)

// SaveAs writes the matrix as an image: of a shaded square for each cell, with its value as
// a tooltip.
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
		fmt.Fprintf(w, `<text x="%d" y="%d">%s</text>`+"\n", svgLabel, y-4, escape(fmt.Sprintf("%s .. %s", name(p.Columns[0]), name(p.Columns[len(p.Columns)-1]))))
		for r, row := range p.figures {
			label := []rune(name(p.Rows[r]))
			if len(label) > svgLetter {
				label = append(label[:svgLetter-3], '.', '.', '.')
			}
			fmt.Fprintf(w, `<text x="%d" y="%d">%s</text>`+"\n", svgMargin, y+svgCell-2, escape(string(label)))
			for c, f := range row {
				fill, value := "none", "unknown"
				switch {
				case f.Known > 0:
					shade := 235 - 30*scale.Shade(f.Value)
					fill, value = fmt.Sprintf("rgb(%d,%d,255)", max(0, shade), max(0, shade)), matrixNumber(f.Value)
				case f.Unknown == 0:
					continue // no link
				}
				fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#888"><title>%s</title></rect>`+"\n", svgLabel+c*svgCell, y, svgCell-1, svgCell-1, fill,
					escape(fmt.Sprintf("%s - %s: %s", name(p.Rows[r]), name(p.Columns[c]), value)))
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
