package session

import (
	"io"
	"os"
	"os/exec"
	"strings"

	"fabsh/builtins/lang"
)

// Page writes text to c, in a pager if c is a terminal and the text is longer than its
// screen. Meanwhile the pager handles Ctrl-C.
func (c *Console) Page(i *Interrupts, text string) error {
	text = lang.Harmless(text) // less -R and others pass on control sequences
	out := c.Terminal()
	if out == nil || fits(text, out) {
		_, err := io.WriteString(c.Out(), text)
		return err
	}
	pager := os.Getenv("PAGER")
	if pager == "" {
		pager = "less -FRSX" // S: do not wrap tables
	}
	cmd := exec.Command("sh", "-c", pager)
	paged := text
	if c.colorOut {
		paged = colorText(text)
	}
	cmd.Env = append(os.Environ(), "LESSSECURE=1") // no shell, editor or files: fabsh may run as root
	cmd.Stdin = strings.NewReader(paged)
	cmd.Stdout, cmd.Stderr = out, c.stderr
	var err error
	c.Lend(func() { i.Ignore(func() { err = cmd.Run() }) })
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() < 126 {
		return nil // it ran, and was quit in some way
	}
	if err != nil { // no pager: scrolling is better than nothing
		_, err = io.WriteString(c.Out(), text)
	}
	return err
}

// fits reports whether text leaves room for the prompt on the screen.
func fits(text string, f *os.File) bool {
	columns, rows := TerminalSize(f)
	used := 0
	for line := range strings.Lines(text) {
		width := len([]rune(strings.TrimSuffix(line, "\n")))
		used += 1 + max(0, width-1)/columns
	}
	return used < rows
}
