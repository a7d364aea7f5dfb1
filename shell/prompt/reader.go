package prompt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chzyer/readline"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/format"
	"fabsh/shell/session"
)

// plainReader reads lines from a pipe or a file, and never prompts.
type plainReader struct{ r *bufio.Reader }

func newPlainReader(r io.Reader) *plainReader { return &plainReader{bufio.NewReader(r)} }

func (p *plainReader) ReadLine(string) (string, error) {
	l, err := p.r.ReadString('\n')
	if err == io.EOF && l != "" {
		err = nil
	}
	return strings.TrimSuffix(l, "\n"), err
}

func (p *plainReader) Close() error { return nil }

// terminalReader reads statements from a terminal, with editing, history and
// completion. It returns them line by line; the end of a statement is an end of input
// to a caller that wants more lines of it.
type terminalReader struct {
	rl      *readline.Instance
	block   *block
	history *history
	stdout  *os.File
	recalls bool     // readline has a history
	resized func()   // sets readline's terminal width
	lines   []string // read, and not yet returned
}

func newTerminalReader(stdin, stdout *os.File, ahead *session.TypeAhead, h *history, c *completer) (*terminalReader, error) {
	width := func() int { columns, _ := session.TerminalSize(stdout); return columns }
	t := &terminalReader{history: h, stdout: stdout, block: &block{columns: width}}
	rl, err := readline.NewEx(&readline.Config{
		Stdin:  &keys{File: stdin, ahead: ahead, paste: paste{deliver: t.block.paste}},
		Stdout: &wrapped{stdout, width},
		Stderr: stdout,
		// The program writes the file: readline would make it readable for all.
		DisableAutoSaveHistory: true,
		HistoryLimit:           historyLimit,
		HistorySearchFold:      true,
		AutoComplete:           &suffixes{complete: c.Complete, size: func() (int, int) { return session.TerminalSize(stdout) }},
		Listener:               t.block,
		Painter:                t.block,
		FuncFilterInputRune:    t.block.filter,
		InterruptPrompt:        "^C",
		EOFPrompt:              "\n", // readline prints nothing for this
		FuncGetWidth:           width,
		// Readline's own callback runs concurrently with the editor and races with it.
		FuncOnWidthChanged: func(f func()) { t.resized = f },
	})
	if err != nil {
		return nil, err
	}
	t.rl, t.block.rl = rl, rl
	io.WriteString(stdout, pasteOn)
	for _, l := range h.statements {
		t.recall(l)
	}
	return t, nil
}

func (t *terminalReader) ReadLine(prompt string) (string, error) {
	if len(t.lines) == 0 {
		if prompt == morePrompt {
			return "", io.EOF
		}
		t.resized()
		t.rl.SetPrompt(prompt)
		t.block.begin(prompt)
		l, err := t.rl.Readline()
		text := string(decodeLine([]rune(l), 0, false).text)
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			return text, errInterrupted
		case err != nil:
			return "", err
		}
		t.lines = strings.Split(strings.TrimRight(text, " \t\n"), "\n")
	}
	l := t.lines[0]
	t.lines = t.lines[1:]
	return l, nil
}

// remember adds a statement to the history, unless it equals the last one.
func (t *terminalReader) remember(statement string) {
	statement = strings.TrimRight(statement, " \t\n")
	t.recall(statement)
	t.history.add(statement)
}

// recall adds a statement to readline's history. The empty statement before it makes
// readline forget which old statement this one was edited from, which it would keep
// instead.
func (t *terminalReader) recall(statement string) {
	line, _ := encodeText([]rune(statement), 0, 0, 0)
	if t.recalls { // without a history, readline would keep the empty one
		t.rl.SaveHistory("")
	}
	t.recalls = true
	t.rl.SaveHistory(string(line))
}

// Close restores the terminal. It does not close readline, which would wait for the
// next key if Ctrl-D was typed while a statement ran: the program ends here.
func (t *terminalReader) Close() error {
	io.WriteString(t.stdout, pasteOff)
	return t.rl.Terminal.ExitRawMode()
}

// suffixes passes a completer's words to readline, which can only append.
type suffixes struct {
	complete func(text, after string) (words []string, start int)
	size     func() (columns, rows int) // of the terminal
}

