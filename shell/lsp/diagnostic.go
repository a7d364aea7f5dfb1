package lsp

import (
	"cmp"
	"context"
	"slices"

	"go.lsp.dev/protocol"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

// wake starts a check of the documents that changed.
func (s *Server) wake() {
	select {
	case s.dirty <- struct{}{}:
	default: // a check is already due
	}
}

// check checks the documents that changed, until ctx ends. Of several changes in a row
// the last one counts.
func (s *Server) check(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		for s.checkOne(ctx) {
		}
	}
}

// checkOne checks one document that is due; false: none is, or a message waits. A message that
// comes while it checks stops it.
func (s *Server) checkOne(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due *document
	for _, d := range s.open {
		if d.due > 0 && (due == nil || cmp.Or(due.due-d.due, cmp.Compare(d.uri, due.uri)) < 0) {
			due = d
		}
	}
	if due == nil || ctx.Err() != nil {
		return false
	}
	checkCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.checking.Store(&stop)
	defer s.checking.Store(nil)
	if s.waiting.Load() > 0 {
		return false // work wakes the check
	}
	found := s.findings(checkCtx, due)
	if checkCtx.Err() != nil {
		return false
	}
	due.due = 0
	return s.publish(ctx, due, found) == nil
}

// findings returns what check finds in a document.
func (s *Server) findings(ctx context.Context, d *document) []check.Problem {
	in, end, err := s.in(d)
	defer end()
	if err != nil {
		return []check.Problem{{Text: err.Error()}}
	}
	var found []check.Problem
	err = lang.Protect("lsp", func() (err error) { found, err = check.Source(ctx, in, d.path, d.text); return err })
	if err != nil && ctx.Err() == nil {
		found = append(found, check.Problem{Text: err.Error()})
	}
	return found
}

// refuse sends the reason that a document is not checked.
func (s *Server) refuse(ctx context.Context, uri protocol.DocumentURI, version uint32, reason error) error {
	return s.publish(ctx, &document{uri: uri, version: version}, []check.Problem{{Pos: syntax.MakePosition(nil, 1, 1), Text: reason.Error()}})
}

// publish sends the findings of a document to the editor. A finding is at the word that
// begins at its position.
func (s *Server) publish(ctx context.Context, d *document, found []check.Problem) error {
	list := make([]protocol.Diagnostic, 0, len(found)) // an empty list removes the earlier ones
	for _, f := range found {
		start := d.at(f.Pos)
		end := start
		for end < len(d.text) && check.IsWordByte(d.text[end]) {
			end++
		}
		list = append(list, protocol.Diagnostic{Range: d.span(start, max(end, min(start+1, len(d.text)))), Severity: protocol.DiagnosticSeverityError, Source: "fabsh", Message: f.Text})
	}
	slices.SortStableFunc(list, func(a, b protocol.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Range.Start.Line, b.Range.Start.Line), cmp.Compare(a.Range.Start.Character, b.Range.Start.Character))
	})
	return s.conn.Notify(ctx, protocol.MethodTextDocumentPublishDiagnostics, &protocol.PublishDiagnosticsParams{URI: d.uri, Version: d.version, Diagnostics: list})
}
