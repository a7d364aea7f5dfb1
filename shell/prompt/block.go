package prompt

import (
	"slices"
	"strings"
	"sync"

	"github.com/chzyer/readline"

	"fabsh/builtins/check"
)

// Runes of the private use area (Unicode 23.5) represent in the editor's line what
// readline, which edits one line only, cannot hold. A line break is breakRune, then as
// many fillRune as the row has columns left, the prompt of the next row, and closeRune,
// so that the one long line wraps where the text breaks. A tab has its display
// width. If an editing key deleted one end, the break or tab is gone.
const (
	breakRune = '\ue000' + iota
	tabRune
	fillRune
	dotRune
	closeRune

	newlineKey // Enter, if the statement is not complete
	upKey      // within the block
	downKey
	pasteKey // pasted text is here
	breakKey // a line end of pasted text
	tabKey   // a tab of pasted text
)

func isPrivate(r rune) bool { return breakRune <= r && r <= tabKey }

// indentUnit is one level of indentation, unless the text uses tabs.
const indentUnit = "    "

// block edits statements of several lines in readline's single line. Readline calls
// filter before each key and OnChange after it, and displays what Paint makes of the
// line.
type block struct {
	rl      *readline.Instance
	columns func() int
	isLine  func(text string) bool // reports whether text is a command: one line

	mu       sync.Mutex
	prompt   int    // columns
	line     []rune // the line displayed last, and the cursor in it
	pos      int
	before   edit     // the text before this key
	recalled string   // from the history, unchanged
	indented int      // columns of indentation that the last key, Enter, gave the line
	pasted   []string // not yet inserted
}

// edit is a text being edited, and the position of the cursor in it.
type edit struct {
	text   []rune
	cursor int
}

// lineStart and lineEnd return the ends of the cursor's line.
func (e *edit) lineStart() int { return lineStart(e.text, e.cursor) }
func (e *edit) lineEnd() int   { return lineEnd(e.text, e.cursor) }

// insert puts s before the cursor.
func (e *edit) insert(s string) {
	runes := []rune(s)
	e.text = slices.Insert(e.text, e.cursor, runes...)
	e.cursor += len(runes)
}

// erase deletes text[from:to], which is not after the cursor.
func (e *edit) erase(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.cursor -= to - from
}

// begin starts a new statement.
func (b *block) begin(prompt string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prompt, b.line, b.pos, b.recalled, b.indented = len([]rune(prompt)), nil, 0, "", 0
}

// paste keeps text until its key arrives.
func (b *block) paste(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pasted = append(b.pasted, text)
}

// Paint remembers the line, and displays private runes as blanks and dots. In a search,
// and in new text, a break has no width yet: there it is displayed as a sign.
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

// filter is called before readline handles a key.
func (b *block) filter(key rune) (rune, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = decodeLine(b.line, b.pos, false)
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
		b.rl.Terminal.KickRead() // after Enter readline waits for this
		return newlineKey, true
	case readline.CharPrev:
		if b.before.lineStart() > 0 {
			return upKey, true
		}
	case readline.CharNext:
		if b.before.lineEnd() < len(b.before.text) {
			return downKey, true
		}
	}
	return key, true
}

// ends reports whether Enter runs the statement. It does on the last line, if the
// statement is complete or comes unchanged from the history.
func (b *block) ends() bool {
	text := string(b.before.text)
	return b.before.lineEnd() == len(b.before.text) && (text == b.recalled || isWhole(text) || b.isLine != nil && b.isLine(text))
}

// OnChange is called with the line after a key, and corrects what readline did as if it
// were one line.
func (b *block) OnChange(line []rune, pos int, key rune) ([]rune, int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key == 0 || b.rl.Operation.IsSearchMode() {
		return nil, 0, false
	}
	e := b.correct(key, decodeLine(line, pos, key == readline.CharForward || key == readline.MetaForward))
	out, at := encodeText(e.text, e.cursor, b.prompt, b.columns())
	if at == pos && slices.Equal(out, line) {
		return nil, 0, false
	}
	return out, at, true
}

