package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalSize returns the size of the terminal f; 80 by 24 if it is unknown.
func TerminalSize(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// SaveTerminal remembers the terminal's mode; restore goes back to it.
func SaveTerminal(f *os.File) (restore func()) {
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { term.Restore(int(f.Fd()), state) }
}

// FollowsWithin reports whether more input of f comes within a time.
func FollowsWithin(f *os.File, d time.Duration) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, int(d.Milliseconds()))
	return err == nil && n > 0
}

// Keyboard is what is typed at a terminal, or another input, until a context ends.
// After that it takes nothing: what is typed then is for the next reader.
type Keyboard struct {
	*os.File
	ctx context.Context
}

// NewKeyboard returns the keyboard of f until ctx ends.
func NewKeyboard(ctx context.Context, f *os.File) *Keyboard { return &Keyboard{f, ctx} }

// keyboardChecks is the interval of checks for the end of a keyboard, in milliseconds.
const keyboardChecks = 100

// Read waits for input with poll(2), because a read cannot be interrupted. Ctrl-C discards
// what was typed, also between poll and read, so the read does not wait either.
func (k *Keyboard) Read(p []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(k.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, keyboardChecks)
		switch {
		case k.ctx.Err() != nil:
			return 0, context.Cause(k.ctx)
		case n != 0 && !errors.Is(err, unix.EINTR): // input, its end, or no poll for such files
			if n, err := readTyped(k.File, p); !errors.Is(err, unix.EAGAIN) {
				return n, err
			}
		}
	}
}

// TypeAhead is what was typed before the prompt reads it. It is safe for concurrent use.
type TypeAhead struct {
	f    *os.File
	mu   sync.Mutex
	text string
}

// KeepAhead keeps what is typed at the terminal f ahead of a pager for the prompt.
func (c *Console) KeepAhead(f *os.File) *TypeAhead {
	c.ahead = &TypeAhead{f: f}
	return c.ahead
}

// Take returns what was kept.
func (t *TypeAhead) Take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text
	t.text = ""
	return text
}

// hold takes all that was typed so far. The terminal gives also incomplete lines, and
// does not wait, in a mode without lines.
func (t *TypeAhead) hold() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := int(t.f.Fd())
	mode, err := unix.IoctlGetTermios(fd, getMode)
	if err != nil {
		return
	}
	now := *mode
	now.Lflag &^= unix.ICANON
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 0, 0
	if unix.IoctlSetTermios(fd, setMode, &now) != nil {
		return
	}
	defer unix.IoctlSetTermios(fd, setMode, mode)
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, buf)
		if n <= 0 || err != nil {
			return
		}
		t.text += string(buf[:n])
	}
}

// hideTyping disables the echo of the terminal f, until restore.
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

// askUnseen reads a line from the terminal f without echo.
func askUnseen(f *os.File, prompt string) (string, error) {
	fmt.Fprint(f, prompt)
	line, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(f)
	return strings.TrimSpace(string(line)), err
}
