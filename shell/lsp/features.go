package lsp

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/fabric/format"
	"fabsh/mad"
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
	if err == nil {
		found = append(found, d.repairedFindings(ctx, in)...)
	}
	if err != nil && ctx.Err() == nil {
		found = append(found, check.Problem{Text: err.Error()})
	}
	return found
}

// repairedFindings returns what check finds besides the syntax errors of a document.
func (d *document) repairedFindings(ctx context.Context, in *script.Interpreter) (list []check.Problem) {
	if d.parse() != nil {
		return nil
	}
	text, lines := repairedText(d.path, d.text, d.syntaxError)
	if lines == nil {
		return nil
	}
	defer func() { in.Sources[d.path] = d.text }()
	var found []check.Problem
	if lang.Protect("lsp", func() (err error) { found, err = check.Source(ctx, in, d.path, text); return err }) != nil {
		return nil
	}
	all := strings.Split(d.text, "\n")
	for _, p := range found {
		isLost := slices.Contains(lines, int(p.Pos.Line)-1)
		if name, ok := strings.CutPrefix(p.Text, "undefined: "); ok { // a line that was replaced may define it
			name, _, _ = strings.Cut(name, " ")
			isLost = isLost || slices.ContainsFunc(lines, func(i int) bool { return strings.Contains(all[i], name) })
		}
		if !isLost {
			list = append(list, p)
		}
	}
	return list
}

// unused returns the names of functions and loads that nothing uses.
func (d *document) unused() (list []*syntax.Ident) {
	o := d.parse()
	if o == nil {
		return nil
	}
	uses := map[*syntax.Ident]int{}
	o.identifiers(func(_, first *syntax.Ident) { uses[first]++ })
	add := func(id *syntax.Ident, few bool) {
		if few && !strings.HasPrefix(id.Name, "_") {
			list = append(list, id)
		}
	}
	for _, stmt := range o.file.Stmts {
		switch n := stmt.(type) {
		case *syntax.LoadStmt:
			for _, to := range n.To {
				add(to, uses[to] <= 1)
			}
		case *syntax.DefStmt:
			syntax.Walk(n, func(n syntax.Node) bool {
				if a, ok := n.(*syntax.AssignStmt); ok && a.Op == syntax.EQ {
					if id, ok := a.LHS.(*syntax.Ident); ok {
						add(id, uses[id] == 1) // 0: another assignment comes before it
					}
				}
				return true
			})
		}
	}
	return list
}

// findingCodes are kinds of findings: the parts of their messages, and their help. The first that fits
// counts; the last one fits all.
var findingCodes = []struct {
	code  string
	parts []string
	help  string
}{
	{"undefined", []string{"undefined: "}, "Neither the script nor fabsh defines the name. Define it before it is used, load it\nfrom a module, or correct it."},
	{"argument", []string{"unexpected keyword argument", "missing argument", "want at most"}, "The function has other parameters. Its help lists them: fabsh help FUNCTION."},
	{"value", []string{"is never "}, "The field never has this word, so the comparison always has the same result. The help\nof the type lists the words: fabsh help TYPE.FIELD."},
	{"type", []string{"cannot be added"}, "Values of these types cannot be added. Convert one, such as by str()."},
	{"attribute", []string{"unknown attribute", "has no attribute", "has no ."}, "Values of the type have no such field or method, or no attribute of datagrams has the\nname. dir(VALUE) and fabsh help TYPE list the names."},
	{"load", []string{"cannot load", " has no "}, "The module is missing, has errors, or does not define the name. Modules are beside the\nscript, in the directories of -I, or part of fabsh (@std//lib/...)."},
	{codeUnused, nil, "Nothing uses the name. Remove it, or begin it with an underscore."},
	{"syntax", []string{"syntax error: ", "got "}, "The text is not Starlark. The error is often in the line before."},
	{"check", []string{""}, "Another mistake, or the reason that a document is not checked."},
}

// codeUnused is the code of names that nothing uses, which check does not report.
const codeUnused = "unused"

// codeOf returns the kind of a finding.
func codeOf(text string) string {
	for _, c := range findingCodes {
		if slices.ContainsFunc(c.parts, func(part string) bool { return strings.Contains(text, part) }) {
			return c.code
		}
	}
	return "" // the last one fits
}

// findingHelp returns the help of check, with the codes of findings, and the line of each code, from 1.
func (s *Server) findingHelp() (text string, lines map[string]int) {
	var b strings.Builder
	if page := s.page("check"); page != "" {
		b.WriteString(page + "\n\n")
	}
	b.WriteString("Codes of findings in editors:\n")
	lines = map[string]int{}
	for _, c := range findingCodes {
		lines[c.code] = strings.Count(b.String(), "\n") + 2
		fmt.Fprintf(&b, "\n%s\n    %s\n", c.code, strings.ReplaceAll(c.help, "\n", "\n    "))
	}
	return b.String(), lines
}

