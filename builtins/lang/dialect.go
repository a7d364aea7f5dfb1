package lang

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	_ "unsafe" // for go:linkname

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Dialect is the one Starlark dialect of scripts, modules and the prompt.
var Dialect = syntax.FileOptions{
	Set:             true,
	While:           true,
	TopLevelControl: true,
	GlobalReassign:  true,
	Recursion:       true,
}

// FileOptions returns a copy of the dialect, for a caller (the prompt) that extends it.
func FileOptions() *syntax.FileOptions {
	o := Dialect
	return &o
}

// PlainText refuses source text that contains a NUL: the scanner would take it for the
// end and drop the rest without an error. line is the number of the first line.
func PlainText(file string, line int, src string) error {
	before, _, found := strings.Cut(src, "\x00")
	if !found {
		return nil
	}
	start := strings.LastIndexByte(before, '\n') + 1
	pos := syntax.MakePosition(&file, int32(line+strings.Count(before, "\n")), int32(utf8.RuneCountInString(before[start:])+1))
	return syntax.Error{Pos: pos, Msg: "unexpected NUL; is this a text file?"}
}

// AtLineEnd returns e at the end of the line that misses something, such as a colon: the
// parser reports the newline at the beginning of the next line. src is the file.
func AtLineEnd(e syntax.Error, src string) syntax.Error {
	lines := strings.Split(src, "\n")
	msg := strings.TrimPrefix(e.Msg, "syntax error: ")
	if n := int(e.Pos.Line) - 2; (strings.HasPrefix(msg, "got newline") || msg == "not an identifier") && e.Pos.Col == 1 && n >= 0 && n < len(lines) {
		file := e.Pos.Filename()
		e.Pos = syntax.MakePosition(&file, e.Pos.Line-1, int32(utf8.RuneCountInString(lines[n])+1))
	}
	return e
}

// Sum is sum(), for all types that support +.
var Sum = Builtin{
	Name:  "sum",
	Group: GroupRest,
	Params: []Param{
		{Name: "items", Kind: KindItems, Doc: "any iterable of numbers, or of other values that support +"},
		{Name: "start", Kind: KindAny, Default: "0", Doc: "initial value"},
	},
	Doc: "Returns the sum of all items.",
	Example: `
> sum([1, 2, 3])
6
`,
	Run: Do(func(c *Call, a *struct {
		Items []starlark.Value
		Start starlark.Value
	}) (starlark.Value, error) {
		var total starlark.Value = starlark.MakeInt(0)
		if a.Start != nil {
			total = a.Start
		}
		for i, v := range a.Items {
			sum, err := starlark.Binary(syntax.PLUS, total, v)
			if err != nil {
				return nil, Errorf("item %d: cannot add %s to %s", i, v.Type(), total.Type())
			}
			total = sum
		}
		return total, nil
	}),
}

// FieldWords are the possible words of an attribute: of one type of values, or of all types
// that have an attribute of its name.
type FieldWords struct {
	Words []string
	Mask  bool // the attribute is a tuple of such words
}

// WrongWord is a comparison that always has the same result: it compares an attribute,
// whose value is one of some words, with another text.
type WrongWord struct {
	Pos  syntax.Position
	Text string // the error, with a similar word if there is one
}

// WrongWords finds such comparisons in a script. It examines the source, because the
// interpreter compares two strings without a call that could warn. fields returns
// the possible words of an attribute; false: any value.
func WrongWords(f *syntax.File, fields func(*syntax.DotExpr) (FieldWords, bool), hint func(string, []string) string) []WrongWord {
	var found []WrongWord
	syntax.Walk(f, func(n syntax.Node) bool {
		b, ok := n.(*syntax.BinaryExpr)
		if !ok {
			return true
		}
		membership := b.Op == syntax.IN || b.Op == syntax.NOT_IN
		if !membership && b.Op != syntax.EQL && b.Op != syntax.NEQ {
			return true
		}
		x, y := PlainExpr(b.X), PlainExpr(b.Y)
		dot, left := x.(*syntax.DotExpr)
		other := y
		if !left {
			if dot, ok = y.(*syntax.DotExpr); !ok {
				return true
			}
			other = x
		}
		w, ok := fields(dot)
		if !ok {
			return true
		}
		var texts []*syntax.Literal // that are compared with a word
		switch text, isText := stringLiteral(other); {
		case isText && w.Mask && !membership:
			found = append(found, WrongWord{text.TokenPos, fmt.Sprintf("%s is a tuple of words, never %s; write %[2]s in %[1]s", exprText(dot), text.Raw)})
		case isText && (!membership || !left): // x.f == "a", or "a" in x.f
			texts = append(texts, text)
		case !isText && membership == (left && !w.Mask): // x.f in ("a", "b"), or x.f == ("a", "b")
			texts = literalsOf(other)
		}
		for _, text := range texts {
			word := text.Value.(string)
			if slices.Contains(w.Words, word) || isUnknownWord(word) {
				continue
			}
			near := hint(word, w.Words)
			if near == "" {
				near = "; its values are " + strings.Join(w.Words, ", ")
			}
			verb := "is never"
			if w.Mask {
				verb = "never has"
			}
			found = append(found, WrongWord{text.TokenPos, fmt.Sprintf("%s %s %s%s", exprText(dot), verb, text.Raw, near)})
		}
		return true
	})
	return found
}

