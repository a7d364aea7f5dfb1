package guide

import (
	"regexp"
	"strings"
	"sync"
)

// Kind is the kind of a block.
type Kind int

const (
	Heading Kind = iota
	Names        // the names of the part, in a comment
	Prose
	Item  // of a list
	Code  // unchanged
	Table // in Rows
)

// Block is a heading, a paragraph, an item of a list, code or a table.
type Block struct {
	Kind  Kind
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
		continues := func(k Kind) bool { return open && len(list) > 0 && last().Kind == k }
		switch {
		case fence != "":
			if strings.HasPrefix(line, fence) {
				fence, open = "", false
			} else {
				last().Text += line + "\n"
			}
		case strings.HasPrefix(line, "```"):
			fence = "```"
			add(Block{Kind: Code})
		case bare == "":
			if open && len(list) > 0 && last().Kind == Code {
				last().Text += "\n" // of indented code, which may continue
			} else {
				open = false
			}
		case strings.HasPrefix(bare, "<!-- help:"):
			add(Block{Kind: Names, Text: strings.TrimSuffix(strings.TrimPrefix(bare, "<!-- help:"), "-->")})
		case strings.HasPrefix(bare, "<!--"), strings.HasPrefix(bare, "!["):
			open = false
		case heading().MatchString(line):
			m := heading().FindStringSubmatch(line)
			add(Block{Kind: Heading, Level: len(m[1]), Text: m[2]})
			open = false
		case strings.HasPrefix(line, "    ") && !continues(Item) && !continues(Prose):
			if !continues(Code) {
				add(Block{Kind: Code})
			}
			last().Text += line[4:] + "\n"
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "  - "):
			add(Block{Kind: Item, Text: strings.TrimPrefix(bare, "- ")})
		case strings.HasPrefix(line, "|"):
			if !continues(Table) {
				add(Block{Kind: Table})
			}
			if row := cells(line); row != nil {
				last().Rows = append(last().Rows, row)
			}
		case continues(Prose), continues(Item):
			last().Text += " " + bare
		default:
			add(Block{Kind: Prose, Text: bare})
		}
	}
	for i := range list {
		if list[i].Kind == Code {
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

// Span is a run of text of one kind.
type Span struct {
	Text       string
	Code, Bold bool
}

// Spans splits prose at its marks: `code`, **bold**, [text](address). An address outside
// of the project follows its text.
func Spans(text string) (list []Span) {
	for text != "" {
		m := marked().FindStringSubmatchIndex(text)
		if m == nil {
			return append(list, Span{Text: text})
		}
		if m[0] > 0 {
			list = append(list, Span{Text: text[:m[0]]})
		}
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		switch {
		case m[2] >= 0:
			list = append(list, Span{Text: group(1), Code: true})
		case m[4] >= 0:
			for _, s := range Spans(group(2)) {
				s.Bold = true
				list = append(list, s)
			}
		default:
			list = append(list, Spans(group(3))...)
			if address := group(4); strings.Contains(address, "://") {
				list = append(list, Span{Text: " (" + address + ")"})
			}
		}
		text = text[m[1]:]
	}
	return list
}

// Plain returns prose without its marks.
func Plain(text string) string {
	var b strings.Builder
	for _, s := range Spans(text) {
		b.WriteString(s.Text)
	}
	return b.String()
}

var (
	heading = compiled(`^(#{1,6}) +(.*?)$`)
	marked  = compiled("`([^`]+)`" + `|\*\*(.+?)\*\*|\[([^\]]*)\]\(([^)]*)\)`)
)

// compiled compiles a pattern at its first use.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
