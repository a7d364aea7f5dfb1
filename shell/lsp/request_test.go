package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

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
		time.Sleep(time.Millisecond)
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
	if !e.server.checkOne(t.Context()) || e.next("a.star") != "" {
		t.Error("the document is not checked")
	}
}
