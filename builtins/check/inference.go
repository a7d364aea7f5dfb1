package check

import (
	"math/big"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// Shape is the value of an expression, or the declared name of its type, if it is known without
// running anything. The zero value means that nothing is known.
type Shape struct {
	Value starlark.Value
	Type  string // "node", "list of node"
	Call  *lang.Builtin
	elem  *Shape // shape of the elements of a list, if known
	key   *Shape // shape of the keys of a dict, if known
}

// Inference infers shapes of expressions from the shapes of the names in them.
type Inference struct {
	// Value returns the value of an expression that is known without running it, else nil.
	Value func(syntax.Expr) starlark.Value
	// Variable returns the shape of a name.
	Variable func(*syntax.Ident) Shape
	// Certain excludes shapes that are only likely: that all elements of a list are like
	// the first, and both branches of a condition alike.
	Certain bool

	known   map[syntax.Expr]Shape // earlier results
	members map[[2]string]Shape   // by type and name
}

// OfType returns the shape of a value of a type.
func OfType(typ string) Shape { return Shape{Type: typ} }

// Attributes returns the names that may follow a dot, sorted.
func (s Shape) Attributes() []string {
	switch {
	case s.Value != nil:
		h, ok := s.Value.(starlark.HasAttrs)
		if !ok {
			return nil
		}
		names := slices.Clone(h.AttrNames())
		slices.Sort(names)
		return names
	case s.IsList():
		return AttrNames("list")
	}
	names := slices.Clone(AttrNames(s.Type))
	slices.Sort(names)
	return names
}

// IsList reports whether it is a list whose elements have a known shape.
func (s Shape) IsList() bool { return s.elem != nil || strings.HasPrefix(s.Type, "list of ") }

// Element returns the shape of the elements. A result that may be a list of results is
// declared by its element.
func (s Shape) Element() Shape {
	if s.elem != nil {
		return *s.elem
	}
	if of, ok := strings.CutPrefix(s.Type, "list of "); ok {
		return OfType(of)
	}
	switch v := s.Value.(type) {
	case nil:
		return OfType(elementType(s.Type))
	case starlark.Iterable:
		it := v.Iterate()
		defer it.Done()
		var first starlark.Value
		if it.Next(&first) {
			return Shape{Value: first}
		}
	}
	return Shape{}
}

// Key returns the shape of the keys of a dict.
func (s Shape) Key() Shape {
	if s.key != nil {
		return *s.key
	}
	return Shape{}
}

// WithKey returns s, a dict, with another shape of its keys.
func (s Shape) WithKey(key Shape) Shape {
	s.key = &key
	return s
}

// TypeName returns the name of the type of the value; empty: unknown.
func (s Shape) TypeName() string {
	switch {
	case s.Value == starlark.None:
		return ""
	case s.Value != nil:
		return s.Value.Type()
	case s.IsList():
		return "list"
	}
	return s.Type
}

// isText reports whether it is a string, whose parts are strings too.
func (s Shape) isText() bool {
	_, ok := s.Value.(starlark.String)
	return ok || s.Type == "string"
}

// Infer returns the shape of an expression. It calls nothing: the shape of a call is the
// declared type of the function's result.
func (in *Inference) Infer(e syntax.Expr) Shape {
	shape, ok := in.known[e]
	if !ok {
		shape = in.infer(e)
		if in.known == nil {
			in.known = map[syntax.Expr]Shape{}
		}
		in.known[e] = shape
	}
	return shape
}

// infer returns the shape that Infer keeps.
func (in *Inference) infer(e syntax.Expr) Shape {
	if v := in.Value(e); v != nil {
		return Shape{Value: v}
	}
	switch e := e.(type) {
	case *syntax.Ident:
		return in.Variable(e)
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case string:
			return Shape{Value: starlark.String(v)}
		case int64, *big.Int:
			return OfType("int")
		}
	case *syntax.ParenExpr:
		return in.Infer(e.X)
	case *syntax.DotExpr:
		return in.member(in.Infer(e.X), e.Name.Name)
	case *syntax.IndexExpr:
		return in.Infer(e.X).Element()
	case *syntax.SliceExpr:
		of := in.Infer(e.X)
		if element := of.Element(); element != (Shape{}) && !of.isText() {
			return Shape{elem: &element}
		}
		return of
	case *syntax.CondExpr:
		return in.Either(in.Infer(e.True), in.Infer(e.False))
	case *syntax.ListExpr:
		if len(e.List) == 0 {
			return OfType("list")
		}
		first := in.Infer(e.List[0])
		for _, x := range e.List[1:] {
			first = in.Either(first, in.Infer(x))
		}
		return Shape{elem: &first}
	case *syntax.DictExpr:
		d := OfType("dict")
		for i, entry := range e.List {
			key := in.Infer(entry.(*syntax.DictEntry).Key)
			if i > 0 {
				key = in.Either(*d.key, key)
			}
			d.key = &key
		}
		return d
	case *syntax.Comprehension:
		if e.Curly {
			d := OfType("dict")
			if entry, ok := e.Body.(*syntax.DictEntry); ok {
				key := in.Infer(entry.Key)
				d.key = &key
			}
			return d
		}
		body := in.Infer(e.Body)
		return Shape{elem: &body}
	case *syntax.CallExpr:
		return in.callResult(e)
	}
	return Shape{}
}

