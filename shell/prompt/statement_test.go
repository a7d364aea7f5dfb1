package prompt

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

var testDialect = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// transcript runs the lines of input as a piped session does and returns what
// it shows and the errors, in order.
func transcript(t *testing.T, input string) string {
	t.Helper()
	var out strings.Builder
	x := newInterp(testDialect, starlark.StringDict{"site": starlark.String("a")}, func(v starlark.Value) error {
		fmt.Fprintln(&out, v)
		return nil
	})
	thread := &starlark.Thread{
		Print: func(_ *starlark.Thread, msg string) { fmt.Fprintln(&out, msg) },
		Load: func(_ *starlark.Thread, module string) (starlark.StringDict, error) {
			return starlark.StringDict{"a": starlark.MakeInt(41)}, nil
		},
	}
	s := &statements{in: newPlainReader(strings.NewReader(input))}
	for {
		text, line, err := s.next("")
		if err != nil {
			return out.String()
		}
		if err := x.exec(thread, "in", line, text); err != nil {
			fmt.Fprintln(&out, "error:", err)
		}
	}
}

func TestInterp(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"expressions are shown, None is not", "1+1\nNone\n'a'; 'b'\n", "2\n\"a\"\n\"b\"\n"},
		{"last value", "6*7\n_ + 1\nNone\n_\n", "42\n43\n43\n"},
		{"globals are live in functions", "x = 1\ndef f(): return x\nx = 2\nf()\n", "2\n"},
		{"globals are live in lambdas", "x = 1\nf = lambda: x\nx = 2\nf()\n", "2\n"},
		{"on one line too", "x = 1\ndef f(): return x\nx = 2; f()\n", "2\n"},
		{"augmented assignment", "x = 1\nx += 1\nx = x * 5\nx\n", "10\n"},
		{"augmented assignment keeps identity", "x = [1]\ny = x\nx += [2]\ny\n", "[1, 2]\n"},
		{"augmented assignment keeps lambdas live", "n = 1\nfs = []\nfs += [lambda: n]\nn = 2\nfs[0]()\n", "2\n"},
		{"in a loop", "x = 0\nfor i in range(4):\n  x += i\n\nx, i\n", "(6, 3)\n"},
		{"conditional assignment", "x = 1\nif False:\n  x = 2\n\nx\n", "1\n"},
		{"forward reference", "def f(): return g()\ndef g(): return 'g'\nf()\n", "\"g\"\n"},
		{"names of the language in functions", "def f(x): return [len(x), None, list(range(x[0]))]\nf([2])\n", "[1, None, [0, 1]]\n"},
		{"and replaced before", "def len(x): return 'own'\ndef f(x): return len(x)\nf([])\n", "\"own\"\n"},
		{"mutual recursion", "def even(n): return n == 0 or odd(n-1)\ndef odd(n): return n != 0 and even(n-1)\neven(10), odd(10)\n", "(True, False)\n"},
		{"redefinition is seen", "def g(): return 1\ndef f(): return g()\ndef g(): return 2\nf()\n", "2\n"},
		{"the old one may be called by the new", "def f(): return 1\nold = f\ndef f(): return old() + 1\nf()\n", "2\n"},
		{"predeclared names can be shadowed", "site\nsite = 'b'\nsite\n", "\"a\"\n\"b\"\n"},
		{"universal names too", "len = 3\nlen\n", "3\n"},
		{"load binds globally", "load('m', 'a', b='a')\ndef f(): return a\na += 1\nf(), b\n", "(42, 41)\n"},
		{"undefined", "y + 1\n", "error: in:1:1: undefined: y\n"},
		{"undefined in a statement", "z = 1; x = zz\n", "error: in:1:12: undefined: zz\n"},
		{"undefined when called", "def f(): return nope\nf()\n", "error: undefined: nope\n"},
		{"assigned by itself only", "x += 1\n", "error: global variable x referenced before assignment\n"},
		{"what was done before an error stays", "for x in [1, 0]:\n  y = 1 // x\n\nx, y\n", "error: floored division by zero\n(0, 1)\n"},
		{"an error leaves no trace in the names", "x = 1\nx += 'a'\nx\n", "error: unknown binary op: int + string\n1\n"},
		{"a NUL does not hide the rest", "é = '''a\n\x00'''\n1\n", "error: in:2:1: unexpected NUL; is this a text file?\n1\n"},
		{"syntax error with its place", "\n\nx = = 1\n1\n", "error: in:3:5: got '=', want primary expression\n1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, transcript(t, tt.in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestInterpKeepsOnlyTheUsersNames(t *testing.T) {
	x := newInterp(testDialect, nil, nil)
	for _, src := range []string{"x = 1", "x += 1", "x += 'a'"} {
		x.exec(new(starlark.Thread), "in", 1, src)
	}
	if diff := cmp.Diff([]string{"x"}, x.globals.Keys()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInterpIsCancelled(t *testing.T) {
	x := newInterp(testDialect, nil, nil)
	thread := new(starlark.Thread)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	defer context.AfterFunc(ctx, func() { thread.Cancel("interrupted") })()
	err := x.exec(thread, "in", 1, "while True: pass\n")
	if got, want := fmt.Sprint(err), "Starlark computation cancelled: interrupted"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStatements(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want []string
	}{
		{"lines", "a\n\n# c\nb # d", []string{"1:a\n", "4:b # d\n"}},
		{"brackets", "f(a,\n  b)\nc\n", []string{"1:f(a,\n  b)\n", "3:c\n"}},
		{"bracket in a string", "f('(')\nc\n", []string{"1:f('(')\n", "2:c\n"}},
		{"bracket in a comment", "f() # (\nc\n", []string{"1:f() # (\n", "2:c\n"}},
		{"long string", "s = '''a\n'\n\"\"\"\n'''\nc\n", []string{"1:s = '''a\n'\n\"\"\"\n'''\n", "5:c\n"}},
		{"escaped quotes", `a = "\"("` + "\nc\n", []string{"1:" + `a = "\"("` + "\n", "2:c\n"}},
		{"unterminated string", "a = \"x\nc\n", []string{"1:a = \"x\n", "2:c\n"}},
		{"backslash", "a = \\\n 1\nc\n", []string{"1:a = \\\n 1\n", "3:c\n"}},
		{"carriage returns", "a\r\nb\r\n", []string{"1:a\n", "2:b\n"}},
		{"block", "def f():\n  a\n\n  # c\n# c\n  b\nc\n", []string{"1:def f():\n  a\n\n  # c\n# c\n  b\n", "7:c\n"}},
		{"what is like a block", "try: # so\n  a\nb\nc(':')\nd = ':'\n", []string{"1:try: # so\n  a\n", "3:b\n", "4:c(':')\n", "5:d = ':'\n"}},
		{"two blocks", "def f(): a\ndef g(): b\n", []string{"1:def f(): a\n", "2:def g(): b\n"}},
		{"else", "if a:\n  b\nelif c:\n  d\nelse:\n  e\nf\n", []string{"1:if a:\n  b\nelif c:\n  d\nelse:\n  e\n", "7:f\n"}},
		{"text in column 0 of a block", "def f():\n  a = '''\nx\n'''\n  b\nc\n", []string{"1:def f():\n  a = '''\nx\n'''\n  b\n", "6:c\n"}},
		{"brackets in column 0 of a block", "for x in [\n1,\n]:\n  b\nc\n", []string{"1:for x in [\n1,\n]:\n  b\n", "5:c\n"}},
		{"a word that begins like a keyword", "iffy\ndefine\n", []string{"1:iffy\n", "2:define\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &statements{in: newPlainReader(strings.NewReader(tt.in))}
			var got []string
			for {
				text, line, err := s.next("> ")
				if err != nil {
					break
				}
				got = append(got, fmt.Sprintf("%d:%s", line, text))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestIsWhole: what Enter runs at a terminal.
func TestIsWhole(t *testing.T) {
	for text, want := range map[string]bool{
		"":                               true,
		"a":                              true,
		"# c":                            true,
		"f(":                             false,
		"f(\n":                           false,
		"f(\n\na)":                       true,
		"s = \"\"\"\n":                   false,
		"a = \\":                         false,
		"def f():":                       false,
		"def f(): pass":                  false,
		"def f(): pass\n":                true,
		"def f():\n    a":                false,
		"def f():\n    a\n":              true,
		"def f():\n    a\n    ":          false, // the first blank line
		"def f():\n    a\n    \n    ":    true,
		"def f():\n    a\n\n    b":       false,
		"def f():\n    a\n\n    b\n":     true,
		"if a:\n    b\nelse:":            false,
		"if a:\n    b\nelse:\n    c\n":   true,
		"def f():\n    a = [\n\n":        false,
		"def f():\n    a\n\nf(41)":       true, // pasted
		"def f():\n    a\nfor x in y:":   false,
		"def f():\n    a\nfor x in y:\n": true,
	} {
		if got := isWhole(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestIndentAfter(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"a":                                 "",
		"def f():":                          "    ",
		"def f(): # so":                     "    ",
		"def f():\n    if a:":               "        ",
		"def f():\n    if a:\n        b":    "        ",
		"def f():\n    return 1":            "",
		"def f():\n    if a:\n        pass": "    ",
		"def f():\n  return 1":              "",
		"def f():\n  if a:\n       pass":    "  ",
		"def f():\n    returned = 1":        "    ",
		"def f():\n\tif a:":                 "\t\t",
		"def f():\n    a\n    ":             "    ",
		"f(":                                "    ",
		"f(\n    a,":                        "    ",
		"s = \"\"\"\n    a":                 "",
		"x = 1 \\":                          "",
	} {
		if got := indentAfter(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestBlockLine: what the editor's line holds is the text, whatever it is, and
// an editing key that takes an end of a break or tab takes it whole.
func TestBlockLine(t *testing.T) {
	for _, text := range []string{"", "a", "def f():\n\ta\n\n  b", "日本\n" + strings.Repeat("x", 30), "\n\n", strings.Repeat("y", 10) + "\n"} {
		for _, columns := range []int{0, 1, 4, 10, 80} {
			runes := []rune(text)
			for cursor := range len(runes) + 1 {
				line, pos := encodeText(runes, cursor, 3, columns)
				if got := decodeLine(line, pos, false); string(got.text) != text || got.cursor != cursor {
					t.Fatalf("%q, %d columns: got %q and %d, want %d", text, columns, string(got.text), got.cursor, cursor)
				}
			}
			line, _ := encodeText(runes, 0, 3, columns)
			for i, r := range line {
				if r != breakRune && r != closeRune {
					continue
				}
				got := decodeLine(slices.Delete(slices.Clone(line), i, i+1), i, false).text
				if len(got) != len(runes)-1 {
					t.Fatalf("%q, %d columns: without rune %d it is %q", text, columns, i, string(got))
				}
			}
		}
	}
}

func FuzzStatements(f *testing.F) {
	f.Add("def f():\n  a\nb\n")
	f.Add("x = '''\n\\")
	f.Fuzz(func(t *testing.T, in string) {
		s := &statements{in: newPlainReader(strings.NewReader(in))}
		for {
			text, _, err := s.next("")
			if err != nil {
				return
			}
			if !bytes.HasSuffix([]byte(text), []byte("\n")) {
				t.Fatalf("%q does not end a line", text)
			}
		}
	})
}

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
