package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/shell/session"
)

// The command lines of some commands name scripts: a policy, a report, audits. The options of these
// scripts become flags of the command. Before cobra parses the words, addOptions parses them once
// without setting anything, finds the scripts that they name, reads their options from their text,
// and declares these as flags. An option of a script takes the place of the session flag of its name.

// scriptLine declares how the words of a command name scripts.
type scriptLine struct {
	// named returns the scripts.
	named func(words parsedWords) []script.Program
	// help reports whether --help behind a script's name shows the help of the script.
	help bool
	// yields are flags of the command whose place an option of a script takes.
	yields []string
	// defaults reports whether the command gives options that the line does not have.
	defaults bool
	// tools are the options of other tools that its scripts stand for.
	tools *toolOptions
}

// toolOptions are options of other tools, in lower case and with hyphens.
type toolOptions struct {
	// session has the session flags that correspond to them.
	session map[string]string
	// remedies has what to do instead of options without a flag.
	remedies map[string]string
	// letters has, by the name of a script, words to which options of one letter are expanded.
	letters map[string]map[string]string
}

// expandLetters returns words with the options of one letter of other tools expanded, behind the name
// of the script that stands for the tool.
func expandLetters(root *cobra.Command, words []string) []string {
	c, rest := findCommand(root, words)
	tools, i := scriptLines()[c.CommandPath()].tools, firstWord(c, rest)
	if tools == nil || i == len(rest) || tools.letters[rest[i]] == nil {
		return words
	}
	expanded := slices.Clone(words)
	for k := len(words) - len(rest) + i + 1; k < len(words) && words[k] != "--"; k++ {
		expanded[k] = cmp.Or(tools.letters[rest[i]][words[k]], words[k])
	}
	return expanded
}

// scriptLines returns the commands that name scripts, by their paths.
func scriptLines() map[string]scriptLine {
	return map[string]scriptLine{
		"fabsh audit":       {named: auditsIn, help: true},
		"fabsh remedy":      {named: remediesIn, help: true},
		"fabsh report":      {named: firstOf(script.Reports), help: true, yields: []string{"list"}, tools: &infinibandDiags},
		"fabsh report html": {named: auditsIn},
		"fabsh route":       {named: firstOf(script.Policies), help: true},
		"fabsh topology":    {named: firstOf(script.Topologies, script.TopologyEntry), help: true},
		"fabsh exporter":    {named: exportedAudits, defaults: true},
		"fabsh serve":       {named: servedAudits, defaults: true},
		"fabsh change plan": {named: plannedScript, yields: []string{"exact", "static", "sl", "sl-out"}},
	}
}

// parsedWords are the words behind a command's name, where the options of scripts are not known yet.
type parsedWords struct {
	all   []string
	plain []string          // neither flags nor their values
	flags map[string]string // the values of flags, by name
	given []string          // all values of flags

	before, behind map[string]bool // flags before and behind the first plain word
}

// free returns the words that are not values of flags. A word behind a flag that is not known yet may
// be a name.
func (w parsedWords) free() []string {
	return slices.DeleteFunc(slices.Clone(w.all), func(word string) bool {
		return slices.Contains(w.given, word) && !slices.Contains(w.plain, word)
	})
}

// firstOf returns a function that finds the script of a folder that the first word names. entries
// are as for script.ProgramOf.
func firstOf(f script.Folder, entries ...string) func(parsedWords) []script.Program {
	return func(words parsedWords) []script.Program {
		if len(words.plain) == 0 {
			return nil
		}
		return []script.Program{programIn(f, words.plain[0], entries...)}
	}
}

// programIn returns what a script, shipped in a folder or a file, declares in its text; nothing if it
// is unknown, or if it is not a regular file, because a pipe can be read only once.
func programIn(f script.Folder, name string, entries ...string) script.Program {
	path, err := f.Locate(name)
	if err != nil {
		return script.Program{Broken: true}
	}
	return programAt(path, entries...)
}

// findCommand returns the command that words name, and the words behind its name.
func findCommand(root *cobra.Command, words []string) (*cobra.Command, []string) {
	c := root
	for {
		i := firstWord(c, words)
		if i == len(words) {
			return c, words
		}
		at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == words[i] || sub.HasAlias(words[i]) })
		if at < 0 {
			return c, words
		}
		c, words = c.Commands()[at], words[i+1:]
	}
}

// firstWord returns the index of the first argument of c that is neither a flag nor the value of
// one; len(words): none.
func firstWord(c *cobra.Command, words []string) int {
	i := 0
	for ; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		w := words[i]
		f := lookup(c.Flags(), w)
		if f == nil {
			f = lookup(c.Root().PersistentFlags(), w)
		}
		if f != nil && f.NoOptDefVal == "" && len(w) > 1 && !strings.Contains(w, "=") && (strings.HasPrefix(w, "--") || len(w) == 2) {
			i++
		}
	}
	return min(i, len(words))
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
	return f.ShorthandLookup(word[1:2])
}