// correct returns the result of key in a text of several lines, where readline produced
// e. b.mu is held.
func (b *block) correct(key rune, e edit) edit {
	before, indented := b.before, b.indented
	b.indented = 0
	switch key {
	case newlineKey:
		e.dedent()
		indent := indentAfter(string(e.text[:e.cursor]))
		b.indented = len([]rune(indent))
		e.insert("\n" + indent)
	case ' ': // after a blank the indentation is the user's own
		e.erase(e.cursor-1-indented, e.cursor-1)
	case readline.CharTab: // the line is indented already
		if indented > 0 {
			return before
		}
	case pasteKey:
		if len(b.pasted) > 0 {
			e.insert(b.pasted[0])
			b.pasted = b.pasted[1:]
		}
	case breakKey:
		e.insert("\n")
	case tabKey:
		e.insert("\t")
	case upKey:
		start := e.lineStart()
		above := lineStart(e.text, start-1)
		e.cursor = min(above+e.cursor-start, start-1)
	case downKey:
		start, end := e.lineStart(), e.lineEnd()
		e.cursor = min(end+1+e.cursor-start, lineEnd(e.text, end+1))
	case readline.CharLineStart:
		e.cursor = lineStart(e.text, before.cursor)
	case readline.CharLineEnd:
		e.cursor = lineEnd(e.text, before.cursor)
	case readline.CharKill:
		if end := before.lineEnd(); end < len(before.text) {
			return edit{slices.Concat(before.text[:before.cursor], before.text[end:]), before.cursor}
		}
	case readline.CharCtrlU:
		start := before.lineStart()
		return edit{slices.Concat(before.text[:start], before.text[before.cursor:]), start}
	case readline.CharBackspace, readline.CharCtrlH:
		if erased := len(before.text) == len(e.text)+1; erased {
			e.erase(e.cursor-e.overhang(), e.cursor)
		}
	case readline.CharPrev, readline.CharNext:
		b.recalled = string(e.text)
	}
	return e
}

// overhang returns how many blanks before the cursor exceed whole levels of
// indentation: 0 in the first line, and after text.
func (e *edit) overhang() int {
	start := e.lineStart()
	if before := string(e.text[start:e.cursor]); start > 0 && strings.Trim(before, " ") == "" {
		return len(before) % len(indentUnit)
	}
	return 0
}

// lineStart and lineEnd return the ends of the line that text[at:] is in.
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

// dedent moves a line that continues an if or a try, such as else, back to that block,
// unless it is there.
func (e *edit) dedent() {
	start := e.lineStart()
	line := string(e.text[start:e.lineEnd()])
	trimmed := strings.TrimLeft(line, " \t")
	var heads []string
	switch {
	case check.HasWord(trimmed, "else", "elif"):
		heads = []string{"if", "elif"}
	case check.HasWord(trimmed, "except", "finally"):
		heads = []string{"try", "except"}
	default:
		return
	}
	own := len(line) - len(trimmed)
	bound := own + 1
	for _, above := range slices.Backward(strings.Split(string(e.text[:start]), "\n")) {
		code := strings.TrimLeft(above, " \t")
		indent := len(above) - len(code)
		if code == "" || indent >= bound {
			continue
		}
		if check.HasWord(code, heads...) {
			if e.cursor >= start+own {
				e.erase(start+indent, start+own)
			}
			return
		}
		bound = max(indent, 1)
	}
}

// indentAfter returns the indentation of the line that follows text.
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
	case !open.inside() && check.HasWord(trimmed, "return", "pass", "break", "continue"):
		return outerIndent(text, indent)
	}
	return indent
}

// outerIndent returns the indentation of the block around the last line of text, which
// is indented by indent.
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

// glyph is the part of readline's line for one rune of the text: that rune, or a break
// or tab with its filling.
type glyph struct {
	text       rune // noText: a part of a break or tab whose other end is gone
	start, end int  // in the line
}

const noText rune = -1

// glyphAt returns the glyph that begins at a place in the line.
func glyphAt(line []rune, start int) glyph {
	r := line[start]
	switch {
	case r != breakRune && r != tabRune && isPrivate(r):
		return glyph{noText, start, start + 1}
	case r != breakRune && r != tabRune:
		return glyph{r, start, start + 1}
	}
	end := start + 1
	for end < len(line) && (line[end] == fillRune || line[end] == dotRune) {
		end++
	}
	switch {
	case end == len(line) || line[end] != closeRune:
		return glyph{noText, start, end}
	case r == tabRune:
		return glyph{'\t', start, end + 1}
	}
	return glyph{'\n', start, end + 1}
}

// decodeLine returns the text of readline's line, and the position of the cursor in it.
// A cursor inside of a break or tab is before it or, when moving forward, after it.
func decodeLine(line []rune, pos int, forward bool) (e edit) {
	for at := 0; at < len(line); {
		g := glyphAt(line, at)
		if at = g.end; g.text == noText {
			continue
		}
		e.text = append(e.text, g.text)
		if g.end <= pos || forward && g.start < pos {
			e.cursor++
		}
	}
	return e
}

// encodeText returns the line that displays text on a terminal with this number of
// columns, after a prompt, and the position of the cursor in it. In the history, which
// has no columns (0), it is short.
func encodeText(text []rune, cursor, prompt, columns int) (line []rune, pos int) {
	column := prompt
	put := func(r rune) {
		line = append(line, r)
		if column += (readline.Runes{}).Width(r); columns > 0 && column >= columns {
			column = 0
		}
	}
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
	if cursor >= len(text) {
		pos = len(line)
	}
	return line, pos
}
