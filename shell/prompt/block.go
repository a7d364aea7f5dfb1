package prompt

import (
	"slices"
	"strings"
	"sync"

	"github.com/chzyer/readline"
)

// Runes of the private use area (Unicode 23.5) that stand in the editor's line
// for what readline, which knows one line only, cannot hold. A line break is
// breakRune, as many fillRune as the row has columns left, the prompt of the next
// row, and closeRune, so that the one long line wraps where the text breaks. A
// tab is as wide as it shows. Where an editing key took one end away, the break
// or tab is gone.
const (
	breakRune = '\ue000' + iota
	tabRune
	fillRune
	dotRune
	closeRune

	newlineKey // Enter, where the statement goes on
	upKey      // within the block
	downKey
	pasteKey // what was pasted is here
)

func isPrivate(r rune) bool { return breakRune <= r && r <= pasteKey }

// indentUnit is one level of indentation, unless the text has tabs.
const indentUnit = "    "

// block edits statements of several lines by readline's line. Readline asks it
// before each key (filter), tells it after (OnChange), and shows what Paint
// makes of the line.
type block struct {
	rl      *readline.Instance
	columns func() int

	mu       sync.Mutex
	prompt   int    // columns
	line     []rune // as shown last, and the cursor in it
	pos      int
	text     []rune // before this key, and the cursor in it
	cursor   int
	recalled string   // from the history, unchanged
	given    int      // columns of indentation that the last key, Enter, gave the line
	pasted   []string // and not taken yet
}

// begin is told of a new statement.
func (b *block) begin(prompt string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prompt, b.line, b.pos, b.recalled, b.given = len([]rune(prompt)), nil, 0, "", 0
}

// paste keeps text until its key comes by.
func (b *block) paste(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pasted = append(b.pasted, text)
}

// Paint remembers the line, and shows private runes as blanks and dots. In a
// search, and of what is new, a break has no width yet: there it is a sign.
func (b *block) Paint(line []rune, pos int) []rune {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line, b.pos = slices.Clone(line), pos
	out := slices.Clone(line)
	for i, r := range out {
		switch {
		case r == breakRune && i+1 < len(out) && out[i+1] == closeRune:
			out[i] = '⏎'
		case r == dotRune:
			out[i] = '.'
		case isPrivate(r):
			out[i] = ' '
		}
	}
	return out
}

// filter is asked before readline handles a key.
func (b *block) filter(key rune) (rune, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.cursor = decodeLine(b.line, b.pos, false)
	op := b.rl.Operation
	if op.IsSearchMode() || op.IsInCompleteSelectMode() {
		return key, true
	}
	switch key {
	case readline.CharEnter, readline.CharCtrlJ:
		if b.ends() {
			return key, true
		}
		op.ExitCompleteMode(false)
		b.rl.Terminal.KickRead() // at Enter it waits to be told
		return newlineKey, true
	case readline.CharPrev:
		if lineStart(b.text, b.cursor) > 0 {
			return upKey, true
		}
	case readline.CharNext:
		if lineEnd(b.text, b.cursor) < len(b.text) {
			return downKey, true
		}
	}
	return key, true
}

// ends: Enter runs the statement. It does in the last line, where the statement
// is whole, or comes from the history as it is.
func (b *block) ends() bool {
	text := string(b.text)
	if lineEnd(b.text, b.cursor) < len(b.text) {
		return false
	}
	return text == b.recalled || isWhole(text)
}

// OnChange is told what a key made of the line, and sets right what readline
// took for one line.
func (b *block) OnChange(line []rune, pos int, key rune) ([]rune, int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key == 0 || b.rl.Operation.IsSearchMode() {
		return nil, 0, false
	}
	text, cursor := decodeLine(line, pos, key == readline.CharForward || key == readline.MetaForward)
	insert := func(s string) {
		text = slices.Insert(text, cursor, []rune(s)...)
		cursor += len([]rune(s))
	}
	given := b.given
	b.given = 0
	switch key {
	case newlineKey:
		indent := indentAfter(string(text[:cursor]))
		b.given = len([]rune(indent))
		insert("\n" + indent)
	case ' ': // who indents by hand gets just that
		text, cursor = slices.Delete(text, cursor-1-given, cursor-1), cursor-given
	case readline.CharTab:
		if given > 0 {
			text, cursor = b.text, b.cursor
		}
	case pasteKey:
		if len(b.pasted) > 0 {
			insert(b.pasted[0])
			b.pasted = b.pasted[1:]
		}
	case upKey:
		start := lineStart(text, cursor)
		above := lineStart(text, start-1)
		cursor = min(above+cursor-start, start-1)
	case downKey:
		start, end := lineStart(text, cursor), lineEnd(text, cursor)
		cursor = min(end+1+cursor-start, lineEnd(text, end+1))
	case readline.CharLineStart:
		cursor = lineStart(text, b.cursor)
	case readline.CharLineEnd:
		cursor = lineEnd(text, b.cursor)
	case readline.CharKill:
		if end := lineEnd(b.text, b.cursor); end < len(b.text) {
			text, cursor = slices.Concat(b.text[:b.cursor], b.text[max(end, b.cursor):]), b.cursor
		}
	case readline.CharCtrlU:
		start := lineStart(b.text, b.cursor)
		text, cursor = slices.Concat(b.text[:start], b.text[b.cursor:]), start
	case readline.CharBackspace, readline.CharCtrlH:
		start := lineStart(text, cursor)
		if before := string(text[start:cursor]); start > 0 && strings.Trim(before, " ") == "" && len(b.text) == len(text)+1 {
			extra := len(before) % len(indentUnit)
			text = slices.Delete(text, cursor-extra, cursor)
			cursor -= extra
		}
	case readline.CharPrev, readline.CharNext:
		b.recalled = string(text)
	}
	out, at := encodeText(text, cursor, b.prompt, b.columns())
	if at == pos && slices.Equal(out, line) {
		return nil, 0, false
	}
	return out, at, true
}

