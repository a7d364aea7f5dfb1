package help

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Text returns the whole guide as text, in lines of at most width columns except for code;
// 0 means no limit.
func (g *Guide) Text(width int) string { return write(g.Parts, width) }

// PartText returns part i as text, with the parts below its heading.
func (g *Guide) PartText(i, width int) string { return write(g.below(i), width) }

// Own returns part i as text, without its heading and the parts below it; "" without text.
func (g *Guide) Own(i, width int) string {
	p := g.Parts[i]
	if len(p.Blocks) == 0 {
		return ""
	}
	_, text, _ := strings.Cut(write([]GuidePart{p}, width), "\n\n")
	return text
}

func write(parts []GuidePart, width int) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('\n')
		}
		if p.Level == 1 {
			b.WriteString(strings.ToUpper(p.Title) + "\n")
		} else {
			b.WriteString(p.Title + "\n" + strings.Repeat("-", min(text.StringWidth(p.Title), max(width, 78))) + "\n")
		}
		for j, block := range p.Blocks {
			if j == 0 || block.Kind != blockItem || p.Blocks[j-1].Kind != blockItem {
				b.WriteByte('\n')
			}
			block.write(&b, width)
		}
	}
	return b.String()
}

// write writes a block, with a line feed at its end.
func (block *Block) write(b *strings.Builder, width int) {
	switch block.Kind {
	case blockProse:
		fill(b, "", "", plainText(block.Text), width)
	case blockItem:
		fill(b, "- ", "  ", plainText(block.Text), width)
	case blockCode:
		for line := range strings.Lines(block.Text) {
			if line != "\n" {
				b.WriteString("  ")
			}
			b.WriteString(line)
		}
	case blockTable:
		writeTable(b, block.Rows, width)
	}
}

// writeTable writes rows in columns and wraps the last column, if the others take at most
// half of the width; else each further cell has a line of its own.
func writeTable(b *strings.Builder, rows [][]string, width int) {
	widths, left := columns(rows)
	head := true
	for _, row := range rows {
		if head = head && isEmpty(row[1:]); head {
			continue // an empty head
		}
		if width > 0 && left > width/2 {
			for i, cell := range row {
				if indent := strings.Repeat("  ", 1+min(i, 1)); plainText(cell) != "" {
					fill(b, indent, indent+"  ", plainText(cell), width)
				}
			}
			continue
		}
		line := "  "
		for i, cell := range row[:len(row)-1] {
			cell = plainText(cell)
			line += cell + strings.Repeat(" ", widths[i]-text.StringWidth(cell)+2)
		}
		fill(b, line, strings.Repeat(" ", left), plainText(row[len(row)-1]), width)
	}
}

// columns returns the widths of all columns except the last, and their total with
// indentation.
func columns(rows [][]string) (widths []int, left int) {
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			for len(widths) <= i {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.StringWidth(plainText(cell)))
		}
	}
	left = 2
	for _, w := range widths {
		left += w + 2
	}
	return widths, left
}

func isEmpty(cells []string) bool { return strings.TrimSpace(strings.Join(cells, "")) == "" }

// fill wraps words in lines of at most width columns; the first line begins with one
// prefix, the others with another.
func fill(b *strings.Builder, first, rest, words string, width int) {
	line, used := first, text.StringWidth(first)
	begin := true // of a line
	for word := range strings.FieldsSeq(words) {
		w := text.StringWidth(word)
		if !begin && width > 0 && used+1+w > width {
			b.WriteString(line + "\n")
			line, used, begin = rest, text.StringWidth(rest), true
		}
		if !begin {
			line, used = line+" ", used+1
		}
		line, used, begin = line+word, used+w, false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
