package lsp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.starlark.net/syntax"

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
	due     int      // the order of the next check, the largest first; 0: none is due
	outline *outline // of the last text that had no syntax error
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

func (s *Server) didChange(ctx context.Context, p *protocol.DidChangeTextDocumentParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil || len(p.ContentChanges) == 0 {
		return nil, err
	}
	return nil, s.change(ctx, d, p.ContentChanges[len(p.ContentChanges)-1].Text, uint32(p.TextDocument.Version))
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
	if o := outlineOf(d.path, text); o != nil {
		d.outline = o
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
