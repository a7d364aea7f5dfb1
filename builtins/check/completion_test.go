package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

func testCompleter(t *testing.T) *Completer {
	t.Helper()
	record := func(d starlark.StringDict) starlark.Value {
		return starlarkstruct.FromStringDict(starlarkstruct.Default, d)
	}
	port := record(starlark.StringDict{"num": starlark.MakeInt(1), "state": starlark.String("active"), "state_code": starlark.MakeInt(4)})
	globals := starlark.StringDict{
		"f":        record(starlark.StringDict{"switches": starlark.NewList([]starlark.Value{port}), "nodes": starlark.None}),
		"d":        starlark.NewDict(1),
		"discover": starlark.NewBuiltin("discover", nil),
		"smp_get":  starlark.NewBuiltin("smp_get", nil),
		"smp_set":  starlark.NewBuiltin("smp_set", nil),
		"_":        port,
	}
	globals["d"].(*starlark.Dict).SetKey(starlark.String("leaf 1"), port)
	return &Completer{
		Globals: func() starlark.StringDict { return globals },
		Exports: func(module string) []string { return []string{"a of " + module, "b"} },
		Keywords: func(callee starlark.Value, args []string) []string {
			return []string{"attr", "target", "port"}[min(2, len(args)):]
		},
		Words: func(callee starlark.Value, arg callArgument) ([]string, bool) {
			switch {
			case callee.String() == "<built-in function discover>":
				return nil, true
			case arg.Keyword == "target" || arg.Keyword == "" && len(arg.Before) == 1:
				return []string{"leaf 1", "leaf 2", `the "core"`, "host's"}, false
			case len(arg.Before) == 0:
				return []string{"NodeInfo", "PortInfo", "PortInfoExtended"}, false
			}
			return nil, false
		},
		Files: func(prefix string) []string {
			var out []string
			for _, f := range []string{"examples/", "notes.star"} {
				if strings.HasPrefix(f, prefix) {
					out = append(out, f)
				}
			}
			return out
		},
	}
}

func TestComplete(t *testing.T) {
	c := testCompleter(t)
	tests := []struct {
		text  string
		want  []string // whole words
		typed string   // what they replace
	}{
		{"disc", []string{"discover"}, "disc"},
		{"x = sm", []string{"smp_get", "smp_set"}, "sm"},
		{"wh", []string{"while"}, "wh"},
		{"def f():\n  ret", []string{"return"}, "ret"},
		{"x = ", nil, ""},
		{"sorte", []string{"sorted"}, "sorte"},
		{"1", nil, ""},
		{"nothing_like_it", nil, "nothing_like_it"},
		{"# disc", nil, ""},

		{"f.", []string{"nodes", "switches"}, ""},
		{"f.sw", []string{"switches"}, "sw"},
		{"x = [f.sw", []string{"switches"}, "sw"},
		{"f.switches[0].st", []string{"state", "state_code"}, "st"},
		{"f.switches[-1].n", []string{"num"}, "n"},
		{"f.switches[7].n", []string{"num"}, "n"},
		{"d['leaf 1'].n", []string{"num"}, "n"},
		{"d['leaf 2'].n", nil, "n"},
		{"_.n", []string{"num"}, "n"},
		{"f.switches.app", []string{"append"}, "app"},
		{"'a'.joi", []string{"join"}, "joi"},
		{"discover().sw", nil, "sw"},
		{"f.nothing.sw", nil, "sw"},
		{"f.switches[i].st", []string{"state", "state_code"}, "st"},

		{"smp_get(", []string{"attr=", "target=", "port="}, ""},
		{"smp_get(p", []string{"port=", "pass", "print"}, "p"},
		{"smp_get('PortInfo', 1, ", []string{"port="}, ""},
		{"smp_get('a, (b', 1, ", []string{"port="}, ""},
		{"smp_get('PortInfo', [1, 2], ", []string{"port="}, ""},
		{"smp_get('PortInfo', target=3, po", []string{"port="}, "po"},
		{"smp_get(target=1, ", []string{"attr=", "port="}, ""},
		{"smp_get(target=f.sw", []string{"switches"}, "sw"},
		{"smp_get(target=disc", []string{"discover"}, "disc"},
		{"smp_get(\n  tar", []string{"target="}, "tar"},
		{"len(smp_get(tar", []string{"target="}, "tar"},
		{"def smp_get(tar", nil, "tar"},

		{"smp_get('", []string{"NodeInfo", "PortInfo", "PortInfoExtended"}, ""},
		{"smp_get(\"Nod", []string{`NodeInfo"`}, "Nod"},
		{"smp_get('Po", []string{"PortInfo", "PortInfoExtended"}, "Po"},
		{"smp_get('PortInfo', 'leaf ", []string{"leaf 1", "leaf 2"}, "leaf "},
		{"smp_get('PortInfo', target='leaf 1", []string{"leaf 1'"}, "leaf 1"},
		{`smp_get('PortInfo', "the`, []string{`the \"core\""`}, "the"},
		{`smp_get('PortInfo', 'host`, []string{`host\'s'`}, "host"},
		{"smp_get('PortInfo', 'no' + 'le", nil, "le"},
		{"x = 'le", nil, "le"},
		{"discover('no", []string{"notes.star"}, "no"},
		{"load('ex", []string{"examples/"}, "ex"},
		{"load('notes.star', 'a", []string{"a of notes.star'"}, "a"},
		{`load("notes.star", x="`, []string{"a of notes.star", "b"}, ""},
		{"x = '''\nle", nil, "\nle"},
		{"x = 'broken\nsmp_get('Nod", []string{"NodeInfo'"}, "Nod"},
	}
	for _, tt := range tests {
		words, start := c.Complete(tt.text, "")
		if diff := cmp.Diff(tt.want, words); diff != "" || tt.text[start:] != tt.typed {
			t.Errorf("%q: replaces %q, want %q; -want +got:\n%s", tt.text, tt.text[start:], tt.typed, diff)
		}
	}
}

