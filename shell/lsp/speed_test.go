package lsp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.lsp.dev/protocol"
)

// longScript returns a script of n lines, or some more.
func longScript(n int) string {
	const part = `def check_%[1]d(*, most = 3):
    """Reports ports with errors.

    most: errors that are accepted"""
    found = []
    for node in discover().nodes:
        for port in node.ports:
            if port.state != "active" or not port.peer:
                continue # "down" is not an error
            info = smp_get("PortInfo", node, port = port.num)
            if info == None or info.lmc > most:
                found.append("%%s: LMC %%d" %% (port.name, info.lmc))
    names = sorted([n.name for n in discover().switches if "leaf" in n.name])
    return found, names

value_%[1]d = [x * 2 for x in range(%[1]d) if x %% 3 == 0]

`
	var b strings.Builder
	for i := 0; strings.Count(part, "\n")*i < n; i++ {
		fmt.Fprintf(&b, part, i)
	}
	return b.String()
}

// typing is a document in which a line is typed, character by character.
type typing struct {
	s     *Server
	d     *document
	at    int // the offset of the line
	typed string
}

func startTyping(tb testing.TB, text string, at int) *typing {
	tb.Helper()
	e := start(tb, map[string]string{"ws/a.star": ""})
	e.show("a.star", text)
	e.server.mu.Lock()
	tb.Cleanup(e.server.mu.Unlock)
	return &typing{s: e.server, d: e.server.open[string(e.uri("a.star"))], at: at}
}

// put replaces what was typed, and returns the words that complete it.
func (y *typing) put(tb testing.TB, typed string) []string {
	tb.Helper()
	at := y.d.span(y.at, y.at+len(y.typed))
	change := &changeParams{ContentChanges: []contentChange{{Range: &at, Text: typed}}}
	change.TextDocument.URI = y.d.uri
	if _, err := y.s.didChange(context.Background(), change); err != nil {
		tb.Fatal(err)
	}
	y.typed = typed
	p := y.d.position(y.at + len(y.typed))
	result, err := y.s.completion(context.Background(), &protocol.CompletionParams{TextDocumentPositionParams: protocol.TextDocumentPositionParams{TextDocument: protocol.TextDocumentIdentifier{URI: y.d.uri}, Position: p}})
	if err != nil {
		tb.Fatal(err)
	}
	var words []string
	for _, item := range result.(protocol.CompletionList).Items {
		words = append(words, item.Label)
	}
	return words
}

// BenchmarkCompletion types characters in the middle and at the end of a script of 15,000 lines.
func BenchmarkCompletion(b *testing.B) {
	text := longScript(15000)
	line := "            continue"
	middle := strings.Index(text[len(text)/2:], line) + len(text)/2
	for _, x := range []struct {
		name, after string
		at          int
	}{{"middle", "", middle}, {"end", "", strings.LastIndex(text, line)}, {"error elsewhere", "x = = 1\n", middle}} {
		b.Run(x.name, func(b *testing.B) {
			y := startTyping(b, text[:x.at]+"\n"+text[x.at:]+x.after, x.at)
			y.put(b, "            port.")
			i := 0
			for b.Loop() {
				i++
				if words := y.put(b, "            port.peer"[:17+i%5]); len(words) == 0 {
					b.Fatal(y.typed)
				}
			}
		})
	}
}

// BenchmarkFindings checks a script of 15,000 lines.
func BenchmarkFindings(b *testing.B) {
	y := startTyping(b, longScript(15000), 0)
	for b.Loop() {
		if found := y.s.findings(context.Background(), y.d); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
