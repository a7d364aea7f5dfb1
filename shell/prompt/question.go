package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
)

var (
	helpWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^help\s+["']?([\w.@/:=-][\w.@/:= -]*)["']?$`)
	})
	question = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:([\w.\[\]"'-]*)\?{1,2}|\?{1,2}\s*([\w.\[\]"'-]+))$`)
	})
)

// ask handles lines that are not Starlark: questions such as "help smp_get", "smp_get?"
// and "?"; the command line of a tool of infiniband-diags, by its report, or a hint
// what to type here; and commands. asked is false if text is not one of these, and in
// sessions that are not interactive: from a pipe such lines are errors, which the exit
// status reports.
func (r *repl) ask(ctx context.Context, text string) (asked bool, err error) {
	if !r.interactive {
		return false, nil
	}
	text = strings.TrimSpace(text)
	if r.tour != nil && !r.interp.globals.Has(text) && r.tour.Word(text) {
		return true, nil
	}
	if c, ok := r.command(text); ok {
		r.seen.Text = text
		return true, r.runCommand(ctx, c)
	}
	text = strings.TrimPrefix(text, "fabsh ") // before help
	topic := ""
	if m := helpWord().FindStringSubmatch(text); m != nil {
		topic, asked = m[1], true
	} else if m := question().FindStringSubmatch(text); m != nil {
		topic, asked = m[1]+m[2], true
	} else if word, words := cutTool(text); word != "" && !r.interp.globals.Has(word) {
		if script.IsReport(word) {
			r.seen.Text = text
			return true, r.showing(func() error { return r.runReport(ctx, word, words) })
		}
		_, err := fmt.Fprintln(r.Console.Out(), r.Fit(check.ToolAdvice(word, words)))
		return true, err
	}
	if !asked {
		return false, nil
	}
	library, width := help.Of(r.Runtime), r.Columns()
	answer, err := library.Find(topic, width)
	if v := r.completer().Evaluate(topic); v != nil && (err != nil || r.interp.globals.Has(topic)) {
		answer, err = library.On(v, width)
	}
	if err != nil {
		return true, err
	}
	return true, r.Console.Page(r.program.Interrupts, answer)
}

// showing runs a command at the prompt. Long output is shown in a pager; findings do
// not end the session.
func (r *repl) showing(run func() error) error {
	var text bytes.Buffer
	r.Console.Divert(&text)
	err := lang.Protect("prompt", run)
	r.Console.Divert(nil)
	if paged := r.Console.Page(r.program.Interrupts, text.String()); paged != nil && err == nil {
		err = paged
	}
	return finished(err)
}

// finished returns err without an exit status, which does not end the prompt.
func finished(err error) error {
	var exit *lang.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// cutTool separates the command line of a tool or a report into its name and the rest; "" if it
// is not one, but perhaps an assignment to a variable of that name.
func cutTool(text string) (name, words string) {
	name, words, _ = strings.Cut(text, " ")
	if check.ToolHint(name) == "" && !script.IsReport(name) || strings.HasPrefix(strings.TrimSpace(words), "=") {
		return "", ""
	}
	return name, words
}

// runReport runs a report at the prompt: words are those typed after its name.
func (r *repl) runReport(ctx context.Context, name, words string) error {
	args, err := promptWords(name, words, "report "+name+" "+words)
	if err != nil {
		return err
	}
	r.seen.Named = name
	return program.RunReport(ctx, r.Interpreter, name, args)
}

// splitWords separates a line into words, as Unix shells do: at blanks, but not between
// quotes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("missing closing quote %c", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// notText matches lines that are more likely a statement with an error than text that was
// copied from the screen.
var notText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`["{}=\\]|\w[(\[]|[^ ] *[-+*]$|\w:$|^(and|break|continue|def|elif|else|for|if|lambda|load|not|or|pass|return|while) |^\S+ [-+*/%] \S+$`)
})

// shown returns a hint for a line that fabsh shows in its output, such as the name of a
// port, and that is not a statement; sure: it is text of the fabric or of the specification.
func (r *repl) shown(line string) (hint string, sure bool) {
	if f := r.Env.Fabric(); f != nil {
		if hint := r.inFabric(f, line); hint != "" {
			return hint, true
		}
		if subject, _, ok := strings.Cut(line, ": "); ok { // of a finding
			if hint := r.inFabric(f, subject); hint != "" {
				return hint, true
			}
		}
	}
	if hint := r.shellHabit(line); hint != "" {
		return hint, true
	}
	switch {
	case line == "-":
		return "- stands for no value: None", true
	case strings.HasPrefix(line, "... not shown: "):
		return "this line names columns that do not fit; table(_, columns=[...]) chooses columns", true
	}
	if fields := fieldsWith(line); len(fields) > 0 {
		if len(fields) > 3 {
			fields = append(fields[:3:3], "others")
		}
		return fmt.Sprintf("%s is a value of %s; write it in quotes: %q", line, strings.Join(fields, ", "), line), true
	}
	if line == "" || notText().MatchString(line) {
		return "", false
	}
	if _, ok := check.AttributeTypes()[line]; ok {
		return fmt.Sprintf("%s is an attribute of records; write value.%[1]s", line), false
	}
	if _, err := help.Of(r.Runtime).Find(line, 0); err == nil { // with a dot: a check of an audit, or a field
		return fmt.Sprintf("help %s explains it; as text, write it in quotes: %q", line, line), strings.Contains(line, ".")
	}
	return fmt.Sprintf("if this is text, write it in quotes: %q", line), false
}

