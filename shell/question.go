package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"fabsh/builtins"
	"fabsh/builtins/lang"
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
// "?"; and the command line of a tool that people are used to: its report, or
// what to type here; and the commands audit and report. asked is false where text is none of these, and where no
// people sit: from a pipe it is an error, which the exit status tells.
func (r *repl) ask(ctx context.Context, text string) (asked bool, err error) {
	if !r.interactive {
		return false, nil
	}
	text = strings.TrimSpace(text)
	if r.tour != nil && !r.interp.globals.Has(text) && r.tour.Word(text) {
		return true, nil
	}
	if run, words := r.command(text); run != nil {
		r.seen.Text = text
		return true, r.showing(func() error { return run(ctx, words) })
	}
	topic := ""
	if m := helpWord().FindStringSubmatch(text); m != nil {
		topic, asked = m[1], true
	} else if m := question().FindStringSubmatch(text); m != nil {
		topic, asked = m[1]+m[2], true
	} else if word, words := cutTool(text); word != "" && !r.interp.globals.Has(word) {
		if builtins.IsReport(word) {
			r.seen.Text = text
			return true, r.showing(func() error { return r.runReport(ctx, word, words) })
		}
		topic, asked = word, true
	}
	if !asked {
		return false, nil
	}
	answer, err := r.Help(topic)
	if text := map[string]string{"audit": auditHelp, "report": reportHelp}[topic]; text != "" && err != nil {
		answer, err = text, nil
	}
	if v := r.completer().evaluate(topic); v != nil && (err != nil || r.interp.globals.Has(topic)) {
		answer, err = r.HelpOn(v)
	}
	if err != nil {
		return true, err
	}
	return true, r.Console.Page(r.program.Interrupts, answer)
}

// command is the command of text that runs at the prompt too, on its fabric, and the
// words behind it; nil: text is none. What Starlark understands is Starlark.
func (r *repl) command(text string) (run func(context.Context, []string) error, words []string) {
	name, rest, _ := strings.Cut(text, " ")
	switch name {
	case "audit":
		run = r.promptAudit
	case "report":
		run = r.promptReport
	default:
		return nil, nil
	}
	// Without a value audit --list could be a difference, but only of nothing.
	if _, err := r.interp.opts.Parse(promptFile, text, 0); err == nil && (r.interp.globals.Has(name) || strings.HasPrefix(strings.TrimSpace(rest), "=")) {
		return nil, nil
	}
	words, err := splitWords(rest)
	if err != nil {
		return func(context.Context, []string) error { return fmt.Errorf("%s: %w", name, err) }, nil
	}
	return run, words
}

// showing runs a command at the prompt. What it shows goes by way of a pager where it is
// long; that it found something ends nothing here.
func (r *repl) showing(run func() error) error {
	var text bytes.Buffer
	r.Console.Divert(&text)
	err := lang.Protect("prompt", run)
	r.Console.Divert(nil)
	if paged := r.Console.Page(r.program.Interrupts, text.String()); paged != nil && err == nil {
		err = paged
	}
	var exit *lang.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// promptAudit is the command audit at the prompt.
func (r *repl) promptAudit(ctx context.Context, words []string) error {
	o, err := parseAudit(words)
	switch {
	case err != nil:
		return err
	case o.help:
		_, err := io.WriteString(r.Console.Out(), auditHelp)
		return err
	case o.list:
		return listAudits(r.program)
	case o.ack != nil:
		return acknowledge(ctx, r.Session, o)
	case o.eachPort:
		return errors.New("audit: --each-port is for the command line: this session has one port")
	}
	results := new(auditResults)
	err = runAudit(ctx, r.Session, o, results)
	r.seen.Report = results.latest
	if len(results.reports) == 0 {
		return err
	}
	return results.write(ctx, r.Console, r.program.Settings.Output(), o.out)
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
