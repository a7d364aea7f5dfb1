package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"fabsh/builtins"
	"fabsh/builtins/help"
)

// editor is a client of a server: what an editor sends and receives.
type editor struct {
	t        testing.TB
	server   *Server
	conn     jsonrpc2.Conn
	in       io.Closer
	dir      string // the workspace
	texts    map[string]string
	findings chan protocol.PublishDiagnosticsParams
	ended    chan error
}

// streams are the connection to a server.
type streams struct {
	io.ReadCloser
	io.Writer
}

// start starts a server whose workspace has files, and requests initialize.
func start(t testing.TB, files map[string]string) *editor {
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
	session, err := builtins.NewSession(builtins.SessionOptions{Dir: dir, Include: []string{t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	fromEditor, toServer := io.Pipe()
	fromServer, toEditor := io.Pipe()
	e := &editor{t: t, in: toServer, dir: filepath.Join(dir, "ws"), texts: map[string]string{}, findings: make(chan protocol.PublishDiagnosticsParams, 1000), ended: make(chan error, 1)}
	s := &Server{Interpreter: session.Interpreter, Library: help.Of(session.Runtime), Modules: filepath.Join(t.TempDir(), "modules"), Version: "1"}
	e.server = s
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
		{"textDocument/implementation", "unsupported method textDocument/implementation"},
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

// framed returns messages with their headers.
func framed(messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	return b.String()
}

// TestMalformed: what is not a message is answered by an error, and the next message is read.
// Without the length of a message, the next header is searched.
func TestMalformed(t *testing.T) {
	const (
		parse   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"malformed JSON"}}`
		invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not a message of JSON-RPC 2.0; batches are not supported"}}`
		badID   = `{"jsonrpc":"2.0","id":99999999999,"error":{"code":-32600,"message":"not a message of JSON-RPC 2.0: its id is not a string or a 32-bit integer"}}`
		call    = `{"jsonrpc":"2.0","id":"last","method":"nothing"}`
		answer  = `{"jsonrpc":"2.0","error":{"code":-32601,"message":"unsupported method nothing"},"id":"last"}`
		end     = "lsp: the editor closed the connection without ending the session"
	)
	numbered := strings.Replace(invalid, "null", "1", 1)
	for _, x := range []struct{ input, response, err string }{
		{framed("{}}"), parse, end},
		{framed(`{"id":`), parse, end},
		{framed(""), parse, end},
		{framed("\x00\xff"), parse, end},
		{framed(strings.Repeat("[", 100000)), parse, end},
		{framed(strings.Repeat("[", 100000) + strings.Repeat("]", 100000)), parse, end},
		{framed("[]"), invalid, end},
		{framed("[" + call + "]"), invalid, end},
		{framed("7"), invalid, end},
		{framed(`{"jsonrpc":"2.0"}`), invalid, end},
		{framed(`{"id":1}`), numbered, end},
		{framed(`{"jsonrpc":"2.0","id":1}`), numbered, end},
		{framed(`{"jsonrpc":"1.0","id":1,"method":"shutdown"}`), numbered, end},
		{framed(`{"jsonrpc":"2.0","id":1,"method":7}`), numbered, end},
		{framed(`{"jsonrpc":"2.0","id":1,"method":""}`), numbered, end},
		{framed(`{"jsonrpc":"2.0","id":[1],"method":7}`), invalid, end},
		{framed(`{"jsonrpc":"2.0","id":99999999999,"method":"shutdown"}`), badID, end},
		{framed(`"` + strings.Repeat("x", maxMessage) + `"`), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"message of 16777218 bytes, more than 16777216; send less"}}`, end},
		{"no header\r\ncontent-length: 1\r\nX: y\r\n\r\n7", invalid, end},
		{"GET / HTTP/1.1\r\n\r\n", "no Content-Length", end},
		{"\r\n", "no Content-Length", end},
		{"Content-Length: -3\r\n\r\n", `"-3\"`, end},
		{"Content-Length: x\r\n\r\n", `"x\"`, end},
		{"Content-Length: 99999999999\r\n\r\n", `"99999999999\"`, end},
		{"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", `"3\"`, end},
		{strings.Repeat("x", 5000), "line too long", end},
	} {
		var out strings.Builder
		s := &Server{Interpreter: newSession(t).Interpreter}
		err := s.Serve(context.Background(), io.NopCloser(strings.NewReader(x.input+framed(call))), &out)
		if err == nil || err.Error() != x.err {
			t.Errorf("%.60q: got %v, want %s", x.input, err, x.err)
		}
		want := framed(x.response, answer)
		if isWhole := x.response[0] == '{'; isWhole && out.String() != want || !strings.Contains(out.String(), x.response) || !strings.HasSuffix(out.String(), framed(answer)) {
			t.Errorf("%.60q: got %s, want %s", x.input, out.String(), want)
		}
	}
	for _, text := range []string{"Content-Length: 8\r\n\r\n{}", "Content-Length: 8\r\n", "Content-Length: 99999999\r\n\r\n{}"} {
		err := (&Server{Interpreter: newSession(t).Interpreter}).Serve(context.Background(), io.NopCloser(strings.NewReader(text)), io.Discard)
		if want := "lsp: read message: unexpected EOF"; err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
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

// FuzzMessages: whatever the editor sends, the session ends with an error, and what it receives is
// messages.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(framed(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","method":"exit"}`)))
	f.Add([]byte(framed("[]", "{")))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		in := newStream(io.NopCloser(bytes.NewReader(text)), &out)
		for {
			if _, _, err := in.Read(t.Context()); err != nil {
				break
			}
		}
		answers := newStream(io.NopCloser(&out), io.Discard)
		for {
			length, err := answers.header()
			if err == io.EOF {
				return
			}
			message := make([]byte, length)
			if _, err := io.ReadFull(answers.in, message); err != nil || !json.Valid(message) {
				t.Fatalf("%q: %v", message, err)
			}
		}
	})
}

