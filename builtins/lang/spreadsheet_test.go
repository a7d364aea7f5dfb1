package lang

import "testing"

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
