package audits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// parse passes the options among words to the audits that accept them. names are the loaded
// audits.
func (set *Selection) parse(words, names, flags []string) (err error) {
	takers := make([]*script.Taker, len(set.List))
	for i, a := range set.List {
		takers[i] = &a.Taker
	}
	set.Help, err = script.Audits.Distribute(takers, words, names, flags)
	return err
}

// arguments returns those of a run; own are the values of ownOptions.
func (a *Audit) arguments(own starlark.StringDict) []starlark.Tuple {
	kwargs := slices.Clone(a.Keywords)
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
	for _, p := range a.Entry.Options {
		if values[p.Name] = p.Default; a.Given[p.Name] != nil {
			values[p.Name] = a.Given[p.Name]
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
