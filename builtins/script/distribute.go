package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric"
)

// Taker is one of several scripts to which a command line passes its options.
type Taker struct {
	Name     string
	Entry    *Entry
	Given    map[string]starlark.Value // options that the command line gives, by parameter
	Keywords []starlark.Tuple          // arguments of the call
}

// Distribute passes each option among words to all scripts that accept it, and sets their
// Given and Keywords. names are the words that name the scripts, of folder f; flags are those
// of the command, for suggestions about misspelled ones. If words request help, it returns
// that, and sets no Keywords.
func (f Folder) Distribute(list []*Taker, words, names, flags []string) (help string, err error) {
	kind := kinds[f]
	for _, t := range list {
		t.Given = map[string]starlark.Value{}
	}
	var values []string // of options
	wanted := false
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w == "-h" || w == "--help":
			wanted = true
		case !strings.HasPrefix(w, "-") && slices.Contains(names, w):
		case !strings.HasPrefix(w, "-"):
			shipped := f.Names()
			return "", fmt.Errorf("%s %q: unknown%s; use a .star file, or one of %s", kind, w, fabric.DidYouMean(w, shipped), strings.Join(shipped, ", "))
		default:
			before := words
			if words, err = f.option(list, w, words, flags); err != nil {
				return "", err
			}
			values = append(values, before[:len(before)-len(words)]...)
		}
	}
	for _, v := range values {
		if slices.Contains(names, v) {
			return "", fmt.Errorf("%s: %q is the value of an option and the name of %s; write the option as --NAME=%[2]s", kind, v, withArticle(kind))
		}
	}
	if wanted {
		var pages []string
		for _, t := range list {
			pages = append(pages, t.Entry.Help())
		}
		return strings.Join(pages, "\n"), nil
	}
	for _, t := range list {
		if err := t.bind(kind); err != nil {
			return "", err
		}
	}
	return "", nil
}

func withArticle(noun string) string {
	if strings.Contains("aeiou", noun[:1]) {
		return "an " + noun
	}
	return "a " + noun
}

// option passes one option to all scripts that accept it.
func (f Folder) option(list []*Taker, w string, words, flags []string) (rest []string, err error) {
	kind := kinds[f]
	flag, _, _ := strings.Cut(w, "=")
	var known []string
	found := false
	for _, t := range list {
		for _, p := range t.Entry.Options {
			known = append(known, FlagName(p.Name))
		}
		if p, _ := t.Entry.Find(flag); p == nil {
			continue
		}
		left, err := t.Entry.Option(t.Given, w, words)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, t.Name, err)
		}
		if found && len(left) != len(rest) {
			return nil, fmt.Errorf("%s: %s has a value in one %[1]s, but not in another; write %[2]s=VALUE", kind, flag)
		}
		found, rest = true, left
	}
	if !found {
		return nil, fmt.Errorf("%s: no %[1]s of this run supports the option %s%s", kind, flag, fabric.DidYouMean(flag, append(known, flags...)))
	}
	return rest, nil
}

// bind makes the arguments from the given options.
func (t *Taker) bind(kind string) error {
	for _, p := range t.Entry.Options {
		if v, ok := t.Given[p.Name]; ok {
			t.Keywords = append(t.Keywords, starlark.Tuple{starlark.String(p.Name), v})
		} else if p.Default == nil {
			return fmt.Errorf("%s %s: missing option %s", kind, t.Name, FlagName(p.Name))
		}
	}
	return nil
}
