package prompt

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fabsh/builtins/lang"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// Commands are the commands of the program, which run in the session of the prompt.
type Commands struct {
	Names map[string]bool // all; true for those that run at the prompt
	// Direct reports whether the command line that is words uses the terminal itself.
	Direct func(words []string) bool
	// Run runs a command line, and records in seen what the tour checks.
	Run func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error
	// Complete returns the words that may follow words and begin with typed; files
	// reports that names of files may.
	Complete func(s *session.Session, words []string, typed string) (list []string, files bool)
}

// commandWord may stand before a command, as in a shell.
const commandWord = "fabsh"

// commandLine is a line that begins with the name of a command, perhaps after fabsh.
type commandLine struct {
	first string // "fabsh", or the name
	rest  string // of the line, after the name
	name  string
}

// afterName matches text that only Starlark has after a name and blanks.
var afterName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([=(\[,:;]|[-+*/%<>|&^!]+=|[-+*/%<>|&^]+ |(in|not|and|or|if)\b)`)
})

// cutCommand separates a line into the name of a command and the rest; ok reports
// whether it is the line of a command. Lines that only begin with such a name, as
// graph.route(...) and route = 3 do, are Starlark.
func (c *Commands) cutCommand(line string) (l commandLine, ok bool) {
	l.name, l.rest, _ = strings.Cut(line, " ")
	l.first, l.rest = l.name, strings.TrimLeft(l.rest, " ")
	if afterName().MatchString(l.rest) || strings.Contains(line, "\n") {
		return l, false
	}
	if l.first != commandWord {
		_, ok = c.Names[l.name]
		return l, ok
	}
	l.name, l.rest, _ = strings.Cut(l.rest, " ")
	return l, c.Names != nil && l.name != "help" && !afterName().MatchString(l.rest)
}

// line returns the words of l as typed after fabsh.
func (l commandLine) line() string { return strings.TrimSpace(l.name + " " + l.rest) }

// command returns the command line that text is; ok is false for other text, and for valid
// Starlark with a name that the user has defined.
func (r *repl) command(text string) (l commandLine, ok bool) {
	if l, ok = r.commands.cutCommand(strings.TrimSpace(text)); !ok {
		return l, false
	}
	return l, !r.defined(l.first) || !r.parses(text)
}

// shadowed returns the command that text would be if the user had not defined its name.
func (r *repl) shadowed(text string) (l commandLine, ok bool) {
	l, ok = r.commands.cutCommand(strings.TrimSpace(text))
	return l, ok && r.defined(l.first) && r.parses(text)
}

func (r *repl) parses(text string) bool {
	_, err := r.interp.opts.Parse(promptFile, strings.TrimSpace(text), 0)
	return err == nil
}

// defined reports whether the user has defined a name, also one of fabsh's own.
func (r *repl) defined(name string) bool {
	now, ok := r.interp.globals[name]
	if !ok {
		return false
	}
	is, isFunction := now.(*lang.Function)
	was, wasFunction := r.Interpreter.Globals[name].(*lang.Function)
	return !isFunction || !wasFunction || is != was
}

// runCommand runs a command line in the session of the prompt.
func (r *repl) runCommand(ctx context.Context, l commandLine) error {
	words, err := splitWords(l.line())
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	for _, w := range words {
		if w == "|" || strings.Trim(w, "012>&<") == "" && strings.ContainsAny(w, "<>") {
			return fmt.Errorf("%s: the prompt has no pipes and redirections; use --out FILE where the command has it, or run `fabsh %s` in a shell", l.name, l.line())
		}
	}
	run := func() error { return r.commands.Run(ctx, r.Session, words, &r.seen) }
	if r.commands.Direct(words) {
		return finished(lang.Protect("prompt", run))
	}
	return r.showing(run)
}

// here returns the names of the commands that run at the prompt, sorted.
func (c *Commands) here() (names []string) {
	for name, here := range c.Names {
		if here {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
