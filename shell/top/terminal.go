package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"fabsh/builtins/lang"
	"fabsh/fabric/picture"
)

// screen is the table on a terminal.
type screen struct {
	table         *table
	out           *os.File
	width, height int
	from          int    // the first row that is shown
	typing        bool   // the filter
	old           string // what it was before
	help          bool   // the keys are shown instead of the table
	begun         bool   // a round was added
	last          string // what is on the terminal
}

// Live draws the table on the terminal out, until q or Ctrl-C is typed on in or ctx
// ends; then the former content of the terminal is restored. leave is called with a
// function that restores it, for an end that does not wait for Live.
func Live(ctx context.Context, o Options, src Source, clock lang.Clock, in Keyboard, out *os.File, leave func(restore func())) error {
	term, err := takeTerminal(in, out)
	if err != nil {
		return err
	}
	leave(term.restore)
	defer term.restore()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told, ended := make(chan round), make(chan error, 1)
	go func() {
		ended <- lang.Protect("top", func() error {
			return o.rounds(ctx, src, clock, func(r round) bool {
				select {
				case told <- r:
					return true
				case <-ctx.Done():
					return false
				}
			})
		})
	}()
	o.Name = text.Snip(o.Name, maxName, "...")
	s := &screen{table: newTable(o), out: out}
	for {
		s.draw()
		select {
		case r := <-told:
			s.begun = s.begun || r.num > 0 || r.err != nil
			s.table.add(r)
		case err := <-ended: // the rounds or the time have ended
			return err
		case <-term.resized:
		case typed := <-term.typed:
			for _, key := range typed {
				quit, interrupted := s.press(key)
				if !quit {
					continue
				}
				cancel()
				<-ended
				if interrupted {
					return lang.ErrInterrupted
				}
				return nil
			}
		}
	}
}

// maxName is the maximum length of the fabric's name.
const maxName = 20

// keysHelp is what ? shows.
const keysHelp = `
  q, F10                   quit
  w d e b                  sort by waiting, data, errors, bit error rate
  < >, F6                  sort by the previous, the next of these
  t                        tier: all, host, leaf, spine, core
  /, F4                    filter by name; * matches any text; Esc ends the filter
  Up Down, k j             move by a row
  PageUp PageDown, Space   move by a page
  Home End, g G            first, last row`

// rows returns how many rows of the table fit.
func (s *screen) rows() int { return s.height - 3 }

// draw updates the terminal in one write over the existing text, so that nothing
// flickers.
func (s *screen) draw() {
	s.width, s.height = size(s.out)
	s.from = max(0, min(s.from, len(s.table.shown)-s.rows()))
	lines := []string{s.table.summary()}
	if !s.begun {
		lines[0] = s.table.Name + ": first read; rates follow in " + s.table.Every.String()
	} else {
		lines[0] = s.table.round.at.Format("15:04:05 ") + lines[0]
	}
	if s.help {
		lines = append(lines, strings.Split("Keys"+keysHelp, "\n")...)
	} else {
		lines = append(lines, s.table.lines(s.width, s.from, s.rows())...)
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, s.height-1)], s.foot())
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		line = text.Trim(line, s.width-1) // nothing in the last column: terminals differ in what follows
		if i == 1 {
			line = "\x1b[7m" + pad(line, s.width-1) + "\x1b[0m"
		}
		b.WriteString(line + "\x1b[K")
		if i < len(lines)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString("\x1b[J")
	if frame := b.String(); frame != s.last {
		s.out.WriteString(frame)
		s.last = frame
	}
}

// foot returns the last line: keys, or the filter while it is typed.
func (s *screen) foot() string {
	if s.typing {
		return "/" + lang.OneLine(s.table.Filter) + "_  Enter applies it, Esc cancels; * matches any text"
	}
	at := ""
	if n := len(s.table.shown); n > 0 {
		at = fmt.Sprintf("%d-%d of %d  ", s.from+1, min(n, s.from+max(0, s.rows())), n)
	}
	if s.help {
		return "any key returns to the table"
	}
	return at + "? keys  q quit  w wait  d data  e errors  b ber  t tier  / filter"
}

