package lsp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// Limits of what an editor may open, so that a check cannot take minutes.
const (
	maxText      = 1 << 20 // bytes of a document
	maxDocuments = 256
)

// document is a script that the editor has open.
type document struct {
	uri     protocol.DocumentURI
	path    string // its file, or a name for messages
	dir     string // where its modules are; empty: none may be read
	text    string
	tooLong bool  // the text is not kept
	starts  []int // offsets of the lines; nil: unknown yet
	version uint32
	due     int // the order of the next check, the largest first; 0: none is due

	kept       map[string]*part // by their texts, of the last text that was divided
	around     parts            // of the last completion that replaced the line of the cursor
	parsed     *outline         // of parsedText; nil: it has a syntax error
	parsedText string
	isParsed   bool
}

// pathOf returns the path of a file's URI; empty: it is not a file's.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// uriOf returns the URI of a file.
func uriOf(path string) protocol.DocumentURI {
	return protocol.DocumentURI((&url.URL{Scheme: "file", Path: path}).String())
}

func (s *Server) didOpen(ctx context.Context, p *protocol.DidOpenTextDocumentParams) (any, error) {
	uri := p.TextDocument.URI
	if len(s.open) >= maxDocuments && s.open[string(uri)] == nil {
		return nil, s.refuse(ctx, uri, uint32(p.TextDocument.Version), fmt.Errorf("not checked: %d documents are open, the maximum; close others, and open this one again", maxDocuments))
	}
	d := &document{uri: uri, path: cmp.Or(pathOf(string(uri)), string(uri))}
	if name, ok := s.embeddedName(d.path); ok {
		d.path = name
	} else if filepath.IsAbs(d.path) && s.inWorkspace(filepath.Dir(d.path)) {
		d.dir = filepath.Dir(d.path)
	}
	s.open[string(uri)] = d
	return nil, s.change(ctx, d, p.TextDocument.Text, uint32(p.TextDocument.Version))
}

func (s *Server) didSave(ctx context.Context, _ *protocol.DidSaveTextDocumentParams) (any, error) {
	return s.filesChanged(ctx, nil)
}

func (s *Server) didClose(ctx context.Context, p *protocol.DidCloseTextDocumentParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil { // it was not accepted
		return nil, s.publish(ctx, &document{uri: p.TextDocument.URI}, nil)
	}
	delete(s.open, string(d.uri))
	delete(s.Interpreter.Unsaved, d.path)
	delete(s.Interpreter.Sources, d.path)
	s.recheck()
	return nil, s.publish(ctx, d, nil)
}

// filesChanged checks all documents again: a module may have changed.
func (s *Server) filesChanged(context.Context, *protocol.DidChangeWatchedFilesParams) (any, error) {
	s.recheck()
	return nil, nil
}

func (s *Server) recheck() {
	for _, d := range s.open {
		if !d.tooLong {
			d.due = 1
		}
	}
	s.wake()
}

// change gives a document another text.
func (s *Server) change(ctx context.Context, d *document, text string, version uint32) error {
	d.tooLong = len(text) > maxText
	if d.tooLong {
		text = ""
	}
	d.text, d.version, d.starts = text, version, nil
	if d.dir != "" { // others may load it
		s.Interpreter.Unsaved[d.path] = text
	}
	s.recheck()
	d.due = 2 // before the others
	if d.tooLong {
		d.due = 0
		return s.refuse(ctx, d.uri, version, fmt.Errorf("not checked: the document is longer than %d bytes", maxText))
	}
	return nil
}

// document returns an open document.
func (s *Server) document(uri protocol.DocumentURI) (*document, error) {
	d := s.open[string(uri)]
	if d == nil {
		return nil, fmt.Errorf("lsp: %s is not open", uri)
	}
	return d, nil
}

