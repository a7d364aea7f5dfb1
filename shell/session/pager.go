package session

import (
	"io"
	"os"
	"os/exec"
	"strings"

	"fabsh/builtins/lang"
)

// Page writes text to c, in a pager if c is a terminal and the text is longer than two
// screens.
func (c *Console) Page(i *Interrupts, text string) error {
	text = lang.Harmless(text) // less -R and others pass on control sequences
	if out := c.Terminal(); out == nil || fits(text, out) {
		_, err := io.WriteString(c.Out(), text)
		return err
	}
	return c.page(i, text, "less -FRSX") // S: do not wrap tables
}

// PageAlways writes text to the terminal of c in a pager, even if it is short.
func (c *Console) PageAlways(i *Interrupts, text string) error {
	if c.Terminal() == nil {
		_, err := io.WriteString(c.Out(), text)
		return err
	}
	return c.page(i, lang.Harmless(text), "less -RSX")
}

// page runs the pager of the environment, else the given one. Meanwhile it handles Ctrl-C.
func (c *Console) page(i *Interrupts, text, pager string) error {
	if own := os.Getenv("PAGER"); own != "" {
		pager = own
	}
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

// fits reports whether text and the prompt fit on two screens.
func fits(text string, f *os.File) bool {
	columns, rows := TerminalSize(f)
	used := 0
	for line := range strings.Lines(text) {
		width := len([]rune(strings.TrimSuffix(line, "\n")))
		used += 1 + max(0, width-1)/columns
	}
	return used < 2*rows
}
