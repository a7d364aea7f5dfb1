package guide

import (
	"fmt"
	"strings"
)

// Page is the name of the man page of a guide, in section 7.
func (g *Guide) Page() string { return "fabsh-" + g.Name }

// Man returns the guide as a man page (man(7)).
func (g *Guide) Man() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 7 \"\" fabsh fabsh\n.SH NAME\n%s \\- %s\n", strings.ToUpper(Roff(g.Page())), Roff(g.Page()), Roff(lowerFirst(g.Title())))
	for i, p := range g.Parts {
		title := strings.ToUpper(Roff(p.Title))
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

// man writes a block; first: it is below the heading, where a paragraph begins by itself.
func (block *Block) man(b *strings.Builder, first bool) {
	if !first && block.Kind != Item {
		b.WriteString(".PP\n")
	}
	switch block.Kind {
	case Prose:
		b.WriteString(manSpans(block.Text) + "\n")
	case Item:
		b.WriteString(".IP \\(bu 2\n" + manSpans(block.Text) + "\n")
	case Code:
		b.WriteString(".RS 2\n.nf\n")
		for line := range strings.Lines(block.Text) {
			b.WriteString(roffLine(strings.TrimRight(line, "\n")) + "\n")
		}
		b.WriteString(".fi\n.RE\n")
	case Table:
		head := true
		for _, row := range block.Rows {
			if head = head && isEmpty(row[1:]); head {
				continue
			}
			text := manSpans(row[0])
			if text == "" {
				text = "\\&"
			}
			b.WriteString(".TP 16\n" + text + "\n")
			var cells []string
			for _, cell := range row[1:] {
				if cell != "" {
					cells = append(cells, manSpans(cell))
				}
			}
			if len(cells) == 0 {
				cells = []string{"\\&"}
			}
			b.WriteString(strings.Join(cells, "\n.br\n") + "\n")
		}
	}
}

// manSpans is prose with code in bold.
func manSpans(text string) string {
	var b strings.Builder
	for _, s := range Spans(text) {
		if s.Code || s.Bold {
			b.WriteString(`\fB` + Roff(s.Text) + `\fR`)
		} else {
			b.WriteString(Roff(s.Text))
		}
	}
	return protect(b.String())
}

// roffLine is a line that troff sets as it is.
func roffLine(text string) string { return protect(Roff(text)) }

// Roff is text in which troff finds no command, but for the beginning of a line.
func Roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "'", `\(aq`, `"`, `\(dq`).Replace(text)
}

// protect keeps a line from being a request.
func protect(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
