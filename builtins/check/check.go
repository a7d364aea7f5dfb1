// Package check reads the text of scripts without running it: it finds errors, proposes
// completions, explains errors, and knows the declarations of all types of values.
//
// [Script] and [Source] return the problems of a script; [Comparisons] finds comparisons that
// always have the same result. A [Completer] proposes completions at the cursor, for the prompt and
// for editors. An [Explainer] renders errors for people, with a hint for habits of other languages
// and tools ([Tools]). [Types] describes the types of values; an [Inference] infers the [Shape] of an
// expression from these declarations.
//
// Functions that take only names or texts are safe for concurrent use. A Completer, an Explainer and
// an Inference are used by one goroutine at a time, and checks use the interpreter that they are
// given.
package check

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// maxProblems is the largest number of problems of a script that are reported, and maxSuggestions
// the largest number of problems for which similar names are searched: either takes a second in a
// script of a megabyte.
const (
	maxProblems    = 1000
	maxSuggestions = 100
)

// Problem is an error in a script, with its position.
type Problem struct {
	Pos  syntax.Position
	Text string
}

func (p Problem) String() string { return PositionText(p.Pos) + ": " + p.Text }

// Script returns the errors of a script that its text and the declarations show, in the order
// of lines, without running it.
func Script(ctx context.Context, in *script.Interpreter, path, src string) ([]Problem, error) {
	if err := in.Runtime.Files.Confine(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return Source(ctx, in, path, src)
}

// Source returns the errors of a text like Script; its modules are read where the session may
// read. The error is the cause of ctx if that ends before the check.
func Source(ctx context.Context, in *script.Interpreter, path, src string) ([]Problem, error) {
	in.Sources[path] = src
	c := newChecker(in)
	c.ctx = ctx
	if err := lang.PlainText(path, 1, src); err != nil {
		return c.syntax(err), nil
	}
	file, err := lang.Dialect.Parse(path, src, 0)
	if err != nil {
		return c.syntax(err), nil
	}
	// The fabric of the run is unknown, so sim may exist.
	err = resolve.File(file, func(name string) bool { return name == script.SimParam || in.Globals.Has(name) }, starlark.Universe.Has)
	var undefined resolve.ErrorList
	if errors.As(err, &undefined) {
		spelling := Explainer{Globals: in.Globals, Defined: sync.OnceValue(func() []string { return boundNames(path, src) })}
		for i, e := range undefined {
			if c.ended() {
				break
			}
			if i < maxSuggestions {
				e.Msg = spelling.Spell(path, e.Msg)
			}
			c.report(e.Pos, "%s", e.Msg)
		}
	}
	syntax.Walk(file, c.define)
	for _, w := range c.comparisons(file, NewAttributes()) {
		if c.ended() {
			break
		}
		c.report(w.Pos, "%s", w.Text)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c.ended() {
			return false
		}
		switch n := n.(type) {
		case *syntax.LoadStmt:
			c.load(ctx, path, n)
		case *syntax.DotExpr:
			c.attribute(n)
		case *syntax.CallExpr:
			c.call(n)
		case *syntax.BinaryExpr:
			c.sum(n)
		}
		return true
	})
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		if a.Pos.Line != b.Pos.Line {
			return int(a.Pos.Line - b.Pos.Line)
		}
		return int(a.Pos.Col - b.Pos.Col)
	})
	found := slices.Compact(c.problems)
	if len(c.problems) >= maxProblems {
		found = append(found, Problem{found[len(found)-1].Pos, fmt.Sprintf("%s or more; others are not reported", plural.Count(maxProblems, "problem", "problems"))})
	}
	return found, context.Cause(ctx)
}

// newChecker returns the check of a script.
func newChecker(in *script.Interpreter) *checker {
	c := &checker{ctx: context.Background(), scripts: in, globals: in.Globals, definitions: map[*syntax.Ident][]definition{}, grown: map[*syntax.Ident]bool{}, active: map[*syntax.Ident]bool{}, known: map[[2]string]bool{}}
	c.inference = Inference{Value: c.value, Variable: c.variable, Certain: true}
	return c
}

// ended reports whether the check ends early.
func (c *checker) ended() bool { return len(c.problems) >= maxProblems || c.ctx.Err() != nil }

// checker is one check of a script.
type checker struct {
	ctx         context.Context
	scripts     *script.Interpreter
	globals     starlark.StringDict // names that the script does not define
	inference   Inference
	definitions map[*syntax.Ident][]definition // by a variable's first place
	grown       map[*syntax.Ident]bool         // variables whose elements change
	active      map[*syntax.Ident]bool         // variables that are being inferred
	known       map[[2]string]bool             // whether a type has an attribute
	problems    []Problem
}