func newSession(t *testing.T) *builtins.Session {
	t.Helper()
	s, err := builtins.NewSession(builtins.SessionOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// formatLater requests the format of a document, whose end is at the slot; the result is its error.
func (e *editor) formatLater(name string) (id int32, ended chan error) {
	e.t.Helper()
	last, err := e.conn.Call(context.Background(), protocol.MethodTextDocumentDocumentSymbol, map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}}, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	text, _ := json.Marshal(&last)
	json.Unmarshal(text, &id)
	ended = make(chan error, 1)
	go func() {
		_, err := e.conn.Call(context.Background(), protocol.MethodTextDocumentFormatting, map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}}, nil)
		ended <- err
	}()
	for { // until the server has it
		e.server.callsMu.Lock()
		n := len(e.server.calls)
		e.server.callsMu.Unlock()
		if n == 1 && e.server.waiting.Load() == 0 || len(ended) == 1 {
			return id + 1, ended
		}
		time.Sleep(time.Millisecond) // a counter of the server is polled
	}
}

// TestLater: while a document is formatted, other requests are answered; the request can be
// cancelled, and a change of the document ends it.
func TestLater(t *testing.T) {
	e := start(t, map[string]string{"ws/a.star": ""})
	e.show("a.star", "x=1\n")
	e.server.slot <- struct{}{} // another document is being formatted
	id, ended := e.formatLater("a.star")
	e.call(protocol.MethodTextDocumentHover, e.at("a.star", "x"), nil)
	e.notify(protocol.MethodCancelRequest, map[string]any{"id": id})
	codeOf := func(err error) jsonrpc2.Code {
		var e *jsonrpc2.Error
		errors.As(err, &e)
		if e == nil {
			return 0
		}
		return e.Code
	}
	if err := <-ended; codeOf(err) != protocol.CodeRequestCancelled {
		t.Errorf("cancelled: %v", err)
	}
	_, ended = e.formatLater("a.star")
	e.edit("a.star", "y=1\n")
	<-e.server.slot
	if err := <-ended; codeOf(err) != protocol.CodeContentModified {
		t.Errorf("changed: %v", err)
	}
	_, ended = e.formatLater("a.star")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	e.edit("a.star", "x = 1"+strings.Repeat(" + 1", 20000)+"\n")
	_, ended = e.formatLater("a.star")
	if err := <-ended; err == nil || !strings.HasSuffix(err.Error(), ":1:1: statement too long to format, such as a sum of 10,000 terms; divide it") {
		t.Errorf("too long: %v", err)
	}
}

