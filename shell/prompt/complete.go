package prompt

import (
	"slices"
	"strings"

	"fabsh/builtins/check"
)

// A completer completes a text at the prompt: a statement, a command or a report.
type completer struct {
	check.Completer
	// reports returns the names of reports, each of which begins a line, and options
	// those of one.
	reports  func() []string
	options  func(report string) []string
	commands Commands
	// follow returns the words that may follow those of a command; files reports that
	// names of files may.
	follow func(words []string, typed string) (list []string, files bool)
	// own reports whether the user has defined a name.
	own func(name string) bool
}

// Complete returns the proposals for text, which ends at the cursor and may have several
// lines: each a whole word that replaces text[start:]. after is the text after the cursor.
func (c *completer) Complete(text, after string) (words []string, start int) {
	if line := text[strings.LastIndexByte(text, '\n')+1:]; strings.TrimLeft(line, " \t") == "" {
		return []string{indentUnit}, len(text)
	}
	if words, start, ok := c.inCommand(text); ok {
		return words, start
	}
	if words, start, ok := c.inReport(text); ok {
		return words, start
	}
	return c.Completer.Complete(text, after)
}

// inCommand proposes completions in the line of a command; ok reports whether text is
// such a line. A variable of that name makes it a statement.
func (c *completer) inCommand(text string) (words []string, start int, ok bool) {
	l, ok := c.commands.cutCommand(text)
	if !ok || !strings.Contains(text, " ") || c.own(l.first) {
		return nil, 0, false
	}
	start = strings.LastIndexByte(text, ' ') + 1
	before := strings.Fields(text[:start])
	if l.first == commandWord {
		before = before[1:]
	}
	words, files := c.follow(before, text[start:])
	if len(words) == 0 && files {
		words = c.Files(text[start:])
	}
	return check.Matching(words, text[start:]), start, true
}

// inReport proposes the options of a report; ok reports whether text is its command
// line.
func (c *completer) inReport(text string) (words []string, start int, ok bool) {
	name, rest, isLine := strings.Cut(text, " ")
	if !isLine || !slices.Contains(c.reports(), name) || c.Globals().Has(name) || strings.HasPrefix(strings.TrimSpace(rest), "=") {
		return nil, 0, false
	}
	start = strings.LastIndexByte(text, ' ') + 1
	return check.Matching(c.options(name), text[start:]), start, true
}
