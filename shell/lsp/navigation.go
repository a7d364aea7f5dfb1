package lsp

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
)

// Limits of the files of a workspace that are searched for a name.
const (
	maxFiles   = 500
	maxEntries = 20000
)

// symbol is a name: of one script, or if it is global there, also of the scripts that load it.
type symbol struct {
	path   string // of the script that defines it
	name   string
	global bool
	first  *syntax.Ident // in the script of the cursor, what binds it
}

// use is a place of a symbol.
type use struct {
	at         int // the offset
	definition bool
}

// identifiers calls fn for each identifier of a script that is bound in it, with what binds it.
func (o *outline) identifiers(fn func(id, first *syntax.Ident)) {
	syntax.Walk(o.file, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok {
			if b, ok := id.Binding.(*resolve.Binding); ok && b.First != nil {
				fn(id, b.First)
			}
		}
		return true
	})
}

// symbolAt returns the name at an offset; nil: none that the scripts define.
func (s *Server) symbolAt(ctx context.Context, d *document, offset int) (*symbol, error) {
	o := d.parse()
	if o == nil {
		return nil, fmt.Errorf("%s has a syntax error; correct it first", filepath.Base(d.path))
	}
	var first *syntax.Ident
	covers := func(id *syntax.Ident) bool {
		start := d.at(id.NamePos)
		return start <= offset && offset <= start+len(id.Name)
	}
	o.identifiers(func(id, bound *syntax.Ident) {
		if covers(id) {
			first = bound
		}
	})
	for _, stmt := range o.file.Stmts {
		if l, ok := stmt.(*syntax.LoadStmt); ok {
			for i := range l.From {
				if covers(l.From[i]) || covers(l.To[i]) {
					first = l.To[i]
				}
			}
		}
	}
	if first == nil {
		return nil, nil
	}
	x := &symbol{path: d.path, name: first.Name, first: first}
	x.global = slices.ContainsFunc(o.file.Module.(*resolve.Module).Globals, func(b *resolve.Binding) bool { return b.First == first })
	if module, name := o.loadedAs(first); module != "" {
		key, _, err := s.Interpreter.Find(ctx, d.path, module)
		if err != nil {
			return nil, fmt.Errorf("cannot load %s: %w", module, err)
		}
		x.path, x.name, x.global = s.Interpreter.Runtime.Files.Abs(key), name, true
		if strings.HasPrefix(key, "@") {
			x.path = key
		}
	}
	return x, nil
}

// uses returns the places of a symbol in a script.
func (s *Server) uses(ctx context.Context, d *document, x *symbol) (list []use) {
	o := d.parse()
	if o == nil {
		return nil
	}
	bound := map[*syntax.Ident]bool{} // what binds the symbol here
	if d.path == x.path {
		for _, b := range o.file.Module.(*resolve.Module).Globals {
			if x.global && b.First.Name == x.name {
				bound[b.First] = true
			}
		}
	}
	if x.first != nil && !x.global {
		o.identifiers(func(_, first *syntax.Ident) {
			if first.NamePos.Line == x.first.NamePos.Line && first.NamePos.Col == x.first.NamePos.Col {
				bound[first] = true
			}
		})
	}
	seen := map[int]bool{}
	add := func(id *syntax.Ident, definition bool) {
		if at := d.at(id.NamePos); !seen[at] {
			seen[at] = true
			list = append(list, use{at, definition})
		}
	}
	if x.global {
		for _, stmt := range o.file.Stmts {
			l, ok := stmt.(*syntax.LoadStmt)
			if !ok {
				continue
			}
			key, _, err := s.Interpreter.Find(ctx, d.path, l.ModuleName())
			if err != nil || key != x.path && s.Interpreter.Runtime.Files.Abs(key) != x.path {
				continue
			}
			for i := range l.From {
				if l.From[i].Name == x.name {
					add(l.From[i], false)
					if l.To[i].Name == x.name { // else the file has a name of its own
						bound[l.To[i]] = true
					}
				}
			}
		}
	}
	var functions []*syntax.DefStmt // with a parameter that is the symbol
	o.identifiers(func(id, first *syntax.Ident) {
		if bound[first] {
			add(id, id == first && d.path == x.path)
		}
	})
	syntax.Walk(o.file, func(n syntax.Node) bool {
		if def, ok := n.(*syntax.DefStmt); ok {
			for _, p := range def.Params {
				if b, isDefault := p.(*syntax.BinaryExpr); isDefault {
					p = b.X
				}
				if id, ok := p.(*syntax.Ident); ok && !x.global && bound[id] {
					functions = append(functions, def)
				}
			}
		}
		return true
	})
	syntax.Walk(o.file, func(n syntax.Node) bool { // keywords of calls
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		fn, _ := call.Fn.(*syntax.Ident)
		if fn == nil || !slices.ContainsFunc(functions, func(def *syntax.DefStmt) bool {
			b, ok := fn.Binding.(*resolve.Binding)
			return ok && b.First == def.Name
		}) {
			return true
		}
		for _, a := range call.Args {
			if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
				if id, ok := b.X.(*syntax.Ident); ok && id.Name == x.name {
					add(id, false)
				}
			}
		}
		return true
	})
	slices.SortFunc(list, func(a, b use) int { return a.at - b.at })
	return list
}

