package lang

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// TestHarmless: nothing that a terminal would obey comes through.
func TestHarmless(t *testing.T) {
	for _, test := range []struct{ text, terminal, cell string }{
		{"leaf-1 ä 日", "leaf-1 ä 日", "leaf-1 ä 日"},
		{"a\nb\tc", "a\nb\tc", `a\nb\tc`},
		{"\x1b]0;title\a", `\x1b]0;title\a`, `\x1b]0;title\a`},
		{"\u009b31m", `\u009b31m`, `\u009b31m`},
		{"\u202egnp.exe", `\u202egnp.exe`, `\u202egnp.exe`},
		{"x\x9b\xff", `x\x9b\xff`, `x\x9b\xff`},
		{"a\rb\x7f", `a\rb\x7f`, `a\rb\x7f`},
	} {
		if got := Harmless(test.text); got != test.terminal {
			t.Errorf("Harmless(%q) = %s, want %s", test.text, got, test.terminal)
		}
		if got := OneLine(test.text); got != test.cell {
			t.Errorf("OneLine(%q) = %s, want %s", test.text, got, test.cell)
		}
	}
}

// TestEncodings: JSON and CSV of hostile text are valid UTF-8, and have no
// control characters and no formula.
func TestEncodings(t *testing.T) {
	name := starlark.String("=cmd|' /c calc'!A1\x1b\u009b\u202e\xff\n")
	list := starlark.NewList([]starlark.Value{dictOf("name", name), dictOf("name", starlark.String("-x")), dictOf("name", starlark.MakeInt(-5))})
	for format, want := range map[Format]string{
		FormatJSONL: `{"name":"=cmd|' /c calc'!A1\u001b\u009b\u202e\ufffd\n"}` + "\n" + `{"name":"-x"}` + "\n" + `{"name":-5}` + "\n",
		FormatCSV:   "name\n" + `"'=cmd|' /c calc'!A1\x1b\u009b\u202e\xff` + "\n\"\n'-x\n-5\n",
	} {
		got, err := Render(list, format)
		if err != nil || got != want {
			t.Errorf("%s: %v\n got %q\nwant %q", format, err, got, want)
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\u009b\u202e") {
			t.Errorf("%s: %q", format, got)
		}
	}
	raw, err := Render(starlark.String("=1+1"), FormatRawCSV)
	if err != nil || raw != "value\n=1+1\n" {
		t.Errorf("raw: %q, %v", raw, err)
	}
}

func dictOf(key string, v starlark.Value) *starlark.Dict {
	d := starlark.NewDict(1)
	d.SetKey(starlark.String(key), v)
	return d
}