// lineStart and lineEnd are the ends of the line that text[at:] is in.
func lineStart(text []rune, at int) int {
	for at > 0 && text[at-1] != '\n' {
		at--
	}
	return at
}

func lineEnd(text []rune, at int) int {
	for at < len(text) && text[at] != '\n' {
		at++
	}
	return at
}

// indentAfter is the indentation of the line that follows text.
func indentAfter(text string) string {
	var open scanState
	for line := range strings.SplitSeq(text, "\n") {
		open.scan(line)
	}
	if len(open.quote) == 3 {
		return ""
	}
	line := text[strings.LastIndexByte(text, '\n')+1:]
	trimmed := strings.TrimLeft(line, " \t")
	indent := line[:len(line)-len(trimmed)]
	unit := indentUnit
	if strings.Contains("\n"+text, "\n\t") {
		unit = "\t"
	}
	switch {
	case open.last == ':' && !open.inside(), strings.IndexByte("([{", open.last) >= 0 && open.last != 0:
		return indent + unit
	case !open.inside() && hasWord(trimmed, "return", "pass", "break", "continue"):
		return outerIndent(text, indent)
	}
	return indent
}

// outerIndent is the indentation of the block around the last line of text, whose
// own is given.
func outerIndent(text, indent string) string {
	outer := ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimLeft(line, " \t")
		if own := line[:len(line)-len(trimmed)]; trimmed != "" && len(own) < len(indent) {
			outer = own
		}
	}
	return outer
}

// decodeLine is the text of readline's line, and where in it the cursor is.
// Inside of a break or tab it is before that, or, where it goes forward, behind.
func decodeLine(line []rune, pos int, forward bool) (text []rune, cursor int) {
	cursor = -1
	for i := 0; i < len(line); {
		if i == pos {
			cursor = len(text)
		}
		r := line[i]
		if r != breakRune && r != tabRune {
			if !isPrivate(r) {
				text = append(text, r)
			}
			i++
			continue
		}
		end := i + 1
		for end < len(line) && (line[end] == fillRune || line[end] == dotRune) {
			end++
		}
		inside := i < pos && pos <= end
		if end == len(line) || line[end] != closeRune { // an end is missing
			if inside {
				cursor = len(text)
			}
			if i = end; i == pos {
				cursor = len(text)
			}
			continue
		}
		if inside {
			cursor = len(text)
			if forward {
				cursor++
			}
		}
		whole := '\n'
		if r == tabRune {
			whole = '\t'
		}
		text = append(text, whole)
		i = end + 1
	}
	if cursor < 0 {
		cursor = len(text)
	}
	return text, cursor
}

// encodeText is the line that shows text on a terminal of so many columns,
// behind a prompt. In the history, which has no columns (0), it is short.
func encodeText(text []rune, cursor, prompt, columns int) (line []rune, pos int) {
	column := prompt
	put := func(r rune) {
		line = append(line, r)
		if column += (readline.Runes{}).Width(r); columns > 0 && column >= columns {
			column = 0
		}
	}
	pos = -1
	for i, r := range text {
		if i == cursor {
			pos = len(line)
		}
		switch {
		case r == '\n':
			put(breakRune)
			if columns > len(morePrompt) {
				for column != 0 {
					put(fillRune)
				}
				for range len(morePrompt) - 1 {
					put(dotRune)
				}
			}
			put(closeRune)
		case r == '\t':
			put(tabRune)
			put(fillRune)
			put(fillRune)
			put(closeRune)
		default:
			put(r)
		}
	}
	if pos < 0 {
		pos = len(line)
	}
	return line, pos
}
