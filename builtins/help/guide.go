package help

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh"
)

// Guide is a document in Markdown, also shown on a terminal and as a man page. A comment
// <!-- help: NAMES --> below a heading gives the names by which help finds the part below that
// heading.
type Guide struct {
	Name  string      // of the topic: "change-guide"
	File  string      // below the root of the module
	Parts []GuidePart // the first is the whole guide, with the text above the second heading
}

// GuidePart is a heading and the text below it.
type GuidePart struct {
	Title  string
	Level  int      // of the heading: 1 is the heading of the guide
	Names  []string // topics
	Blocks []Block  // up to the next heading
	Guide  string   // name of the guide
}

// Title returns the title of the guide.
func (g *Guide) Title() string { return g.Parts[0].Title }

// Summary returns the first sentence of the guide.
func (g *Guide) Summary() string { return g.Parts[0].Summary() }

// Summary returns the first sentence of the part, "" if it has no prose.
func (p *GuidePart) Summary() string {
	for _, b := range p.Blocks {
		if b.Kind == blockProse || b.Kind == blockItem {
			text := plainText(b.Text)
			if i := strings.Index(text, ". "); i >= 0 {
				text = text[:i+1]
			}
			return text
		}
	}
	return ""
}

// guideOrder is the order of the guides; the others follow by file name.
var guideOrder = []string{"shell-guide", "language-guide", "script-guide", "routing-guide", "change-guide", "sim-guide", "monitoring-guide"}

// Guides returns the guides. The caller must not change them.
func Guides() []Guide { return allGuides() }

// allGuides reads the embedded guides once.
var allGuides = sync.OnceValue(func() (list []Guide) {
	// Embedded documents can be read.
	fs.WalkDir(fabsh.Documents, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			text, _ := fs.ReadFile(fabsh.Documents, name)
			list = append(list, parseGuide(name, string(text)))
		}
		return err
	})
	rank := func(g Guide) int {
		if i := slices.Index(guideOrder, g.Name); i >= 0 {
			return i
		}
		return len(guideOrder)
	}
	slices.SortStableFunc(list, func(a, b Guide) int { return rank(a) - rank(b) })
	return list
})

// parseGuide splits a document at its headings.
func parseGuide(file, text string) Guide {
	g := Guide{File: file}
	for _, b := range blocks(text) {
		switch last := len(g.Parts) - 1; {
		case b.Kind == blockHeading:
			g.Parts = append(g.Parts, GuidePart{Title: plainText(b.Text), Level: b.Level})
		case last < 0:
		case b.Kind == blockNames:
			g.Parts[last].Names = splitNames(b.Text)
		default:
			g.Parts[last].Blocks = append(g.Parts[last].Blocks, b)
		}
	}
	if len(g.Parts) == 0 {
		g.Parts = []GuidePart{{Title: file, Level: 1}}
	}
	if names := g.Parts[0].Names; len(names) > 0 {
		g.Name = names[0]
	}
	for i := range g.Parts {
		g.Parts[i].Guide = g.Name
	}
	return g
}

// splitNames splits a list with commas.
func splitNames(text string) (names []string) {
	for name := range strings.SplitSeq(text, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// below returns part i and the parts below its heading.
func (g *Guide) below(i int) []GuidePart {
	end := i + 1
	for end < len(g.Parts) && (i == 0 || g.Parts[end].Level > g.Parts[i].Level) {
		end++
	}
	return g.Parts[i:end]
}

// blockKind is the kind of a block.
type blockKind int

// The kinds of blocks.
const (
	blockHeading blockKind = iota
	blockNames             // the names of the part, in a comment
	blockProse
	blockItem  // of a list
	blockCode  // unchanged
	blockTable // in Rows
)

// Block is a heading, a paragraph, an item of a list, code or a table.
type Block struct {
	Kind  blockKind
	Level int    // of a heading
	Text  string // prose in one line, with the marks of Markdown; code with its lines
	Rows  [][]string
}

// blocks reads the subset of Markdown that the guides use: headings with #, paragraphs,
// lists with -, code in fences or indented by four blanks, tables. It omits other comments
// and images.
func blocks(text string) (list []Block) {
	open := false // the last block continues
	add := func(b Block) { list, open = append(list, b), true }
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		bare := strings.TrimSpace(line)
		last := func() *Block { return &list[len(list)-1] }
		continues := func(k blockKind) bool { return open && len(list) > 0 && last().Kind == k }
		switch {
		case fence != "":
			if strings.HasPrefix(line, fence) {
				fence, open = "", false
			} else {
				last().Text += line + "\n"
			}
		case strings.HasPrefix(line, "```"):
			fence = "```"
			add(Block{Kind: blockCode})
		case bare == "":
			if open && len(list) > 0 && last().Kind == blockCode {
				last().Text += "\n" // of indented code, which may continue
			} else {
				open = false
			}
		case strings.HasPrefix(bare, "<!-- help:"):
			add(Block{Kind: blockNames, Text: strings.TrimSuffix(strings.TrimPrefix(bare, "<!-- help:"), "-->")})
		case strings.HasPrefix(bare, "<!--"), strings.HasPrefix(bare, "!["):
			open = false
		case heading().MatchString(line):
			m := heading().FindStringSubmatch(line)
			add(Block{Kind: blockHeading, Level: len(m[1]), Text: m[2]})
			open = false
		case strings.HasPrefix(line, "    ") && !continues(blockItem) && !continues(blockProse):
			if !continues(blockCode) {
				add(Block{Kind: blockCode})
			}
			last().Text += line[4:] + "\n"
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "  - "):
			add(Block{Kind: blockItem, Text: strings.TrimPrefix(bare, "- ")})
		case strings.HasPrefix(line, "|"):
			if !continues(blockTable) {
				add(Block{Kind: blockTable})
			}
			if row := cells(line); row != nil {
				last().Rows = append(last().Rows, row)
			}
		case continues(blockProse), continues(blockItem):
			last().Text += " " + bare
		default:
			add(Block{Kind: blockProse, Text: bare})
		}
	}
	for i := range list {
		if list[i].Kind == blockCode {
			list[i].Text = strings.TrimRight(list[i].Text, "\n") + "\n"
		}
	}
	return list
}

