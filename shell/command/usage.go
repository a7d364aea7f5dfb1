package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/shell/session"
)

// Errors of the command line. Execute adds the command (session.Named), and cobra's and pflag's words
// are replaced here by those of all other errors.

// Execute runs the command that words are. Its error has the name of the command.
func Execute(p *session.Program, root *cobra.Command, words []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(words...)
	c, _ := findCommand(root, words)
	p.Operation = operationOf(c)
	if c != root {
		checkWords(p, c)
	}
	words = expandLetters(root, words)
	var failed error // the help of a script
	addOptions(root, words, &failed)
	root.SetArgs(append([]string{}, splitRun(root, words)...)) // not nil: cobra would take the program's own
	if err := root.Execute(); err != nil {
		failed = err
	}
	return session.Named(p.Operation, failed)
}

// operationOf returns the name of a command in errors: its words after fabsh.
func operationOf(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	return strings.TrimPrefix(operationOf(c.Parent())+" "+c.Name(), " ")
}

// checkWords makes c check what holds for all commands before its own words.
func checkWords(p *session.Program, c *cobra.Command) {
	args := c.Args
	switch {
	case !c.Runnable(): // it only has subcommands
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		args = oneOf(c)
	case c.Parent().Name() == "completion": // cobra's own
		args = atMost(0)
	}
	c.Args = func(c *cobra.Command, words []string) error {
		switch {
		case p.Settings.Given("command"):
			return errors.New("-c: not supported by commands; leave it out")
		case args == nil:
			return nil
		}
		return args(c, words)
	}
}

// oneOf returns an error if a word is not one of the subcommands of parent.
func oneOf(parent *cobra.Command) cobra.PositionalArgs {
	return func(_ *cobra.Command, words []string) error {
		if len(words) == 0 {
			return nil
		}
		var names []string
		for _, c := range parent.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return fmt.Errorf("unknown command %q%s; supported: %s", words[0], fabric.DidYouMean(words[0], names), strings.Join(names, ", "))
	}
}

// atMost returns an error if there are more than n words besides flags.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, words []string) error {
		if len(words) > n {
			return fmt.Errorf("unexpected argument %q", words[n])
		}
		return nil
	}
}

// FlagError returns the error of a flag: "--NAME: cause".
func FlagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			return unknownFlag(c, letters, "-"+letters)
		}
		return unknownFlag(c, unknown.GetSpecifiedName(), "--"+unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		if missing.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("-%s: missing value", missing.GetSpecifiedName())
		}
		return fmt.Errorf("--%s: missing value", missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	case errors.As(err, &syntax):
		return fmt.Errorf("%q: not a flag", syntax.GetSpecifiedFlag())
	}
	return err
}

// invalidValue returns the error of a flag's value.
func invalidValue(e *pflag.InvalidValueError) error {
	flag, text, cause := e.GetFlag(), e.GetValue(), errors.Unwrap(e)
	var number *strconv.NumError
	switch {
	case text == "":
		return fmt.Errorf("--%s: missing value", flag.Name)
	case flag.Value.Type() == "duration":
		cause = errors.New("want a time such as 500ms or 2s")
	case !errors.As(cause, &number):
	case flag.Value.Type() == "bool":
		cause = errors.New("want true or false; the flag alone is true")
	case errors.Is(number, strconv.ErrRange):
		cause = errors.New("out of range")
	default:
		cause = errors.New("want an integer")
	}
	if text == flag.NoOptDefVal {
		return fmt.Errorf("--%s: %w", flag.Name, cause)
	}
	return fmt.Errorf("--%s %q: %w", flag.Name, text, cause)
}

// unknownFlag returns the error of a flag that c does not have, with the nearest one that it has. written
// is the flag in the command line.
func unknownFlag(c *cobra.Command, name, written string) error {
	path := c.CommandPath()
	line := scriptLines()[path]
	var names, options []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
		if _, ok := f.Value.(*optionValue); ok && !f.Hidden && (len(name) > 1 || strings.EqualFold(f.Name[:1], name)) {
			options = append(options, "--"+f.Name)
		}
	})
	unknown := written + ": unknown flag"
	if line.tools != nil && line.tools.remedies[foldOption(name)] != "" {
		return fmt.Errorf("%s: %s", written, line.tools.remedies[foldOption(name)])
	}
	if len(name) == 1 && options != nil {
		return fmt.Errorf("%s (options have long names: %s)", unknown, strings.Join(options, ", "))
	}
	if n := fabric.Nearest(name, names); n != "" {
		return fmt.Errorf("%s (did you mean --%s?)", unknown, n)
	}
	if line.named != nil && !line.defaults && slices.ContainsFunc(line.named(parsedWords{}), func(p script.Program) bool { return slices.Contains(p.Options, "--"+name) }) {
		return fmt.Errorf("%s: no named script has this option; if the name is its value, write --%s=VALUE", unknown, name)
	}
	if line.named != nil && !line.help && !line.defaults && options != nil {
		return fmt.Errorf("%s (options of the script: %s)", unknown, strings.Join(options, ", "))
	}
	if words := c.Flags().Args(); len(words) > 0 && line.help {
		path += " " + words[0]
	}
	return fmt.Errorf(`%s (see "%s --help")`, unknown, path)
}
