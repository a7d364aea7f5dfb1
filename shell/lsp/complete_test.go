package lsp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.lsp.dev/protocol"
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
		{"smp_ge", "smp_get(attr, target, port=None, *, block=None, position=None, in_port=None,"},
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
		{"    smp_get(\"PortInfo\", fab", "smp_get(attr, target, port=None, *, block=None, position=None, in_port=None, out_port=None, modifier=None)", 1},
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
