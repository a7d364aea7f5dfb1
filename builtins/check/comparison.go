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

// Attributes has the possible values of attributes: by their names alone, and words also by the
// type that has them.
type Attributes struct {
	words  func() map[string]lang.FieldWords
	ofType func() map[[2]string]lang.FieldWords
	types  func() map[string][]string
}

// NewAttributes returns the attributes of all declared types. The tables are made when they are first
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

// comparisons implements Comparisons for a checker that has recorded the definitions.
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
	// foreign reports that the script may run code that is not written in it.
	foreign bool
	found   []lang.WrongWord
}

// report adds a finding, one for each position.
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
	case syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		x.ordered(b.OpPos, left, right)
		x.ordered(b.OpPos, right, left)
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

// ordered examines a comparison of an attribute that is a word of a fixed list: words have the order of
// the alphabet. Speeds and widths are wrong also beside what is not a literal, such as an option of an
// audit: "qdr" is above "hdr".
func (x *comparer) ordered(op syntax.Position, e, other syntax.Expr) {
	dot, ok := e.(*syntax.DotExpr)
	if !ok {
		return
	}
	words, ok := x.wordsOf(dot)
	if !ok {
		return
	}
	hint, at := "", op
	if slices.Contains(mad.Speeds(), words.Words[0]) || slices.Contains(mad.Widths(), words.Words[0]) {
		hint = "; compare gbps, a number: " + exprText(dot.X) + ".gbps"
	}
	if l, isLiteral := other.(*syntax.Literal); isLiteral {
		at = l.TokenPos
		if text, _ := l.Value.(string); !slices.Contains(words.Words, text) {
			return
		}
	} else if hint == "" {
		return
	}
	x.report(at, fmt.Sprintf("%s is a word, and words are compared by the alphabet%s", exprText(dot), hint))
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
	if neverEqual(all, literalType(l)) {
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
	case literal && neverEqual(keys, literalType(l)):
		hint := literalHint(keys[0], l)
		if typ != "dict" && hint != "" && (keys[0] == "node" || keys[0] == "port") {
			hint = "; compare their names"
		}
		x.report(l.TokenPos, fmt.Sprintf("%s %s, never %s%s", exprText(in), what, rawText(l), hint))
	case attribute:
		types := x.typesOf(dot)
		if types != nil && !slices.ContainsFunc(types, func(t string) bool { return !neverEqual(keys, t) }) {
			x.report(dot.Dot, fmt.Sprintf("%s %s, never %s, which is %s%s", exprText(in), what, exprText(dot), article(types[0]), attributeOf(types[0], keys[0], exprText(dot))))
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

// keysOf returns the type of an expression, the types of the elements that `in` searches, and these
// elements in words.
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

// neverEqual reports whether no value of a type is equal to a value of one of the others. Unknown
// types may be equal to any.
func neverEqual(types []string, typ string) bool {
	if len(types) == 0 || typ == "" {
		return false
	}
	for _, t := range types {
		if t == "" || t == "NoneType" || t == typ || isNumeric(t) && isNumeric(typ) {
			return false
		}
	}
	return true
}

// isNumeric reports whether a type is a type of numbers.
func isNumeric(typ string) bool { return typ == "int" || typ == "float" }

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
		return fmt.Sprintf("%s is a method, never %s; call it", exprText(e), rawText(l))
	}
	text := fmt.Sprintf("%s is %s, never %s", exprText(e), article(typ), rawText(l))
	if dot, ok := e.(*syntax.DotExpr); ok && typ == "string" {
		w, hasWords := x.wordsOf(dot)
		switch v, isInt := l.Value.(int64); {
		case hasWords:
			return text + "; its values are " + strings.Join(w.Words, ", ")
		case isInt && v > 0 && strings.HasSuffix(dot.Name.Name, "guid"):
			return text + "; write " + strconv.Quote(mad.GUID(v).String())
		}
	}
	if hint := attributeOf(typ, literalType(l), exprText(e)); hint != "" {
		return text + hint
	}
	return text + literalHint(typ, l)
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

// literalHint returns the hint to write a literal as a value of a type.
func literalHint(typ string, l *syntax.Literal) string {
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

// exprText returns a name or attribute as the script writes it, if that is short.
func exprText(e syntax.Expr) string {
	switch e := lang.PlainExpr(e).(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.DotExpr:
		if of := exprText(e.X); !strings.ContainsRune(of, ' ') {
			return of + "." + e.Name.Name
		}
		return "." + e.Name.Name
	case *syntax.IndexExpr:
		if of := exprText(e.X); !strings.ContainsRune(of, ' ') {
			return of + "[...]"
		}
	case *syntax.DictExpr:
		return "the dict"
	case *syntax.CallExpr:
		if of := exprText(e.Fn); !strings.ContainsRune(of, ' ') {
			return of + "(...)"
		}
	}
	return "the value"
}

// dict returns the shape of a variable that is a dict, with the type of its keys if all are
// known: the keys of its definitions, and of assignments to its entries. If the dict is used in
// another way, other code may add keys.
func (x *comparer) dict(id *syntax.Ident, shape Shape) Shape {
	uses := x.usesOf(id)
	if uses.other {
		return shape.WithKey(Shape{})
	}
	var keys []string
	if d, ok := shape.Value.(*starlark.Dict); ok {
		if x.maybeChanged(id, d) {
			return OfType("dict")
		}
		const most = 1000 // keys of which the type is read
		for i, k := range d.Keys() {
			if i == most {
				return OfType("dict")
			}
			keys = append(keys, k.Type())
		}
	} else {
		for _, d := range x.definitions[firstOf(id)] {
			if e, ok := d.from.(*syntax.DictExpr); ok && len(e.List) == 0 {
				continue
			}
			keys = append(keys, x.defined(d).Key().TypeName())
		}
	}
	for _, k := range uses.keys {
		keys = append(keys, x.inference.Infer(k).TypeName())
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 1 || keys[0] == "" {
		return OfType("dict")
	}
	return OfType("dict").WithKey(OfType(keys[0]))
}

// dictUses has the uses of a dict in a script.
type dictUses struct {
	keys  []syntax.Expr // that it assigns to
	other bool          // in a way that may add keys
}

// maybeChanged reports whether other code may change v, the dict or list of an earlier
// statement, before this one uses it: a function, or an assignment through another name.
func (x *comparer) maybeChanged(id *syntax.Ident, v starlark.Value) bool {
	x.usesOf(id) // collects the uses of all names
	for name, u := range x.uses {
		if name != id.Name && (u.other || u.keys != nil) && x.globals[name] == v {
			return true
		}
	}
	return x.foreign
}

// runsForeign reports whether a part of a statement runs code that is not written in it, or
// runs later.
func (x *comparer) runsForeign(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.DefStmt, *syntax.LambdaExpr:
		return true
	case *syntax.Ident:
		_, ok := x.value(n).(*starlark.Function) // called, or passed to a function that calls it
		return ok
	case *syntax.CallExpr:
		switch fn := n.Fn.(type) {
		case *syntax.Ident:
			return !x.isBuiltin(fn)
		case *syntax.DotExpr:
			typ := x.inference.Infer(fn.X).TypeName()
			return !slices.Contains(readMethods, fn.Name.Name) && (typ == "" || typ == "module" || typ == "struct")
		}
		return true
	}
	return false
}

// isBuiltin reports whether a name is a function that is not written in Starlark.
func (x *comparer) isBuiltin(id *syntax.Ident) bool {
	switch x.value(id).(type) {
	case nil, *starlark.Function:
		return false
	}
	return true
}

// readMethods are the methods of dicts that add no keys.
var readMethods = []string{"get", "items", "keys", "values", "pop", "popitem", "clear"}

// usesOf returns the uses of a variable by its name. A variable of the same name elsewhere
// counts too.
func (x *comparer) usesOf(id *syntax.Ident) *dictUses {
	if x.uses == nil {
		x.uses = map[string]*dictUses{}
		x.collectUses()
	}
	if u := x.uses[id.Name]; u != nil {
		return u
	}
	return new(dictUses)
}

// collectUses finds the uses of all variables.
func (x *comparer) collectUses() {
	var path []syntax.Node
	use := func(id *syntax.Ident) *dictUses {
		if x.uses[id.Name] == nil {
			x.uses[id.Name] = new(dictUses)
		}
		return x.uses[id.Name]
	}
	syntax.Walk(x.file, func(n syntax.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		x.foreign = x.foreign || x.runsForeign(n)
		if id, ok := n.(*syntax.Ident); ok && len(path) > 0 {
			var outer syntax.Node
			if len(path) > 1 {
				outer = path[len(path)-2]
			}
			switch parent := path[len(path)-1].(type) {
			case *syntax.IndexExpr:
				if a, ok := outer.(*syntax.AssignStmt); ok && parent.X == syntax.Expr(id) && a.LHS == syntax.Expr(parent) {
					use(id).keys = append(use(id).keys, parent.Y)
				}
			case *syntax.DotExpr:
				if parent.X == syntax.Expr(id) && !slices.Contains(readMethods, parent.Name.Name) {
					use(id).other = true
				}
			case *syntax.AssignStmt:
				if parent.LHS != syntax.Expr(id) || parent.Op != syntax.EQ {
					use(id).other = true
				}
			case *syntax.CallExpr:
				fn, ok := parent.Fn.(*syntax.Ident)
				if parent.Fn != syntax.Expr(id) && (!ok || !x.isBuiltin(fn)) {
					use(id).other = true
				}
			case *syntax.BinaryExpr:
				if parent.Op != syntax.IN && parent.Op != syntax.NOT_IN {
					use(id).other = true
				}
			case *syntax.CondExpr:
				if parent.Cond != syntax.Expr(id) {
					use(id).other = true
				}
			case *syntax.ForStmt, *syntax.ForClause, *syntax.ExprStmt, *syntax.IfStmt, *syntax.IfClause, *syntax.UnaryExpr:
			default:
				use(id).other = true
			}
		}
		path = append(path, n)
		return true
	})
}

// withoutPortNames returns types without string, where it stands for the name of a port: an
// attribute that is a port or link in one type is the name of a port in the others, such as
// peer of port and of link_failure.
func withoutPortNames(types []string) []string {
	if !slices.Contains(types, "port") && !slices.Contains(types, "link") {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "string" })
}

// isPortName reports whether text can be the name of a port: NAME/NUMBER.
func isPortName(text string) bool {
	i := strings.LastIndexByte(text, '/')
	_, err := strconv.ParseUint(text[i+1:], 10, 8)
	return i >= 0 && err == nil
}
