package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/mad"
)

// Attributes is what is known about the values of attributes: by their names alone, and words
// also by the type that has them.
type Attributes struct {
	words  func() map[string]lang.FieldWords
	ofType func() map[[2]string]lang.FieldWords
	types  func() map[string][]string
}

// NewAttributes returns it for all declared types. The tables are made when they are first
// needed: that takes milliseconds.
func NewAttributes() *Attributes {
	return &Attributes{words: sync.OnceValue(FieldWords), ofType: sync.OnceValue(wordsByType), types: sync.OnceValue(AttributeTypes)}
}

// Comparisons returns the comparisons in a script, and the look-ups in dicts, that always
// have the same result, because the values are of different types, or the word is unknown.
// globals are the names that the script does not define.
func Comparisons(in *script.Interpreter, known *Attributes, f *syntax.File, globals starlark.StringDict) []lang.WrongWord {
	if f.Module == nil {
		has := func(name string) bool { return name == script.SimParam || globals.Has(name) }
		if err := resolve.File(f, has, starlark.Universe.Has); err != nil {
			f.Module = nil // types of variables are then unknown
		}
	}
	c := newChecker(in)
	c.globals = globals
	syntax.Walk(f, c.define)
	return c.comparisons(f, known)
}

// comparisons implements Comparisons for a checker that has seen the definitions.
func (c *checker) comparisons(f *syntax.File, known *Attributes) []lang.WrongWord {
	x := &comparer{checker: c, known: known, file: f}
	x.found = lang.WrongWords(f, x.wordsOf, fabric.DidYouMean)
	assigned := map[*syntax.IndexExpr]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		if c.ended() || len(x.found) >= maxProblems {
			return false
		}
		switch n := n.(type) {
		case *syntax.AssignStmt:
			if index, ok := n.LHS.(*syntax.IndexExpr); ok {
				assigned[index] = true
			}
		case *syntax.BinaryExpr:
			x.binary(n)
		case *syntax.IndexExpr:
			if !assigned[n] {
				x.lookUp(n.X, n.Y, true)
			}
		case *syntax.CallExpr:
			if dot, ok := n.Fn.(*syntax.DotExpr); ok && (dot.Name.Name == "get" || dot.Name.Name == "pop") && len(n.Args) > 0 {
				x.lookUp(dot.X, n.Args[0], true)
			}
		}
		return true
	})
	slices.SortStableFunc(x.found, func(a, b lang.WrongWord) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return x.found
}

// comparer finds the comparisons of a script.
type comparer struct {
	*checker
	known *Attributes
	file  *syntax.File
	uses  map[string]*dictUses // of variables, by name
	// foreign means that the script may run code that is not written in it.
	foreign bool
	found   []lang.WrongWord
}

func (x *comparer) report(pos syntax.Position, text string) {
	if !slices.ContainsFunc(x.found, func(w lang.WrongWord) bool { return w.Pos == pos }) {
		x.found = append(x.found, lang.WrongWord{Pos: pos, Text: text})
	}
}

// wordsOf returns the possible words of an attribute, of its type if that is known.
func (x *comparer) wordsOf(dot *syntax.DotExpr) (lang.FieldWords, bool) {
	all, ok := x.known.words()[dot.Name.Name]
	if !ok {
		return all, false
	}
	if typ := x.inference.Infer(dot.X).TypeName(); typ != "" {
		if w, ok := x.known.ofType()[[2]string{typ, dot.Name.Name}]; ok {
			return w, true
		}
	}
	return all, true
}

// binary examines a comparison.
func (x *comparer) binary(b *syntax.BinaryExpr) {
	left, right := lang.PlainExpr(b.X), lang.PlainExpr(b.Y)
	switch b.Op {
	case syntax.EQL, syntax.NEQ:
		x.equal(left, right)
		x.equal(right, left)
	case syntax.IN, syntax.NOT_IN:
		var list []syntax.Expr
		switch e := right.(type) {
		case *syntax.ListExpr:
			list = e.List
		case *syntax.TupleExpr:
			list = e.List
		default:
			x.lookUp(right, left, false)
			return
		}
		for _, e := range list {
			x.equal(left, lang.PlainExpr(e))
		}
	}
}

