package top

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

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
