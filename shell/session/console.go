package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"fabsh/builtins/lang"
)

// A Console is the two output streams of the program, and the progress line on stderr.
// Every write to the Console erases that line first. It is safe for concurrent use.
type Console struct {
	stdout, stderr       io.Writer
	stdoutTTY, stderrTTY bool
	colorOut, colorErr   bool
	noPager              bool
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
// break them anywhere. Indented lines, such as a line of a script with a caret below, stay.
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

// How soon an evaluation counts as slow, and how often its progress is updated.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// progress shows at a terminal what a slow evaluation is doing.
type progress struct {
	console *Console
	idle    func() string // the default text

	mu   sync.Mutex
	text string // the latest text
}

// set sets the text. It may be called at any rate.
func (p *progress) set(text string) {
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// during shows the progress line while fn runs, from half a second on.
func (p *progress) during(fn func()) {
	if p == nil || !p.console.stderrTTY {
		fn()
		return
	}
	p.set("")
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
		if text != "" {
			text = fmt.Sprintf("%s (%d s, Ctrl-C stops)", text, int(time.Since(start).Seconds()))
		}
		p.console.status(text)
		next.Reset(progressEvery)
	}
}

// Color never carries information that the text does not have: it marks errors and
// faulty states, and dims GUIDs, which are long and seldom read.

// ColorMode is the value of --color.
type ColorMode string

const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// ColorModes returns all modes.
func ColorModes() []string {
	return []string{string(ColorAuto), string(ColorAlways), string(ColorNever)}
}

func (m *ColorMode) Set(text string) error {
	switch mode := ColorMode(text); mode {
	case ColorAuto, ColorAlways, ColorNever:
		*m = mode
		return nil
	}
	return errors.New("want auto, always or never")
}

func (m *ColorMode) String() string { return string(*m) }
func (m *ColorMode) Type() string   { return "when" }

// on reports whether a stream has color. auto: if it is a terminal, unless NO_COLOR
// (no-color.org) or TERM disables it.
func (m ColorMode) on(isTTY bool) bool {
	if m != ColorAuto {
		return m == ColorAlways
	}
	return isTTY && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// DisablePager makes Page write to the terminal itself.
func (c *Console) DisablePager() { c.noPager = true }

// SetColor decides which streams have color. Formats for programs have none.
func (c *Console) SetColor(mode ColorMode, format lang.Format) {
	c.colorOut = format == lang.FormatText && mode.on(c.stdoutTTY)
	c.colorErr = mode.on(c.stderrTTY)
}

// SGR sequences (ECMA-48).
const (
	sgrRed    = "\x1b[31m"
	sgrYellow = "\x1b[33m"
	sgrDim    = "\x1b[2m"
	sgrReset  = "\x1b[0m"
)

var (
	// colored are GUIDs; errors in a row or a cell; and words that may be a cell.
	colored = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b0x[0-9a-f]{16}\b|\berror: .*|\berror\(.*|\bunknown\(\d+\)|[a-z_]+(?: ok)?`)
	})
	// wrongWords are cells that are seldom correct.
	wrongWords = map[string]string{
		"down": sgrYellow, "initialize": sgrYellow, "armed": sgrYellow, "polling": sgrYellow, "disabled": sgrYellow, "sleep": sgrYellow,
		"port_configuration_training": sgrYellow, "link_error_recovery": sgrYellow, "phy_test": sgrYellow,
		"warning": sgrYellow, "error": sgrRed, "critical": sgrRed, "not ok": sgrRed,
	}
)

// Shaded reports whether cells of pictures may be in color.
func (c *Console) Shaded() bool { return c.colorOut }

// cellColors are the shades of cells from low to high, as 24-bit colors (viridis, which
// color-blind users can distinguish), and the nearest of the 256 of xterm; then that of
// unknown cells.
var cellColors = [...]cellColor{
	{"68;1;84", "53", false}, {"70;50;127", "60", false}, {"54;92;141", "24", false}, {"39;127;142", "30", false},
	{"31;161;135", "36", true}, {"74;194;109", "71", true}, {"160;218;57", "149", true}, {"253;231;37", "226", true},
	{"128;128;128", "244", true},
}

type cellColor struct {
	rgb   string
	xterm string
	light bool // a mark on it is black
}

// colorCells replaces runes of lang.Cell by the mark of the shade, on its color.
func colorCells(text string) string {
	if !strings.ContainsFunc(text, isShade) {
		return text
	}
	trueColor := os.Getenv("COLORTERM") == "truecolor" || os.Getenv("COLORTERM") == "24bit" || strings.HasSuffix(os.Getenv("TERM"), "-direct")
	var b strings.Builder
	last := -1 // the shade whose color is in force
	for _, r := range text {
		shade, ok := lang.CellOf(r)
		if !ok || shade >= len(cellColors) {
			shade = -1
		}
		if shade != last {
			if last >= 0 {
				b.WriteString(sgrReset)
			}
			if shade >= 0 {
				b.WriteString(cellColors[shade].sequence(trueColor))
			}
			last = shade
		}
		if s, ok := lang.CellOf(r); ok {
			b.WriteString(lang.ShadeMark(s))
		} else {
			b.WriteRune(r)
		}
	}
	if last >= 0 {
		b.WriteString(sgrReset)
	}
	return b.String()
}

// sequence returns the control sequence for a mark on the color.
func (c cellColor) sequence(trueColor bool) string {
	ink := 97 // white
	if c.light {
		ink = 30 // black
	}
	if trueColor {
		return fmt.Sprintf("\x1b[%d;48;2;%sm", ink, c.rgb)
	}
	return fmt.Sprintf("\x1b[%d;48;5;%sm", ink, c.xterm)
}

func isShade(r rune) bool {
	_, ok := lang.CellOf(r)
	return ok
}

// colorText colors output. The text has no control sequences of its own.
func colorText(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range colored().FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		color := wrongWords[word]
		switch {
		case color != "" && !isCell(text, at[0], at[1]):
			continue
		case strings.HasPrefix(word, "0x"):
			color = sgrDim
		case strings.HasPrefix(word, "error:"), strings.HasPrefix(word, "error("):
			color = sgrRed
		case strings.HasPrefix(word, "unknown("):
			color = sgrYellow
		case color == "":
			continue
		}
		b.WriteString(text[last:at[0]] + color + word + sgrReset)
		last = at[1]
	}
	return colorCells(b.String() + text[last:])
}

// isCell reports whether text[i:j] is a whole cell of a table, or the value of a line.
func isCell(text string, i, j int) bool {
	before, after := text[:i], text[j:]
	return (before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, "  ")) &&
		(after == "" || after[0] == '\n' || strings.HasPrefix(after, "  "))
}

// colorMessage colors the first word of each warning.
func colorMessage(text string) string {
	const word = "warning:"
	if rest, ok := strings.CutPrefix(text, word); ok {
		text = sgrYellow + word + sgrReset + rest
	}
	return strings.ReplaceAll(text, "\n"+word, "\n"+sgrYellow+word+sgrReset)
}

// Complain writes an error to stderr, its first line in color.
func (c *Console) Complain(text string) {
	w := consoleWriter{c, true}
	if !c.colorErr {
		w.Write([]byte(text + "\n"))
		return
	}
	first, rest, _ := strings.Cut(lang.Harmless(text)+"\n", "\n")
	w.write([]byte(sgrRed + c.wrapMessage(first) + sgrReset + "\n" + c.wrapMessage(rest)))
}

// Page writes text to c, in a pager if c is a terminal and the text is longer than its
// screen.
func (c *Console) Page(i *Interrupts, text string) error {
	text = lang.Harmless(text) // less -R and others pass on control sequences
	if out := c.Terminal(); out == nil || c.noPager || fits(text, out) {
		_, err := io.WriteString(c.Out(), text)
		return err
	}
	return c.page(i, text, "less -FRSX") // S: do not wrap tables
}

// PageAlways writes text to the terminal of c in a pager, even if it is short.
func (c *Console) PageAlways(i *Interrupts, text string) error {
	if c.Terminal() == nil || c.noPager {
		_, err := io.WriteString(c.Out(), lang.Harmless(text))
		return err
	}
	return c.page(i, lang.Harmless(text), "less -RSX")
}

// PagerVariable is the pager of fabsh, before PAGER.
const PagerVariable = "FABSH_PAGER"

// page runs the pager of the environment, else the given one. Meanwhile it handles Ctrl-C.
func (c *Console) page(i *Interrupts, text, pager string) error {
	pager = cmp.Or(os.Getenv(PagerVariable), os.Getenv("PAGER"), pager)
	out := c.Terminal()
	cmd := exec.Command("sh", "-c", pager)
	paged := text
	if c.colorOut {
		paged = colorText(text)
	}
	cmd.Env = append(os.Environ(), "LESSSECURE=1", "LESSHISTFILE=-") // no shell, editor or files: fabsh may run as root
	cmd.Stdin = strings.NewReader(paged)
	cmd.Stdout, cmd.Stderr = out, c.stderr
	var err error
	c.ahead.hold() // it is not for the pager
	c.Lend(func() { i.Ignore(func() { err = cmd.Run() }) })
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() < 126 {
		return nil // it ran, and was quit in some way
	}
	if err != nil { // no pager: scrolling is better than nothing
		_, err = io.WriteString(c.Out(), text)
	}
	return err
}

// fits reports whether text and the prompt fit on the screen.
func fits(text string, f *os.File) bool {
	columns, rows := TerminalSize(f)
	used := 0
	for line := range strings.Lines(text) {
		width := len([]rune(strings.TrimSuffix(line, "\n")))
		used += 1 + max(0, width-1)/columns
	}
	return used < rows
}