// equal examines whether e can be equal to a literal.
func (x *comparer) equal(e, literal syntax.Expr) {
	l, ok := literal.(*syntax.Literal)
	if !ok {
		return
	}
	all := x.typesOf(e)
	if text, ok := l.Value.(string); ok && !isPortName(text) {
		all = withoutPortNames(all)
	}
	if differ(all, literalType(l)) {
		x.report(l.TokenPos, x.never(e, all, l))
	}
}

// lookUp examines whether a dict, or, for `in`, a list, can have a key.
func (x *comparer) lookUp(in, key syntax.Expr, inDict bool) {
	in, key = lang.PlainExpr(in), lang.PlainExpr(key)
	l, literal := key.(*syntax.Literal)
	dot, attribute := key.(*syntax.DotExpr)
	if !literal && !attribute {
		return
	}
	typ, keys, what := x.keysOf(in)
	switch {
	case keys == nil || inDict && typ != "dict":
	case literal && differ(keys, literalType(l)):
		hint := instead(keys[0], l)
		if typ != "dict" && hint != "" && (keys[0] == "node" || keys[0] == "port") {
			hint = "; compare their names"
		}
		x.report(l.TokenPos, fmt.Sprintf("%s %s, never %s%s", name(in), what, rawText(l), hint))
	case attribute:
		types := x.typesOf(dot)
		if types != nil && !slices.ContainsFunc(types, func(t string) bool { return !differ(keys, t) }) {
			x.report(dot.Dot, fmt.Sprintf("%s %s, never %s, which is %s%s", name(in), what, name(dot), article(types[0]), attributeOf(types[0], keys[0], name(dot))))
		}
	}
}

// typesOf returns the possible types of an expression; nil: unknown.
func (x *comparer) typesOf(e syntax.Expr) []string {
	if _, ok := e.(*syntax.Literal); ok {
		return nil
	}
	if typ := x.inference.Infer(e).TypeName(); typ != "" {
		return []string{typ}
	}
	if dot, ok := e.(*syntax.DotExpr); ok {
		return x.known.types()[dot.Name.Name]
	}
	return nil
}

// keysOf returns the type of an expression, the types of what `in` finds in it, and what it
// has in words.
func (x *comparer) keysOf(e syntax.Expr) (typ string, keys []string, what string) {
	shape := x.inference.Infer(e)
	if id, ok := e.(*syntax.Ident); ok && shape.TypeName() == "dict" {
		shape = x.dict(id, shape)
	}
	element := ""
	typ = shape.TypeName()
	switch {
	case typ == "ports":
		return typ, []string{"port", "int"}, "has ports and their numbers"
	case typ == "dict":
		element = shape.Key().TypeName()
	case typ == "list":
		element = x.elementOf(e, shape)
	case typ == "":
		dot, ok := e.(*syntax.DotExpr)
		if !ok || len(x.known.types()[dot.Name.Name]) != 1 {
			return "", nil, ""
		}
		if typ = x.known.types()[dot.Name.Name][0]; typ == "ports" {
			return typ, []string{"port", "int"}, "has ports and their numbers"
		}
		element, _ = strings.CutPrefix(typ, "list of ")
		if element == typ {
			return "", nil, ""
		}
	}
	if element == "" {
		return "", nil, ""
	}
	what = "has " + pluralType(element)
	if typ == "dict" {
		what += " as keys"
	}
	return typ, []string{element}, what
}

// elementOf returns the type of all elements of a list; empty: unknown.
func (x *comparer) elementOf(e syntax.Expr, shape Shape) string {
	if id, ok := e.(*syntax.Ident); ok && x.usesOf(id).other {
		return "" // it may get other elements
	}
	list, ok := shape.Value.(*starlark.List)
	if !ok {
		return shape.Element().TypeName()
	}
	if id, ok := e.(*syntax.Ident); ok && x.maybeChanged(id, list) {
		return ""
	}
	typ := ""
	for i := range list.Len() {
		t := list.Index(i).Type()
		if i == 0 {
			typ = t
		}
		if t != typ {
			return ""
		}
	}
	return typ
}

// rawText returns a literal as the script writes it, on one line.
func rawText(l *syntax.Literal) string { return lang.OneLine(fabric.Clip(l.Raw)) }

