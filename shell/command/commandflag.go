package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/shell/session"
)

// Some commands share their command line with a script: a policy, a report, audits.
// They declare their own flags in a pflag.FlagSet, from which usage, completion and the
// names that no script may use are derived. Session flags may also follow the command's
// word. All other options belong to the script, as its keyword-only parameters; so the
// flags are taken out of the words one by one, and pflag sets them.

// newFlags returns an empty set of flags, which help lists in the order of declaration.
func newFlags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// lookup returns the flag that a word without its value names; nil: none. Letters may be
// followed by their values at once, as in -ojson.
func lookup(f *pflag.FlagSet, word string) *pflag.Flag {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		return f.Lookup(name)
	}
	if len(word) < 2 || word[0] != '-' {
		return nil
	}
	flag := f.ShorthandLookup(word[1:2])
	if flag != nil && len(word) > 2 && flag.NoOptDefVal != "" {
		return nil
	}
	return flag
}

// takesValue reports whether the word after flag is its value.
func takesValue(f *pflag.FlagSet, flag string) bool {
	known := lookup(f, flag)
	return known != nil && known.NoOptDefVal == ""
}

// withFlags returns c with flags that help and completion show, and that c parses itself.
func withFlags(c *cobra.Command, f *pflag.FlagSet) *cobra.Command {
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(f)
	propose := c.ValidArgsFunction
	c.ValidArgsFunction = func(c *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
		list, directive := propose(c, words, typed)
		if strings.HasPrefix(typed, "-") { // cobra proposes them, with their docs
			list = slices.DeleteFunc(list, func(w string) bool { return lookup(f, w) != nil })
		}
		return list, directive
	}
	return c
}

// hasOption reports whether a flag is an option of a script. If the options cannot be
// read from the script's text, it is true for all flags.
func hasOption(p script.Program, flag string) bool {
	return !p.Entry || slices.Contains(p.Options, flag)
}

// extract gives the flags among words that find knows to set, and returns the other
// words. attached reports whether the value stands in the flag's own word; a missing
// value is "".
func extract(words []string, find func(word string) *pflag.Flag, set func(f *pflag.Flag, value string, attached bool) error) (rest []string, err error) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, value, attached := strings.Cut(w, "=")
		f := find(name)
		if f == nil {
			rest = append(rest, w)
			continue
		}
		if w[1] != '-' && len(w) > 2 { // -ojson
			value, attached = strings.TrimPrefix(w[2:], "="), true
		}
		switch {
		case attached:
		case f.NoOptDefVal != "":
			value = f.NoOptDefVal
		case i+1 < len(words):
			i++
			value = words[i]
		}
		if err := set(f, value, attached); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// invalidValue is the format of an error in the value of a command's own flag: %[1]s is
// the flag's name, %[2]s the value, %[3]w the cause.
const invalidValue = "--%[1]s: %[3]w"

// finder returns a function that finds the flags of f.
func finder(f *pflag.FlagSet) func(word string) *pflag.Flag {
	return func(word string) *pflag.Flag { return lookup(f, word) }
}

// extractOwn sets the flags of a command among words, those that find knows, and returns
// the other words: those of the script. invalid is like invalidValue.
func extractOwn(words []string, find func(word string) *pflag.Flag, invalid string) ([]string, error) {
	return extract(words, find, func(f *pflag.Flag, value string, attached bool) error {
		_, isSwitch := f.Value.(interface{ IsBoolFlag() bool })
		switch what := f.Annotations[valueIs]; {
		case isSwitch && attached:
			return fmt.Errorf("--%s: unexpected value %q; the flag takes none", f.Name, value)
		case value == "" && f.NoOptDefVal == "" && what != nil:
			return fmt.Errorf("--%s needs %s", f.Name, what[0])
		case value == "" && f.NoOptDefVal == "":
			return fmt.Errorf("--%s needs a value", f.Name)
		}
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf(invalid, f.Name, value, err)
		}
		return nil
	})
}

// valueIs annotates a flag with a description of its value, for the error if it is
// missing.
const valueIs = "value"

// extractSession sets the session flags among words, which follow a command's word, and
// returns the other words. own are the command's flags, which take precedence; isOption
// reports whether a flag is an option of the script.
func extractSession(s *session.Settings, words []string, own *pflag.FlagSet, isOption func(flag string) bool) (rest []string, err error) {
	return extract(words, sessionFinder(s, own, isOption), func(f *pflag.Flag, value string, _ bool) error { return s.Set(f.Name, value) })
}

// withoutSession returns words without session flags, where the script is not known
// yet: options of the script with the name of a session flag are removed too.
func withoutSession(s *session.Settings, words []string, own *pflag.FlagSet) []string {
	none := func(string) bool { return false }
	rest, _ := extract(words, sessionFinder(s, own, none), func(*pflag.Flag, string, bool) error { return nil })
	return rest
}

// sessionFinder returns a function that finds the session flags, up to --, that are
// neither own flags nor options.
func sessionFinder(s *session.Settings, own *pflag.FlagSet, isOption func(flag string) bool) func(word string) *pflag.Flag {
	ended := false
	return func(word string) *pflag.Flag {
		ended = ended || word == "--"
		for _, g := range s.Groups() {
			if f := lookup(g, word); f != nil && !ended && lookup(own, word) == nil && !isOption(word) {
				return f
			}
		}
		return nil
	}
}

// SessionFlagsBefore annotates a command behind which no session flags may stand.
const SessionFlagsBefore = "session flags before"