// workspace returns the open documents, and the other scripts of the workspace.
func (s *Server) workspace(ctx context.Context) (list []*document) {
	open := map[string]bool{}
	for _, d := range s.open {
		if !d.tooLong {
			list = append(list, d)
			open[d.path] = true
		}
	}
	entries := 0
	for _, folder := range s.folders {
		filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if entries++; entries > maxEntries || len(list) >= maxFiles || ctx.Err() != nil {
				return filepath.SkipAll
			}
			switch {
			case err != nil:
				return nil
			case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != folder:
				return filepath.SkipDir
			case !e.Type().IsRegular() || !strings.HasSuffix(path, ".star") || open[path]:
				return nil
			}
			if info, err := e.Info(); err != nil || info.Size() > maxText {
				return nil
			}
			if text, err := os.ReadFile(path); err == nil {
				open[path] = true
				list = append(list, &document{uri: uriOf(path), path: path, dir: filepath.Dir(path), text: string(text)})
			}
			return nil
		})
	}
	slices.SortFunc(list, func(a, b *document) int { return strings.Compare(string(a.uri), string(b.uri)) })
	return list
}

// places calls fn for each script that has the symbol, with its places.
func (s *Server) places(ctx context.Context, d *document, x *symbol, fn func(*document, []use)) {
	list := []*document{d}
	if x.global {
		list = s.workspace(ctx)
	}
	for _, other := range list {
		_, end, err := s.in(other)
		if err == nil {
			if uses := s.uses(ctx, other, x); len(uses) > 0 {
				fn(other, uses)
			}
		}
		end()
	}
}

// at returns the document and the symbol at a position.
func (s *Server) at(ctx context.Context, p protocol.TextDocumentPositionParams) (*document, *symbol, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, nil, err
	}
	_, end, err := s.in(d)
	defer end()
	if err != nil {
		return nil, nil, err
	}
	x, err := s.symbolAt(ctx, d, d.offset(p.Position))
	return d, x, err
}

func (s *Server) references(ctx context.Context, p *protocol.ReferenceParams) (any, error) {
	d, x, err := s.at(ctx, p.TextDocumentPositionParams)
	list := []protocol.Location{}
	if x == nil || err != nil {
		return list, nil
	}
	s.places(ctx, d, x, func(d *document, uses []use) {
		for _, u := range uses {
			if !u.definition || p.Context.IncludeDeclaration {
				list = append(list, protocol.Location{URI: d.uri, Range: d.span(u.at, u.at+len(x.name))})
			}
		}
	})
	return list, nil
}

func (s *Server) highlight(ctx context.Context, p *protocol.DocumentHighlightParams) (any, error) {
	d, x, err := s.at(ctx, p.TextDocumentPositionParams)
	list := []protocol.DocumentHighlight{}
	if x == nil || err != nil {
		return list, nil
	}
	_, end, err := s.in(d)
	defer end()
	if err != nil {
		return list, nil
	}
	for _, u := range s.uses(ctx, d, x) {
		kind := protocol.DocumentHighlightKindRead
		if u.definition {
			kind = protocol.DocumentHighlightKindWrite
		}
		list = append(list, protocol.DocumentHighlight{Range: d.span(u.at, u.at+len(x.name)), Kind: kind})
	}
	return list, nil
}

// renamable returns the symbol at a position, if it can have another name.
func (s *Server) renamable(ctx context.Context, p protocol.TextDocumentPositionParams) (*document, *symbol, error) {
	d, x, err := s.at(ctx, p)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("rename: %w", err)
	case x == nil:
		return nil, nil, fmt.Errorf("rename: no name that scripts define is here")
	case !filepath.IsAbs(x.path) || !s.inWorkspace(filepath.Dir(x.path)) && x.path != d.path:
		return nil, nil, fmt.Errorf("rename: %s is not defined in the workspace", x.name)
	}
	return d, x, nil
}

