package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
)

// parse passes the options among words to the audits that accept them. names are the loaded
// audits.
func (set *Set) parse(words, names, flags []string) error {
	var values []string // of options
	help := false
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w == "-h" || w == "--help":
			help = true
		case !strings.HasPrefix(w, "-") && slices.Contains(names, w):
		case !strings.HasPrefix(w, "-"):
			shipped := script.Audits.Names()
			return fmt.Errorf("audit %q: unknown%s; use a .star file, or one of %s", w, fabric.DidYouMean(w, shipped), strings.Join(shipped, ", "))
		default:
			before := words
			var err error
			if words, err = set.option(w, words, flags); err != nil {
				return err
			}
			values = append(values, before[:len(before)-len(words)]...)
		}
	}
	for _, v := range values {
		if slices.Contains(names, v) {
			return fmt.Errorf("audit: %q is the value of an option and the name of an audit; write the option as --NAME=%[1]s", v)
		}
	}
	if help {
		var b strings.Builder
		for i, a := range set.List {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(a.entry.Help())
		}
		set.Help = b.String()
	}
	return nil
}

// option passes one option to all audits that accept it.
func (set *Set) option(w string, words, flags []string) (rest []string, err error) {
	flag, _, _ := strings.Cut(w, "=")
	var known []string
	found := false
	for _, a := range set.List {
		for _, p := range a.entry.Options {
			known = append(known, script.FlagName(p.Name))
		}
		if p, _ := a.entry.Find(flag); p == nil {
			continue
		}
		left, err := a.entry.Option(a.given, w, words)
		if err != nil {
			return nil, fmt.Errorf("audit %s: %w", a.Name, err)
		}
		if found && len(left) != len(rest) {
			return nil, fmt.Errorf("audit: %s has a value in one audit, but not in another; write %[1]s=VALUE", flag)
		}
		found, rest = true, left
	}
	if !found {
		return nil, fmt.Errorf("audit: no audit of this run supports the option %s%s", flag, fabric.DidYouMean(flag, append(known, flags...)))
	}
	return rest, nil
}

// bind makes the arguments from the given options.
func (a *Audit) bind() error {
	for _, p := range a.entry.Options {
		if v, ok := a.given[p.Name]; ok {
			a.kwargs = append(a.kwargs, starlark.Tuple{starlark.String(p.Name), v})
		} else if p.Default == nil {
			return fmt.Errorf("audit %s: missing option %s", a.Name, script.FlagName(p.Name))
		}
	}
	return nil
}

// Arguments returns the arguments that the command line gives to the audit, by keyword.
func (a *Audit) Arguments() []starlark.Tuple { return a.kwargs }

// arguments returns those of a run; own are the values of ownOptions.
func (a *Audit) arguments(own starlark.StringDict) []starlark.Tuple {
	kwargs := slices.Clone(a.kwargs)
	for _, name := range a.own {
		kwargs = append(kwargs, starlark.Tuple{starlark.String(name), own[name]})
	}
	return kwargs
}

// expected returns how many datagrams the audit will send, 0 if unknown. Its datagrams() may
// take deep, and options of the audit.
func (a *Audit) expected(t *starlark.Thread, f starlark.Value, deep bool) (int, error) {
	if a.datagrams == nil {
		return 0, nil
	}
	values := starlark.StringDict{deepOption: starlark.Bool(deep)}
	for _, p := range a.entry.Options {
		if values[p.Name] = p.Default; a.given[p.Name] != nil {
			values[p.Name] = a.given[p.Name]
		}
	}
	var kwargs []starlark.Tuple
	for i := range a.datagrams.NumParams() {
		if name, _ := a.datagrams.Param(i); values[name] != nil {
			kwargs = append(kwargs, starlark.Tuple{starlark.String(name), values[name]})
		}
	}
	v, err := starlark.Call(t, a.datagrams, starlark.Tuple{f}, kwargs)
	if err != nil {
		return 0, notExit(err)
	}
	n, err := lang.ToInt(v)
	if err == nil && n < 0 {
		err = errors.New("negative")
	}
	if err != nil {
		return 0, fmt.Errorf("%s: datagrams(fabric) must return a number: %w", cmp.Or(a.script, a.Name), err)
	}
	return n, nil
}
