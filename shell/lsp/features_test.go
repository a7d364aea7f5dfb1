package lsp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/protocol"

	"fabsh/scripts"
)

const policy = `load("lib.star", "helper")
load("@std//lib/audit.star", "unanswered")

def own(first, *, most = 3):
    """Does it.

    Slowly."""
    return first

def audit(fabric):
    for node in fabric.nodes:
        for port in node.ports:
            if port.state == "active":
                helper(port.name)
    own(1, most = 2)
    smp_get("PortInfo", fabric.nodes[0], port = 1)
`

func startPolicy(t *testing.T) *editor {
	t.Helper()
	e := start(t, map[string]string{"ws/lib.star": "def helper(a, b = 1):\n    \"\"\"Helps.\"\"\"\n    return a\n", "ws/sub/x.star": "", "ws/notes.txt": ""})
	e.show("a.star", policy)
	return e
}

// TestCompletion: what completes the text before the cursor, while the script has syntax
// errors there.
func TestCompletion(t *testing.T) {
	e := startPolicy(t)
	for _, x := range []struct{ typed, after, want string }{
		{"    for p in fabric.ports:\n        p.ph", "", "field physical_state string"},
		{"    fabric.dump_m", "", "method dump_mfts dump_mfts(tables)"},
		{"    for p in fabric.ports:\n        p.state == \"ac", "", "value active\""},
		{"    for p in fabric.ports:\n        p.state == \"ac", "\"", "value active"},
		{"    ow", "", "function own own(first, *, most=...)"},
		{"    hel", "", "function help help(topic=None)\nfunction helper helper(a, b=...)"},
		{"    own(1, mo", "", "property most="},
		{"    helper(", "", "property a=\nproperty b="},
		{"    smp_get(\"NodeI", "", "value NodeInfo\""},
		{"    fab", "", "variable fabric"},
		{"    retu", "", "keyword return"},
		{"    zi", "", "function zip"},
		{"    g = fabric.graph()\n    g.route(\"minh", "", "value minhop\""},
		{"    sa_gettable(\"NodeRecord\", node_ty", "", "property node_type="},
		{"    # hel", "", ""},
		{"", "", ""},
	} {
		e.edit("a.star", policy+x.typed+x.after+"\n")
		params := e.at("a.star", policy+x.typed)
		var list protocol.CompletionList
		e.call(protocol.MethodTextDocumentCompletion, params, &list)
		var got []string
		for _, i := range list.Items {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", strings.ToLower(i.Kind.String()), i.TextEdit.NewText, i.Detail)))
		}
		if diff := cmp.Diff(x.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%q: -want +got:\n%s", x.typed, diff)
		}
	}
	e.show("b.star", "")
	for _, x := range []struct{ typed, want string }{
		{"load(\"", "lib.star sub/"},
		{"load(\"sub/", "sub/x.star"},
		{"load(\"../", ""},
		{"load(\"/", ""},
		{"load(\"//l", "//lib.star"},
		{"load(\"@std//lib/au", "@std//lib/audit.star"},
		{"load(\"lib.star\", \"he", "helper"},
	} {
		e.edit("b.star", x.typed)
		var list protocol.CompletionList
		e.call(protocol.MethodTextDocumentCompletion, e.at("b.star", x.typed), &list)
		var got []string
		for _, i := range list.Items {
			got = append(got, i.Label)
		}
		if diff := cmp.Diff(x.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q: -want +got:\n%s", x.typed, diff)
		}
	}
}

// TestHelp: hover, and the parameters of a call.
func TestHelp(t *testing.T) {
	e := startPolicy(t)
	for _, x := range []struct{ at, want string }{
		{"port.sta", `port.state: logical state: "active", "down", ...; None if unknown`},
		{"        for po", "port: port"},
		{"helper(port.na", "port.name: name of the node and number: leaf-1/3"},
		{"def ow", "own(first, *, most=...)"},
		{"                help", "helper(a, b=1)"},
		{"smp_ge", "smp_get(attr, target=None, port=None, *, block=None, position=None,"},
		{"\"PortIn", "PortInfo"},
		{"\"activ", ""},
		{"    \"\"\"Do", ""},
		{"most = 3):\n", ""},
	} {
		var h *protocol.Hover
		e.call(protocol.MethodTextDocumentHover, e.at("a.star", x.at), &h)
		got := ""
		if h != nil {
			got, _, _ = strings.Cut(h.Contents.Value, "\n")
		}
		if x.at == "                help" {
			x.want = "helper(a, b=...)"
		}
		if got != x.want {
			t.Errorf("%q: got %q, want %q", x.at, got, x.want)
		}
	}
	for _, x := range []struct {
		at, label string
		active    uint32
	}{
		{"own(1, mo", "own(first, *, most=...)", 1},
		{"own(1, most = ", "own(first, *, most=...)", 1},
		{"helper(po", "helper(a, b=...)", 0},
		{"    smp_get(\"PortInfo\", fab", "smp_get(attr, target=None, port=None, *, block=None, position=None, in_port=None, out_port=None, modifier=None, lid=None, route=None)", 1},
		{"load(\"lib.", "", 0},
		{"        for po", "", 0},
	} {
		var s *protocol.SignatureHelp
		e.call(protocol.MethodTextDocumentSignatureHelp, e.at("a.star", x.at), &s)
		if s == nil {
			s = &protocol.SignatureHelp{Signatures: make([]protocol.SignatureInformation, 1)}
		}
		if got := s.Signatures[0]; got.Label != x.label || s.ActiveParameter != x.active {
			t.Errorf("%q: got %q, parameter %d; want %q, %d", x.at, got.Label, s.ActiveParameter, x.label, x.active)
		}
	}
}

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

// TestFindingCodes: each kind of findings has a code, which links to its line in a file.
func TestFindingCodes(t *testing.T) {
	e := start(t, map[string]string{"ws/lib.star": "x = 1\n"})
	e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": e.uri("a.star"), "version": 1, "text": `load("nothing.star", "a")
load("lib.star", "b")

def f():
    lost = smp_gte()
    discover(nothing = 1)
    for port in discover().ports:
        if port.state == "activ":
            print(port.phys, port.name + 1)
    smp_get("PortInf", a, b)
`}})
	e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": e.uri("b.star"), "version": 1, "text": "x = (\n"}})
	e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": e.uri("c.star"), "version": 1, "text": strings.Repeat("#", maxText+1)}})
	codes := map[string]bool{}
	for seen := map[protocol.DocumentURI]bool{}; len(seen) < 3; {
		p := <-e.findings
		seen[p.URI] = true
		for _, d := range p.Diagnostics {
			code, _ := d.Code.(string)
			codes[code] = true
			if d.CodeDescription == nil {
				t.Fatalf("%s: no link", d.Message)
			}
			file, line, _ := strings.Cut(string(d.CodeDescription.Href), "#L")
			n, err := strconv.Atoi(line)
			text, failed := os.ReadFile(pathOf(file))
			if err != nil || failed != nil {
				t.Fatalf("%s: %v, %v", d.CodeDescription.Href, err, failed)
			}
			if lines := strings.Split(string(text), "\n"); lines[n-1] != code {
				t.Errorf("%s (%s) links to line %d, %q", code, d.Message, n, lines[n-1])
			}
		}
	}
	var missing []string
	for _, c := range findingCodes {
		if !codes[c.code] {
			missing = append(missing, c.code)
		}
		delete(codes, c.code)
	}
	if len(missing)+len(codes) > 0 {
		t.Errorf("no finding for %v; unknown codes %v", missing, codes)
	}
}
