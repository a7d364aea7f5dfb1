package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "fabsh", "history")
	h := openHistory(path)
	h.add("a")
	h.add("b")
	checkMode(t, path)
	if diff := cmp.Diff([]string{"a", "b"}, openHistory(path).statements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	h.add("b") // once
	h.add("def f():\n    smp_set('PortInfo', 1, m_key=0x1234)")
	want := []string{"a", "b", "def f():\n    smp_set('PortInfo', 1, m_key=...)"}
	if diff := cmp.Diff(want, openHistory(path).statements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i := range historyLimit {
		h.add(fmt.Sprint(i))
	}
	if got := openHistory(path).statements; len(got) != historyLimit || got[0] != "0" {
		t.Errorf("got %d lines from %q on", len(got), got[0])
	}
	checkMode(t, path)

	// The editor writes to the terminal what is in its line.
	if err := os.WriteFile(path, []byte("print('\x1b]0;x\a\u202e\u009b')\nif x:\u2028\ty\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want = []string{`print('\x1b]0;x\a\u202e\u009b')`, "if x:\n\ty"}
	if diff := cmp.Diff(want, openHistory(path).statements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	os.Remove(path)
	os.Mkdir(path, 0o700) // nothing can be written: a session goes on without
	openHistory(path).add("a")
	openHistory("").add("a")
}

// TestHistoryLeftovers: what a session that was killed has left is removed.
func TestHistoryLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history")
	old := filepath.Join(dir, ".history.fabsh-1")
	long := time.Now().Add(-time.Hour)
	for name, text := range map[string]string{path: strings.Repeat("x\n", historyLimit+1), old: "half"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(openHistory(path).statements); got != historyLimit {
		t.Errorf("got %d lines", got)
	}
	if left := filesIn(dir); len(left) != 1 {
		t.Errorf("there is %s", left)
	}
	checkMode(t, path)
}

func checkMode(t *testing.T, path string) {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Mode().Perm(); got != 0o600 {
		t.Errorf("%s has mode %o, want 600", path, got)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 5 * time.Hour: "5h", 49 * time.Hour: "2d"} {
		if got := age(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// TestHistoryPipe: a pipe in the place of the file holds nobody up.
func TestHistoryPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	openHistory(path).add("x")
}

// filesIn are the names in a folder.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPaste(t *testing.T) {
	const key, brk, tab = string(pasteKey), string(breakKey), string(tabKey)
	tests := []struct{ name, in, want, pasted string }{
		{"typed", "a\r", "a\r", ""},
		{"without brackets", "if a:\r\tb\r\n\n\t\tc\r", "if a:" + brk + tab + "b" + brk + brk + tab + tab + "c\r", ""},
		{"line ends before keys", "a\r\x04\r\x1b[A\t", "a\r\x04\r\x1b[A\t", ""},
		{"keys", "\x1b[1~\x03\x1b", "\x01\x07\x03\x1b", ""},
		{"blank lines", pasteBegin + "def f():\r    a\r\r  \r    b\r" + pasteEnd + "\r", key + "\r\r", "def f():\n    a\n\n  \n    b|"},
		{"line feeds", pasteBegin + "a\n\nb\r\n\r\nc" + pasteEnd, key, "a\n\nb\n\nc|"},
		{"tabs", pasteBegin + "if a:\r\tb\tc" + pasteEnd, key, "if a:\n\tb\tc|"},
		{"control characters", pasteBegin + "a\x03\x04\x1b[1~b" + pasteEnd + "\x03", key + "\x07\x03", "a[1~b|"},
		{"what turns the writing, and C1", pasteBegin + "'a\u202e\u009b1m\x7f\u2028'\r" + pasteEnd, key + "\r", `'a\u202e\u009b1m\x7f\u2028'|`},
		{"the editor's own", "\ue000" + pasteBegin + "\ue004a\ue008" + pasteEnd + "\ue007b", key + "b", "a|"},
		{"two", pasteBegin + "a\r" + pasteEnd + "\r" + pasteBegin + "\rb" + pasteEnd, key + "\r\r" + key, "a|\nb|"},
		{"other text", pasteBegin + "日本\r\r" + pasteEnd, key + "\r", "日本|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			keys := func(parts ...string) (got, pasted string) {
				p := paste{deliver: func(text string) { pasted += text + "|" }}
				for _, part := range parts {
					got += p.keys(part)
				}
				return got, pasted
			}
			if got, pasted := keys(tt.in); got != tt.want || pasted != tt.pasted {
				t.Errorf("got %q, %q, want %q, %q", got, pasted, tt.want, tt.pasted)
			}
			if tt.name == "keys" || tt.name == "without brackets" || tt.name == "the editor's own" {
				return // in pieces, names and runes break
			}
			// However the terminal's bytes come in: brackets are cut anywhere
			// but behind their escape, which alone is a key.
			for i := range tt.in {
				if i > 0 && tt.in[i-1] == '\x1b' {
					continue
				}
				if got, pasted := keys(tt.in[:i], tt.in[i:]); got != tt.want || pasted != tt.pasted {
					t.Errorf("cut at %d: got %q, %q, want %q, %q", i, got, pasted, tt.want, tt.pasted)
				}
			}
		})
	}
}

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