// helpOf returns what a finding links to: the line of its code in a file with the help of check; nil:
// the file cannot be written.
func (s *Server) helpOf(code string) *protocol.CodeDescription {
	s.helpOnce.Do(func() {
		text, lines := s.findingHelp()
		if s.Modules == "" {
			return
		}
		if file, err := s.copyOf("@help//check.txt", text); err == nil {
			s.helpURI, s.helpLines = uriOf(file), lines
		}
	})
	if s.helpURI == "" {
		return nil
	}
	return &protocol.CodeDescription{Href: protocol.URI(fmt.Sprintf("%s#L%d", s.helpURI, s.helpLines[code]))}
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
		code := codeOf(f.Text)
		list = append(list, protocol.Diagnostic{Range: d.span(start, max(end, min(start+1, len(d.text)))), Severity: protocol.DiagnosticSeverityError, Code: code, CodeDescription: s.helpOf(code), Source: "fabsh", Message: f.Text})
	}
	for _, id := range d.unused() {
		at := d.at(id.NamePos)
		list = append(list, protocol.Diagnostic{Range: d.span(at, at+len(id.Name)), Severity: protocol.DiagnosticSeverityHint, Code: codeUnused, CodeDescription: s.helpOf(codeUnused), Source: "fabsh", Message: id.Name + " is unused", Tags: []protocol.DiagnosticTag{protocol.DiagnosticTagUnnecessary}})
	}
	slices.SortStableFunc(list, func(a, b protocol.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Range.Start.Line, b.Range.Start.Line), cmp.Compare(a.Range.Start.Character, b.Range.Start.Character))
	})
	return s.conn.Notify(ctx, protocol.MethodTextDocumentPublishDiagnostics, &protocol.PublishDiagnosticsParams{URI: d.uri, Version: d.version, Diagnostics: list})
}

// completer returns what completes the text of a document before an offset. end ends it.
func (s *Server) completer(d *document, offset int) (c *check.Completer, end func(), err error) {
	in, end, err := s.in(d)
	if err != nil {
		return nil, end, err
	}
	line := int32(strings.Count(d.text[:offset], "\n")) + 1
	names := maps.Clone(in.Globals)
	for name, v := range d.partsAround(offset).names(line, s.loaded(d)) {
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

// helpWidth is the width of help in an editor, in columns.
const helpWidth = 80

func (s *Server) hover(_ context.Context, p *protocol.HoverParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	start := d.offset(p.Position)
	end := start
	for start > 0 && check.IsWordByte(d.text[start-1]) {
		start--
	}
	for end < len(d.text) && check.IsWordByte(d.text[end]) {
		end++
	}
	c, done, err := s.completer(d, end)
	defer done()
	if err != nil || start == end {
		return nil, err
	}
	text := s.help(c, d.text, start, end)
	if text == "" {
		return nil, nil
	}
	over := d.span(start, end)
	if !s.markdown {
		return &protocol.Hover{Contents: protocol.MarkupContent{Kind: protocol.PlainText, Value: text}, Range: &over}, nil
	}
	return &protocol.Hover{Contents: protocol.MarkupContent{Kind: protocol.Markdown, Value: markdownOf(text)}, Range: &over}, nil
}

// markdownOf returns a page of help in Markdown: its first line, a signature or a name, as code, and
// the rest unchanged.
func markdownOf(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	out := fence + "python\n" + first + "\n" + fence
	if rest = strings.Trim(rest, "\n"); rest != "" {
		out += "\n\n" + fence + "text\n" + rest + "\n" + fence
	}
	return out
}

// help returns help on the word of a text from start to end; empty: none.
func (s *Server) help(c *check.Completer, text string, start, end int) string {
	word := text[start:end]
	if in := c.Inside(text[:end]); in != "" { // a string: perhaps the name of an attribute
		if in != `"` && in != "'" || mad.ByName(word) == nil {
			return ""
		}
		return s.page("attribute " + word)
	}
	if start > 0 && text[start-1] == '.' {
		of := c.ShapeAt(text, start-1)
		typ := of.TypeName()
		if m, ok := of.Value.(*starlarkstruct.Module); ok {
			typ = m.Name
		}
		if page := s.page(typ + "." + word); typ != "" && page != "" {
			return page
		}
	} else if v, ok := c.Globals()[word].(*lang.Function); ok {
		return lang.Prose(v.Help(), helpWidth)
	} else if starlark.Universe.Has(word) {
		return s.page(word)
	}
	of := c.ShapeAt(text, end)
	typ := of.TypeName()
	if m, ok := of.Value.(*starlarkstruct.Module); ok {
		return lang.Prose(lang.ModuleHelp(m), helpWidth)
	}
	if typ == "" || !slices.Contains(check.AttrNames(typ), word) && len(check.AttrNames(typ)) == 0 {
		if inferred := cmp.Or(of.Type, typ); inferred != "" {
			return word + ": " + inferred
		}
		return ""
	}
	return word + ": " + typ + "\n\n" + s.page(typ)
}

// page returns the page of a topic; empty: none has this name.
func (s *Server) page(topic string) string {
	text, err := s.Library.Find(topic, helpWidth)
	if err != nil {
		return ""
	}
	return strings.TrimRight(text, "\n")
}

func (s *Server) signature(_ context.Context, p *protocol.SignatureHelpParams) (any, error) {
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
	f, arg := c.Call(d.text[:offset], d.text[offset:])
	if f == nil {
		return nil, nil
	}
	info := protocol.SignatureInformation{Label: f.Signature(), Documentation: f.Doc}
	active := len(arg.Before)
	for i, param := range f.Params {
		info.Parameters = append(info.Parameters, protocol.ParameterInformation{Label: param.Name, Documentation: param.Doc})
		if arg.Keyword == param.Name && arg.Keyword != "" {
			active = i
		} else if strings.HasPrefix(param.Name, "*") && arg.Keyword == "" {
			active = min(active, i)
		}
	}
	return &protocol.SignatureHelp{Signatures: []protocol.SignatureInformation{info}, ActiveParameter: uint32(active)}, nil
}

func (s *Server) definition(ctx context.Context, p *protocol.DefinitionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	o := d.parse()
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
	if err := format.MakeDirectory(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	// The mode: the module is part of the program.
	err := format.WriteOwn(file, 0o400, func(w io.Writer) error { _, err := io.WriteString(w, src); return err })
	return file, err
}
