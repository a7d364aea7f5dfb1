package lsp

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"

	"go.lsp.dev/protocol"
	"go.starlark.net/starlark"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// completer returns what completes the text of a document before an offset. end ends it.
func (s *Server) completer(d *document, offset int) (c *check.Completer, end func(), err error) {
	in, end, err := s.in(d)
	if err != nil {
		return nil, end, err
	}
	line := int32(strings.Count(d.text[:offset], "\n")) + 1
	names := maps.Clone(in.Globals)
	for name, v := range d.around(offset).names(line, s.loaded(d)) {
		names[name] = v
	}
	return &check.Completer{
		Globals:  func() starlark.StringDict { return names },
		Keywords: check.KeywordsOf,
		Words:    check.Known{Topics: s.Library.Topics}.Words,
		Files:    func(prefix string) []string { return modulesWith(d.dir, prefix) },
		Exports:  func(module string) []string { return in.ExportsFrom(d.path, module) },
	}, end, nil
}

// loaded returns the functions that the modules of a document define.
func (s *Server) loaded(d *document) func(module, name string) *lang.Builtin {
	outlines := map[string]*outline{}
	return func(module, name string) *lang.Builtin {
		o, ok := outlines[module]
		if !ok {
			if key, src, err := s.Interpreter.Find(context.Background(), d.path, module); err == nil {
				o = outlineOf(key, src)
			}
			outlines[module] = o
		}
		if def := o.function(name); def != nil {
			return functionOf(def)
		}
		return nil
	}
}

// modulesWith returns the modules beside a script, and the embedded ones, that begin with
// prefix; folders end in a slash.
func modulesWith(dir, prefix string) []string {
	if strings.HasPrefix(prefix, "@") {
		return check.Matching(script.Embedded(), prefix)
	}
	folder, _ := path.Split(prefix)
	clean := path.Clean("./" + folder)
	root, err := os.OpenRoot(dir)
	if dir == "" || err != nil || strings.HasPrefix(prefix, "/") && !strings.HasPrefix(prefix, "//") {
		return nil
	}
	defer root.Close()
	entries, _ := fs.ReadDir(root.FS(), clean)
	var names []string
	for _, e := range entries {
		switch name := folder + e.Name(); {
		case e.IsDir():
			names = append(names, name+"/")
		case strings.HasSuffix(name, ".star"):
			names = append(names, name)
		}
	}
	return check.Matching(names, prefix)
}

func (s *Server) completion(_ context.Context, p *protocol.CompletionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	offset := d.offset(p.Position)
	c, end, err := s.completer(d, offset)
	defer end()
	if err != nil {
		return nil, err
	}
	before, after := d.text[:offset], d.text[offset:]
	words, start := c.Complete(before, after)
	list := protocol.CompletionList{Items: make([]protocol.CompletionItem, 0, len(words))}
	var of check.Shape // of what stands before a dot
	isMember := start > 0 && before[start-1] == '.'
	if isMember {
		of = c.ShapeBefore(before[:start-1], after)
	}
	for _, word := range words {
		if n := len(word) - 1; n >= 0 && after != "" && strings.ContainsRune(`"'`, rune(word[n])) && after[0] == word[n] {
			word = word[:n] // the editor has already closed the string
		}
		item := item(c.Globals(), word)
		if isMember {
			item = memberItem(of, word)
		}
		item.TextEdit = &protocol.TextEdit{Range: d.span(start, offset), NewText: word}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

// memberItem describes an attribute or method of values of a shape.
func memberItem(of check.Shape, name string) protocol.CompletionItem {
	item := protocol.CompletionItem{Label: name, Kind: protocol.CompletionItemKindField}
	m, _ := check.Member(of.TypeName(), name)
	item.Detail, item.Documentation = m.Type, m.Doc
	if m.Method != nil {
		item.Kind, item.Detail = protocol.CompletionItemKindMethod, m.Method.Signature()
	}
	return item
}

// item describes another proposal.
func item(globals starlark.StringDict, word string) protocol.CompletionItem {
	item := protocol.CompletionItem{Label: strings.TrimRight(word, `"'`), Kind: protocol.CompletionItemKindValue}
	v, isName := globals[word]
	switch {
	case strings.HasSuffix(word, "="):
		item.Kind = protocol.CompletionItemKindProperty
	case isName:
		item.Kind = protocol.CompletionItemKindVariable
		if f, ok := v.(*lang.Function); ok {
			item.Kind, item.Detail, item.Documentation = protocol.CompletionItemKindFunction, f.Signature(), f.Summary()
		}
	case starlark.Universe.Has(word):
		item.Kind = protocol.CompletionItemKindFunction
	case check.IsKeyword(word):
		item.Kind = protocol.CompletionItemKindKeyword
	}
	return item
}
