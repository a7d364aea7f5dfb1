package shell

import (
	"io"
	"os"
	"os/exec"
	"strings"

	"fabsh/builtins/lang"
)

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