// report adds a problem.
func (c *checker) report(pos syntax.Position, format string, args ...any) {
	c.problems = append(c.problems, Problem{pos, fmt.Sprintf(format, args...)})
}

// syntax reports the errors of a script that cannot be parsed.
func (c *checker) syntax(err error) []Problem {
	var se syntax.Error
	if errors.As(err, &se) {
		se = lang.AtLineEnd(se, c.scripts.Sources[se.Pos.Filename()])
		c.report(se.Pos, "syntax error: %s", strings.TrimPrefix(se.Msg, "syntax error: "))
	}
	return c.problems
}

// load checks that a module exists, and defines the loaded names.
func (c *checker) load(ctx context.Context, path string, n *syntax.LoadStmt) {
	name := n.ModuleName()
	key, src, err := c.scripts.Find(ctx, path, name)
	if err != nil {
		c.report(n.Module.TokenPos, "cannot load %s: %v", name, err)
		return
	}
	exports := c.scripts.ExportsOf(key, src)
	if exports == nil {
		c.report(n.Module.TokenPos, "cannot load %s: the module has errors, or defines no names", name)
		return
	}
	for _, from := range n.From {
		if !slices.Contains(exports, from.Name) {
			c.report(from.NamePos, "%s has no %s%s", name, from.Name, fabric.DidYouMean(from.Name, exports))
		}
	}
}

// attribute checks that the values of an expression's type have an attribute.
func (c *checker) attribute(n *syntax.DotExpr) {
	of, name := c.inference.Infer(n.X), n.Name.Name
	typ := of.Type
	switch {
	case of.Value != nil:
		typ = of.Value.Type()
		if slices.Contains(of.Attributes(), name) {
			return
		}
		if _, ok := of.Value.(starlark.HasAttrs); !ok && of.Value.Type() != "builtin_function_or_method" {
			return
		}
	case of.IsList():
		typ = "list"
		fallthrough
	default:
		if c.mayHave(typ, name) {
			return
		}
	}
	if m, ok := of.Value.(*starlarkstruct.Module); ok {
		typ = m.Name
	} else if all := records.AttributesNamed(typ); len(all) > 0 {
		typ = Example(all[0]).Type()
	}
	c.report(n.Name.NamePos, "%s has no .%s field or method%s", typ, name, strings.Replace(fabric.DidYouMean(name, of.Attributes()), "did you mean ", "did you mean .", 1))
}

// mayHave reports like hasAttr, and true for unknown types. It searches all declarations once for
// each name.
func (c *checker) mayHave(typ, name string) bool {
	key := [2]string{typ, name}
	has, ok := c.known[key]
	if !ok {
		has = len(AttrNames(typ)) == 0 || hasAttr(typ, name)
		c.known[key] = has
	}
	return has
}

// value returns the value of a predeclared name.
func (c *checker) value(e syntax.Expr) starlark.Value {
	id, ok := e.(*syntax.Ident)
	if !ok {
		return nil
	}
	b, ok := id.Binding.(*resolve.Binding)
	switch {
	case !ok:
		return nil
	case b.Scope == resolve.Universal:
		return starlark.Universe[id.Name]
	case b.Scope == resolve.Predeclared:
		return c.globals[id.Name]
	}
	return nil
}

// variable returns the description of a variable, if all its definitions agree.
func (c *checker) variable(id *syntax.Ident) Shape {
	first := firstOf(id)
	if first == nil && id.Name == script.SimParam {
		return OfType(topology.SimType.Name)
	}
	all := c.definitions[first]
	if len(all) == 0 || c.active[first] || c.ctx.Err() != nil {
		return Shape{}
	}
	c.active[first] = true
	defer delete(c.active, first)
	shape := c.defined(all[0])
	for _, d := range all[1:] {
		if c.ctx.Err() != nil {
			return Shape{}
		}
		shape = c.inference.Either(shape, c.defined(d))
	}
	if c.grown[first] && (shape.IsList()) {
		return OfType("list")
	}
	return shape
}

// defined returns the description of the value of one definition.
func (c *checker) defined(d definition) Shape {
	shape := OfType(d.typ)
	if d.from != nil {
		shape = c.inference.Infer(d.from)
	}
	if d.element {
		shape = shape.Element()
	}
	return shape
}

