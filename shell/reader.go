package shell

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/chzyer/readline"
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

// terminalReader reads lines from a terminal, with editing, history and
// completion.
type terminalReader struct {
	rl      *readline.Instance
	history *history
	stdout  *os.File
	resized func() // tells readline the terminal's width
	before  string // the statement's lines so far, for completion
}

func newTerminalReader(stdin, stdout *os.File, h *history, c *completer) (*terminalReader, error) {
	t := &terminalReader{history: h, stdout: stdout}
	width := func() int { columns, _ := size(stdout); return columns }
	rl, err := readline.NewEx(&readline.Config{
		Stdin:  &keys{File: stdin},
		Stdout: stdout,
		Stderr: stdout,
		// The file is ours: readline would rewrite it readable for all.
		DisableAutoSaveHistory: true,
		HistoryLimit:           historyLimit,
		HistorySearchFold:      true,
		AutoComplete:           &suffixes{complete: c.complete, before: &t.before, size: func() (int, int) { return size(stdout) }},
		InterruptPrompt:        "^C",
		EOFPrompt:              "\n", // readline's way to say: nothing
		FuncGetWidth:           width,
		// Readline's own callback runs beside the editor and races with it.
		FuncOnWidthChanged: func(f func()) { t.resized = f },
	})
	if err != nil {
		return nil, err
	}
	t.rl = rl
	io.WriteString(stdout, pasteOn)
	for _, l := range h.lines {
		rl.SaveHistory(l)
	}
	return t, nil
}

func (t *terminalReader) ReadLine(prompt string) (string, error) {
	if prompt != morePrompt {
		t.before = ""
	}
	t.resized()
	t.rl.SetPrompt(prompt)
	l, err := t.rl.Readline()
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		return l, errInterrupted
	case err != nil:
		return "", err
	}
	if strings.Contains(l, pastedBlank) && strings.TrimSpace(strings.ReplaceAll(l, pastedBlank, "")) == "" {
		t.before += "\n"
		return pastedBlank, nil
	}
	t.before += l + "\n"
	if strings.TrimSpace(l) != "" {
		t.rl.SaveHistory(l)
		t.history.add(l)
	}
	return l, nil
}

// Close gives the terminal back. It does not close readline, which would wait
// for the next key where Ctrl-D was typed while a statement ran: the program
// ends here.
func (t *terminalReader) Close() error {
	io.WriteString(t.stdout, pasteOff)
	return t.rl.Terminal.ExitRawMode()
}

// suffixes gives a completer's words to readline, which can only append.
type suffixes struct {
	complete func(text, after string) (words []string, start int)
	before   *string
	size     func() (columns, rows int) // of the terminal
}

func (s *suffixes) Do(line []rune, pos int) ([][]rune, int) {
	text := *s.before + string(line[:pos])
	words, start := s.complete(text, string(line[pos:]))
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

// canShow: readline's grid of proposals divides by zero where one is wider
// than the screen, counts runes for columns, and scrolls its own line away
// where there are too many.
func (s *suffixes) canShow(typed string, tails [][]rune) bool {
	widest := 0
	for _, t := range tails {
		widest = max(widest, len(typed)+len(string(t)))
	}
	columns, rows := s.size()
	perLine := (columns - 1) / (widest + 2)
	return perLine > 0 && len(tails)/perLine < rows-2
}

// common is the longest prefix that all words share.
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
