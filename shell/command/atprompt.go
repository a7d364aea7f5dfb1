package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/builtins/check"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// atPrompt annotates a command that also runs at the prompt, with its subcommands: in the
// session of the prompt. Its value is "", or direct.
const atPrompt = "at the prompt"

// direct is the value of atPrompt for a command that uses the terminal, or reports while
// it runs. The output of others is shown when they have ended, in a pager if it is long.
const direct = "direct"

// AtPrompt returns the commands as the prompt runs them. newRoot returns the root command
// of a program: each line has its own, because flags keep their values.
func AtPrompt(p *session.Program, newRoot func(*session.Program) *cobra.Command) prompt.Commands {
	root := func(l *session.Line) *cobra.Command {
		typed := p.Typed(l)
		c := newRoot(typed)
		typed.Settings.Inherit(p.Settings)
		return c
	}
	names := map[string]bool{} // whether the command runs at the prompt
	for _, c := range newRoot(p.Typed(nil)).Commands() {
		_, names[c.Name()] = c.Annotations[atPrompt]
	}
	return prompt.Commands{
		Names: names,
		Direct: func(words []string) bool {
			how, _ := annotated(root(&session.Line{}), words)
			return how == direct
		},
		Run: func(ctx context.Context, s *session.Session, words []string, seen *tour.Seen) error {
			line := &session.Line{Context: ctx, Session: s, Words: words}
			err := runLine(root(line), words)
			seen.Named, seen.Report = line.Named, line.Report
			return err
		},
		Complete: func(s *session.Session, words []string, typed string) (list []string, files bool) {
			return completeLine(root(&session.Line{Context: context.Background(), Session: s}), words, typed)
		},
	}
}

// annotated returns the value of atPrompt of the command that words begin with.
func annotated(root *cobra.Command, words []string) (value string, ok bool) {
	c, _, err := root.Find(words)
	if err != nil || c.Hidden {
		return "", false
	}
	for ; c != nil; c = c.Parent() {
		if value, ok = c.Annotations[atPrompt]; ok {
			return value, true
		}
	}
	return "", false
}

// runLine runs the command that words are.
func runLine(root *cobra.Command, words []string) error {
	if c, _, err := root.Find(words); err == nil && c != root {
		if _, ok := annotated(root, words); !ok {
			return fmt.Errorf("%s is not available at the prompt; run `%s` in a shell", c.Name(), c.CommandPath())
		}
	}
	root.SetArgs(append([]string{}, words...)) // not nil: cobra would take the program's own
	err := root.Execute()
	var fixed *session.FixedError
	if errors.As(err, &fixed) {
		return fixed
	}
	return err
}

// completeLine returns the words that may follow words and begin with typed, by cobra's
// own completion; files reports that names of files may.
func completeLine(root *cobra.Command, words []string, typed string) (list []string, files bool) {
	if len(words) > 0 {
		if _, ok := annotated(root, words); !ok {
			return nil, false
		}
	}
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(slices.Concat([]string{cobra.ShellCompNoDescRequestCmd}, words, []string{typed}))
	if root.Execute() != nil {
		return nil, false
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := strings.TrimPrefix(lines[len(lines)-1], ":")
	directive, err := strconv.Atoi(last)
	if err != nil || cobra.ShellCompDirective(directive)&cobra.ShellCompDirectiveError != 0 {
		return nil, false
	}
	for _, w := range lines[:len(lines)-1] {
		w, _, _ = strings.Cut(w, "\t")
		if len(words) == 0 {
			if _, ok := annotated(root, []string{w}); !ok {
				continue
			}
		}
		list = append(list, w)
	}
	return check.Matching(list, typed), cobra.ShellCompDirective(directive)&cobra.ShellCompDirectiveNoFileComp == 0
}

// NotAtPrompt is the error of fabsh without a command at the prompt: words are a script
// and its words, or a misspelt command.
func NotAtPrompt(root *cobra.Command, words []string) error {
	if len(words) == 0 {
		return errors.New("this is the prompt; statements and commands run without the word fabsh")
	}
	if err := CheckScript(root, words[0]); err != nil {
		return err
	}
	return fmt.Errorf("scripts are not available at the prompt; run `fabsh %s` in a shell", strings.Join(quotedForShell(words), " "))
}
