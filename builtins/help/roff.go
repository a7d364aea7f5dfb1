package help

import (
	"fmt"
	"strings"

	"fabsh"
)

// Page returns the name of the man page of the guide, in section 7.
func (g *Guide) Page() string { return "fabsh-" + g.Name }

// Man returns the guide as a man page (man(7)). Only TestMan of package shell calls it: `make
// generate` runs that test to write the pages.
func (g *Guide) Man() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.SH NAME\n%s \\- %s\n", ManTitle(g.Page(), 7), Roff(g.Page()), Roff(lowerFirst(g.Title())))
	for i, p := range g.Parts {
		title := Roff(strings.ToUpper(p.Title))
		switch {
		case i == 0:
			b.WriteString(".SH DESCRIPTION\n")
		case p.Level <= 2:
			fmt.Fprintf(&b, ".SH %s\n", title)
		default:
			fmt.Fprintf(&b, ".SS %s\n", Roff(p.Title))
		}
		for j := range p.Blocks {
			p.Blocks[j].man(&b, j == 0)
		}
	}
	b.WriteString(".SH SEE ALSO\nfabsh(1); \"fabsh help guides\", all guides\n")
	return b.String()
}

// ManTitle returns the first line of a man page.
func ManTitle(page string, section int) string {
	return fmt.Sprintf(".TH %s %d %s \"fabsh %s\" fabsh\n", Roff(strings.ToUpper(page)), section, fabsh.Date, fabsh.Version)
}

// man writes a block. first reports that it follows the heading, where a paragraph needs
// no command, like items and tables.
func (block *Block) man(b *strings.Builder, first bool) {
	if !first && block.Kind != blockItem && block.Kind != blockTable {
		b.WriteString(".PP\n")
	}
	switch block.Kind {
	case blockProse:
		b.WriteString(manSpans(block.Text))
	case blockItem:
		b.WriteString(".IP \\(bu 2\n" + manSpans(block.Text))
	case blockCode:
		b.WriteString(".RS 2\n.nf\n")
		for line := range strings.Lines(block.Text) {
			b.WriteString(RoffLine(strings.TrimRight(line, "\n")) + "\n")
		}
		b.WriteString(".fi\n.RE\n")
	case blockTable:
		head := true
		for _, row := range block.Rows {
			if head = head && isEmpty(row[1:]); head {
				continue
			}
			b.WriteString(".TP 16\n" + manCell(row[0]))
			for i, cell := range row[1:] {
				if i > 0 && cell != "" {
					b.WriteString(".br\n")
				}
				if i == 0 || cell != "" {
					b.WriteString(manCell(cell))
				}
			}
		}
	}
}

// manCell returns the line of a table cell; an empty cell needs a line too.
func manCell(cell string) string {
	if cell == "" {
		return "\\&\n"
	}
	return manSpans(cell)
}

// manSpans returns prose with code in bold, wrapped in lines.
func manSpans(text string) string {
	var b strings.Builder
	for _, s := range spansOf(text) {
		if s.Code || s.Bold {
			b.WriteString(`\fB` + Roff(s.Text) + `\fR`)
		} else {
			b.WriteString(Roff(s.Text))
		}
	}
	var filled, lines strings.Builder
	wrapWords(&filled, "", "", b.String(), 78)
	for line := range strings.Lines(filled.String()) {
		lines.WriteString(escapeStart(line))
	}
	return lines.String()
}

// RoffLine returns a line that troff prints unchanged.
func RoffLine(text string) string { return escapeStart(Roff(text)) }

// Roff escapes text for troff, except the beginning of a line.
func Roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "'", `\(aq`, `"`, `\(dq`).Replace(text)
}

// escapeStart escapes the beginning of a line, so that troff does not read it as a request.
func escapeStart(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// lowerFirst returns s with a small first letter, except before a capital one.
func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
