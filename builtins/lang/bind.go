package lang

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.starlark.net/starlark"
)

// Body is the Go function of a Builtin, and the struct that its arguments
// bind to.
type Body struct {
	args   reflect.Type
	run    func(c *Call, args reflect.Value) (starlark.Value, error)
	once   sync.Once
	fields [][]int // field indices in args, by position in Params
	err    error   // the mismatch of args and Params, if any
}

// Do makes the Body of a builtin whose arguments bind to the fields of an A:
// the parameter in_port to InPort, *args to Args. A field has the type that
// the parameter's Kind converts to, or a pointer to it, which is nil if the argument was
// not given and has no default. Embedded structs hold parameters that several
// builtins share. A field of type Others takes the arguments of all parameters that have
// no field. Builtin.Check returns an error if fields and parameters differ.
func Do[A any](fn func(c *Call, a *A) (starlark.Value, error)) *Body {
	return &Body{
		args: reflect.TypeFor[A](),
		run:  func(c *Call, args reflect.Value) (starlark.Value, error) { return fn(c, args.Interface().(*A)) },
	}
}

// Others holds arguments by parameter name: those that were given or have a default.
type Others map[string]any

var othersType = reflect.TypeFor[Others]()

// Check returns an error if the parameters of b and the fields that they bind to
// differ. Each call checks first. The tests check all builtins: at program start the
// check took a quarter of the time.
func (b *Builtin) Check() error {
	b.Run.once.Do(func() { b.Run.fields, b.Run.err = b.match() })
	return b.Run.err
}

// match finds the field of each parameter.
func (b *Builtin) match() (fields [][]int, err error) {
	var names []string
	var others []int
	for _, f := range reflect.VisibleFields(b.Run.args) {
		if f.Type == othersType {
			others = f.Index
		}
	}
	for _, p := range b.Params {
		name := strings.TrimLeft(p.Name, "*")
		names = append(names, name)
		f, ok := b.Run.args.FieldByNameFunc(func(field string) bool { return snake(field) == name })
		switch {
		case !ok && others != nil:
			f.Index = others
		case !ok:
			return nil, fmt.Errorf("%s: no field of %v takes the parameter %s", b.Name, b.Run.args, p.Name)
		case f.Type != p.goType() && !(p.Default == "None" && f.Type == reflect.PointerTo(p.goType())):
			return nil, fmt.Errorf("%s: the field %s of %v is a %v, but the parameter %s converts to a %v", b.Name, f.Name, b.Run.args, f.Type, p.Name, p.goType())
		}
		fields = append(fields, f.Index)
	}
	for _, f := range reflect.VisibleFields(b.Run.args) {
		if !f.Anonymous && f.Type != othersType && !slices.Contains(names, snake(f.Name)) {
			return nil, fmt.Errorf("%s: no parameter for the field %s of %v", b.Name, f.Name, b.Run.args)
		}
	}
	return fields, nil
}

// goType returns the type of the Go value that p converts to.
func (p *Param) goType() reflect.Type {
	switch {
	case strings.HasPrefix(p.Name, "**"):
		return reflect.TypeFor[[]starlark.Tuple]()
	case strings.HasPrefix(p.Name, "*"):
		return reflect.TypeFor[starlark.Tuple]()
	case p.Kind.Type == nil:
		return reflect.TypeFor[starlark.Value]()
	}
	return p.Kind.Type
}

// snake returns the parameter name of a field: in_port of InPort, lids of LIDs.
func snake(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+2 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsLower(runes[i+2])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// call binds the arguments of c and runs the function.
func (b *Body) call(c *Call) (starlark.Value, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	args := reflect.New(b.args)
	for i, v := range c.args {
		if v == nil {
			continue
		}
		field := args.Elem().FieldByIndex(b.fields[i])
		if field.Type() == othersType {
			if field.IsNil() {
				field.Set(reflect.ValueOf(Others{}))
			}
			field.SetMapIndex(reflect.ValueOf(c.Params[i].Name), reflect.ValueOf(v))
			continue
		}
		if x := reflect.ValueOf(v); field.Kind() == reflect.Pointer && x.Kind() != reflect.Pointer {
			field.Set(reflect.New(x.Type()))
			field.Elem().Set(x)
		} else {
			field.Set(x)
		}
	}
	return b.run(c, args)
}