// call checks the arguments of a call of a known function.
func (c *checker) call(n *syntax.CallExpr) {
	name, params := c.callee(n.Fn)
	if params == nil {
		return
	}
	given, positional, open := map[string]bool{}, 0, false
	for i, arg := range n.Args {
		switch arg := arg.(type) {
		case *syntax.UnaryExpr:
			if arg.Op == syntax.STAR || arg.Op == syntax.STARSTAR {
				open = true
				continue
			}
		case *syntax.BinaryExpr:
			if arg.Op == syntax.EQ {
				id := arg.X.(*syntax.Ident)
				given[id.Name] = true
				c.keyword(n, name, params, id)
				if i := slices.IndexFunc(params, func(p lang.Param) bool { return p.Name == id.Name }); i >= 0 {
					c.choice(name, params[i], arg.Y)
				}
				continue
			}
		}
		if i < len(params) {
			c.attributeName(params[i], arg)
			c.choice(name, params[i], arg)
		}
		positional++
	}
	if open {
		return
	}
	takes := 0
	for _, p := range params {
		switch {
		case strings.HasPrefix(p.Name, "**"):
		case strings.HasPrefix(p.Name, "*"):
			takes = len(n.Args)
		case p.Keyword:
		default:
			if takes++; takes <= positional {
				continue
			}
		}
		if p.Default == "" && !strings.HasPrefix(p.Name, "*") && !given[p.Name] {
			c.report(n.Lparen, "%s: missing argument for %s", name, p.Name)
		}
	}
	if positional > takes {
		c.report(n.Lparen, "%s: got %s, want at most %d", name, plural.Count(positional, "argument", "arguments"), takes)
	}
}

// keyword checks that a function takes an argument by the name id.
func (c *checker) keyword(n *syntax.CallExpr, callee string, params []lang.Param, id *syntax.Ident) {
	var names []string
	for i, p := range params {
		switch {
		case p.Name == id.Name:
			return
		case p.Kind == records.KindFields:
			a := mad.ByName(textArgument(n, 0, params[0].Name))
			if a == nil || i == 0 || !ofOneClass(params[0].Kind) || params[0].Default != "" || len(a.Variants) > 0 || a.Field(id.Name) != nil || records.CodeField(a, id.Name) != nil {
				return
			}
			for _, f := range a.Flat() {
				names = append(names, f.Script)
			}
		case strings.HasPrefix(p.Name, "**"):
			return
		case !strings.HasPrefix(p.Name, "*"):
			names = append(names, p.Name)
		}
	}
	c.report(id.NamePos, "%s: unexpected keyword argument %s%s", callee, id.Name, fabric.DidYouMean(id.Name, names))
}

// ofOneClass reports whether the parameter takes the name of an attribute, and no other
// arguments than its fields. Requests of other classes have raw answers, too, and parts of
// their modifiers.
func ofOneClass(k *lang.Kind) bool {
	return k == records.KindSMPAttribute || k == records.KindPerfAttribute || k == records.KindRecord
}

// attributeName checks that a text names an attribute, if a parameter takes one.
func (c *checker) attributeName(p lang.Param, arg syntax.Expr) {
	l, ok := arg.(*syntax.Literal)
	if !ok || !ofOneClass(p.Kind) {
		return
	}
	if name, ok := l.Value.(string); ok && mad.ByName(name) == nil {
		c.report(l.TokenPos, "unknown attribute %q%s", name, fabric.DidYouMean(name, datagrams.AllAttributeNames()))
	}
}

// choice checks that a text is one of the words of a parameter that takes a word of a list.
func (c *checker) choice(callee string, p lang.Param, arg syntax.Expr) {
	l, ok := arg.(*syntax.Literal)
	if !ok || p.Kind != lang.KindChoice {
		return
	}
	words := quotedWords(p.Doc)
	if word, ok := l.Value.(string); ok && len(words) > 0 && !slices.Contains(words, word) {
		c.report(l.TokenPos, "%s: %s is never %q%s", callee, p.Name, word, fabric.DidYouMean(word, words))
	}
}

// sum checks that values of two types can be added.
func (c *checker) sum(b *syntax.BinaryExpr) {
	if b.Op != syntax.PLUS {
		return
	}
	x, y := c.plainType(b.X), c.plainType(b.Y)
	if x == "" || y == "" || x == y || isNumeric(x) && isNumeric(y) {
		return
	}
	c.report(b.OpPos, "%s and %s cannot be added; str() makes a string", x, y)
}

// plainType returns the type of a text or a number; "": the value is another, or unknown.
func (c *checker) plainType(e syntax.Expr) string {
	typ := ""
	if l, ok := e.(*syntax.Literal); ok {
		typ = literalType(l)
	} else {
		typ = c.inference.Infer(e).TypeName()
	}
	if typ == "string" || isNumeric(typ) {
		return typ
	}
	return ""
}

// callee returns the name and the parameters of a function that is called, nil if unknown.
func (c *checker) callee(fn syntax.Expr) (string, []lang.Param) {
	shape := c.inference.Infer(fn)
	if f, ok := shape.Value.(*lang.Function); ok {
		return f.Name(), f.Params
	}
	if shape.Call != nil {
		return shape.Call.Name, shape.Call.Params
	}
	id, ok := fn.(*syntax.Ident)
	if !ok {
		return "", nil
	}
	if all := c.definitions[firstOf(id)]; len(all) == 1 && all[0].fn != nil {
		return id.Name, DefParams(all[0].fn)
	}
	return "", nil
}

