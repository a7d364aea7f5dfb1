package remedies

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// Remedy is a script that defines remedy(fabric, findings, *, ...), with its options.
type Remedy struct {
	script.Taker // its name, entry and options

	script string
	past   bool // it takes past
}

// Selection is the remedies of a run.
type Selection struct {
	List []*Remedy
	// Help is their help, set if the words request it; then they must not run.
	Help string
}

// pastOption is a parameter that the command fills.
const pastOption = "past"

// OptionsOf returns the flags among options that a command line may give.
func OptionsOf(options []string) []string {
	return slices.DeleteFunc(slices.Clone(options), func(flag string) bool { return flag == script.FlagName(pastOption) })
}

// Load loads the remedies that words of a command line name, .star files or shipped ones, and
// passes each option among the words to all that accept it. Without names it loads all that
// are shipped. flags are those of the command that runs them, for suggestions about misspelled
// ones.
func Load(ctx context.Context, in *script.Interpreter, words, flags []string) (*Selection, error) {
	names := Named(words)
	if len(names) == 0 {
		names = script.Remedies.Names()
	}
	set := new(Selection)
	var takers []*script.Taker
	for _, name := range names {
		r, err := loadOne(ctx, in, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(set.List, func(b *Remedy) bool { return b.Name == r.Name }) {
			r.Name = r.script // two files of one name
		}
		set.List, takers = append(set.List, r), append(takers, &r.Taker)
	}
	var err error
	if set.Help, err = script.Remedies.Distribute(takers, words, names, flags); err != nil {
		return nil, err
	}
	for _, r := range set.List {
		script.Arguments{Keywords: r.Keywords}.Allow(in.Runtime.Files)
	}
	return set, nil
}

// Named returns the remedies that words name.
func Named(words []string) (names []string) {
	shipped := script.Remedies.Names()
	for _, w := range words {
		if !strings.HasPrefix(w, "-") && (strings.HasSuffix(w, ".star") || slices.Contains(shipped, w)) && !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	return names
}

// Names returns the names of the remedies, separated by blanks.
func (set *Selection) Names() string {
	var names []string
	for _, r := range set.List {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

// loadOne runs the top level of a remedy.
func loadOne(ctx context.Context, in *script.Interpreter, name string) (*Remedy, error) {
	file, err := script.Remedies.Locate(name)
	if err != nil {
		return nil, err
	}
	r := &Remedy{Taker: script.Taker{Name: strings.TrimSuffix(path.Base(file), ".star")}, script: file}
	return r, in.RunOne(ctx, file, notExit, func(s *script.Script) (err error) {
		fn := s.Function(script.RemedyEntry)
		if fn == nil {
			return fmt.Errorf("%s: not a remedy; it does not define remedy(fabric, findings, ...)", file)
		}
		e := script.NewEntry(r.Name, fn, s.Doc)
		if !e.Fabric || len(e.Words) != 1 || e.Words[0].Name != "findings" || e.Rest != "" {
			return fmt.Errorf("%s: invalid parameters of remedy(); want fabric, findings, and options after a *: def remedy(fabric, findings, *, runs = 3)", file)
		}
		e.Words = nil
		e.Options = slices.DeleteFunc(e.Options, func(p script.Param) bool {
			r.past = r.past || p.Name == pastOption
			return p.Name == pastOption
		})
		r.Entry = e
		return nil
	})
}

// notExit returns err of a remedy's code: exit() must not end the others.
func notExit(err error) error {
	return lang.NotExit(err, "not supported in a remedy; it returns actions")
}
