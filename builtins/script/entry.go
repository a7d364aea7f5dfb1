package script

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// MayHaveEntry reports whether a resolved file has a global with the name of an entry function.
func MayHaveEntry(f *syntax.File) bool {
	return slices.ContainsFunc(f.Module.(*resolve.Module).Globals, func(b *resolve.Binding) bool {
		return slices.Contains(entryNames, b.First.Name)
	})
}

// TestPrefix begins the names of tests. SimParam is the parameter whose default names a test's
// simulated fabric.
const (
	TestPrefix = "test_"
	SimParam   = "sim"
)

// passedParams are the parameters that fabsh passes by position to functions of their names: name
// and type.
var passedParams = map[string][][2]string{
	"main":        {{"fabric", "fabric"}},
	"audit":       {{"fabric", "fabric"}},
	"route":       {{"fabric", "fabric"}},
	RemedyEntry:   {{"fabric", "fabric"}, {"findings", "list of finding"}},
	TopologyEntry: {{"groups", "host_groups"}},
}

// ParamType returns the type of a parameter that fabsh passes to a function, by its position
// and name: the fabric of an entry function, the simulated fabric of a test. Empty: unknown.
func ParamType(fn string, i int, param string) string {
	switch list := passedParams[fn]; {
	case i < len(list) && list[i][0] == param:
		return list[i][1]
	case param == SimParam && (strings.HasPrefix(fn, TestPrefix) || fn == "scenario"):
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

	ProgramFlags []string // flags before the script
}

// Param is a parameter that a command line fills.
type Param struct {
	Name    string
	Default starlark.Value // nil if it is required
}

// NewEntry reads the signature of fn. doc is the docstring of its script; if empty, the
// docstring of fn is used.
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
			return a, fmt.Errorf("%s %q: %w", strings.ToUpper(p.Name), plain[i], err)
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
			return a, fmt.Errorf("missing %s", FlagName(p.Name))
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
			return nil, fmt.Errorf("%s: a flag of fabsh, which goes before the script: fabsh %[1]s ... SCRIPT", flag)
		}
		if long := longNames(flag, flags); long != "" {
			return nil, fmt.Errorf("%s: unknown flag (options have long names: %s)", flag, long)
		}
		return nil, fmt.Errorf("%s: unknown flag%s", flag, fabric.DidYouMean(flag, slices.Concat(flags, e.ProgramFlags)))
	}
	if _, isBool := p.Default.(starlark.Bool); isBool && !hasValue {
		given[p.Name] = starlark.Bool(!off)
		return words, nil
	}
	if !hasValue {
		if len(words) == 0 {
			return nil, fmt.Errorf("%s: missing value", flag)
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
		return nil, fmt.Errorf("%s %q: %w", flag, value, err)
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

// isNumber reports whether a word is a number, which may begin with a minus sign.
func isNumber(w string) bool {
	_, intErr := strconv.ParseInt(w, 0, 64)
	_, floatErr := strconv.ParseFloat(w, 64)
	return intErr == nil || floatErr == nil
}

// listOf returns v if it is a list or tuple, else nil.
func listOf(v starlark.Value) starlark.Indexable {
	switch v := v.(type) {
	case *starlark.List:
		return v
	case starlark.Tuple:
		return v
	}
	return nil
}

// parseLike reads a word as a value of the type of like; all but numbers and truth values stay
// text.
func parseLike(like starlark.Value, word string) (starlark.Value, error) {
	switch like.(type) {
	case starlark.Bool:
		switch strings.ToLower(word) {
		case "true", "yes", "on", "1":
			return starlark.True, nil
		case "false", "no", "off", "0":
			return starlark.False, nil
		}
		return nil, errors.New("want true or false")
	case starlark.Int:
		n, err := strconv.ParseInt(word, 0, 64)
		if err != nil {
			return nil, errors.New("want an integer")
		}
		return starlark.MakeInt64(n), nil
	case starlark.Float:
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, errors.New("want a number")
		}
		return starlark.Float(x), nil
	}
	return starlark.String(word), nil
}

// Usage returns the command line in one line.
func (e *Entry) Usage() string {
	var b strings.Builder
	b.WriteString(e.Name)
	for _, p := range e.Options {
		use := e.optionUse(p)
		if p.Default != nil {
			use = "[" + use + "]"
		}
		b.WriteString(" " + use)
	}
	for _, p := range e.Words {
		if p.Default == nil {
			b.WriteString(" " + strings.ToUpper(p.Name))
		} else {
			b.WriteString(" [" + strings.ToUpper(p.Name) + "]")
		}
	}
	if e.Rest != "" {
		b.WriteString(" [" + strings.ToUpper(e.Rest) + "...]")
	}
	return b.String()
}

// optionUse returns the use of an option in one line of help.
func (e *Entry) optionUse(p Param) string {
	like := p.Default
	if l := listOf(like); l != nil && l.Len() > 0 {
		like = l.Index(0)
	}
	switch like.(type) {
	case starlark.Bool:
		if p.Default == starlark.True {
			return "--no-" + FlagName(p.Name)[2:]
		}
		return FlagName(p.Name)
	case starlark.Int:
		return FlagName(p.Name) + " N"
	case starlark.Float:
		return FlagName(p.Name) + " X"
	}
	return FlagName(p.Name) + " TEXT"
}

// Help returns the text of --help.
func (e *Entry) Help() string {
	var b strings.Builder
	doc := lang.TrimDoc(e.Doc)
	var options []Param // that the doc does not list
	for _, p := range e.Options {
		if !lists(doc, e.optionUse(p)) {
			options = append(options, p)
		}
	}
	usage := e.Usage()
	if len(options) == 0 && len(e.Options) > 0 { // each option is listed once
		usage = optionForm().ReplaceAllString(strings.Replace(usage, " [--", " [options] [--", 1), "")
	}
	fmt.Fprintf(&b, "usage: %s\n", usage)
	if doc != "" {
		fmt.Fprintf(&b, "\n%s\n", doc)
	}
	if len(options) > 0 {
		b.WriteString("\noptions:\n")
		width := 0
		for _, p := range options {
			width = max(width, len(e.optionUse(p)))
		}
		for _, p := range options {
			note := "required"
			switch {
			case p.Default == starlark.True:
				note = "turns off " + p.Name
			case p.Default != nil:
				note = "default " + p.Default.String()
			}
			fmt.Fprintf(&b, "  %-*s  %s\n", width, e.optionUse(p), note)
		}
	}
	return b.String()
}

// optionForm matches an option that may be omitted, in a line of usage.
var optionForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` \[--[^\]]*\]`) })

