// Package check finds errors of a script from its text and the declarations, without running
// it.
//
//	check.go       the script; call.go: the arguments of its calls
//	comparison.go  comparisons that are never true; dict.go: the keys of dicts;
//	               portname.go: names of ports in place of ports
//	definition.go  the definitions of its variables
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

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// maxProblems is how many problems of a script are reported, and maxSuggestions for how many
// of them similar names are searched: either takes a second in a script of a megabyte.
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

// Source is Script for a text, whose modules are read where the session may read. The error is
// the cause of ctx if that ends before the check.
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

// mayHave is hasAttr for a known type. It searches all declarations once for each name.
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
