package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/protocol"
	"go.starlark.net/syntax"
)

// TestPositions: columns of the protocol are UTF-16, those of Starlark runes.
func TestPositions(t *testing.T) {
	d := document{text: "a\nß𝄞x\n"}
	for _, x := range []struct {
		at     protocol.Position
		offset int
	}{
		{protocol.Position{}, 0},
		{protocol.Position{Character: 9}, 1},
		{protocol.Position{Line: 1, Character: 1}, 4},
		{protocol.Position{Line: 1, Character: 3}, 8},
		{protocol.Position{Line: 1, Character: 4}, 9},
		{protocol.Position{Line: 9}, 10},
	} {
		if got := d.offset(x.at); got != x.offset {
			t.Errorf("%v: got %d, want %d", x.at, got, x.offset)
		}
	}
	if got, want := d.position(8), (protocol.Position{Line: 1, Character: 3}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := d.at(syntax.MakePosition(nil, 2, 3)); got != 8 {
		t.Errorf("got %d", got)
	}
}

func FuzzPosition(f *testing.F) {
	f.Add("a\nß𝄞x\n", uint32(1), uint32(3))
	f.Add("\xff\r\n", uint32(0), uint32(7))
	f.Fuzz(func(t *testing.T, text string, line, character uint32) {
		d := document{text: text}
		at := d.offset(protocol.Position{Line: line % 100, Character: character % 1000})
		if at < 0 || at > len(text) {
			t.Fatalf("offset %d of %d", at, len(text))
		}
		if again := d.offset(d.position(at)); again != at {
			t.Fatalf("offset %d is %v, which is %d", at, d.position(at), again)
		}
	})
}

// TestFindings: findings while scripts and their modules change, unsaved.
func TestFindings(t *testing.T) {
	e := start(t, map[string]string{"ws/lib.star": "def helper(a):\n    return a\n", "secret.star": "x = 1\n", "ws/sub/x.star": "y = 1\n"})
	if err := os.Symlink(filepath.Join(e.dir, "..", "secret.star"), filepath.Join(e.dir, "link.star")); err != nil {
		t.Fatal(err)
	}
	step := func(what, got, want string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
	step("open", e.show("a.star", "load(\"lib.star\", \"helper\")\n\nprint(helper(1))\n"), "")
	step("a mistake", e.edit("a.star", "load(\"lib.star\", \"helper\")\n\n𝄞 = smp_gte(helper(1))\n"), "2:0-2 syntax error: unexpected input character '𝄞'\n")
	step("another", e.edit("a.star", "load(\"lib.star\", \"helper\")\n\nx = \"𝄞\" + smp_gte(helper(1))\n"), "2:11-18 undefined: smp_gte (did you mean smp_get?)\n")
	step("corrected", e.edit("a.star", "load(\"lib.star\", \"helper\")\nhelper()\n"), "")
	step("a module, unsaved", e.show("lib.star", "def other(a):\n    return a\n"), "")
	step("its user", e.next("a.star"), "0:18-24 lib.star has no helper\n")
	e.notify(protocol.MethodTextDocumentDidClose, map[string]any{"textDocument": map[string]any{"uri": e.uri("lib.star")}})
	step("closed", e.next("lib.star"), "")
	step("as saved", e.next("a.star"), "")
	for _, x := range []struct{ load, want string }{
		{"../secret.star", "permission denied"},
		{"link.star", "permission denied"},
		{"/etc/passwd", "permission denied"},
		{"sub/x.star", ""},
	} {
		got := e.edit("a.star", "load(\""+x.load+"\", \"y\")\ny\n")
		if x.want == "" && got != "" || x.want != "" && !strings.Contains(got, "cannot load") {
			t.Errorf("%s: %s", x.load, got)
		}
	}
	out := filepath.Join(e.dir, "..", "outside.star")
	e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": uriOf(out), "version": 1, "text": "load(\"secret.star\", \"x\")\n"}})
	for p := range e.findings {
		if p.URI == uriOf(out) {
			if len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Message, "cannot load") {
				t.Errorf("a module outside of the workspace: %+v", p.Diagnostics)
			}
			break
		}
	}
	step("too long", e.show("big.star", strings.Repeat("# long\n", maxText/7+1)), "0:0-0 not checked: the document is longer than 1048576 bytes\n")
	step("shorter", e.edit("big.star", "x = smp_gte()\n"), "0:4-11 undefined: smp_gte (did you mean smp_get?)\n")
}

// TestManyDocuments: the editor shows which documents are not checked, until they are closed.
func TestManyDocuments(t *testing.T) {
	e := start(t, map[string]string{"ws/a.star": ""})
	for i := range maxDocuments {
		name := fmt.Sprintf("%d.star", i)
		e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "version": 1, "text": ""}})
	}
	const refused = "0:0-0 not checked: 256 documents are open, the maximum; close others, and open this one again\n"
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	closeOne := func(name string) string {
		e.notify(protocol.MethodTextDocumentDidClose, map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}})
		return e.next(name)
	}
	step("one too many", e.show("a.star", "x = smp_gte()\n"), refused)
	step("closed", closeOne("a.star"), "")
	step("again", e.show("a.star", "x = smp_gte()\n"), refused)
	e.call(protocol.MethodTextDocumentDocumentSymbol, map[string]any{"textDocument": map[string]any{"uri": e.uri("7.star")}}, nil)
	closeOne("7.star")
	step("after another is closed", e.show("a.star", "x = smp_gte()\n"), "0:4-11 undefined: smp_gte (did you mean smp_get?)\n")
}
