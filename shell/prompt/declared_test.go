package prompt

import (
	"context"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

// TestDeclaredTypes: what is declared of the results of functions is so: what is
// inferred of the calls in their examples is the type of their values.
func TestDeclaredTypes(t *testing.T) {
	r, _ := openTest(t, "-F", "sim", "--virtual-time", "-t", "100")
	functions := &check.Completer{Globals: func() starlark.StringDict { return r.Interpreter.Globals }}
	inferred := 0
	for _, b := range builtins.Functions() {
		for line := range strings.Lines(b.Example) {
			code, ok := strings.CutPrefix(line, "> ")
			if !ok || b.Name == "exit" {
				continue
			}
			var want string
			if e, err := lang.Dialect.ParseExpr("", strings.TrimSpace(code), 0); err == nil {
				if _, ok := e.(*syntax.CallExpr); ok {
					want = functions.Shape(strings.TrimSpace(code), "", "").Type
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
				if bare(v.Type()) != bare(typ) {
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

// bare is the name of a type: that of records may be declared by the name of the
// attribute, node_info as NodeInfo.
func bare(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// TestDeclaredMembers: what is declared of attributes is so, and of what methods
// return.
func TestDeclaredMembers(t *testing.T) {
	r, _ := openTest(t, "-F", "sim:ring:n=2", "-t", "100")
	var check func(what, want string, v starlark.Value)
	check = func(what, want string, v starlark.Value) {
		if element, ok := strings.CutPrefix(want, "list of "); ok && v.Type() == "list" {
			if list := v.(*starlark.List); list.Len() > 0 {
				check(what+"[0]", element, list.Index(0))
			}
		} else if element, ok := strings.CutPrefix(want, "tuple of "); ok && v.Type() == "tuple" {
			for _, x := range v.(starlark.Tuple) {
				check(what+"[i]", element, x)
			}
		} else if bare(v.Type()) != bare(want) && v != starlark.None {
			t.Errorf("%s: %s is declared, and it is a %s", what, want, v.Type())
		}
	}
	seen := map[string]bool{}
	c := r.completer()
	for _, code := range []string{
		"f = discover(); sim.unlink(f.switches[0].ports[3]); g = f.graph(); t = g.route(\"minhop\")",
		"f", "f.switches[0]", "f.cas[0]", "f.links[0]", "f.ports[0]", "f.node(1)", "f.select(\"switch-1\")", "f.dump_mfts({})", "f.graph()", "g.hops()", "g.routes()", "g.route(\"minhop\")", "t", "t[f.switches[0]]", "t.trace(1, 3)",
		"t.verify(never_via=(None, None, f.switches[0]))", "t.balance()", "port_enable(f.cas[0].ports[1])", "perf_clear(\"PortCounters\", f.cas[0].ports[1])", "get_lft(1)", "get_mft(1)", "get_pkeys(f.cas[0])", "get_guids(f.cas[0])", "get_sl2vl(f.switches[0])",
	} {
		r.interp.show = func(v starlark.Value) error {
			seen[v.Type()] = true
			if strings.HasSuffix(code, ")") && !strings.Contains(code, ";") {
				check(code, c.Shape(code, "", "").Type, v)
			}
			d, ok := v.(lang.Documented)
			if !ok {
				return nil
			}
			for _, m := range d.TypeDoc().Members {
				if m.Type == "" {
					continue
				}
				x, err := v.(starlark.HasAttrs).Attr(m.Name)
				if err != nil {
					t.Fatal(err)
				}
				check(v.Type()+"."+m.Name, m.Type, x)
			}
			return nil
		}
		if err := r.run(context.Background(), "<test>", 1, code); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	if len(seen) < 14 {
		t.Errorf("only of %d types: %v", len(seen), seen)
	}
}
