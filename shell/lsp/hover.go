package lsp

import (
	"context"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/mad"
)

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
	return &protocol.Hover{Contents: protocol.MarkupContent{Kind: protocol.PlainText, Value: text}, Range: &over}, nil
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
