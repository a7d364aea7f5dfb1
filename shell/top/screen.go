package top

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh/builtins/lang"
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
