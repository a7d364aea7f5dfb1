package lsp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.lsp.dev/protocol"
	"go.starlark.net/resolve"
	"go.starlark.net/syntax"
)

func (s *Server) definition(ctx context.Context, p *protocol.DefinitionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	o := outlineOf(d.path, d.text)
	if o == nil {
		return nil, nil // positions are known only without syntax errors
	}
	_, end, err := s.in(d)
	defer end()
	if err != nil {
		return nil, err
	}
	offset := d.offset(p.Position)
	covers := func(pos syntax.Position, length int) bool {
		start := d.at(pos)
		return start <= offset && offset <= start+length
	}
	var found *protocol.Location
	syntax.Walk(o.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.LoadStmt:
			if covers(n.Module.TokenPos, len(n.Module.Raw)) {
				found, err = s.inModule(ctx, d, n.ModuleName(), "")
			}
			for i := range n.From {
				if covers(n.From[i].NamePos, len(n.From[i].Name)) || covers(n.To[i].NamePos, len(n.To[i].Name)) {
					found, err = s.inModule(ctx, d, n.ModuleName(), n.From[i].Name)
				}
			}
			return false
		case *syntax.Ident:
			b, ok := n.Binding.(*resolve.Binding)
			if !ok || b.First == nil || !covers(n.NamePos, len(n.Name)) {
				return true
			}
			if module, name := o.loadedAs(b.First); module != "" {
				found, err = s.inModule(ctx, d, module, name)
				return true
			}
			start := d.at(b.First.NamePos)
			found = &protocol.Location{URI: d.uri, Range: d.span(start, start+len(n.Name))}
		}
		return true
	})
	if found == nil || err != nil {
		return nil, err
	}
	return found, nil
}

// loadedAs returns the module and the name there of a loaded name; empty: it is not one.
func (o *outline) loadedAs(first *syntax.Ident) (module, name string) {
	for _, stmt := range o.file.Stmts {
		if l, ok := stmt.(*syntax.LoadStmt); ok {
			for i, to := range l.To {
				if to == first {
					return l.ModuleName(), l.From[i].Name
				}
			}
		}
	}
	return "", ""
}

// function returns the function that a script defines by that name; nil: none.
func (o *outline) function(name string) *syntax.DefStmt {
	if o == nil {
		return nil
	}
	for _, stmt := range o.file.Stmts {
		if def, ok := stmt.(*syntax.DefStmt); ok && def.Name.Name == name {
			return def
		}
	}
	return nil
}

// global returns the place where a script defines a name; nil: it does not.
func (o *outline) global(name string) *syntax.Ident {
	for _, b := range o.file.Module.(*resolve.Module).Globals {
		if b.First.Name == name {
			return b.First
		}
	}
	return nil
}

// inModule returns the place of a name in a module, or of the module if name is empty.
func (s *Server) inModule(ctx context.Context, d *document, module, name string) (*protocol.Location, error) {
	key, src, err := s.Interpreter.Find(ctx, d.path, module)
	if err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", module, err)
	}
	file := s.Interpreter.Runtime.Files.Abs(key)
	if strings.HasPrefix(key, "@") {
		if file, err = s.copyOf(key, src); err != nil {
			return nil, err
		}
	}
	to := &protocol.Location{URI: uriOf(file)}
	m := &document{path: key, text: src}
	if o := outlineOf(key, src); o != nil && name != "" {
		if first := o.global(name); first != nil {
			start := m.at(first.NamePos)
			to.Range = m.span(start, start+len(name))
		}
	}
	return to, nil
}

// copyOf returns the file with an embedded module, which is written first if it is not
// there: editors open files.
func (s *Server) copyOf(key, src string) (string, error) {
	if s.Modules == "" {
		return "", fmt.Errorf("%s is part of fabsh, and there is no directory to write a copy in", key)
	}
	file := filepath.Join(s.Modules, filepath.FromSlash(strings.Replace(strings.TrimPrefix(key, "@"), "//", "/", 1)))
	if old, err := os.ReadFile(file); err == nil && string(old) == src {
		return file, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(src)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o400) // the module is part of the program
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return file, err
}
