package lsp

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/protocol"

	"fabsh/scripts"
)

// TestDefinition: definitions in the script, in its modules and in those of fabsh, of
// which the editor gets a copy that it cannot change by accident.
func TestDefinition(t *testing.T) {
	e := startPolicy(t)
	line := func(at string) (string, protocol.Range) {
		var l *protocol.Location
		e.call(protocol.MethodTextDocumentDefinition, e.at("a.star", at), &l)
		if l == nil {
			return "", protocol.Range{}
		}
		return pathOf(string(l.URI)), l.Range
	}
	at := func(line, first, last uint32) protocol.Range {
		return protocol.Range{Start: protocol.Position{Line: line, Character: first}, End: protocol.Position{Line: line, Character: last}}
	}
	for _, x := range []struct {
		at, file string
		want     protocol.Range
	}{
		{"    ow", "a.star", at(3, 4, 7)},
		{"return fir", "a.star", at(3, 8, 13)},
		{"helper(po", "a.star", at(11, 12, 16)},
		{"                help", "lib.star", at(0, 4, 10)},
		{"load(\"lib.star\", \"hel", "lib.star", at(0, 4, 10)},
		{"load(\"lib.", "lib.star", at(0, 0, 0)},
		{"smp_ge", "", protocol.Range{}},
	} {
		file, got := line(x.at)
		if diff := cmp.Diff(x.want, got); !strings.HasSuffix(file, x.file) || file == "" != (x.file == "") || diff != "" {
			t.Errorf("%q: in %q; -want +got:\n%s", x.at, file, diff)
		}
	}
	file, got := line("load(\"@std//lib/audit.star\", \"una")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := scripts.FS.ReadFile("lib/audit.star")
	if err != nil || string(text) != string(want) {
		t.Errorf("%s differs from the module: %v", file, err)
	}
	d := document{text: string(text)}
	if def := d.text[:d.offset(got.End)]; !strings.HasSuffix(def, "def unanswered") {
		t.Errorf("it is at %v", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o400 {
		t.Error(info.Mode(), err)
	}
	// The copy is a document like others, with the name of the module.
	uri := uriOf(file)
	e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": uri, "version": 1, "text": d.text}})
	for p := range e.findings {
		if p.URI == uri {
			if len(p.Diagnostics) > 0 {
				t.Errorf("findings in it: %v", p.Diagnostics)
			}
			break
		}
	}
	e.edit("a.star", policy+"if")
	if file, _ := line("    ow"); file != "" {
		t.Error("a definition in a script with syntax errors")
	}
}

// TestSymbols: the outline of a script, and its format as one change.
func TestSymbols(t *testing.T) {
	e := start(t, nil)
	e.show("a.star", "most = 3\n\ndef f(a, *, b = 1):\n    def g():\n        pass\n    x = 1\n    return g\n")
	var list []protocol.DocumentSymbol
	e.call(protocol.MethodTextDocumentDocumentSymbol, e.at("a.star", "most"), &list)
	at := func(line, first, last, lastCharacter uint32) protocol.Range {
		return protocol.Range{Start: protocol.Position{Line: line, Character: first}, End: protocol.Position{Line: last, Character: lastCharacter}}
	}
	want := []protocol.DocumentSymbol{
		{Name: "most", Kind: protocol.SymbolKindVariable, Range: at(0, 0, 0, 8), SelectionRange: at(0, 0, 0, 4)},
		{Name: "f", Detail: "(a, *, b=...)", Kind: protocol.SymbolKindFunction, Range: at(2, 0, 6, 12), SelectionRange: at(2, 4, 2, 5), Children: []protocol.DocumentSymbol{
			{Name: "g", Detail: "()", Kind: protocol.SymbolKindFunction, Range: at(3, 4, 4, 12), SelectionRange: at(3, 8, 3, 9)},
		}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, x := range []struct {
		text string
		want []protocol.TextEdit
	}{
		{"x = 1\n\ny=2\n\nz = 3\n", []protocol.TextEdit{{Range: at(2, 0, 3, 0), NewText: "y = 2\n"}}},
		{"x=1", []protocol.TextEdit{{Range: at(0, 0, 0, 3), NewText: "x = 1\n"}}},
		{"x = 1\ny=2\n", []protocol.TextEdit{{Range: at(1, 0, 2, 0), NewText: "y = 2\n"}}},
		{"x = 1\n", []protocol.TextEdit{}},
		{"\n\n\nx = 1\n", []protocol.TextEdit{{Range: at(0, 0, 3, 0), NewText: ""}}},
	} {
		e.edit("a.star", x.text)
		var got []protocol.TextEdit
		e.call(protocol.MethodTextDocumentFormatting, map[string]any{"textDocument": map[string]any{"uri": e.uri("a.star")}}, &got)
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", x.text, diff)
		}
	}
}
