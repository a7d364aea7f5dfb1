package shell

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"fabsh/builtins"
)

var (
	helpWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^help\s+["']?([\w.@/-]+)["']?$`)
	})
	question = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:([\w.\[\]"'-]*)\?{1,2}|\?{1,2}\s*([\w.\[\]"'-]+))$`)
	})
)

// ask answers what is no Starlark but a question: "help smp_get", "smp_get?",
// "?", and the command line of a tool that people are used to: its report, or
// what to type here. asked is false where text is none of these, and where no
// people sit: from a pipe it is an error, which the exit status tells.
func (r *repl) ask(ctx context.Context, text string) (asked bool, err error) {
	if !r.interactive {
		return false, nil
	}
	text = strings.TrimSpace(text)
	topic := ""
	if m := helpWord().FindStringSubmatch(text); m != nil {
		topic, asked = m[1], true
	} else if m := question().FindStringSubmatch(text); m != nil {
		topic, asked = m[1]+m[2], true
	} else if word, words := cutTool(text); word != "" && !r.interp.globals.Has(word) {
		if builtins.IsReport(word) {
			return true, r.runReport(ctx, word, words)
		}
		topic, asked = word, true
	}
	if !asked {
		return false, nil
	}
	answer, err := r.Help(topic)
	if v := r.completer(r.interp).evaluate(topic); v != nil && (err != nil || r.interp.globals.Has(topic)) {
		answer, err = r.HelpOn(v)
	}
	if err != nil {
		return true, err
	}
	return true, r.app.page(answer)
}

// cutTool parts the command line of a tool into its name and the rest; "": it is
// none, but perhaps an assignment to a variable of that name.
func cutTool(text string) (name, words string) {
	name, words, _ = strings.Cut(text, " ")
	if !builtins.IsTool(name) || strings.HasPrefix(strings.TrimSpace(words), "=") {
		return "", ""
	}
	return name, words
}
