package prompt

import "testing"

// TestDedent: lines such as else go back to their if when Enter ends them.
func TestDedent(t *testing.T) {
	for _, test := range [][2]string{
		{"if x:\n    a\n    else:", "if x:\n    a\nelse:"},
		{"if x:\n    a\nelse:", "if x:\n    a\nelse:"},
		{"if x:\n    for y in z:\n        a\n        elif b:", "if x:\n    for y in z:\n        a\nelif b:"},
		{"if x:\n    if y:\n        a\n        else:", "if x:\n    if y:\n        a\n    else:"},
		{"if x:\n    if y:\n        a\n    else:", "if x:\n    if y:\n        a\n    else:"},
		{"if x:\n    if y:\n        a\n    b\n    else:", "if x:\n    if y:\n        a\n    b\nelse:"},
		{"def f():\n\tif x:\n\t\ta\n\t\telse: b", "def f():\n\tif x:\n\t\ta\n\telse: b"},
		{"try:\n    a\n    except:", "try:\n    a\nexcept:"},
		{"try:\n    a\nexcept:\n    b\n    finally:", "try:\n    a\nexcept:\n    b\nfinally:"},
		{"for x in y:\n    a\n    else:", "for x in y:\n    a\n    else:"},
		{"if x:\n    elsewhere", "if x:\n    elsewhere"},
		{"else:", "else:"},
		{"    else:", "    else:"},
	} {
		e := edit{text: []rune(test[0]), cursor: len([]rune(test[0]))}
		e.dedent()
		if got := string(e.text); got != test[1] {
			t.Errorf("%q: got %q, want %q", test[0], got, test[1])
		}
		if e.cursor != len(e.text) {
			t.Errorf("%q: the cursor is at %d of %d", test[0], e.cursor, len(e.text))
		}
	}
}

// TestMissingColon: a line without its colon ends the statement, so that it is reported
// at once.
func TestMissingColon(t *testing.T) {
	for text, want := range map[string]bool{
		"if x": true, "for x in y": true, "def f(a)": true, "while x[1:2]": true, "if x == ':'": true, "if x # :": true, "if x:\n    if y": true, "if x:\n    a\nelse": true,
		"if x:": false, "if f(": false, "if f(\n  x)": true, "if f(\n  x):": false, "if x and \\": false, "if x and \\\n  y:": false, "if x: y": false, "iffy": true,
		"if x:\n    a = [\n      1\n      for y in z": false, "if x: # so": false,
	} {
		if got := isWhole(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
