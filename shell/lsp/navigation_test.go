package lsp

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/protocol"
)

// startNames is a workspace with a module and two scripts that load it.
func startNames(t *testing.T) *editor {
	t.Helper()
	lib := "def helper(a, b = 1):\n    return a + b\n\nx = helper(1, b = 2)\n"
	e := start(t, map[string]string{"ws/lib.star": lib, "ws/sub/other.star": "load(\"//lib.star\", own = \"helper\")\nown(1)\n"})
	e.show("lib.star", lib)
	e.show("a.star", "load(\"lib.star\", \"helper\")\n\ndef audit(fabric):\n    helper(fabric)\n    return helper\n")
	return e
}

// placesOf are locations in a line each: FILE LINE:FIRST-LAST.
func placesOf(e *editor, list []protocol.Location) string {
	var lines []string
	for _, l := range list {
		lines = append(lines, fmt.Sprintf("%s %d:%d-%d", strings.TrimPrefix(pathOf(string(l.URI)), e.dir+"/"), l.Range.Start.Line, l.Range.Start.Character, l.Range.End.Character))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// TestReferences: uses of a name in its script and in those that load it, and its new name.
func TestReferences(t *testing.T) {
	e := startNames(t)
	for _, x := range []struct{ file, at, want string }{
		{"lib.star", "def help", "a.star 0:18-24\na.star 3:4-10\na.star 4:11-17\nlib.star 0:4-10\nlib.star 3:4-10"},
		{"a.star", "    help", "a.star 0:18-24\na.star 3:4-10\na.star 4:11-17\nlib.star 0:4-10\nlib.star 3:4-10"},
		{"lib.star", "helper(a, ", "lib.star 0:14-15\nlib.star 1:15-16\nlib.star 3:14-15"},
		{"a.star", "audit(fab", "a.star 2:10-16\na.star 3:11-17"},
	} {
		params := e.at(x.file, x.at)
		params["context"] = map[string]any{"includeDeclaration": true}
		var list []protocol.Location
		e.call(protocol.MethodTextDocumentReferences, params, &list)
		got := placesOf(e, list)
		if !strings.Contains(x.want, "a.star") || x.file == "a.star" && !strings.Contains(x.want, "lib.star") {
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("%s %q: -want +got\n%s", x.file, x.at, diff)
			}
			continue
		}
		for line := range strings.SplitSeq(x.want, "\n") { // and sub/other.star, if it may read //lib.star
			if !strings.Contains(got, line) {
				t.Errorf("%s %q: no %s in\n%s", x.file, x.at, line, got)
			}
		}
		var edit protocol.WorkspaceEdit
		params["newName"] = "assist"
		e.call(protocol.MethodTextDocumentRename, params, &edit)
		if len(edit.Changes) < 2 || len(edit.Changes[e.uri("a.star")]) != 3 || len(edit.Changes[e.uri("lib.star")]) != 2 {
			t.Errorf("%v", edit.Changes)
		}
	}
	for name, want := range map[string]string{"x": "already has the name", "1x": "invalid name", "def": "invalid name", "discover": "function of fabsh"} {
		params := e.at("lib.star", "def help")
		params["newName"] = name
		if _, err := e.conn.Call(t.Context(), protocol.MethodTextDocumentRename, params, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var marks []protocol.DocumentHighlight
	if e.call(protocol.MethodTextDocumentDocumentHighlight, e.at("a.star", "    help"), &marks); len(marks) != 3 {
		t.Errorf("%v", marks)
	}
	var symbols []protocol.SymbolInformation
	if e.call(protocol.MethodWorkspaceSymbol, map[string]any{"query": "HELP"}, &symbols); len(symbols) != 1 || symbols[0].Name != "helper" {
		t.Errorf("%v", symbols)
	}
	document := map[string]any{"textDocument": map[string]any{"uri": e.uri("a.star")}}
	var folds []protocol.FoldingRange
	if e.call(protocol.MethodTextDocumentFoldingRange, document, &folds); len(folds) != 1 || folds[0].StartLine != 2 || folds[0].EndLine != 4 {
		t.Errorf("%v", folds)
	}
	var tokens protocol.SemanticTokens
	if e.call(protocol.MethodSemanticTokensFull, document, &tokens); len(tokens.Data) == 0 || len(tokens.Data)%5 != 0 {
		t.Errorf("%v", tokens)
	}
}

// TestFix: a mistake is found beside a syntax error, and its fix corrects it.
func TestFix(t *testing.T) {
	e := start(t, map[string]string{"ws/other.star": ""})
	const text = "def audit(fabric):\n    for p in fabric.ports:\n        print(p.state == \"activ\")\n    own = 1\n"
	if diff := cmp.Diff("2:25-26 p.state is never \"activ\" (did you mean active?)\n3:4-7 own is unused\n", e.show("a.star", text)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	finding := protocol.Diagnostic{Source: "fabsh", Message: "p.state is never \"activ\" (did you mean active?)", Range: protocol.Range{Start: protocol.Position{Line: 2, Character: 25}, End: protocol.Position{Line: 2, Character: 26}}}
	var actions []protocol.CodeAction
	e.call(protocol.MethodTextDocumentCodeAction, map[string]any{"textDocument": map[string]any{"uri": e.uri("a.star")}, "range": finding.Range, "context": map[string]any{"diagnostics": []any{finding}}}, &actions)
	if len(actions) != 1 || actions[0].Title != "Change to active" {
		t.Fatalf("%v", actions)
	}
	edit := actions[0].Edit.Changes[e.uri("a.star")][0]
	d := document{text: text}
	fixed := text[:d.offset(edit.Range.Start)] + edit.NewText + text[d.offset(edit.Range.End):]
	if !strings.Contains(fixed, `"active")`) {
		t.Error(fixed)
	}
	broken := e.edit("a.star", text+"\ndef g(:\n    pass\n\ndef h():\n    nothing()\n")
	if !strings.Contains(broken, "never \"activ\"") || !strings.Contains(broken, "undefined: nothing") || !strings.Contains(broken, "got ':'") {
		t.Error(broken)
	}
	var symbols []protocol.DocumentSymbol
	e.call(protocol.MethodTextDocumentDocumentSymbol, map[string]any{"textDocument": map[string]any{"uri": e.uri("a.star")}}, &symbols)
	if len(symbols) < 2 || symbols[0].Name != "audit" || symbols[len(symbols)-1].Name != "h" {
		t.Errorf("%v", symbols)
	}
	e.edit("a.star", "x = 1\n")
	e.notify(protocol.MethodTextDocumentDidChange, map[string]any{"textDocument": map[string]any{"uri": e.uri("a.star"), "version": 3}, "contentChanges": []any{
		map[string]any{"range": protocol.Range{Start: protocol.Position{Line: 0, Character: 4}, End: protocol.Position{Line: 0, Character: 5}}, "text": "\"é\" + 1"},
		map[string]any{"range": protocol.Range{Start: protocol.Position{Line: 0, Character: 0}, End: protocol.Position{Line: 0, Character: 1}}, "text": "y"},
	}})
	if got := e.next("a.star"); got != "0:8-9 string and int cannot be added; str() makes a string\n" {
		t.Error(got)
	}
}

// TestLargeScript: findings of 15,000 lines, and completion, take a bounded time.
func TestLargeScript(t *testing.T) {
	e := start(t, map[string]string{"ws/other.star": ""})
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "def f%d(fabric):\n    for p in fabric.ports:\n        if p.state == \"active\":\n            print(p.name, %d)\n\n", i, i)
	}
	began := time.Now()
	if got := e.show("a.star", b.String()); got != "" {
		t.Error(got)
	}
	t.Logf("findings of 15,000 lines: %v", time.Since(began))
	e.edit("a.star", b.String()+"def audit(fabric):\n    fabric.no\n")
	for range 2 {
		began = time.Now()
		var list protocol.CompletionList
		e.call(protocol.MethodTextDocumentCompletion, e.at("a.star", "    fabric.no"), &list)
		t.Logf("completion: %v, %d words", time.Since(began), len(list.Items))
		if len(list.Items) == 0 {
			t.Error("no words")
		}
	}
}