func (s *suffixes) Do(line []rune, pos int) ([][]rune, int) {
	text := string(decodeLine(line[:pos], 0, false).text)
	words, start := s.complete(text, string(decodeLine(line[pos:], 0, false).text))
	typed := text[start:]
	var tails [][]rune
	for _, w := range words {
		if tail, ok := strings.CutPrefix(w, typed); ok {
			tails = append(tails, []rune(tail))
		}
	}
	if len(tails) > 1 && !s.canShow(typed, tails) {
		tails = [][]rune{common(tails)}
		if len(tails[0]) == 0 {
			return nil, 0
		}
	}
	return tails, len([]rune(typed))
}

// canShow reports whether readline can list proposals. Its grid divides by zero if one
// is wider than the screen, counts runes as columns, and scrolls its own line away if
// there are too many.
func (s *suffixes) canShow(typed string, tails [][]rune) bool {
	widest := 0
	for _, t := range tails {
		widest = max(widest, len(typed)+len(string(t)))
	}
	columns, rows := s.size()
	perLine := (columns - 1) / (widest + 2)
	return perLine > 0 && len(tails)/perLine < rows-2
}

// common returns the longest common prefix of words.
func common(words [][]rune) []rune {
	prefix := words[0]
	for _, w := range words[1:] {
		n := 0
		for n < len(prefix) && n < len(w) && prefix[n] == w[n] {
			n++
		}
		prefix = prefix[:n]
	}
	return prefix
}

// wrapped is the terminal that readline writes to. After a list of proposals, readline
// moves the cursor as if its line had not wrapped.
type wrapped struct {
	io.Writer
	columns func() int
}

var backToCursor = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\r\x1b\[(\d+)C$`)
})

func (w *wrapped) Write(p []byte) (int, error) {
	if m := backToCursor().FindSubmatchIndex(p); m != nil {
		if n, err := strconv.Atoi(string(p[m[2]:m[3]])); err == nil && n >= w.columns() {
			column := n % w.columns()
			q := string(p[:m[0]]) + "\r"
			if column > 0 {
				q += fmt.Sprintf("\x1b[%dC", column)
			}
			_, err := io.WriteString(w.Writer, q)
			return len(p), err
		}
	}
	return w.Writer.Write(p)
}

// keys translates a terminal's input into keys that readline knows.
type keys struct {
	*os.File
	ahead *session.TypeAhead // typed before; may be nil
	rest  string             // read, and not taken yet
	paste paste
}

// Readline knows neither the Home and End keys of screen, tmux and the Linux console
// nor those of rxvt. In a list of proposals, and in a search, it takes Ctrl-C only for
// the end of that; after Ctrl-G it works as elsewhere.
var keyNames = strings.NewReplacer(
	"\x1b[1~", "\x01", "\x1b[7~", "\x01",
	"\x1b[4~", "\x05", "\x1b[8~", "\x05",
	"\x03", "\x07\x03",
)

func (k *keys) Read(p []byte) (int, error) {
	for k.rest == "" {
		if k.ahead != nil {
			if text := k.ahead.Take(); text != "" {
				k.rest = k.paste.keys(text)
				continue
			}
		}
		text, err := k.burst(p)
		if text == "" && err != nil {
			return 0, err
		}
		k.rest = k.paste.keys(text)
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// burstPause is longer than pauses between the bytes of text that a terminal sends at once, and
// shorter than those between a person's keys.
const burstPause = 50 * time.Millisecond

// burst reads what the terminal has. After a line end or a tab, it waits a moment for what follows:
// only pasted text goes on at once.
func (k *keys) burst(p []byte) (text string, err error) {
	for {
		n, err := k.File.Read(p)
		text += string(p[:n])
		if n == 0 || err != nil || !strings.ContainsRune("\r\n\t", rune(text[len(text)-1])) || !session.FollowsWithin(k.File, burstPause) {
			return text, err
		}
	}
}

// unbracketed matches a line end that text follows at once, and the tabs after it: they are pasted,
// by a terminal without bracketed paste, such as a serial console.
var unbracketed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(\r\n|\r|\n)(\t*)([^\x00-\x08\x0b\x0c\x0e-\x1f\x7f])`)
})