func (s *Server) prepareRename(ctx context.Context, p *protocol.PrepareRenameParams) (any, error) {
	d, x, err := s.renamable(ctx, p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	offset := d.offset(p.Position)
	for _, u := range s.uses(ctx, d, x) {
		if u.at <= offset && offset <= u.at+len(x.name) {
			return d.span(u.at, u.at+len(x.name)), nil
		}
	}
	return nil, nil
}

func (s *Server) rename(ctx context.Context, p *protocol.RenameParams) (any, error) {
	d, x, err := s.renamable(ctx, p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	if !isName(p.NewName) {
		return nil, fmt.Errorf("rename %s: invalid name %q", x.name, p.NewName)
	}
	changes := map[protocol.DocumentURI][]protocol.TextEdit{}
	s.places(ctx, d, x, func(d *document, uses []use) {
		d.parse().identifiers(func(id, _ *syntax.Ident) {
			if id.Name == p.NewName && err == nil {
				err = fmt.Errorf("rename %s: %s already has the name %s", x.name, filepath.Base(d.path), p.NewName)
			}
		})
		for _, u := range uses {
			changes[d.uri] = append(changes[d.uri], protocol.TextEdit{Range: d.span(u.at, u.at+len(x.name)), NewText: p.NewName})
		}
	})
	if err == nil && (starlark.Universe.Has(p.NewName) || s.Interpreter.Globals.Has(p.NewName)) {
		err = fmt.Errorf("rename %s: %s is a function of fabsh", x.name, p.NewName)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.WorkspaceEdit{Changes: changes}, nil
}

// isName reports whether a text is an identifier and not a keyword.
func isName(text string) bool {
	for i := range len(text) {
		if !check.IsWordByte(text[i]) {
			return false
		}
	}
	return text != "" && (text[0] < '0' || text[0] > '9') && !check.IsKeyword(text)
}

func (s *Server) workspaceSymbols(ctx context.Context, p *protocol.WorkspaceSymbolParams) (any, error) {
	list := []protocol.SymbolInformation{}
	query := strings.ToLower(p.Query)
	for _, d := range s.workspace(ctx) {
		o, _ := repaired(d.path, d.text)
		if o == nil {
			continue
		}
		for _, x := range d.symbols(o.file.Stmts, nil) {
			if strings.Contains(strings.ToLower(x.Name), query) {
				list = append(list, protocol.SymbolInformation{Name: x.Name, Kind: x.Kind, Location: protocol.Location{URI: d.uri, Range: x.SelectionRange}, ContainerName: filepath.Base(d.path)})
			}
		}
	}
	return list, nil
}

func (s *Server) folding(_ context.Context, p *protocol.FoldingRangeParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	list := []protocol.FoldingRange{}
	o, _ := repaired(d.path, d.text)
	if o == nil {
		return list, nil
	}
	syntax.Walk(o.file, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.DefStmt, *syntax.ForStmt, *syntax.IfStmt, *syntax.WhileStmt, *syntax.DictExpr, *syntax.ListExpr, *syntax.CallExpr, *syntax.LoadStmt:
			if start, end := n.Span(); end.Line > start.Line {
				list = append(list, protocol.FoldingRange{StartLine: uint32(start.Line - 1), EndLine: uint32(end.Line - 1)})
			}
		}
		return true
	})
	return list, nil
}

// tokenTypes are the kinds of semantic tokens, by their numbers.
var tokenTypes = []string{"function", "parameter", "variable", "property", "namespace"}

// Numbers of tokenTypes.
const (
	tokenFunction = iota
	tokenParameter
	tokenVariable
	tokenProperty
	tokenNamespace
)

// semanticTokens returns the kinds of the names in a document, as differences from one to the next.
func (s *Server) semanticTokens(_ context.Context, p *protocol.SemanticTokensParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	o, _ := repaired(d.path, d.text)
	if o == nil {
		return &protocol.SemanticTokens{Data: []uint32{}}, nil
	}
	type token struct {
		pos    syntax.Position
		length int
		kind   uint32
	}
	var tokens []token
	functions, parameters := map[*syntax.Ident]bool{}, map[*syntax.Ident]bool{}
	syntax.Walk(o.file, func(n syntax.Node) bool {
		if def, ok := n.(*syntax.DefStmt); ok {
			functions[def.Name] = true
			for _, p := range def.Params {
				switch e := p.(type) {
				case *syntax.BinaryExpr:
					p = e.X
				case *syntax.UnaryExpr:
					p = e.X
				}
				if id, ok := p.(*syntax.Ident); ok {
					parameters[id] = true
				}
			}
		}
		return true
	})
	syntax.Walk(o.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DotExpr:
			tokens = append(tokens, token{n.NamePos, len(n.Name.Name), tokenProperty})
		case *syntax.Ident:
			kind := uint32(tokenVariable)
			b, _ := n.Binding.(*resolve.Binding)
			switch {
			case b == nil || b.First == nil && !s.Interpreter.Globals.Has(n.Name) && !starlark.Universe.Has(n.Name):
				return true
			case b.First == nil && n.Name == "sim" || b.First == nil && isModule(s.Interpreter.Globals[n.Name]):
				kind = tokenNamespace
			case b.First == nil || functions[b.First]:
				kind = tokenFunction
			case parameters[b.First]:
				kind = tokenParameter
			}
			tokens = append(tokens, token{n.NamePos, len(n.Name), kind})
		}
		return true
	})
	slices.SortFunc(tokens, func(a, b token) int {
		if a.pos.Line != b.pos.Line {
			return int(a.pos.Line - b.pos.Line)
		}
		return int(a.pos.Col - b.pos.Col)
	})
	data := make([]uint32, 0, 5*len(tokens))
	var last protocol.Position
	for i, t := range tokens {
		if i > 0 && t.pos == tokens[i-1].pos {
			continue
		}
		at := d.position(d.at(t.pos))
		delta := at.Character
		if at.Line == last.Line {
			delta -= last.Character
		}
		data = append(data, at.Line-last.Line, delta, uint32(t.length), t.kind, 0)
		last = at
	}
	return &protocol.SemanticTokens{Data: data}, nil
}