// shellHabits match lines in the way of other tools.
var shellHabits = sync.OnceValue(func() (m struct{ pipe, redirection, sql, call *regexp.Regexp }) {
	m.pipe = regexp.MustCompile(`^([\w.]+) *\| *(grep|egrep|awk|cut|head|less|more|sed|sort|tail|tee|uniq|wc)\b`)
	m.redirection = regexp.MustCompile(`^([\w.]+) *>>? *[\w./-]+$`)
	m.sql = regexp.MustCompile(`(?i)^select\b.* from\b`)
	m.call = regexp.MustCompile(`^(\w+) +[\w"']`)
	return m
})

// shellHabit returns the hint for a line in the way of a Unix shell or of SQL; "": it is
// another line.
func (r *repl) shellHabit(line string) string {
	habits := shellHabits()
	for _, pattern := range []*regexp.Regexp{habits.pipe, habits.redirection} {
		if m := pattern.FindStringSubmatch(line); m != nil && r.commands.Names[m[1]] {
			return fmt.Sprintf("the prompt has no pipes and redirections; run `fabsh %s` in a shell", line)
		}
	}
	if m := habits.pipe.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("there are no pipes; %s.select(\"type == 'switch'\"), sort and count do this", m[1])
	}
	if m := habits.redirection.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("there is no redirection; write save(%s, \"x.csv\")", m[1])
	}
	if habits.sql.MatchString(line) {
		return "there is no SQL; f.nodes.select(\"type == 'switch'\"), sort, group and count do this"
	}
	if m := habits.call.FindStringSubmatch(line); m != nil {
		if _, ok := r.interp.globals[m[1]].(starlark.Callable); ok {
			return m[1] + " is a function; write " + m[1] + "(...), with texts in quotes"
		}
	}
	return ""
}

// inFabric returns the hint for the name or address of a node, a port or a link, or the names
// of two ports; "": it is another text.
func (r *repl) inFabric(f *fabric.Fabric, name string) string {
	if a, b, ok := strings.Cut(name, " - "); ok {
		switch from, to := portOf(f, a), portOf(f, b); {
		case from == nil || to == nil:
		case from.Peer() == to:
			return fmt.Sprintf("%s is a link; write %s.link", name, r.portExpr(f, from))
		default:
			return fmt.Sprintf("%s are ports; write %s and %s", name, r.portExpr(f, from), r.portExpr(f, to))
		}
	}
	if number, ok := strings.CutPrefix(name, "LID "); ok {
		return "write LIDs as numbers: " + number
	}
	_, err := f.FindNode(name)
	if several := new(fabric.NameError); errors.As(err, &several) && len(several.Nodes) > 0 {
		return several.Error()
	}
	t := topology.FindIn(f, name)
	if t.Err != nil {
		return ""
	}
	what, write := "a node", r.fabricName(f)+fmt.Sprintf(".node(%q)", name)
	switch {
	case t.Port != topology.NoPortGiven:
		what, write = "a port", r.portExpr(f, t.Node.Port(t.Port))
	case t.Node.IsSwitch():
		what = "a switch"
	}
	return fmt.Sprintf("%s is %s; write %s, or %q as a target", name, what, write, name)
}

// guidHint returns the hint for a statement that is only a GUID of the fabric, which is a
// number in the language; "": it is another statement.
func (r *repl) guidHint(text string) string {
	const digits = len("0x0002c90300100000")
	f := r.Env.Fabric()
	if f == nil || len(text) != digits || !strings.HasPrefix(text, "0x") {
		return ""
	}
	return r.inFabric(f, text)
}

// portOf returns the port of a name; nil: the fabric has none.
func portOf(f *fabric.Fabric, name string) *fabric.Port {
	if t := topology.FindIn(f, name); t.Err == nil && t.Port != topology.NoPortGiven {
		return t.Node.Port(t.Port)
	}
	return nil
}

// portExpr returns an expression for a port.
func (r *repl) portExpr(f *fabric.Fabric, p *fabric.Port) string {
	return fmt.Sprintf("%s.node(%q).ports[%d]", r.fabricName(f), p.Node().Name(), p.Num())
}

// fabricName returns an expression for a fabric: a variable of the user, if there is one.
func (r *repl) fabricName(f *fabric.Fabric) string {
	var names, older []string
	for name, v := range r.interp.globals {
		known, ok := v.(*topology.Fabric)
		switch {
		case !ok || name == "_":
		case known.Fabric == f:
			names = append(names, name)
		default:
			older = append(older, name) // a command has read the fabric again
		}
	}
	switch {
	case len(names) > 0:
		return slices.Min(names)
	case len(older) > 0:
		return slices.Min(older)
	}
	return "discover()"
}

// fieldsWith returns the names of the attributes that can have a word, sorted.
func fieldsWith(word string) (names []string) {
	for name, w := range check.FieldWords() {
		if slices.Contains(w.Words, word) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
