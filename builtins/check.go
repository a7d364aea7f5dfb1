package builtins

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// Problem is what is wrong with a script, and where.
type Problem struct {
	Pos  syntax.Position
	Text string
}

func (p Problem) String() string { return position(p.Pos) + ": " + p.Text }

// Check finds what is wrong with a script as far as its text and declarations
// tell, in the order of its lines. It runs nothing.
func (s *Session) Check(ctx context.Context, path, src string) ([]Problem, error) {
	s.sources[path] = src
	if err := s.Files.Confine(filepath.Dir(path)); err != nil {
		return nil, err
	}
	c := &checker{session: s, definitions: map[*syntax.Ident][]definition{}, grown: map[*syntax.Ident]bool{}, active: map[*syntax.Ident]bool{}, known: map[[2]string]bool{}}
	c.in = Inference{Value: c.value, Variable: c.variable, Certain: true}
	if err := lang.PlainText(path, 1, src); err != nil {
		return c.syntax(err), nil
	}
	file, err := lang.Dialect.Parse(path, src, 0)
	if err != nil {
		return c.syntax(err), nil
	}
	// Which fabric it will run on is not known, so sim may be there.
	err = resolve.File(file, func(name string) bool { return name == simParam || s.predeclared.Has(name) }, starlark.Universe.Has)
	var undefined resolve.ErrorList
	if errors.As(err, &undefined) {
		for _, e := range undefined {
			c.report(e.Pos, "%s", s.spell(path, e.Msg))
		}
	}
	for _, w := range lang.WrongWords(file, s.FieldWords, fabric.DidYouMean) {
		c.report(w.Pos, "%s", w.Text)
	}
	syntax.Walk(file, c.define)
	syntax.Walk(file, func(n syntax.Node) bool {
		if ctx.Err() != nil {
			return false
		}
		switch n := n.(type) {
		case *syntax.LoadStmt:
			c.load(ctx, path, n)
		case *syntax.DotExpr:
			c.attribute(n)
		case *syntax.CallExpr:
			c.call(n)
		}
		return true
	})
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		if a.Pos.Line != b.Pos.Line {
			return int(a.Pos.Line - b.Pos.Line)
		}
		return int(a.Pos.Col - b.Pos.Col)
	})
	return slices.Compact(c.problems), context.Cause(ctx)
}

// checker is one check of a script.
type checker struct {
	session     *Session
	in          Inference
	definitions map[*syntax.Ident][]definition // by a variable's first place
	grown       map[*syntax.Ident]bool         // variables whose elements change
	active      map[*syntax.Ident]bool         // variables that are being inferred
	known       map[[2]string]bool             // whether a type has an attribute
	problems    []Problem
}

func (c *checker) report(pos syntax.Position, format string, args ...any) {
	c.problems = append(c.problems, Problem{pos, fmt.Sprintf(format, args...)})
}

// syntax is what is wrong with a script that cannot be parsed.
func (c *checker) syntax(err error) []Problem {
	var se syntax.Error
	if errors.As(err, &se) {
		c.report(se.Pos, "syntax error: %s", strings.TrimPrefix(se.Msg, "syntax error: "))
	}
	return c.problems
}

// load checks that a module is there, and defines what is loaded.
func (c *checker) load(ctx context.Context, path string, n *syntax.LoadStmt) {
	name := n.ModuleName()
	key, src, err := c.session.findModule(ctx, path, name)
	if err != nil {
		c.report(n.Module.TokenPos, "cannot load %s: %v", name, err)
		return
	}
	exports := c.session.exportsOf(key, src)
	if exports == nil {
		c.report(n.Module.TokenPos, "cannot load %s: it has errors, or defines nothing", name)
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
	of, name := c.in.Infer(n.X), n.Name.Name
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
	case of.elem != nil || strings.HasPrefix(typ, "list of "):
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
		typ = example(all[0]).Type()
	}
	c.report(n.Name.NamePos, "%s has no .%s field or method%s", typ, name, strings.Replace(fabric.DidYouMean(name, of.Attributes()), "did you mean ", "did you mean .", 1))
}

// mayHave is hasAttr of a type that is known. It looks through all declarations, once
// for each name.
func (c *checker) mayHave(typ, name string) bool {
	key := [2]string{typ, name}
	has, ok := c.known[key]
	if !ok {
		has = len(AttrNames(typ)) == 0 || hasAttr(typ, name)
		c.known[key] = has
	}
	return has
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
				continue
			}
		}
		if i < len(params) {
			c.attributeName(params[i], arg)
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
		c.report(n.Lparen, "%s: got %s, want at most %d", name, lang.Count(positional, "argument"), takes)
	}
}

// keyword checks that a function takes an argument by that name.
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

// ofOneClass: the parameter takes the name of an attribute, and its fields are all
// that may be named beside it. Requests of other classes have raw answers, too, and
// parts of their modifiers.
func ofOneClass(k *lang.Kind) bool {
	return k == records.KindSMPAttribute || k == records.KindPerfAttribute || k == records.KindRecord
}

// attributeName checks that a text names an attribute, where a parameter wants one.
func (c *checker) attributeName(p lang.Param, arg syntax.Expr) {
	l, ok := arg.(*syntax.Literal)
	if !ok || !ofOneClass(p.Kind) {
		return
	}
	if name, ok := l.Value.(string); ok && mad.ByName(name) == nil {
		c.report(l.TokenPos, "no attribute is named %q%s", name, fabric.DidYouMean(name, datagrams.AllAttributeNames()))
	}
}

// callee is the name and the parameters of a function that is called; nil: they
// are not known.
func (c *checker) callee(fn syntax.Expr) (string, []lang.Param) {
	shape := c.in.Infer(fn)
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
		return id.Name, paramsOf(all[0].fn)
	}
	return "", nil
}

// value is the value of a name that every script finds.
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
		return c.session.predeclared[id.Name]
	}
	return nil
}

// variable is what is known of what a script defines, wherever it does alike.
func (c *checker) variable(id *syntax.Ident) Shape {
	first := firstOf(id)
	if first == nil && id.Name == simParam {
		return ofType(topology.SimType.Name)
	}
	all := c.definitions[first]
	if len(all) == 0 || c.active[first] {
		return Shape{}
	}
	c.active[first] = true
	defer delete(c.active, first)
	shape := c.defined(all[0])
	for _, d := range all[1:] {
		shape = c.in.either(shape, c.defined(d))
	}
	if c.grown[first] && (shape.elem != nil || strings.HasPrefix(shape.Type, "list of ")) {
		return ofType("list")
	}
	return shape
}

// defined is what is known of what a variable gets in one place.
func (c *checker) defined(d definition) Shape {
	shape := ofType(d.typ)
	if d.from != nil {
		shape = c.in.Infer(d.from)
	}
	if d.element {
		shape = shape.Element()
	}
	return shape
}
