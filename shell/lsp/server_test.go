package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"fabsh/builtins"
	"fabsh/builtins/help"
)

// editor is a client of a server: what an editor sends and receives.
type editor struct {
	t        *testing.T
	conn     jsonrpc2.Conn
	in       io.Closer
	dir      string // the workspace
	texts    map[string]string
	findings chan protocol.PublishDiagnosticsParams
	ended    chan error
}

// start starts a server whose workspace has files, and requests initialize.
func start(t *testing.T, files map[string]string) *editor {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session, err := builtins.NewSession(builtins.Options{Dir: dir, Include: []string{t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	fromEditor, toServer := io.Pipe()
	fromServer, toEditor := io.Pipe()
	e := &editor{t: t, in: toServer, dir: filepath.Join(dir, "ws"), texts: map[string]string{}, findings: make(chan protocol.PublishDiagnosticsParams, 1000), ended: make(chan error, 1)}
	s := &Server{Interpreter: session.Interpreter, Library: help.Of(session.Runtime), Modules: filepath.Join(t.TempDir(), "modules"), Version: "1"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.ended <- s.Serve(context.Background(), fromEditor, toEditor)
		toEditor.Close()
	}()
	e.conn = jsonrpc2.NewConn(jsonrpc2.NewStream(streams{fromServer, toServer}))
	e.conn.Go(context.Background(), func(ctx context.Context, reply jsonrpc2.Replier, req jsonrpc2.Request) error {
		var p protocol.PublishDiagnosticsParams
		if err := json.Unmarshal(req.Params(), &p); err != nil || req.Method() != protocol.MethodTextDocumentPublishDiagnostics {
			t.Errorf("%s: %v", req.Method(), err)
		}
		e.findings <- p
		return nil
	})
	t.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
		<-done
		session.Close()
	})
	e.call(protocol.MethodInitialize, map[string]any{"rootUri": uriOf(e.dir), "capabilities": map[string]any{}}, nil)
	return e
}

// call sends a request; a failure ends the test.
func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	if _, err := e.conn.Call(context.Background(), method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	if err := e.conn.Notify(context.Background(), method, params); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editor) uri(name string) protocol.DocumentURI { return uriOf(filepath.Join(e.dir, name)) }

// show opens a document of the workspace, and returns its findings.
func (e *editor) show(name, text string) string {
	e.t.Helper()
	e.texts[name] = text
	e.notify(protocol.MethodTextDocumentDidOpen, map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "languageId": "starlark", "version": 1, "text": text}})
	return e.next(name)
}

// edit changes a document, and returns its findings.
func (e *editor) edit(name, text string) string {
	e.t.Helper()
	e.texts[name] = text
	e.notify(protocol.MethodTextDocumentDidChange, map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "version": 2}, "contentChanges": []any{map[string]any{"text": text}}})
	return e.next(name)
}

// next returns the next findings of a document: LINE:FIRST-LAST message.
func (e *editor) next(name string) string {
	for p := range e.findings {
		if p.URI != e.uri(name) {
			continue
		}
		var b strings.Builder
		for _, d := range p.Diagnostics {
			fmt.Fprintf(&b, "%d:%d-%d %s\n", d.Range.Start.Line, d.Range.Start.Character, d.Range.End.Character, d.Message)
		}
		return b.String()
	}
	return ""
}

// at returns the place after the first occurrence of a text in a document.
func (e *editor) at(name, text string) map[string]any {
	e.t.Helper()
	i := strings.Index(e.texts[name], text)
	if i < 0 {
		e.t.Fatalf("no %q in %s", text, name)
	}
	d := document{text: e.texts[name]}
	return map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}, "position": d.position(i + len(text))}
}

// TestSession: the requests that begin and end a session, and those in another order.
func TestSession(t *testing.T) {
	e := start(t, nil)
	for _, x := range []struct{ method, want string }{
		{"textDocument/references", "unsupported method textDocument/references"},
		{protocol.MethodTextDocumentHover, "lsp: file:///nowhere.star is not open"},
	} {
		_, err := e.conn.Call(context.Background(), x.method, map[string]any{"textDocument": map[string]any{"uri": "file:///nowhere.star"}}, nil)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(x.want)) {
			t.Errorf("%s: %v", x.method, err)
		}
	}
	if _, err := e.conn.Call(context.Background(), protocol.MethodTextDocumentHover, "text", nil); err == nil {
		t.Error("parameters that are a string are accepted")
	}
	e.call(protocol.MethodShutdown, nil, nil)
	if _, err := e.conn.Call(context.Background(), protocol.MethodTextDocumentHover, map[string]any{}, nil); err == nil || !strings.Contains(err.Error(), "has requested shutdown") {
		t.Errorf("after shutdown: %v", err)
	}
	e.notify(protocol.MethodExit, nil)
	if err := <-e.ended; err != nil {
		t.Error(err)
	}

	for _, x := range []struct {
		name string
		end  func(e *editor)
		want string
	}{
		{"exit alone", func(e *editor) { e.notify(protocol.MethodExit, nil) }, "lsp: the editor ended the session without the request shutdown"},
		{"closed", func(e *editor) { e.in.Close() }, "lsp: the editor closed the connection without ending the session"},
	} {
		e := start(t, nil)
		x.end(e)
		if err := <-e.ended; err == nil || err.Error() != x.want {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestRubbish: what is not a message ends the session with an error.
func TestRubbish(t *testing.T) {
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "Content-Length: -3\r\n\r\n", "Content-Length: 99999999999\r\n\r\n", "Content-Length: 3\r\n\r\n{}}", "Content-Length: 8\r\n\r\n{\"id\":1}", "\x00\x00"} {
		s := &Server{Interpreter: newSession(t).Interpreter}
		err := s.Serve(context.Background(), io.NopCloser(strings.NewReader(text)), io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), "lsp: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	in, out := io.Pipe()
	defer out.Close()
	if err := (&Server{Interpreter: newSession(t).Interpreter}).Serve(ctx, in, io.Discard); err == nil || err.Error() != "interrupted" {
		t.Error(err)
	}
}

func newSession(t *testing.T) *builtins.Session {
	t.Helper()
	s, err := builtins.NewSession(builtins.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