// lists reports whether a line of doc begins with the flag of an option, "--name TEXT".
func lists(doc, use string) bool {
	flag, _, _ := strings.Cut(use, " ")
	for line := range strings.Lines(doc) {
		for word := range strings.FieldsSeq(line) {
			if !strings.HasPrefix(word, "--") {
				break
			}
			if word = strings.TrimRight(word, ",:"); word == flag {
				return true
			}
		}
	}
	return false
}

// Recipient is one of several scripts to which a command line passes its options.
type Recipient struct {
	Name     string
	Entry    *Entry
	Given    map[string]starlark.Value // options that the command line gives, by parameter
	Keywords []starlark.Tuple          // arguments of the call
}

// Distribute passes each option among words to all scripts that accept it, and sets their
// Given and Keywords. names are the words that name the scripts, of folder f; flags are the
// flags of the command, for suggestions about misspelled ones. If words request help, it returns
// the help, and sets no Keywords.
func (f Folder) Distribute(list []*Recipient, words, names, flags []string) (help string, err error) {
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
			return "", fmt.Errorf("%[2]q: unknown %[1]s%[3]s; use a .star file, or one of %[4]s", kind, w, fabric.DidYouMean(w, shipped), strings.Join(shipped, ", "))
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
		if err := t.bind(); err != nil {
			return "", err
		}
	}
	return "", nil
}

// withArticle returns a noun with its indefinite article.
func withArticle(noun string) string {
	if strings.Contains("aeiou", noun[:1]) {
		return "an " + noun
	}
	return "a " + noun
}

// option passes one option to all scripts that accept it.
func (f Folder) option(list []*Recipient, w string, words, flags []string) (rest []string, err error) {
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
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		if found && len(left) != len(rest) {
			return nil, fmt.Errorf("%[2]s: a value in one %[1]s, but not in another; write %[2]s=VALUE", kind, flag)
		}
		found, rest = true, left
	}
	if !found {
		return nil, fmt.Errorf("%[2]s: unknown flag: no %[1]s of this run has it%[3]s", kind, flag, fabric.DidYouMean(flag, append(known, flags...)))
	}
	return rest, nil
}

// bind makes the arguments from the given options.
func (t *Recipient) bind() error {
	for _, p := range t.Entry.Options {
		if v, ok := t.Given[p.Name]; ok {
			t.Keywords = append(t.Keywords, starlark.Tuple{starlark.String(p.Name), v})
		} else if p.Default == nil {
			return fmt.Errorf("%s: missing %s", t.Name, FlagName(p.Name))
		}
	}
	return nil
}