// inWorkspace reports whether a directory is in a folder of the workspace.
func (s *Server) inWorkspace(dir string) bool {
	for _, f := range s.folders {
		if rel, err := filepath.Rel(f, dir); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// embeddedName returns the name of the embedded module that a file is a copy of.
func (s *Server) embeddedName(path string) (name string, ok bool) {
	rel, err := filepath.Rel(s.Modules, path)
	if s.Modules == "" || err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	pkg, file, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return "@" + pkg + "//" + file, true
}

// in lets the interpreter find the modules of a document until end is called.
func (s *Server) in(d *document) (in *script.Interpreter, end func(), err error) {
	files := s.Interpreter.Runtime.Files
	end = files.Scope()
	if d.dir != "" {
		err = files.Confine(d.dir)
	} else {
		files.Leave()
	}
	return s.Interpreter, end, err
}

// lines returns the offsets at which the lines begin.
func (d *document) lines() []int {
	if d.starts == nil {
		d.starts = []int{0}
		for i := range len(d.text) {
			if d.text[i] == '\n' {
				d.starts = append(d.starts, i+1)
			}
		}
	}
	return d.starts
}

// offset returns the offset of a position in the text: positions count UTF-16 codes.
func (d *document) offset(p protocol.Position) int {
	lines := d.lines()
	if int64(p.Line) >= int64(len(lines)) {
		return len(d.text)
	}
	at := lines[p.Line]
	left := int(p.Character)
	for at < len(d.text) && left > 0 && d.text[at] != '\n' {
		r, size := utf8.DecodeRuneInString(d.text[at:])
		at, left = at+size, left-codes(r)
	}
	return at
}

// position returns the position of an offset.
func (d *document) position(offset int) protocol.Position {
	line := sort.SearchInts(d.lines(), offset+1) - 1
	p := protocol.Position{Line: uint32(line)}
	for _, r := range d.text[d.starts[line]:offset] {
		p.Character += uint32(codes(r))
	}
	return p
}

// at returns the offset of a position of Starlark, which counts runes.
func (d *document) at(p syntax.Position) int {
	line := d.offset(protocol.Position{Line: uint32(max(p.Line, 1) - 1)})
	for n := p.Col; n > 1 && line < len(d.text) && d.text[line] != '\n'; n-- {
		_, size := utf8.DecodeRuneInString(d.text[line:])
		line += size
	}
	return line
}

// span returns the range between two offsets.
func (d *document) span(start, end int) protocol.Range {
	return protocol.Range{Start: d.position(start), End: d.position(end)}
}

// codes returns the length of a rune in UTF-16.
func codes(r rune) int { return max(1, utf16.RuneLen(r)) }

// outline is a script without syntax errors, whose names are resolved as far as possible.
type outline struct{ file *syntax.File }

// outlineOf returns the outline of a text; nil if it has syntax errors.
func outlineOf(path, text string) *outline {
	if lang.PlainText(path, 1, text) != nil {
		return nil
	}
	file, err := lang.Dialect.Parse(path, text, 0)
	if err != nil {
		return nil
	}
	any := func(string) bool { return true } // predeclared names do not matter here
	resolve.File(file, any, any)             // errors are findings of check
	return &outline{file}
}

// parse returns the outline of a document; nil if it has syntax errors.
func (d *document) parse() *outline {
	if !d.isParsed || d.parsedText != d.text {
		d.parsed, d.parsedText, d.isParsed = outlineOf(d.path, d.text), d.text, true
	}
	return d.parsed
}

// maxRepairs is the number of lines that repaired replaces at most.
const maxRepairs = 20

// repaired returns the outline of a text in which lines with syntax errors are replaced by statements
// that do nothing, and the numbers of these lines, from 0; nil: it cannot be repaired. Positions
// in the other lines are those of the text.
func repaired(path, text string) (*outline, []int) {
	if o := outlineOf(path, text); o != nil {
		return o, nil
	}
	fixed, lines := repairedText(path, text, (&document{path: path}).syntaxError)
	if lines == nil {
		return nil, nil
	}
	return outlineOf(path, fixed), lines
}

// repairedText is repaired for a text with syntax errors, and returns the text; nil lines: it
// cannot be repaired. syntaxError returns the first error of a text, with its line.
func repairedText(path, text string, syntaxError func(text string) error) (string, []int) {
	if lang.PlainText(path, 1, text) != nil {
		return "", nil
	}
	list := strings.Split(text, "\n")
	var replaced []int
	for range maxRepairs {
		now := strings.Join(list, "\n")
		err := syntaxError(now)
		if err == nil {
			return now, replaced
		}
		var wrong syntax.Error
		if !errors.As(err, &wrong) {
			return "", nil
		}
		at := min(max(int(wrong.Pos.Line)-1, 0), len(list)-1)
		for at > 0 && (slices.Contains(replaced, at) || strings.TrimSpace(list[at]) == "") {
			at-- // the error is often noticed after the line that has it
		}
		if slices.Contains(replaced, at) {
			return "", nil
		}
		line := strings.TrimRight(list[at], " \t\r")
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		list[at] = indent + "pass"
		if strings.HasSuffix(line, ":") {
			list[at] = indent + "if True:"
		}
		replaced = append(replaced, at)
	}
	return "", nil
}

// partsAround returns a document without the line of an offset, which is being typed, if it has a
// syntax error; else the last one without errors; nil: none.
func (d *document) partsAround(offset int) parts {
	whole := func(o *outline) parts {
		if o == nil {
			return nil
		}
		list := make(parts, 1)
		list[0].part = newPart(o.file.Stmts)
		return list
	}
	// of returns the parts of a text; nil: it has syntax errors.
	of := func(text string) parts {
		list, isDivided := d.partsOf(text)
		if !isDivided {
			list = whole(outlineOf(d.path, text))
		}
		return list
	}
	if list := of(d.text); list != nil {
		return list
	}
	start := strings.LastIndexByte(d.text[:offset], '\n') + 1
	end := len(d.text)
	if n := strings.IndexByte(d.text[offset:], '\n'); n >= 0 {
		end = offset + n
	}
	line := d.text[start:end]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	text := d.text[:start] + indent + "pass" + d.text[end:]
	if list := of(text); list != nil {
		d.around = list
		return list
	}
	if text, lines := repairedText(d.path, d.text, d.syntaxError); lines != nil {
		if list := of(text); list != nil {
			return list
		}
	}
	return d.around
}

// functionOf returns a function as builtins are declared.
func functionOf(def *syntax.DefStmt) *lang.Builtin {
	return &lang.Builtin{Name: def.Name.Name, Params: check.DefParams(def), Doc: docstring(def)}
}

// docstring returns the docstring of a function.
func docstring(def *syntax.DefStmt) string {
	if e, ok := def.Body[0].(*syntax.ExprStmt); ok {
		if l, ok := e.X.(*syntax.Literal); ok {
			text, _ := l.Value.(string)
			return lang.TrimDoc(text)
		}
	}
	return ""
}

// define adds the names that statements define: functions with their values, others
// without. load returns the function that a module defines.
func define(names starlark.StringDict, stmts []syntax.Stmt, load func(module, name string) *lang.Builtin) {
	bind := func(e syntax.Expr) {
		syntax.Walk(e, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Ident:
				names[n.Name] = nil
			case *syntax.DotExpr, *syntax.IndexExpr, *syntax.SliceExpr, *syntax.CallExpr:
				return false
			}
			return true
		})
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DefStmt:
				names[n.Name.Name] = lang.NewFunction(functionOf(n))
				return false // its names are its own
			case *syntax.AssignStmt:
				bind(n.LHS)
			case *syntax.ForStmt:
				bind(n.Vars)
			case *syntax.LoadStmt:
				for i, to := range n.To {
					names[to.Name] = nil
					if b := load(n.ModuleName(), n.From[i].Name); b != nil {
						names[to.Name] = lang.NewFunction(b)
					}
				}
			}
			return true
		})
	}
}

// parameters adds the parameters of a function.
func parameters(names starlark.StringDict, def *syntax.DefStmt) {
	for _, p := range check.DefParams(def) {
		names[strings.TrimLeft(p.Name, "*")] = nil
	}
}

func (s *Server) symbols(_ context.Context, p *protocol.DocumentSymbolParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	list := []protocol.DocumentSymbol{}
	if o, _ := repaired(d.path, d.text); o != nil {
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