// Attributes are read, so they must be all that is read.
func TestCompleteCallsNothing(t *testing.T) {
	c := testCompleter(t)
	called := false
	c.Globals()["boom"] = starlark.NewBuiltin("boom", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		called = true
		return starlark.None, nil
	})
	for _, text := range []string{"boom().", "boom()[0].", "f.switches[boom()].", "smp_get(boom(), ", "smp_get(x=boom().a"} {
		c.Complete(text, "")
	}
	if called {
		t.Error("completion called a function")
	}
}

func FuzzComplete(f *testing.F) {
	f.Add("smp_get('PortInfo', f.switches[0].")
	f.Add("x = '''\n\\")
	f.Add("f(a==1, b=[(")
	f.Fuzz(func(t *testing.T, text string) {
		_, start := testCompleter(t).Complete(text, "")
		if start < 0 || start > len(text) {
			t.Fatalf("start %d of %d", start, len(text))
		}
	})
}

// TestCompleteDeclared: what follows from declarations alone, in the text of a script.
func TestCompleteDeclared(t *testing.T) {
	c := &Completer{Globals: func() starlark.StringDict { return nil }, Words: Known{}.Words}
	const audit = "def audit(fabric, *, most = 3):\n    for node in fabric.nodes:\n        for port in node.ports:\n"
	for _, x := range []struct{ text, want string }{
		{audit + "            port.ph", "physical_state"},
		{audit + "            if port.state == \"", "no_change down initialize armed active"},
		{audit + "            if port.state in (\"active\", \"d", "down\""},
		{audit + "            if port.state not in [\"d", "down\""},
		{audit + "            if port.name == \"", ""},
		{audit + "            if port.info.link_width_active == \"1", "1x 12x"},
		{"def route(fabric):\n    fabric.ca", "cas"},
		{"def remedy(fabric, findings, *, most = 2):\n    for f in findings:\n        f.sever", "severity"},
		{"def topology(groups):\n    groups.lea", "leaves"},
		{"def helper(fabric):\n    fabric.ca", ""},
		{"def test_x(sim=\"ring\"):\n    sim.unl", "unlink"},
		{audit + "            pass\ndef f(x):\n    fabric.ca", ""},
	} {
		words, _ := c.Complete(x.text, "")
		if got := strings.Join(words, " "); got != x.want {
			t.Errorf("%q: got %q, want %q", x.text, got, x.want)
		}
	}
}
