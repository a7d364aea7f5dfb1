package top

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// terminal is a terminal that the table has for itself.
type terminal struct {
	typed   chan []string // keys
	resized chan struct{}
	restore func() // as it was; more than once does nothing more
}

// What a terminal of the kind of VT220 and xterm obeys: another screen than that of
// the lines before, no cursor; and back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[?1049l"
)

// resizeEvery is how often the size of the terminal is looked at.
const resizeEvery = 200 * time.Millisecond

// takeTerminal takes the terminal out, and in as its keyboard where that is a
// terminal.
func takeTerminal(in, out *os.File) (*terminal, error) {
	t := &terminal{typed: make(chan []string), resized: make(chan struct{})}
	back := func() {}
	if fd := int(in.Fd()); term.IsTerminal(fd) {
		mode, err := term.MakeRaw(fd)
		if err != nil {
			return nil, errors.New("top: the terminal gives no single keys: " + err.Error())
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

// read passes on what is typed. It may stay in its last read for good.
func (t *terminal) read(in *os.File, done chan struct{}) {
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

// watch tells of each new size.
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

// size is that of the terminal; 80 by 24 where it does not say.
func size(f *os.File) (width, height int) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