// keys separates typed bytes into keys. A terminal sends a key such as an arrow as a
// sequence of bytes that begins with ESC (ECMA-48), in one read or in several; an
// incomplete sequence is returned as rest.
func keys(typed string) (list []string, rest string) {
	for typed != "" {
		n := 1
		switch {
		case typed[0] == '\x1b' && len(typed) > 1 && (typed[1] == '[' || typed[1] == 'O'):
			end := strings.IndexFunc(typed[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				if len(typed) > maxSequence {
					return list, ""
				}
				return list, typed
			}
			n = 2 + end + 1
		case !utf8.FullRuneInString(typed):
			return list, typed
		default:
			_, n = utf8.DecodeRuneInString(typed)
		}
		list = append(list, typed[:n])
		typed = typed[n:]
	}
	return list, ""
}

// maxSequence is longer than the sequence of any key.
const maxSequence = 32

// press does what a key requests; quit is true for the keys that end the table,
// including Ctrl-C.
func (s *screen) press(key string) (quit, interrupted bool) {
	if key == "\x03" {
		return true, true
	}
	if s.typing {
		s.typeFilter(key)
		return false, false
	}
	if s.help {
		s.help = false
		return key == "q" || key == "Q", false
	}
	page := max(1, s.rows())
	switch key {
	case "q", "Q", "\x04", "\x1b[21~": // F10, as in htop
		return true, false
	case "w", "d", "e", "b":
		s.sort(By(strings.Index("wdeb", key)))
	case ">", "\x1b[17~": // F6
		s.sort((s.table.By + 1) % numBy)
	case "<":
		s.sort((s.table.By + numBy - 1) % numBy)
	case "t":
		words := append([]string{""}, picture.TierWords...)
		s.table.Tier = words[(slices.Index(words, s.table.Tier)+1)%len(words)]
		s.table.arrange()
		s.from = 0
	case "?", "h", "\x1bOP", "\x1b[11~": // F1
		s.help = true
	case "/", "\\", "\x1bOS", "\x1b[14~": // F4
		s.typing, s.old = true, s.table.Filter
	case "\x1b": // no filter
		s.filter("")
	case "\x1b[A", "\x1bOA", "k":
		s.from--
	case "\x1b[B", "\x1bOB", "j":
		s.from++
	case "\x1b[5~":
		s.from -= page
	case "\x1b[6~", " ":
		s.from += page
	case "\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "g":
		s.from = 0
	case "\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "G":
		s.from = len(s.table.shown)
	}
	s.from = max(0, min(s.from, len(s.table.shown)-page))
	return false, false
}

func (s *screen) sort(by By) {
	s.table.By = by
	s.table.arrange()
	s.from = 0
}

// maxFilter is the maximum length of a filter, in bytes: names have at most 64.
const maxFilter = 128

// typeFilter is press while the filter is typed, which applies at once.
func (s *screen) typeFilter(key string) {
	filter := s.table.Filter
	switch {
	case key == "\r" || key == "\n":
		s.typing = false
	case key == "\x1b":
		s.typing = false
		s.filter(s.old)
	case key == "\x7f" || key == "\b":
		_, n := utf8.DecodeLastRuneInString(filter)
		s.filter(filter[:len(filter)-n])
	case key == "\x15": // Ctrl-U
		s.filter("")
	case key[0] >= ' ' && utf8.ValidString(key) && len(filter)+len(key) <= maxFilter:
		s.filter(filter + key)
	}
}

func (s *screen) filter(pattern string) {
	s.table.Filter = pattern
	s.table.arrange()
	s.from = 0
}

// Keyboard is what users type: a terminal, whose mode may be changed, or another input.
type Keyboard interface {
	io.Reader
	Fd() uintptr
}

// terminal is a terminal that only the table uses.
type terminal struct {
	typed   chan []string // keys
	resized chan struct{}
	restore func() // restores the former state; may be called more than once
}

// Sequences for terminals of the VT220 and xterm kind: the alternate screen without a
// cursor; and back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[?1049l"
)

// resizeEvery is the interval of checks of the terminal's size.
const resizeEvery = 200 * time.Millisecond

// takeTerminal takes over the terminal out, and in as its keyboard if that is a
// terminal.
func takeTerminal(in Keyboard, out *os.File) (*terminal, error) {
	t := &terminal{typed: make(chan []string), resized: make(chan struct{})}
	back := func() {}
	if fd := int(in.Fd()); term.IsTerminal(fd) {
		mode, err := term.MakeRaw(fd)
		if err != nil {
			return nil, errors.New("top: cannot read single keys from the terminal: " + err.Error())
		}
		back = func() { term.Restore(fd, mode) }
	}
	out.WriteString(enter)
	done := make(chan struct{})
	t.restore = sync.OnceFunc(func() {
		close(done)
		out.WriteString(leave)
		back()
	})
	if term.IsTerminal(int(in.Fd())) {
		go t.read(in, done)
	}
	go t.watch(out, done)
	return t, nil
}

// read passes on typed bytes. Its last read returns when the keyboard ends.
func (t *terminal) read(in Keyboard, done chan struct{}) {
	buf := make([]byte, 256)
	rest := ""
	for {
		n, err := in.Read(buf)
		var list []string
		if list, rest = keys(rest + string(buf[:n])); list != nil {
			select {
			case t.typed <- list:
			case <-done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// watch reports each new size.
func (t *terminal) watch(out *os.File, done chan struct{}) {
	tick := time.NewTicker(resizeEvery)
	defer tick.Stop()
	width, height := size(out)
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if w, h := size(out); w != width || h != height {
			width, height = w, h
			select {
			case t.resized <- struct{}{}:
			case <-done:
				return
			}
		}
	}
}

// size returns the size of the terminal; 80 by 24 if it is unknown.
func size(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