func isModule(v starlark.Value) bool { return v != nil && v.Type() == "module" }

// suggestion is the end of a message that has the correct word.
const suggestion = "(did you mean "

// codeActions returns the words that messages propose, as changes.
func (s *Server) codeActions(_ context.Context, p *protocol.CodeActionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	list := []protocol.CodeAction{}
	for _, f := range p.Context.Diagnostics {
		_, rest, ok := strings.Cut(f.Message, suggestion)
		word, _, closed := strings.Cut(rest, "?)")
		if f.Source != "fabsh" || !ok || !closed || word == "" || strings.ContainsAny(word, " \n") {
			continue
		}
		at := f.Range
		start, end := d.offset(at.Start), d.offset(at.End)
		if start > end || end > len(d.text) {
			continue
		}
		if now := d.text[start:end]; strings.HasPrefix(now, `"`) || strings.HasPrefix(now, "'") { // a text
			if close := strings.IndexByte(d.text[start+1:], now[0]); close >= 0 {
				start, end = start+1, start+1+close
			}
		}
		list = append(list, protocol.CodeAction{
			Title: "Change to " + word, Kind: protocol.QuickFix, Diagnostics: []protocol.Diagnostic{f}, IsPreferred: true,
			Edit: &protocol.WorkspaceEdit{Changes: map[protocol.DocumentURI][]protocol.TextEdit{d.uri: {{Range: d.span(start, end), NewText: word}}}},
		})
	}
	return list, nil
}

// changeParams are the parameters of didChange. A range that is left out is the whole document,
// which the type of the library does not show.
type changeParams struct {
	TextDocument   protocol.VersionedTextDocumentIdentifier `json:"textDocument"`
	ContentChanges []contentChange                          `json:"contentChanges"`
}

// contentChange is a new text of a range; nil: of the whole document.
type contentChange struct {
	Range *protocol.Range `json:"range"`
	Text  string          `json:"text"`
}

func (s *Server) didChange(ctx context.Context, p *changeParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil || len(p.ContentChanges) == 0 {
		return nil, err
	}
	if whole := slices.ContainsFunc(p.ContentChanges, func(c contentChange) bool { return c.Range == nil }); d.tooLong && !whole {
		return nil, s.refuse(ctx, d.uri, uint32(p.TextDocument.Version), fmt.Errorf("not checked: the document was longer than %d bytes; open it again", maxText))
	}
	now := document{text: d.text}
	for _, c := range p.ContentChanges {
		if c.Range == nil {
			now = document{text: c.Text}
			continue
		}
		start, end := now.offset(c.Range.Start), now.offset(c.Range.End)
		if start > end {
			return nil, fmt.Errorf("lsp: invalid range of a change; open the document again")
		}
		now = document{text: now.text[:start] + c.Text + now.text[end:]}
	}
	return nil, s.change(ctx, d, now.text, uint32(p.TextDocument.Version))
}
