package script

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// entryNames are the functions that make a script a command, in the order in
// which they are searched.
var entryNames = []string{"main", "audit", "route"}

// FindEntry returns the entry function of a script, nil if it has none.
func FindEntry(globals starlark.StringDict) *starlark.Function {
	for _, name := range entryNames {
		if fn, ok := globals[name].(*starlark.Function); ok {
			return fn
		}
	}
	return nil
}

// MayHaveEntry reports whether a resolved file has a global of such a name.
func MayHaveEntry(f *syntax.File) bool {
	return slices.ContainsFunc(f.Module.(*resolve.Module).Globals, func(b *resolve.Binding) bool {
		return slices.Contains(entryNames, b.First.Name)
	})
}

// given are the parameters that fabsh passes by position to functions of their names: name
// and type.
var given = map[string][][2]string{
	"main":        {{"fabric", "fabric"}},
	"audit":       {{"fabric", "fabric"}},
	"route":       {{"fabric", "fabric"}},
	RemedyEntry:   {{"fabric", "fabric"}, {"findings", "list of finding"}},
	TopologyEntry: {{"groups", "host_groups"}},
}

// ParamType returns the type of a parameter that fabsh passes to a function, by its position
// and name: the fabric of an entry function, the simulated fabric of a test. Empty: unknown.
func ParamType(fn string, i int, param string) string {
	switch list := given[fn]; {
	case i < len(list) && list[i][0] == param:
		return list[i][1]
	case param == SimParam && strings.HasPrefix(fn, TestPrefix):
		return "sim"
	}
	return ""
}

// Entry is the command line of an entry function's signature.
type Entry struct {
	Fn      *starlark.Function
	Name    string // of the script
	Doc     string
	Fabric  bool // the first parameter is `fabric`, which the session passes
	Words   []Param
	Options []Param
	Rest    string // name of *args, or ""

	CommandFlags []string // of the command that runs the script, for suggestions about misspelled ones
	ProgramFlags []string // flags before the script
}

// Param is a parameter that a command line fills.
type Param struct {
	Name    string
	Default starlark.Value // nil if it is required
}

// NewEntry reads the signature of fn. doc is the docstring of its script; if empty, that of fn
// is used.
func NewEntry(name string, fn *starlark.Function, doc string) *Entry {
	e := &Entry{Fn: fn, Name: name, Doc: cmp.Or(doc, fn.Doc())}
	n := fn.NumParams()
	if fn.HasKwargs() {
		n-- // nothing on a command line fills **kwargs
	}
	if fn.HasVarargs() {
		n--
		e.Rest, _ = fn.Param(n)
	}
	for i := range n {
		name, _ := fn.Param(i)
		p := Param{Name: name, Default: fn.ParamDefault(i)}
		switch {
		case i >= n-fn.NumKwonlyParams():
			e.Options = append(e.Options, p)
		case i == 0 && name == "fabric":
			e.Fabric = true
		default:
			e.Words = append(e.Words, p)
		}
	}
	return e
}

// Arguments are the arguments of an entry function from a command line.
type Arguments struct {
	Positional starlark.Tuple
	Keywords   []starlark.Tuple
	Help       bool // the words request help; nothing else is set
}

// Allow lets scripts read the files that the arguments name.
func (a Arguments) Allow(files *lang.Files) {
	for _, v := range a.Positional {
		files.Allow(v)
	}
	for _, kv := range a.Keywords {
		files.Allow(kv[1])
	}
}

// Parse turns words into arguments.
func (e *Entry) Parse(words []string) (a Arguments, err error) {
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
			return Arguments{Help: true}, nil
		case strings.HasPrefix(w, "-") && w != "-" && !isNumber(w):
			if words, err = e.Option(given, w, words); err != nil {
				return a, err
			}
		default:
			plain = append(plain, w)
		}
	}
	for i, p := range e.Words {
		if i >= len(plain) {
			if p.Default == nil {
				return a, fmt.Errorf("missing %s", strings.ToUpper(p.Name))
			}
			continue
		}
		v, err := parseLike(p.Default, plain[i])
		if err != nil {
			return a, fmt.Errorf("%s: %w", strings.ToUpper(p.Name), err)
		}
		a.Positional = append(a.Positional, v)
	}
	if extra := len(plain) - len(e.Words); extra > 0 {
		if e.Rest == "" {
			return a, fmt.Errorf("unexpected argument %q", plain[len(e.Words)])
		}
		for _, w := range plain[len(e.Words):] {
			a.Positional = append(a.Positional, starlark.String(w))
		}
	}
	for _, p := range e.Options {
		if v, ok := given[p.Name]; ok {
			a.Keywords = append(a.Keywords, starlark.Tuple{starlark.String(p.Name), v})
		} else if p.Default == nil {
			return a, fmt.Errorf("missing option %s", FlagName(p.Name))
		}
	}
	return a, nil
}

// Option reads one option w into given and, where it takes one, its value from words.
func (e *Entry) Option(given map[string]starlark.Value, w string, words []string) ([]string, error) {
	flag, value, hasValue := strings.Cut(w, "=")
	p, off := e.Find(flag)
	if p == nil {
		var flags []string
		for _, p := range e.Options {
			flags = append(flags, FlagName(p.Name))
		}
		if slices.Contains(e.ProgramFlags, flag) {
			return nil, fmt.Errorf("unknown option %s; it is a flag of fabsh, which goes before the script: fabsh %[1]s ... SCRIPT", flag)
		}
		if long := longNames(flag, flags); long != "" {
			return nil, fmt.Errorf("unknown option %s (options have long names: %s)", flag, long)
		}
		return nil, fmt.Errorf("unknown option %s%s", flag, fabric.DidYouMean(flag, slices.Concat(flags, e.CommandFlags, e.ProgramFlags)))
	}
	if _, isBool := p.Default.(starlark.Bool); isBool && !hasValue {
		given[p.Name] = starlark.Bool(!off)
		return words, nil
	}
	if !hasValue {
		if len(words) == 0 {
			return nil, fmt.Errorf("option %s needs a value", flag)
		}
		value, words = words[0], words[1:]
	}
	like := p.Default
	list := listOf(p.Default)
	if list != nil { // repeated options collect values
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
		old, _ := given[p.Name].(*starlark.List)
		if old == nil {
			old = new(starlark.List)
		}
		if err := old.Append(v); err != nil {
			return nil, err
		}
		v = old
	}
	given[p.Name] = v
	return words, nil
}

// Find returns the option of a flag, ignoring case (--Direct); off reports --no-x for a bool x.
func (e *Entry) Find(flag string) (p *Param, off bool) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i := range e.Options {
			p := &e.Options[i]
			name := FlagName(p.Name)
			if same(flag, name) || same(flag, "--"+p.Name) {
				return p, false
			}
			if _, isBool := p.Default.(starlark.Bool); isBool && same(flag, "--no-"+name[2:]) {
				return p, true
			}
		}
	}
	return nil, false
}

// longNames returns the flags that an option of one letter may abbreviate.
func longNames(short string, flags []string) string {
	if len(short) != 2 {
		return ""
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return !strings.EqualFold(f[2:3], short[1:]) }), ", ")
}

// FlagName returns the option of a command line for a parameter.
func FlagName(param string) string { return "--" + strings.ReplaceAll(param, "_", "-") }

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