// WarnComparisons warns once of each comparison that always has the same result in a script
// that is about to run; globals are the names that it does not define.
func (r *Runtime) WarnComparisons(f *syntax.File, globals starlark.StringDict) {
	if r.Comparisons == nil || r.Quiet {
		return
	}
	for _, w := range r.Comparisons(f, globals) {
		r.WarnOnce("%s: %s", w.Pos, w.Text)
	}
}

// PlainExpr returns e without parentheses around it.
func PlainExpr(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// maxElements is the maximum number of elements that a function of the language takes
// at once: 2 GiB of values.
const maxElements = 1 << 27

// tooMany returns an error if n elements are too many to allocate at once.
func tooMany(n int) error {
	if n > maxElements {
		return fmt.Errorf("%d elements are too many at once; the maximum is %d", n, maxElements)
	}
	return nil
}

// A Byter has bytes, which bytes() returns.
type Byter interface{ Bytes() starlark.Bytes }

// Some functions of the language allocate space for all elements in advance, and a range
// can claim any number. If the kernel refuses the memory, Go ends the program with pages
// of traceback, so they fail here. Others iterate over all elements in one step of the
// interpreter, which cannot be interrupted.
func init() {
	for _, name := range []string{"all", "any", "bytes", "enumerate", "list", "max", "min", "reversed", "set", "sorted", "tuple", "zip"} {
		f := starlark.Universe[name].(*starlark.Builtin)
		starlark.Universe[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) == 1 && len(kwargs) == 0 && name == "bytes" {
				if x, ok := args[0].(Byter); ok {
					return x.Bytes(), nil
				}
			}
			shortest := maxElements
			for _, arg := range args {
				n := starlark.Len(arg)
				if err := tooMany(n); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				if n >= 0 {
					shortest = min(shortest, n)
				}
			}
			if name == "zip" && shortest < maxElements { // its rows are also allocated at once
				if err := tooMany(shortest * len(args)); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			return f.CallInternal(t, args, kwargs)
		})
	}
}

// stringMethods are the string methods of the language, which the library does not export.
//
//go:linkname stringMethods go.starlark.net/starlark.stringMethods
var stringMethods map[string]*starlark.Builtin

// listMethods are the list methods; rowMethods are added to them.
//
//go:linkname listMethods go.starlark.net/starlark.listMethods
var listMethods map[string]*starlark.Builtin

// maxReplaced is the maximum length of a result of replace, in bytes, equal to the
// library's limit for repetition.
const maxReplaced = 1 << 30

// replace is the only method that allocates its whole result at once, and the result can
// be as long as the square of the input: for 16 MiB, more than a process can address.
// Go then ends the program with pages of traceback before the limit of memory takes
// effect.
func init() {
	unbounded := stringMethods["replace"]
	stringMethods["replace"] = starlark.NewBuiltin("replace", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		s := b.Receiver().(starlark.String)
		var before, after string
		count := -1
		if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &before, &after, &count); err != nil {
			return nil, err
		}
		if len(after) > len(before) {
			n := strings.Count(string(s), before)
			if count >= 0 {
				n = min(n, count)
			}
			if n > (maxReplaced-len(s))/(len(after)-len(before)) {
				return nil, fmt.Errorf("%s: the result would be longer than 1 GiB: %d times %d bytes for %d", b.Name(), n, len(after), len(before))
			}
		}
		return unbounded.BindReceiver(s).CallInternal(thread, args, kwargs)
	})
}

// isUnknownWord reports whether word stands for a number that has no word.
func isUnknownWord(word string) bool {
	return strings.HasPrefix(word, "unknown(") && strings.HasSuffix(word, ")")
}

func stringLiteral(e syntax.Expr) (*syntax.Literal, bool) {
	l, ok := e.(*syntax.Literal)
	if !ok || l.Token != syntax.STRING {
		return nil, false
	}
	return l, true
}

// literalsOf returns the string literals in a list or tuple.
func literalsOf(e syntax.Expr) []*syntax.Literal {
	var list []syntax.Expr
	switch e := e.(type) {
	case *syntax.ListExpr:
		list = e.List
	case *syntax.TupleExpr:
		list = e.List
	}
	var texts []*syntax.Literal
	for _, x := range list {
		if l, ok := stringLiteral(PlainExpr(x)); ok {
			texts = append(texts, l)
		}
	}
	return texts
}

// exprText returns an attribute as the script writes it, if that is short.
func exprText(e *syntax.DotExpr) string {
	switch x := PlainExpr(e.X).(type) {
	case *syntax.Ident:
		return x.Name + "." + e.Name.Name
	case *syntax.DotExpr:
		return exprText(x) + "." + e.Name.Name
	}
	return "." + e.Name.Name
}
