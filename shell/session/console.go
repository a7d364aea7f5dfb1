package session

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"fabsh/builtins/lang"
)

// A Console is the two output streams of the program, and the progress line on stderr.
// Every write to the Console erases that line first. It is safe for concurrent use.
type Console struct {
	stdout, stderr       io.Writer
	stdoutTTY, stderrTTY bool
	colorOut, colorErr   bool
	broken               func()    // called when a stream has lost its reader; may be nil
	lastWords            io.Writer // receives the last message of a program that is ended by force

	mu       sync.Mutex // guards the following fields, and keeps writes whole
	diverted io.Writer  // receives stdout while a pager measures its length
	line     bool       // a progress line is on the screen
	lent     bool       // another program uses the terminal
	failed   error      // the first error of a write to stdout

	ahead *TypeAhead // what is typed for the prompt; nil: no prompt
}

// NewConsole returns the console of two streams, which may be terminals.
func NewConsole(stdout, stderr io.Writer) *Console {
	return &Console{stdout: stdout, stderr: stderr, lastWords: stderr, stdoutTTY: isTerminal(stdout), stderrTTY: isTerminal(stderr)}
}

// Captured returns a console with other streams, for evaluations whose output the program passes
// on itself. The last message of a program that is ended by force goes to stderr as before.
func (c *Console) Captured(stdout, stderr io.Writer) *Console {
	return &Console{stdout: stdout, stderr: stderr, lastWords: c.lastWords}
}

// Terminal returns the terminal of stdout; nil if it is not a terminal.
func (c *Console) Terminal() *os.File {
	f, ok := c.stdout.(*os.File)
	if !ok || !c.stdoutTTY {
		return nil
	}
	return f
}

// OutIsTerminal reports whether stdout is a terminal, and ErrIsTerminal whether
// stderr is.
func (c *Console) OutIsTerminal() bool { return c.stdoutTTY }
func (c *Console) ErrIsTerminal() bool { return c.stderrTTY }

// Width returns the number of columns of stdout; 0 if it is not a terminal.
func (c *Console) Width() int {
	f := c.Terminal()
	if f == nil {
		return 0
	}
	columns, _ := TerminalSize(f)
	return columns
}

// Out and Err return writers to the streams.
func (c *Console) Out() io.Writer { return consoleWriter{c, false} }
func (c *Console) Err() io.Writer { return consoleWriter{c, true} }

type consoleWriter struct {
	*Console
	isErr bool
}

func (w consoleWriter) Write(p []byte) (int, error) {
	if !w.isTTY() && !w.hasColor() {
		return w.write(p)
	}
	text := lang.Harmless(string(p))
	if w.isErr {
		text = w.wrapMessage(text)
	}
	switch {
	case w.isErr && w.colorErr:
		text = colorMessage(text)
	case !w.isErr && w.colorOut && !w.isDiverted(): // the pager colors diverted text
		text = colorText(text)
	}
	if _, err := w.write([]byte(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hasColor reports whether the stream is colored, wherever it goes.
func (w consoleWriter) hasColor() bool {
	if w.isErr {
		return w.colorErr
	}
	return w.colorOut
}

func (w consoleWriter) isDiverted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.diverted != nil
}

// isTTY reports whether users read the stream on a terminal, which would interpret
// control sequences. A pager shows it there too.
func (w consoleWriter) isTTY() bool {
	if w.isErr {
		return w.stderrTTY
	}
	return w.stdoutTTY
}

func (w consoleWriter) write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.diverted != nil && !w.isErr {
		return w.diverted.Write(p)
	}
	w.erase()
	if w.isErr {
		n, err := w.stderr.Write(p)
		w.reportBroken(err)
		return n, err
	}
	if w.failed == nil {
		_, w.failed = w.stdout.Write(p)
		w.reportBroken(w.failed)
	}
	return len(p), nil // lost output is reported once, also by the exit status
}

// reportBroken reports that a stream has lost its reader.
func (c *Console) reportBroken(err error) {
	if c.broken != nil && errors.Is(err, syscall.EPIPE) {
		c.broken()
	}
}

// Lost returns why output was lost; nil if none was.
func (c *Console) Lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Divert sends stdout to w, or to its stream again if w is nil.
func (c *Console) Divert(w io.Writer) {
	c.mu.Lock()
	c.diverted = w
	c.mu.Unlock()
}

// Lend keeps progress off the terminal while another program uses it.
func (c *Console) Lend(run func()) {
	set := func(lent bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.erase()
		c.lent = lent
	}
	set(true)
	defer set(false)
	run()
}

// status replaces the progress line; an empty text removes it. It does nothing unless
// stderr is a terminal.
func (c *Console) status(text string) {
	if !c.stderrTTY {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	if text == "" || c.lent {
		return
	}
	if f, ok := c.stderr.(*os.File); ok {
		columns, _ := TerminalSize(f)
		text = Truncate(text, columns-1) // a line that wraps could not be erased
	}
	io.WriteString(c.stderr, text)
	c.line = true
}

// erase removes the progress line. c.mu is held.
func (c *Console) erase() {
	if c.line {
		io.WriteString(c.stderr, "\r\x1b[K")
		c.line = false
	}
}

// leave removes the progress line at the end, unless a writer hangs.
func (c *Console) leave() {
	if c.mu.TryLock() {
		c.erase()
		c.mu.Unlock()
	}
}

// wrapMessage breaks the lines of a message at words, where the terminal of stderr would
// break them anywhere. Indented lines, such as those of a script with a caret below, stay.
func (c *Console) wrapMessage(text string) string {
	f, ok := c.stderr.(*os.File)
	if !ok || !c.stderrTTY {
		return text
	}
	columns, _ := TerminalSize(f)
	return lang.WrapWords(text, columns)
}

// Truncate returns the first n runes of the first line of text.
func Truncate(text string, n int) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > n {
		return string(r[:max(0, n)])
	}
	return text
}