// addOptions declares the options of the scripts that words name as flags of the command that they
// name. The error of the help of a script, if that is shown, is set in failed.
func addOptions(root *cobra.Command, words []string, failed *error) {
	n := len(words)
	completes := n > 1 && (words[0] == cobra.ShellCompRequestCmd || words[0] == cobra.ShellCompNoDescRequestCmd)
	if completes {
		words = words[1 : n-1] // the last one is not complete
	}
	c, words := findCommand(root, words)
	line, ok := scriptLines()[c.CommandPath()]
	if !ok || !completes && !line.defaults && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		return // reading the texts of all audits takes time
	}
	parsed := parseWords(c, words)
	for _, p := range line.named(parsed) {
		switch {
		case p.Broken: // the command reports why, rather than options that it does not know
			c.FParseErrWhitelist.UnknownFlags = true
		case !p.Known && len(parsed.plain) > 0: // all words behind its name are for the script
			c.Flags().SetInterspersed(false)
		}
		addFlags(c, p, line, parsed)
	}
	if line.help && len(parsed.plain) > 0 {
		c.SetHelpFunc(func(c *cobra.Command, _ []string) { *failed = c.RunE(c, c.Flags().Args()) })
	}
}

// parseWords parses the words behind a command's name, without setting its flags.
func parseWords(c *cobra.Command, words []string) parsedWords {
	f := newFlags(c.Name())
	for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags(), c.Root().PersistentFlags()} {
		f.AddFlagSet(set)
	}
	f.BoolP("help", "h", false, "")
	f.ParseErrorsAllowlist.UnknownFlags = true
	parsed := parsedWords{all: words, flags: map[string]string{}, before: map[string]bool{}, behind: map[string]bool{}}
	f.ParseAll(words, func(flag *pflag.Flag, value string) error { // cobra reports errors
		parsed.flags[flag.Name], parsed.given = value, append(parsed.given, value)
		if f.NArg() == 0 {
			parsed.before[flag.Name] = true
		} else {
			parsed.behind[flag.Name] = true
		}
		return nil
	})
	parsed.plain = f.Args()
	return parsed
}

// addFlags declares the options of a script as flags of c.
func addFlags(c *cobra.Command, p script.Program, line scriptLine, words parsedWords) {
	spelled := map[string]string{} // names in lower case
	exact := map[string]bool{}
	for _, option := range p.Options {
		name := option[2:]
		isSwitch := slices.Contains(p.Switches, option)
		addFlag(c, p.Name, name, isSwitch, false, line.yields, words)
		spelled[strings.ToLower(name)], exact[name] = name, true
		if isSwitch { // --x and --no-x are both accepted
			opposite, isNegative := strings.CutPrefix(name, "no-")
			if !isNegative {
				opposite = "no-" + name
			}
			addFlag(c, p.Name, opposite, true, true, line.yields, words)
			spelled[strings.ToLower(opposite)], exact[opposite] = opposite, true
		}
	}
	before, session := c.Flags().GetNormalizeFunc(), c.Root().PersistentFlags()
	c.Flags().SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		// Tools have options such as --Direct, and parameters have underscores.
		folded := foldOption(name)
		same, ofScript := spelled[folded]
		switch other := line.tools.sessionFlag(session, name); {
		case exact[name]:
		case other != nil && exact[other.Name] && other.Shorthand != "": // --Ca beside --ca
			name = other.Shorthand // of keepShorthand
		case other != nil && !exact[other.Name]:
			name = other.Name
		case ofScript:
			name = same
		}
		return before(f, name)
	})
}