// withBreaks replaces the line ends and tabs of pasted text by keys that insert them.
func withBreaks(text string) string {
	for {
		m := unbracketed().FindStringSubmatchIndex(text)
		if m == nil {
			return text
		}
		tabs := m[5] - m[4]
		text = text[:m[0]] + string(breakKey) + strings.Repeat(string(tabKey), tabs) + text[m[6]:]
	}
}

// A terminal puts these around pasted text if requested, so that a program can
// distinguish it from typed text: xterm's bracketed paste, private mode 2004
// (invisible-island.net/xterm/ctlseqs, "Bracketed Paste Mode").
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// paste takes pasted text out of the terminal's input: the editor gets it as a whole,
// and not key by key.
type paste struct {
	deliver func(text string)
	open    bool
	text    strings.Builder // of the open paste
	held    string          // a possible beginning of a bracket
}

// keys returns the editor's input for the terminal's. Enter follows pasted text that
// ends with a newline.
func (p *paste) keys(text string) string {
	var b strings.Builder
	text = p.held + text
	p.held = ""
	for {
		bracket := pasteBegin
		if p.open {
			bracket = pasteEnd
		}
		part, rest, found := strings.Cut(text, bracket)
		if !found {
			part, p.held = holdBack(text, bracket)
		}
		if p.open {
			p.text.WriteString(part)
		} else {
			b.WriteString(withBreaks(keyNames.Replace(withoutPrivate(part))))
		}
		if !found {
			return b.String()
		}
		if p.open {
			b.WriteString(p.close())
		}
		p.open, text = !p.open, rest
	}
}

// close delivers the pasted text, and returns the keys that represent it.
func (p *paste) close() string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(p.text.String())
	p.text.Reset()
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' {
			return -1 // pasted text is not a key
		}
		return r
	}, withoutPrivate(text))
	// Other control characters are displayed as in a string literal: the editor writes
	// its line unchanged.
	trimmed := strings.TrimRight(lang.Harmless(text), "\n")
	p.deliver(trimmed)
	if strings.HasSuffix(text, "\n") {
		return string(pasteKey) + "\r"
	}
	return string(pasteKey)
}

// withoutPrivate removes the runes that have a special meaning for the editor.
func withoutPrivate(text string) string {
	return strings.Map(func(r rune) rune {
		if isPrivate(r) {
			return -1
		}
		return r
	}, text)
}

// holdBack cuts off the end of text where it may begin a bracket. Escape alone is a
// key, and is not held back.
func holdBack(text, bracket string) (now, later string) {
	for n := min(len(bracket)-1, len(text)); n > 1; n-- {
		if strings.HasSuffix(text, bracket[:n]) {
			return text[:len(text)-n], text[len(text)-n:]
		}
	}
	return text, ""
}

// historyLimit is how many statements are remembered.
const historyLimit = 2000

// history has the statements of this session and earlier ones. The file is private to
// the user: statements may contain secrets.
type history struct {
	path       string   // empty: nothing is kept
	statements []string // at the beginning of the session
	last       string   // that was added
}

// lineSeparator represents a line break within a statement (Unicode 23.3): the file has
// one statement per line.
const lineSeparator = "\u2028"

// openHistory reads the file, if it exists. Without a home directory, or if it cannot
// be written, a session has only its own history.
func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	data, _ := readHistory(path)
	lines := strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	if n := len(lines); n > historyLimit {
		lines = lines[n-historyLimit:]
		h.rewrite(lines)
	}
	for _, l := range lines {
		h.last = lang.Harmless(withoutPrivate(strings.ReplaceAll(l, lineSeparator, "\n")))
		h.statements = append(h.statements, h.last)
	}
	return h
}

// readHistory reads the file at path.
func readHistory(path string) ([]byte, error) {
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := format.Bounded(f, path, session.MaxOwn)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// add appends a statement, without keys, unless it equals the last one; several
// sessions may do so at once.
func (h *history) add(statement string) {
	if h.path == "" || statement == h.last {
		return
	}
	h.last = statement
	if format.MakeDirectory(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := format.OpenPlain(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return
	}
	defer f.Close()
	f.WriteString(strings.ReplaceAll(records.MaskKeys(statement), "\n", lineSeparator) + "\n")
}

// rewrite keeps the newest lines. The new file has the mode of the old one.
func (h *history) rewrite(lines []string) {
	format.WriteOwn(h.path, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
		return err
	})
}