// Either returns the common part of two shapes.
func (in *Inference) Either(a, b Shape) Shape {
	if in.Certain && (a.Type == "" || a.Type != b.Type) {
		return Shape{}
	}
	return a
}

// member returns the shape of an attribute.
func (in *Inference) member(of Shape, name string) Shape {
	if h, ok := of.Value.(starlark.HasAttrs); ok {
		if v, err := h.Attr(name); err == nil && v != nil {
			return Shape{Value: v}
		}
		return Shape{}
	}
	typ := of.Type
	if of.IsList() {
		typ = "list"
	}
	key := [2]string{typ, name}
	shape, ok := in.members[key]
	if !ok {
		shape.Type, shape.Call = attrType(typ, name)
		if in.members == nil {
			in.members = map[[2]string]Shape{}
		}
		in.members[key] = shape
	}
	return shape
}

// callResult returns the declared shape of the result of a call.
func (in *Inference) callResult(e *syntax.CallExpr) Shape {
	callee := in.Infer(e.Fn)
	if dot, ok := e.Fn.(*syntax.DotExpr); ok && (dot.Name.Name == "select" || dot.Name.Name == "sort") {
		if of := in.Infer(dot.X); of.IsList() {
			return Shape{elem: new(of.Element())}
		} else if list, ok := of.Value.(*starlark.List); ok && list.Len() > 0 {
			return Shape{elem: new(of.Element())}
		}
	}
	b := callee.Call
	if f, ok := callee.Value.(*lang.Function); ok {
		b = f.Builtin
	}
	if b != nil {
		return OfType(resultType(b, func(i int, name string) string { return textArgument(e, i, name) }))
	}
	f, ok := callee.Value.(*starlark.Builtin)
	if !ok {
		return Shape{}
	}
	switch f.Name() {
	case "sorted", "list", "reversed":
		if len(e.Args) > 0 {
			first := in.Infer(e.Args[0]).Element()
			return Shape{elem: &first}
		}
	case "min", "max":
		if len(e.Args) == 1 {
			return in.Infer(e.Args[0]).Element()
		}
	case "dict", "set":
		return OfType(f.Name())
	case "str", "repr", "join", "format", "replace", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize":
		return OfType("string")
	case "split", "splitlines", "rsplit":
		return OfType("list of string")
	}
	return Shape{}
}

// textArgument returns the string literal that a call gives for a parameter; empty: none.
func textArgument(e *syntax.CallExpr, i int, name string) string {
	for n, arg := range e.Args {
		if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			if id, ok := b.X.(*syntax.Ident); !ok || id.Name != name {
				continue
			}
			arg = b.Y
		} else if n != i {
			continue
		}
		if l, ok := arg.(*syntax.Literal); ok {
			text, _ := l.Value.(string)
			return text
		}
		return nonLiteral
	}
	return ""
}

// nonLiteral is the text of an argument that is not a literal.
const nonLiteral = "?"

// paramsOf returns the parameters of a function or method; nil if v is not one. Parameters of a
// script's own function have only a name.
func paramsOf(v starlark.Value) []lang.Param {
	switch fn := v.(type) {
	case *lang.Function:
		return fn.Params
	case *starlark.Builtin:
		if m, ok := lang.MethodOf(fn); ok {
			return m.Params
		}
	case *starlark.Function:
		params := make([]lang.Param, fn.NumParams())
		for i := range params {
			params[i].Name, _ = fn.Param(i)
		}
		if fn.HasKwargs() {
			params = params[:len(params)-1]
		}
		if fn.HasVarargs() {
			params = params[:len(params)-1]
		}
		return params
	}
	return nil
}