// cells splits a row of a table; nil for the rule below the head.
func cells(line string) (row []string) {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	const bar = "\x00" // an escaped one, which is text
	for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, bar), "|") {
		row = append(row, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	if strings.Trim(strings.Join(row, ""), "-: ") == "" && strings.Contains(line, "-") {
		return nil
	}
	return row
}

// span is a run of text of one kind.
type span struct {
	Text       string
	Code, Bold bool
}

// spansOf splits prose at its marks: `code`, **bold**, [text](address). An address outside
// of the project follows its text.
func spansOf(text string) (list []span) {
	for text != "" {
		m := marks().FindStringSubmatchIndex(text)
		if m == nil {
			return append(list, span{Text: text})
		}
		if m[0] > 0 {
			list = append(list, span{Text: text[:m[0]]})
		}
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		switch {
		case m[2] >= 0:
			list = append(list, span{Text: group(1), Code: true})
		case m[4] >= 0:
			for _, s := range spansOf(group(2)) {
				s.Bold = true
				list = append(list, s)
			}
		default:
			list = append(list, spansOf(group(3))...)
			if address := group(4); strings.Contains(address, "://") {
				list = append(list, span{Text: " (" + address + ")"})
			}
		}
		text = text[m[1]:]
	}
	return list
}

// plainText returns prose without its marks.
func plainText(text string) string {
	var b strings.Builder
	for _, s := range spansOf(text) {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Patterns of headings, and of the marks in prose.
var (
	heading = compiled(`^(#{1,6}) +(.*?)$`)
	marks   = compiled("`([^`]+)`" + `|\*\*(.+?)\*\*|\[([^\]]*)\]\(([^)]*)\)`)
)

// compiled compiles a pattern at its first use.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// Text returns the whole guide as text, in lines of at most width columns except for code;
// 0 means no limit.
func (g *Guide) Text(width int) string { return writeParts(g.Parts, width) }

// PartText returns part i as text, with the parts below its heading.
func (g *Guide) PartText(i, width int) string { return writeParts(g.below(i), width) }

// Own returns part i as text, without its heading and the parts below it; "" without text.
func (g *Guide) Own(i, width int) string {
	p := g.Parts[i]
	if len(p.Blocks) == 0 {
		return ""
	}
	_, text, _ := strings.Cut(writeParts([]GuidePart{p}, width), "\n\n")
	return text
}

// writeParts returns parts as text.
func writeParts(parts []GuidePart, width int) string {
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
		wrapWords(b, "", "", plainText(block.Text), width)
	case blockItem:
		wrapWords(b, "- ", "  ", plainText(block.Text), width)
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
					wrapWords(b, indent, indent+"  ", plainText(cell), width)
				}
			}
			continue
		}
		line := "  "
		for i, cell := range row[:len(row)-1] {
			cell = plainText(cell)
			line += cell + strings.Repeat(" ", widths[i]-text.StringWidth(cell)+2)
		}
		wrapWords(b, line, strings.Repeat(" ", left), plainText(row[len(row)-1]), width)
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

// isEmpty reports whether cells have no text.
func isEmpty(cells []string) bool { return strings.TrimSpace(strings.Join(cells, "")) == "" }

// wrapWords wraps words in lines of at most width columns; the first line begins with one
// prefix, the others with another.
func wrapWords(b *strings.Builder, first, rest, words string, width int) {
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
