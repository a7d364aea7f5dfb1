package lang

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// TestSpreadsheetSafe: no cell begins with a formula, whatever a spreadsheet skips before it.
func TestSpreadsheetSafe(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"leaf 1":           "leaf 1",
		"a=b":              "a=b",
		"=1":               "'=1",
		"+1":               "'+1",
		"-1":               "'-1",
		"@a":               "'@a",
		"\t=1":             "'\t=1",
		" =1":              "' =1",
		"\u00a0=1":         "'\u00a0=1",
		"\u200b=1":         "'\u200b=1",
		"\ufeff\u3000 =1":  "'\ufeff\u3000 =1",
		"\u034f=1":         "'\u034f=1",
		"\uff1d1":          "'\uff1d1",
		"\uff0b1 \uff0d1":  "'\uff0b1 \uff0d1",
		"\uff20a":          "'\uff20a",
		"MF0;leaf;U1":      "MF0;leaf;U1",
		"a;=1":             "a;'=1",
		"a; =1;b;\u200b@c": "a;' =1;b;'\u200b@c",
		"\n=1":             "'\n=1",
		" a":               " a",
	} {
		if got := spreadsheetSafe(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
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
