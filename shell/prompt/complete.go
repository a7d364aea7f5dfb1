package prompt

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/shell/session"
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

// completer returns the completer of the session.
func (r *repl) completer() *completer {
	known := check.Known{
		Topics:  func(base string) []string { return help.Of(r.Runtime).Topics(base) },
		Targets: func(typed string) []string { return targetNames(r.Session, typed) },
		Names:   func() []string { return nodeNames(r.Session) },
	}
	return &completer{
		Completer: check.Completer{
			Globals:  func() starlark.StringDict { return r.interp.globals },
			Keywords: check.KeywordsOf,
			Words:    known.Words,
			Files:    filesWith,
			Exports:  r.Interpreter.Exports,
			Lead:     func() []string { return append(reportNames(), r.commands.here()...) },
		},
		reports:  reportNames,
		options:  reportOptions,
		commands: r.commands,
		follow: func(words []string, typed string) ([]string, bool) {
			return r.commands.Complete(r.Session, words, typed)
		},
		own: r.defined,
	}
}

func reportNames() []string {
	var names []string
	for _, d := range script.Reports.Shipped() {
		names = append(names, d.Name)
	}
	return names
}

// reportOptions returns the options of a shipped report.
func reportOptions(name string) []string {
	path, _ := script.Reports.Locate(name)
	for _, p := range script.Programs() {
		if p.Name == path {
			return p.Options
		}
	}
	return nil
}

// targetNames returns the names of nodes and, after a node's name and a slash, its
// ports: NAME/3.
func targetNames(s *session.Session, typed string) []string {
	names := nodeNames(s)
	i := strings.LastIndexByte(typed, '/')
	f := s.Env.Fabric()
	if i < 0 || f == nil {
		return names
	}
	for n := range f.Nodes() {
		node := &f.Nodes()[n]
		name := lang.OneLine(node.Name())
		if name == "" || name != typed[:i] {
			continue
		}
		for num := range node.NumPorts() + 1 {
			if node.Port(num) != nil {
				names = append(names, fmt.Sprintf("%s/%d", name, num))
			}
		}
	}
	return names
}

// nodeNames returns the names of the latest fabric, escaped as in a string literal,
// because a terminal displays them.
func nodeNames(s *session.Session) []string {
	f := s.Env.Fabric()
	if f == nil {
		return nil
	}
	var names []string
	for i := range f.Nodes() {
		if name := f.Nodes()[i].Name(); name != "" {
			names = append(names, lang.OneLine(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// NodeWords returns the names of the latest fabric as words of a command: hosts by their
// first word, because names with blanks are two words.
func NodeWords(s *session.Session) []string {
	var words []string
	for _, name := range nodeNames(s) {
		if host, ok := fabric.HostName(name); ok {
			name = host
		}
		if !strings.ContainsAny(name, " \t\"'") {
			words = append(words, name)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// filesWith returns the files and directories that begin with prefix, or the modules of
// a package. Hidden files are included only if prefix begins with a dot.
func filesWith(prefix string) []string {
	if strings.HasPrefix(prefix, "@") {
		return check.Matching(script.Embedded(), prefix)
	}
	dir, base := filepath.Split(prefix)
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, lang.OneLine(dir+name))
	}
	return names
}
