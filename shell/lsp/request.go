package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"fabsh/builtins/lang"
)

// maxRequests is how many messages may wait, and how many requests may have no response yet.
const maxRequests = 1000

var errCancelled = errors.New("the editor has cancelled the request")

// request is a message of the editor: a request, or a notification.
type request struct {
	jsonrpc2.Request
	ctx    context.Context // ends if the editor cancels it, and after its response
	cancel context.CancelCauseFunc
	reply  jsonrpc2.Replier
}

// id returns the ID of a request; isCall: it is not a notification.
func (r *request) id() (id jsonrpc2.ID, isCall bool) {
	if call, ok := r.Request.(*jsonrpc2.Call); ok {
		return call.ID(), true
	}
	return id, false
}

// later is the result of a method that takes longer, and runs while other messages are answered.
// It must not use the server, unless it holds s.mu.
type later func() (any, error)

// receive accepts a message, while an earlier one may be running. It returns no errors: the
// library stores only one kind.
func (s *Server) receive(ctx context.Context, reply jsonrpc2.Replier, req jsonrpc2.Request) error {
	if req.Method() == protocol.MethodCancelRequest {
		s.cancelRequest(req.Params())
		return nil
	}
	r := &request{Request: req, reply: reply}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if err := s.begin(r); err != nil {
		reply(ctx, nil, err)
		return nil
	}
	s.waiting.Add(1)
	if stop := s.checking.Load(); stop != nil {
		(*stop)(errCancelled) // it begins again after the message
	}
	select {
	case s.queue <- r:
	case <-ctx.Done():
	}
	return nil
}

// begin records a request until its response.
func (s *Server) begin(r *request) error {
	id, isCall := r.id()
	if !isCall {
		return nil
	}
	s.callsMu.Lock()
	defer s.callsMu.Unlock()
	switch {
	case s.calls[id] != nil:
		return jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "request ID %v is in use; use each ID once", id)
	case len(s.calls) >= maxRequests:
		return jsonrpc2.Errorf(jsonrpc2.InternalError, "busy: %d requests have no response yet; send fewer at a time", maxRequests)
	}
	s.calls[id] = r
	return nil
}

// cancelRequest cancels a request that has no response yet.
func (s *Server) cancelRequest(params json.RawMessage) {
	var p struct{ ID jsonrpc2.ID }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.callsMu.Lock()
	defer s.callsMu.Unlock()
	if r := s.calls[p.ID]; r != nil {
		r.cancel(errCancelled)
	}
}

// work handles messages in their order, until the queue is closed or ctx ends.
func (s *Server) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, ok := <-s.queue:
			if !ok {
				return
			}
			s.handle(ctx, r)
			if s.waiting.Add(-1) == 0 {
				s.wake() // of a check that was stopped
			}
		}
	}
}

// answer sends the response of a request; a notification has none.
func (s *Server) answer(r *request, result any, err error) {
	if id, isCall := r.id(); isCall {
		s.callsMu.Lock()
		delete(s.calls, id)
		s.callsMu.Unlock()
	}
	if context.Cause(r.ctx) == errCancelled {
		result, err = nil, jsonrpc2.NewError(protocol.CodeRequestCancelled, errCancelled.Error())
	}
	defer r.cancel(nil)
	if err := r.reply(context.WithoutCancel(r.ctx), result, err); err != nil {
		s.end(fmt.Errorf("lsp: %w", err))
	}
}

// finish runs the rest of a request and answers it, at once if the editor cancels it. One such
// request runs at a time.
func (s *Server) finish(r *request, rest later) {
	select {
	case s.slot <- struct{}{}:
	case <-r.ctx.Done():
		s.abandon(r)
		return
	}
	var result any
	var err error
	done := make(chan struct{})
	go func() {
		defer func() { <-s.slot }()
		defer close(done)
		err = lang.Protect("lsp "+r.Method(), func() (err error) { result, err = rest(); return err })
	}()
	select {
	case <-done:
		s.answer(r, result, err)
	case <-r.ctx.Done():
		s.abandon(r)
	}
}

// abandon answers a request that is cancelled, unless the session ends.
func (s *Server) abandon(r *request) {
	if context.Cause(r.ctx) == errCancelled {
		s.answer(r, nil, nil)
	}
}