// differ reports whether no value of a type is equal to one of the others; types that are
// not known are like all.
func differ(types []string, typ string) bool {
	if len(types) == 0 || typ == "" {
		return false
	}
	for _, t := range types {
		if t == "" || t == "NoneType" || t == typ || number(t) && number(typ) {
			return false
		}
	}
	return true
}

func number(typ string) bool { return typ == "int" || typ == "float" }

// literalType returns the type of a literal.
func literalType(l *syntax.Literal) string {
	switch l.Token {
	case syntax.STRING:
		return "string"
	case syntax.BYTES:
		return "bytes"
	case syntax.INT:
		return "int"
	case syntax.FLOAT:
		return "float"
	}
	return ""
}

// never returns the message for an expression that is never equal to a literal.
func (x *comparer) never(e syntax.Expr, all []string, l *syntax.Literal) string {
	typ := all[0]
	for _, t := range all {
		if t != methodType {
			typ = t
			break
		}
	}
	if typ == methodType {
		return fmt.Sprintf("%s is a method, never %s; call it", name(e), rawText(l))
	}
	text := fmt.Sprintf("%s is %s, never %s", name(e), article(typ), rawText(l))
	if dot, ok := e.(*syntax.DotExpr); ok && typ == "string" {
		w, hasWords := x.wordsOf(dot)
		switch v, isInt := l.Value.(int64); {
		case hasWords:
			return text + "; its values are " + strings.Join(w.Words, ", ")
		case isInt && v > 0 && strings.HasSuffix(dot.Name.Name, "guid"):
			return text + "; write " + strconv.Quote(mad.GUID(v).String())
		}
	}
	if hint := attributeOf(typ, literalType(l), name(e)); hint != "" {
		return text + hint
	}
	return text + instead(typ, l)
}

// methodType is the type of methods.
const methodType = "builtin_function_or_method"

// attributeOf returns the hint to compare an attribute of a node or port.
func attributeOf(typ, with, of string) string {
	switch {
	case (typ == "node" || typ == "port") && with == "string":
		return "; compare " + of + ".name"
	case typ == "node" && with == "int":
		return "; compare " + of + ".lid"
	case typ == "port" && with == "int":
		return "; compare " + of + ".num"
	case typ == "link" && with == "string":
		return "; compare " + of + ".a.name and " + of + ".b.name"
	}
	return ""
}

// instead returns the hint to write a literal as a value of a type.
func instead(typ string, l *syntax.Literal) string {
	text, _ := l.Value.(string)
	switch typ {
	case "string":
		if l.Token == syntax.INT && l.Raw != "0" { // 0 stands for a key that is not set
			return "; write " + strconv.Quote(l.Raw)
		}
	case "int":
		if _, err := strconv.ParseInt(text, 0, 64); err == nil {
			return "; write " + text
		}
	case "node", "port":
		if l.Token == syntax.STRING {
			return "; use the " + typ + " itself, or names as keys"
		}
	}
	return ""
}

// article returns the name of a type with its article, for messages.
func article(typ string) string {
	switch {
	case strings.HasPrefix(typ, "list of "):
		return "a list"
	case strings.ContainsRune("aeiou", rune(typ[0])):
		return "an " + typ
	}
	return "a " + typ
}

// pluralType returns the name of a type for several of its values.
func pluralType(typ string) string {
	if strings.HasSuffix(typ, "ch") || strings.HasSuffix(typ, "s") {
		return typ + "es"
	}
	return typ + "s"
}

// name returns a name or attribute as the script writes it, if that is short.
func name(e syntax.Expr) string {
	switch e := lang.PlainExpr(e).(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.DotExpr:
		if of := name(e.X); !strings.ContainsRune(of, ' ') {
			return of + "." + e.Name.Name
		}
		return "." + e.Name.Name
	case *syntax.IndexExpr:
		if of := name(e.X); !strings.ContainsRune(of, ' ') {
			return of + "[...]"
		}
	case *syntax.DictExpr:
		return "the dict"
	case *syntax.CallExpr:
		if of := name(e.Fn); !strings.ContainsRune(of, ' ') {
			return of + "(...)"
		}
	}
	return "the value"
}