// foldOption returns the name of an option without differences of spelling.
func foldOption(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// sessionFlag returns the session flag for an option of a tool, if its name is another one; else nil.
func (o *toolOptions) sessionFlag(session *pflag.FlagSet, name string) *pflag.Flag {
	if o == nil {
		return nil
	}
	folded := foldOption(name)
	f := session.Lookup(cmp.Or(o.session[folded], folded))
	if f == nil || f.Name == name {
		return nil
	}
	return f
}

// OfScript reports whether a flag is an option of a script, which the help of the script lists.
func OfScript(f *pflag.Flag) bool {
	_, ok := f.Value.(*optionValue)
	return ok
}

// addFlag declares an option of a script, of, as a flag of c, unless it has one: of another script, or
// its own, which may yield where it stands behind the script.
func addFlag(c *cobra.Command, of, name string, isSwitch, hidden bool, yields []string, words parsedWords) {
	v := &optionValue{name: name, isSwitch: isSwitch}
	f := c.Flags().Lookup(name)
	switch {
	case f == nil:
		isShipped := strings.HasPrefix(of, "@")
		if of = filepath.Base(of); isShipped {
			of = strings.TrimSuffix(of, ".star")
		}
		f = &pflag.Flag{Name: name, Usage: "option of " + of, Value: v, Hidden: hidden}
		if !isSwitch {
			f.Usage = "set the option of " + of + " to `VALUE`"
		}
		c.Flags().AddFlag(f)
		keepShorthand(c, name)
	case !slices.Contains(yields, name) || words.before[name] && !words.behind[name]:
		return
	case words.before[name]:
		f.Value = twofold{f.Value}
		return
	default:
		f.Value, f.NoOptDefVal = v, ""
	}
	if isSwitch {
		f.NoOptDefVal = "true"
	}
}

// twofold is the value of a flag that the command line has as one of the command, before the name of
// a script, and as an option of the script.
type twofold struct{ pflag.Value }

func (twofold) Set(string) error {
	return errors.New("the command and the script have it; give it either before or behind the script")
}

// keepShorthand keeps the shorthand of a session flag whose place an option of a script takes.
func keepShorthand(c *cobra.Command, name string) {
	session := c.Root().PersistentFlags()
	f := session.Lookup(name)
	if f == nil || f.Shorthand == "" || c.Flags().ShorthandLookup(f.Shorthand) != nil || c.Flags().Lookup(f.Shorthand) != nil {
		return
	}
	c.Flags().AddFlag(&pflag.Flag{Name: f.Shorthand, Shorthand: f.Shorthand, Usage: f.Usage, NoOptDefVal: f.NoOptDefVal, Hidden: true, Value: otherFlag{f.Value, session, name}})
}

// otherFlag sets a flag of another set.
type otherFlag struct {
	pflag.Value
	set  *pflag.FlagSet
	name string
}

func (o otherFlag) Set(text string) error { return o.set.Set(o.name, text) }

// optionValue is the value of a flag that is an option of a script: its texts, which the script reads.
type optionValue struct {
	name     string
	isSwitch bool
	texts    []string
}

// Set adds a text: an option may be repeated.
func (v *optionValue) Set(text string) error {
	v.texts = append(v.texts, text)
	return nil
}

func (v *optionValue) String() string { return strings.Join(v.texts, ",") }

// Type makes completion propose the flag again.
func (v *optionValue) Type() string {
	if v.isSwitch {
		return "bool"
	}
	return "textArray"
}

// words returns the option as words of a command line.
func (v *optionValue) words() (words []string) {
	for _, text := range v.texts {
		if on, err := strconv.ParseBool(text); v.isSwitch && err == nil && on {
			words = append(words, "--"+v.name)
			continue
		}
		words = append(words, "--"+v.name+"="+text)
	}
	return words
}

// ownWords returns the flags of c itself and of scripts that the command line has, as --NAME=VALUE.
func ownWords(c *cobra.Command) (words []string) {
	own := c.LocalNonPersistentFlags()
	c.Flags().Visit(func(f *pflag.Flag) {
		switch v := f.Value.(type) {
		case *optionValue:
			words = append(words, v.words()...)
		case *given:
			for _, text := range v.texts {
				words = append(words, "--"+f.Name+"="+text)
			}
		default:
			if own.Lookup(f.Name) != nil && v.String() == "true" {
				words = append(words, "--"+f.Name)
			}
		}
	})
	return words
}

// optionWords returns the options of scripts that the command line has, as --NAME=VALUE.
func optionWords(f *pflag.FlagSet) (words []string) {
	f.Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*optionValue); ok {
			words = append(words, v.words()...)
		}
	})
	return words
}

// scriptWords returns the words of the script that the first of words, which are not flags, names:
// its options, and the words behind it.
func scriptWords(c *cobra.Command, words []string) []string {
	list, rest := optionWords(c.Flags()), words[1:]
	if wantsHelp(c) {
		list = append(list, "--help")
	}
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		dash = max(dash-1, 0)
		return slices.Concat(list, rest[:dash], []string{"--"}, rest[dash:])
	}
	return append(list, rest...)
}

// wantsFlag reports whether the command line of c has a flag of c that has no value.
func wantsFlag(c *cobra.Command, name string) bool {
	wanted, _ := c.Flags().GetBool(name)
	if f := c.Flags().Lookup(name); f != nil {
		_, ofScript := f.Value.(*optionValue)
		wanted = wanted && !ofScript
	}
	return wanted
}

// wantsHelp reports whether the command line of c has --help.
func wantsHelp(c *cobra.Command) bool { return wantsFlag(c, "help") }

// addSubcommand adds a subcommand to c, which has flags that sub does not have.
func addSubcommand(c, sub *cobra.Command) {
	c.AddCommand(sub)
	sub.PersistentPreRunE = func(*cobra.Command, []string) (err error) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed && err == nil {
				err = fmt.Errorf("--%s: a flag of %s alone; give flags after %s", f.Name, c.Name(), sub.Name())
			}
		})
		return err
	}
}

// onScript runs the work of a command on the fabric that the session flags name; if that only shows
// the help of a script, without a fabric.
func onScript(p *session.Program, help bool, run func(context.Context, *session.Session) error) error {
	if help {
		return withoutFabric(p, run)
	}
	return onFabric(p, run)
}
