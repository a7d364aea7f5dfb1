package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
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
		if here := check.ToolEquivalent(word, words); here != check.ToolHint(word) {
			_, err := fmt.Fprintf(r.Console.Out(), "%s: here, %s\n", text, here)
			return true, err
		}
		topic, asked = word, true
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
	args, err := splitWords(words)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
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
