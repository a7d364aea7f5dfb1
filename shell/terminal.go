package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"fabsh/builtins/lang"
)

// A console is the two output streams of the program, and the progress line
// that may stand on the second. Whatever is written by way of the console
// erases that line first.
type console struct {
	stdout, stderr       io.Writer
	stdoutTTY, stderrTTY bool
	colorOut, colorErr   bool
	broken               func() // is told when nobody reads a stream any more; nil: nobody is

	mu       sync.Mutex // guards what follows, and keeps writes whole
	diverted io.Writer  // where stdout goes instead, while a pager is to judge its length
	line     bool       // a progress line is on the screen
	lent     bool       // the terminal is another program's
	failed   error      // the first failure to write to stdout
}

func newConsole(stdout, stderr *os.File) *console {
	return &console{stdout: stdout, stderr: stderr, stdoutTTY: isTerminal(stdout), stderrTTY: isTerminal(stderr)}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// size is that of the terminal on f; 80 by 24 where it does not say.
func size(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// width is how many columns stdout has; 0 where it is no terminal.
func (c *console) width() int {
	f, ok := c.stdout.(*os.File)
	if !ok || !c.stdoutTTY {
		return 0
	}
	columns, _ := size(f)
	return columns
}

// saveTerminal remembers the terminal's mode; restore goes back to it.
func saveTerminal(f *os.File) (restore func()) {
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { term.Restore(int(f.Fd()), state) }
}

// hideTyping has the terminal f not show what is typed, until restore.
func hideTyping(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	mode, err := unix.IoctlGetTermios(fd, getMode)
	if err != nil {
		return nil, err
	}
	hidden := *mode
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setMode, &hidden); err != nil {
		return nil, err
	}
	return func() { unix.IoctlSetTermios(fd, setMode, mode) }, nil
}

// askUnseen reads a line from the terminal f, which does not show it.
func askUnseen(f *os.File, prompt string) (string, error) {
	fmt.Fprint(f, prompt)
	line, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(f)
	return strings.TrimSpace(string(line)), err
}

// Out and Err are the streams for others to write to.
func (c *console) Out() io.Writer { return consoleWriter{c, false} }
func (c *console) Err() io.Writer { return consoleWriter{c, true} }

type consoleWriter struct {
	*console
	isErr bool
}

func (w consoleWriter) Write(p []byte) (int, error) {
	if !w.isTTY() && !w.hasColor() {
		return w.write(p)
	}
	text := lang.Harmless(string(p))
	switch {
	case w.isErr && w.colorErr:
		text = colorMessage(text)
	case !w.isErr && w.colorOut && !w.isDiverted(): // the pager colors what is diverted
		text = colorText(text)
	}
	if _, err := w.write([]byte(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hasColor: the stream is colored, wherever it goes.
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

// isTTY: people read the stream on a terminal, which would obey some of what is
// written. A pager shows it there too.
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
		w.tell(err)
		return n, err
	}
	if w.failed == nil {
		_, w.failed = w.stdout.Write(p)
		w.tell(w.failed)
	}
	return len(p), nil // what is lost is told once, by the exit status too
}

// tell passes on that a stream has lost its reader.
func (c *console) tell(err error) {
	if c.broken != nil && errors.Is(err, syscall.EPIPE) {
		c.broken()
	}
}

// lost is why output was lost; nil: none was.
func (c *console) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// divert sends stdout to w, or back where it belongs when w is nil.
func (c *console) divert(w io.Writer) {
	c.mu.Lock()
	c.diverted = w
	c.mu.Unlock()
}

// lend keeps progress off the terminal while another program has it.
func (c *console) lend(run func()) {
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

// status replaces the progress line; an empty text takes it away. Nothing
// happens unless stderr is a terminal.
func (c *console) status(text string) {
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
		columns, _ := size(f)
		text = truncate(text, columns-1) // a line that wraps could not be erased
	}
	io.WriteString(c.stderr, text)
	c.line = true
}

// erase takes the progress line away. c.mu is held.
func (c *console) erase() {
	if c.line {
		io.WriteString(c.stderr, "\r\x1b[K")
		c.line = false
	}
}

// leave takes the progress line away for good, unless a writer hangs.
func (c *console) leave() {
	if c.mu.TryLock() {
		c.erase()
		c.mu.Unlock()
	}
}

// truncate returns the first n runes of the first line of text.
func truncate(text string, n int) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > n {
		return string(r[:max(0, n)])
	}
	return text
}

// How soon something counts as slow, and how often its progress is renewed.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// progress tells people at a terminal what a slow evaluation is doing.
type progress struct {
	console *console
	idle    func() string // what to say when nothing was told

	mu   sync.Mutex
	text string // what was told last
}

// Tell sets the line. It may be called as often as one likes.
func (p *progress) Tell(text string) {
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// during shows the line while fn runs, once that has taken half a second.
func (p *progress) during(fn func()) {
	if p == nil || !p.console.stderrTTY {
		fn()
		return
	}
	p.Tell("")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go p.show(stop, stopped)
	defer func() {
		close(stop)
		<-stopped
		p.console.status("")
	}()
	fn()
}

func (p *progress) show(stop, stopped chan struct{}) {
	defer close(stopped)
	start := time.Now()
	next := time.NewTimer(progressAfter)
	defer next.Stop()
	for {
		select {
		case <-stop:
			return
		case <-next.C:
		}
		p.mu.Lock()
		text := p.text
		p.mu.Unlock()
		if text == "" {
			text = p.idle()
		}
		p.console.status(fmt.Sprintf("%s (%d s, Ctrl-C stops)", text, int(time.Since(start).Seconds())))
		next.Reset(progressEvery)
	}
}

// page writes text to the terminal, by way of a pager where it is longer than
// the screen.
func (a *app) page(text string) error {
	text = lang.Harmless(text) // less -R and others pass on what the terminal obeys
	out, ok := a.console.stdout.(*os.File)
	if !ok || !a.console.stdoutTTY || fits(text, out) {
		_, err := io.WriteString(a.console.Out(), text)
		return err
	}
	pager := os.Getenv("PAGER")
	if pager == "" {
		pager = "less -FRSX" // S: tables are not to be folded
	}
	cmd := exec.Command("sh", "-c", pager)
	paged := text
	if a.console.colorOut {
		paged = colorText(text)
	}
	cmd.Stdin = strings.NewReader(paged)
	cmd.Stdout, cmd.Stderr = out, a.console.stderr
	var err error
	a.console.lend(func() { a.interrupts.ignore(func() { err = cmd.Run() }) })
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() < 126 {
		return nil // it ran, and was quit in some way or other
	}
	if err != nil { // no pager: scrolling is better than nothing
		_, err = io.WriteString(a.console.Out(), text)
	}
	return err
}

// fits reports whether text leaves room for the prompt on the screen.
func fits(text string, f *os.File) bool {
	columns, rows := size(f)
	used := 0
	for line := range strings.Lines(text) {
		width := len([]rune(strings.TrimSuffix(line, "\n")))
		used += 1 + max(0, width-1)/columns
	}
	return used < rows
}
