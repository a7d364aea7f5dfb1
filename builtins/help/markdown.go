package help

import (
	"regexp"
	"strings"
	"sync"
)

// Kind is the kind of a block.
type blockKind int

const (
	blockHeading blockKind = iota
	Names                  // the names of the part, in a comment
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
			add(Block{Kind: Names, Text: strings.TrimSuffix(strings.TrimPrefix(bare, "<!-- help:"), "-->")})
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
		m := marked().FindStringSubmatchIndex(text)
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

// Plain returns prose without its marks.
func plainText(text string) string {
	var b strings.Builder
	for _, s := range spansOf(text) {
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
