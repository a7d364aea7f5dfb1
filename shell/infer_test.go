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

// TestDeclaredMembers: what is declared of attributes is so.
func TestDeclaredMembers(t *testing.T) {
	r, _ := openTest(t, "-F", "sim:ring:n=2", "-t", "20")
	seen := map[string]bool{}
	r.interp.show = func(v starlark.Value) error {
		seen[v.Type()] = true
		for _, m := range v.(lang.Documented).TypeDoc().Members {
			if m.Type == "" {
				continue
			}
			x, err := v.(starlark.HasAttrs).Attr(m.Name)
			if err != nil {
				t.Fatal(err)
			}
			got, want := x.Type(), m.Type
			if element, ok := strings.CutPrefix(want, "list of "); ok && got == "list" {
				if list := x.(*starlark.List); list.Len() == 0 {
					continue
				} else {
					got, want = list.Index(0).Type(), element
				}
			}
			if got != want && x != starlark.None {
				t.Errorf("%s.%s: %s is declared, and it is a %s", v.Type(), m.Name, m.Type, x.Type())
			}
		}
		return nil
	}
	for _, code := range []string{
		"f = discover(); sim.unlink(f.switches[0].ports[3]); g = f.graph(); t = g.route(\"minhop\")",
		"f", "f.switches[0]", "f.cas[0]", "f.links[0]", "f.ports[0]", "g", "g.hops()", "t", "t[f.switches[0]]", "t.trace(1, 3)",
		"t.trace(1, 3)", "t.verify(never_via=(None, None, f.switches[0]))", "t.balance()", "get_lft(1)", "get_mft(1)", "get_pkeys(f.cas[0])", "get_guids(f.cas[0])", "get_sl2vl(f.switches[0])",
	} {
		if err := r.run(context.Background(), "<test>", 1, code); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	if len(seen) < 14 {
		t.Errorf("only of %d types: %v", len(seen), seen)
	}
}