// TestUsedID: a request with the ID of another one that has no response is refused, and so is one
// of too many.
func TestUsedID(t *testing.T) {
	s := &Server{calls: map[jsonrpc2.ID]*request{}, queue: make(chan *request, 2*maxRequests)}
	var got []error
	for i := range int32(maxRequests + 1) {
		call, err := jsonrpc2.NewCall(jsonrpc2.NewNumberID(max(i, 1)), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.receive(t.Context(), func(_ context.Context, _ any, err error) error { got = append(got, err); return nil }, call)
	}
	call, _ := jsonrpc2.NewCall(jsonrpc2.NewStringID("one more"), "x", nil)
	s.receive(t.Context(), func(_ context.Context, _ any, err error) error { got = append(got, err); return nil }, call)
	if len(got) != 2 || got[0].Error() != "request ID 1 is in use; use each ID once" || got[1].Error() != "busy: 1000 requests have no response yet; send fewer at a time" {
		t.Errorf("%d: %v", len(got), got)
	}
}

// TestCheckStops: a message stops the check that runs, which begins again after it.
func TestCheckStops(t *testing.T) {
	e := start(t, map[string]string{"ws/a.star": ""})
	e.show("a.star", "x = 1\n")
	stopped := make(chan error, 1)
	stop := context.CancelCauseFunc(func(err error) { stopped <- err })
	e.server.mu.Lock() // the check has ended
	e.server.checking.Store(&stop)
	e.server.mu.Unlock()
	e.call(protocol.MethodTextDocumentHover, e.at("a.star", "x"), nil)
	if err := <-stopped; err == nil {
		t.Error("no cause")
	}
	e.server.waiting.Add(1) // a message waits
	e.server.mu.Lock()
	e.server.open[string(e.uri("a.star"))].due = 1
	e.server.mu.Unlock()
	if e.server.checkOne(t.Context()) || e.server.open[string(e.uri("a.star"))].due != 1 {
		t.Error("the check goes before the message")
	}
	e.server.waiting.Add(-1)
	e.server.checkOne(t.Context()) // or the server's own goroutine does
	if e.next("a.star") != "" {
		t.Error("the document is not checked")
	}
}

// TestInclude: a directory of -I is relative to the first folder of the workspace, and a missing one
// is a warning.
func TestInclude(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"ws/shared/m.star": "x = 1\n", "ws/scripts/a.star": ""} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	workspace := filepath.Join(dir, "ws")
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s := &Server{Interpreter: newSession(t).Interpreter, Library: help.Of(newSession(t).Runtime), Include: []string{"shared", "nothing"}}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background(), in, out); out.Close() }()
	go io.WriteString(toServer, framed(
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":%q,"capabilities":{}}}`, uriOf(workspace)),
		`{"jsonrpc":"2.0","method":"initialized","params":{}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"languageId":"fabsh","version":1,"text":"load(\"m.star\", \"x\", \"y\")\nx + y\n"}}}`, uriOf(filepath.Join(workspace, "scripts", "a.star")))))
	messages := newStream(fromServer, io.Discard)
	got := map[string]string{}
	for len(got) < 2 {
		m, _, err := messages.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := m.(*jsonrpc2.Notification); ok {
			got[n.Method()] = string(n.Params())
		}
	}
	if text := got[protocol.MethodWindowShowMessage]; !strings.Contains(text, fmt.Sprintf("fabsh: -I %s: no such directory; scripts cannot load from it", filepath.Join(workspace, "nothing"))) || !strings.Contains(text, `"type":2`) {
		t.Error(text)
	}
	if text := got[protocol.MethodTextDocumentPublishDiagnostics]; !strings.Contains(text, "m.star has no y") {
		t.Error(text)
	}
	toServer.Close()
	go io.Copy(io.Discard, fromServer)
	<-ended
}
