package lsp

import (
	"context"
	"fmt"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.starlark.net/syntax"

	"fabsh/builtins/script"
)

func (s *Server) symbols(_ context.Context, p *protocol.DocumentSymbolParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	list := []protocol.DocumentSymbol{}
	if o := outlineOf(d.path, d.text); o != nil {
		list = d.symbols(o.file.Stmts, list)
	}
	return list, nil
}

// symbols adds the functions and variables that statements define.
func (d *document) symbols(stmts []syntax.Stmt, list []protocol.DocumentSymbol) []protocol.DocumentSymbol {
	add := func(n syntax.Node, id *syntax.Ident, kind protocol.SymbolKind, detail string) *protocol.DocumentSymbol {
		start, end := n.Span()
		name := d.at(id.NamePos)
		list = append(list, protocol.DocumentSymbol{Name: id.Name, Detail: detail, Kind: kind, Range: d.span(d.at(start), d.at(end)), SelectionRange: d.span(name, name+len(id.Name))})
		return &list[len(list)-1]
	}
	for _, stmt := range stmts {
		switch n := stmt.(type) {
		case *syntax.DefStmt:
			f := add(n, n.Name, protocol.SymbolKindFunction, strings.TrimPrefix(functionOf(n).Signature(), n.Name.Name))
			f.Children = d.symbols(functionsIn(n.Body), nil)
		case *syntax.AssignStmt:
			if id, ok := n.LHS.(*syntax.Ident); ok && n.Op == syntax.EQ {
				add(n, id, protocol.SymbolKindVariable, "")
			}
		}
	}
	return list
}

// functionsIn returns the functions that a block defines.
func functionsIn(block []syntax.Stmt) (list []syntax.Stmt) {
	for _, stmt := range block {
		if def, ok := stmt.(*syntax.DefStmt); ok {
			list = append(list, def)
		}
	}
	return list
}

// formatting formats a document, while other requests are answered: it can take seconds.
func (s *Server) formatting(_ context.Context, p *protocol.DocumentFormattingParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if d.tooLong {
		return nil, fmt.Errorf("lsp: the document is longer than %d bytes", maxText)
	}
	was := document{path: d.path, text: d.text}
	return later(func() (any, error) {
		edits, err := was.formatted()
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.text != was.text {
			return nil, jsonrpc2.NewError(protocol.CodeContentModified, "the document has changed; format it again")
		}
		return edits, err
	}), nil
}

// formatted returns the changes that format a document: one, of the lines between the
// first and the last that differ, so that the editor keeps the cursor.
func (d *document) formatted() ([]protocol.TextEdit, error) {
	out, err := script.Format(d.path, []byte(d.text))
	if err != nil {
		return nil, err
	}
	text := string(out)
	if text == d.text {
		return []protocol.TextEdit{}, nil
	}
	start := 0
	for n := strings.IndexByte(d.text[start:], '\n') + 1; n > 0 && strings.HasPrefix(text[start:], d.text[start:start+n]); n = strings.IndexByte(d.text[start:], '\n') + 1 {
		start += n
	}
	old, changed := d.text[start:], text[start:]
	for {
		n := strings.LastIndexByte(strings.TrimSuffix(old, "\n"), '\n') + 1
		if n == 0 || !strings.HasSuffix("\n"+changed, "\n"+old[n:]) || old[n:] == "" {
			break
		}
		changed = changed[:len(changed)-len(old[n:])]
		old = old[:n]
	}
	return []protocol.TextEdit{{Range: d.span(start, start+len(old)), NewText: changed}}, nil
}
