package builtins

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
)

// entryNames are the functions that make a script a command, in the order in
// which they are looked for.
var entryNames = []string{"main", "audit", "route"}

func findEntry(globals starlark.StringDict) *starlark.Function {
	for _, name := range entryNames {
		if fn, ok := globals[name].(*starlark.Function); ok {
			return fn
		}
	}
	return nil
}

// mayHaveEntry reports whether a resolved file has a global of such a name.
func mayHaveEntry(f *syntax.File) bool {
	return slices.ContainsFunc(f.Module.(*resolve.Module).Globals, func(b *resolve.Binding) bool {
		return slices.Contains(entryNames, b.First.Name)
	})
}

// runEntry calls an entry function with what the words of a command line say.
func (s *Session) runEntry(t *starlark.Thread, e *entry, words []string) error {
	e.before = s.flags
	args, kwargs, help, err := e.parse(words)
	if err != nil {
		return fmt.Errorf("%s: %w\nusage: %s", e.script, err, e.usage())
	}
	if help {
		return s.Emit(lang.Stdout, e.Help())
	}
	s.allow(args, kwargs)
	if e.fabric {
		f, err := topology.CurrentFabric(t)
		if err != nil {
			return err
		}
		args = append(starlark.Tuple{f}, args...)
	}
	audits.Take(s.Runtime)
	v, err := starlark.Call(t, e.fn, args, kwargs)
	if found := audits.Take(s.Runtime); err == nil && len(found) > 0 {
		if err := lang.ShowValue(t, audits.Wrap(found)); err != nil {
			return err
		}
		return &lang.ExitError{Code: lang.StatusFindings}
	}
	if err == nil && e.fn.Name() == "route" && v != starlark.None {
		err = lang.ShowValue(t, v) // what `fabsh route` would judge and write
	}
	return err
}

// entry is the command line that an entry function's signature spells.
type entry struct {
	fn      *starlark.Function
	script  string
	own     []string // flags of the command that runs it, for who misspells one
	before  []string // flags that stand before the script
	doc     string
	fabric  bool // the first parameter is `fabric`: the session gives it
	words   []entryParam
	options []entryParam
	rest    string // name of *args, empty if there is none
}

type entryParam struct {
	name  string
	value starlark.Value // default; nil if it must be given
}

func newEntry(script string, fn *starlark.Function) *entry {
	e := &entry{fn: fn, script: script, doc: fn.Doc()}
	n := fn.NumParams()
	if fn.HasKwargs() {
		n-- // nothing on a command line fills **kwargs
	}
	if fn.HasVarargs() {
		n--
		e.rest, _ = fn.Param(n)
	}
	for i := range n {
		name, _ := fn.Param(i)
		p := entryParam{name: name, value: fn.ParamDefault(i)}
		switch {
		case i >= n-fn.NumKwonlyParams():
			e.options = append(e.options, p)
		case i == 0 && name == "fabric":
			e.fabric = true
		default:
			e.words = append(e.words, p)
		}
	}
	return e
}

// parse turns words into arguments.
func (e *entry) parse(words []string) (args starlark.Tuple, kwargs []starlark.Tuple, help bool, err error) {
	given := map[string]starlark.Value{}
	var plain []string
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w == "--":
			plain = append(plain, words...)
			words = nil
		case w == "-h" || w == "--help":
			return nil, nil, true, nil
		case strings.HasPrefix(w, "-") && w != "-" && !isNumber(w):
			if words, err = e.option(given, w, words); err != nil {
				return nil, nil, false, err
			}
		default:
			plain = append(plain, w)
		}
	}
	for i, p := range e.words {
		if i >= len(plain) {
			if p.value == nil {
				return nil, nil, false, fmt.Errorf("missing %s", strings.ToUpper(p.name))
			}
			continue
		}
		v, err := parseLike(p.value, plain[i])
		if err != nil {
			return nil, nil, false, fmt.Errorf("%s: %w", strings.ToUpper(p.name), err)
		}
		args = append(args, v)
	}
	if extra := len(plain) - len(e.words); extra > 0 {
		if e.rest == "" {
			return nil, nil, false, fmt.Errorf("unexpected argument %q", plain[len(e.words)])
		}
		for _, w := range plain[len(e.words):] {
			args = append(args, starlark.String(w))
		}
	}
	for _, p := range e.options {
		if v, ok := given[p.name]; ok {
			kwargs = append(kwargs, starlark.Tuple{starlark.String(p.name), v})
		} else if p.value == nil {
			return nil, nil, false, fmt.Errorf("missing option %s", flagName(p.name))
		}
	}
	return args, kwargs, false, nil
}

