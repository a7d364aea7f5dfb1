package shell

import (
	"context"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// TestDeclaredTypes: what is declared of the results of functions is so: what is
// inferred of the calls in their examples is the type of their values.
func TestDeclaredTypes(t *testing.T) {
	r, _ := openTest(t, "-F", "sim", "-t", "20")
	functions := &completer{globals: func() starlark.StringDict { return r.Predeclared() }}
	inferred := 0
	for _, b := range r.Builtins() {
		for line := range strings.Lines(b.Example) {
			code, ok := strings.CutPrefix(line, "> ")
			if !ok || b.Name == "exit" {
				continue
			}
			var want string
			if e, err := lang.Dialect.ParseExpr("", strings.TrimSpace(code), 0); err == nil {
				if _, ok := e.(*syntax.CallExpr); ok {
					want = functions.infer(e, scope{}).typ
				}
			}
			r.interp.show = func(v starlark.Value) error {
				if want == "" {
					return nil
				}
				inferred++
				typ, _ := strings.CutPrefix(want, "list of ")
				if list, ok := v.(*starlark.List); ok && list.Len() > 0 { // of many targets too
					v = list.Index(0)
				}
				snake := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
				if snake(v.Type()) != snake(typ) { // node_info is declared by the attribute's name
					t.Errorf("%s: %s: %s is declared, and it is a %s", b.Name, strings.TrimSpace(code), want, v.Type())
				}
				return nil
			}
			r.run(context.Background(), "<test>", 1, code)
		}
	}
	if inferred < 8 {
		t.Errorf("only %d were inferred", inferred)
	}
}