// definition is a place where a variable gets a value. The zero value means any value.
type definition struct {
	from    syntax.Expr
	element bool            // an element of from, instead of from itself
	fn      *syntax.DefStmt // a function
	typ     string          // the type of a parameter that fabsh passes
}

// firstOf returns the first place of a variable in the script, nil for other names.
func firstOf(id *syntax.Ident) *syntax.Ident {
	if b, ok := id.Binding.(*resolve.Binding); ok {
		return b.First
	}
	return nil
}

// define records the definitions in a part of a script.
func (c *checker) define(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.AssignStmt:
		if n.Op == syntax.EQ {
			c.assign(n.LHS, definition{from: n.RHS})
		} else {
			c.assign(n.LHS, definition{})
		}
	case *syntax.ForStmt:
		c.iterate(n.Vars, n.X)
	case *syntax.ForClause:
		c.iterate(n.Vars, n.X)
	case *syntax.DefStmt:
		c.assign(n.Name, definition{fn: n})
		for i, p := range n.Params {
			c.parameter(p, givenType(n.Name.Name, i, p))
		}
	case *syntax.LambdaExpr:
		for _, p := range n.Params {
			c.parameter(p, "")
		}
	case *syntax.LoadStmt:
		for _, id := range n.To {
			c.assign(id, definition{})
		}
	case *syntax.CallExpr:
		if dot, ok := n.Fn.(*syntax.DotExpr); ok && slices.Contains([]string{"append", "extend", "insert"}, dot.Name.Name) {
			c.grows(dot.X)
		}
	}
	return true
}

// assign records that an expression gets a value.
func (c *checker) assign(to syntax.Expr, d definition) {
	switch to := to.(type) {
	case *syntax.Ident:
		if first := firstOf(to); first != nil {
			c.definitions[first] = append(c.definitions[first], d)
		}
	case *syntax.ParenExpr:
		c.assign(to.X, d)
	case *syntax.TupleExpr:
		for _, x := range to.List {
			c.assign(x, definition{})
		}
	case *syntax.ListExpr:
		for _, x := range to.List {
			c.assign(x, definition{})
		}
	case *syntax.IndexExpr:
		c.grows(to.X)
	}
}

// iterate records the variables of a loop.
func (c *checker) iterate(vars, over syntax.Expr) {
	pair, ok := vars.(*syntax.TupleExpr)
	if call, isCall := over.(*syntax.CallExpr); ok && isCall && len(pair.List) == 2 && len(call.Args) > 0 {
		if fn, ok := call.Fn.(*syntax.Ident); ok && fn.Name == "enumerate" {
			c.assign(pair.List[0], definition{})
			c.assign(pair.List[1], definition{from: call.Args[0], element: true})
			return
		}
	}
	c.assign(vars, definition{from: over, element: true})
}

// parameter records a parameter of a function.
func (c *checker) parameter(p syntax.Expr, typ string) {
	switch p := p.(type) {
	case *syntax.Ident:
		c.assign(p, definition{typ: typ})
	case *syntax.BinaryExpr:
		c.assign(p.X, definition{typ: typ})
	case *syntax.UnaryExpr:
		if p.X != nil {
			c.assign(p.X, definition{})
		}
	}
}

// givenType returns the type of a parameter that fabsh passes to a function.
func givenType(fn string, i int, p syntax.Expr) string {
	switch p := p.(type) {
	case *syntax.Ident:
		return script.ParamType(fn, i, p.Name)
	case *syntax.BinaryExpr:
		return script.ParamType(fn, i, p.X.(*syntax.Ident).Name)
	}
	return ""
}

// grows records that a variable may get elements of any type.
func (c *checker) grows(e syntax.Expr) {
	if id, ok := e.(*syntax.Ident); ok {
		if first := firstOf(id); first != nil {
			c.grown[first] = true
		}
	}
}

// DefParams returns the parameters of a script's own function.
func DefParams(fn *syntax.DefStmt) []lang.Param {
	params := []lang.Param{} // not nil: known
	keyword := false
	for _, p := range fn.Params {
		switch p := p.(type) {
		case *syntax.Ident:
			params = append(params, lang.Param{Name: p.Name, Keyword: keyword})
		case *syntax.BinaryExpr:
			params = append(params, lang.Param{Name: p.X.(*syntax.Ident).Name, Default: "...", Keyword: keyword})
		case *syntax.UnaryExpr:
			keyword = true
			if id, ok := p.X.(*syntax.Ident); ok {
				params = append(params, lang.Param{Name: p.Op.String() + id.Name})
			}
		}
	}
	return params
}
