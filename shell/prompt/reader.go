package prompt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/chzyer/readline"

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