// option reads one option w and, where it takes one, its value from words.
func (e *entry) option(given map[string]starlark.Value, w string, words []string) ([]string, error) {
	flag, value, hasValue := strings.Cut(w, "=")
	p, off := e.find(flag)
	if p == nil {
		var flags []string
		for _, p := range e.options {
			flags = append(flags, flagName(p.name))
		}
		if slices.Contains(e.before, flag) {
			return nil, fmt.Errorf("unknown option %s: it is a flag of fabsh, and stands before the script (fabsh %[1]s ... SCRIPT)", flag)
		}
		if long := longNames(flag, flags); long != "" {
			return nil, fmt.Errorf("unknown option %s (options have long names: %s)", flag, long)
		}
		return nil, fmt.Errorf("unknown option %s%s", flag, fabric.DidYouMean(flag, slices.Concat(flags, e.own, e.before)))
	}
	if _, isBool := p.value.(starlark.Bool); isBool && !hasValue {
		given[p.name] = starlark.Bool(!off)
		return words, nil
	}
	if !hasValue {
		if len(words) == 0 {
			return nil, fmt.Errorf("option %s needs a value", flag)
		}
		value, words = words[0], words[1:]
	}
	like := p.value
	list := listOf(p.value)
	if list != nil { // given several times, it collects
		like = nil
		if list.Len() > 0 {
			like = list.Index(0)
		}
	}
	v, err := parseLike(like, value)
	if err != nil {
		return nil, fmt.Errorf("option %s: %w", flag, err)
	}
	if list != nil {
		old, _ := given[p.name].(*starlark.List)
		if old == nil {
			old = new(starlark.List)
		}
		if err := old.Append(v); err != nil {
			return nil, err
		}
		v = old
	}
	given[p.name] = v
	return words, nil
}

// find returns the option that a flag names, if need be in other letters:
// --Direct; off: --no-x for a bool x.
func (e *entry) find(flag string) (p *entryParam, off bool) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i := range e.options {
			p := &e.options[i]
			name := flagName(p.name)
			if same(flag, name) || same(flag, "--"+p.name) {
				return p, false
			}
			if _, isBool := p.value.(starlark.Bool); isBool && same(flag, "--no-"+name[2:]) {
				return p, true
			}
		}
	}
	return nil, false
}

// longNames are the flags that an option of one letter may stand for.
func longNames(short string, flags []string) string {
	if len(short) != 2 {
		return ""
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return !strings.EqualFold(f[2:3], short[1:]) }), ", ")
}

func flagName(param string) string { return "--" + strings.ReplaceAll(param, "_", "-") }

func isNumber(w string) bool {
	_, intErr := strconv.ParseInt(w, 0, 64)
	_, floatErr := strconv.ParseFloat(w, 64)
	return intErr == nil || floatErr == nil
}

func listOf(v starlark.Value) starlark.Indexable {
	switch v := v.(type) {
	case *starlark.List:
		return v
	case starlark.Tuple:
		return v
	}
	return nil
}

// parseLike reads a word as a value of the type of like; anything but numbers
// and truths stays text.
func parseLike(like starlark.Value, word string) (starlark.Value, error) {
	switch like.(type) {
	case starlark.Bool:
		switch strings.ToLower(word) {
		case "true", "yes", "on", "1":
			return starlark.True, nil
		case "false", "no", "off", "0":
			return starlark.False, nil
		}
		return nil, fmt.Errorf("%q is not true or false", word)
	case starlark.Int:
		n, err := strconv.ParseInt(word, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an integer", word)
		}
		return starlark.MakeInt64(n), nil
	case starlark.Float:
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", word)
		}
		return starlark.Float(x), nil
	}
	return starlark.String(word), nil
}

// usage is one line.
func (e *entry) usage() string {
	var b strings.Builder
	b.WriteString(e.script)
	for _, p := range e.options {
		use := e.optionUse(p)
		if p.value != nil {
			use = "[" + use + "]"
		}
		b.WriteString(" " + use)
	}
	for _, p := range e.words {
		if p.value == nil {
			b.WriteString(" " + strings.ToUpper(p.name))
		} else {
			b.WriteString(" [" + strings.ToUpper(p.name) + "]")
		}
	}
	if e.rest != "" {
		b.WriteString(" [" + strings.ToUpper(e.rest) + "...]")
	}
	return b.String()
}

func (e *entry) optionUse(p entryParam) string {
	like := p.value
	if l := listOf(like); l != nil && l.Len() > 0 {
		like = l.Index(0)
	}
	switch like.(type) {
	case starlark.Bool:
		if p.value == starlark.True {
			return "--no-" + flagName(p.name)[2:]
		}
		return flagName(p.name)
	case starlark.Int:
		return flagName(p.name) + " N"
	case starlark.Float:
		return flagName(p.name) + " X"
	}
	return flagName(p.name) + " TEXT"
}

// help is what --help prints.
func (e *entry) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n", e.usage())
	if doc := lang.TrimDoc(e.doc); doc != "" {
		fmt.Fprintf(&b, "\n%s\n", doc)
	}
	if len(e.options) > 0 {
		b.WriteString("\noptions:\n")
		width := 0
		for _, p := range e.options {
			width = max(width, len(e.optionUse(p)))
		}
		for _, p := range e.options {
			note := "required"
			switch {
			case p.value == starlark.True:
				note = p.name + " is True without it"
			case p.value != nil:
				note = "default " + p.value.String()
			}
			fmt.Fprintf(&b, "  %-*s  %s\n", width, e.optionUse(p), note)
		}
	}
	return b.String()
}
