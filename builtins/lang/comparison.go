package lang

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// FieldWords are the possible words of an attribute: of one type of values, or of all types
// that have an attribute of its name.
type FieldWords struct {
	Words []string
	Mask  bool // the attribute is a tuple of such words
}

// WrongWord is a comparison that always has the same result: it compares an attribute,
// whose value is one of some words, with another text.
type WrongWord struct {
	Pos  syntax.Position
	Text string // the error, with a similar word if there is one
}

// WrongWords finds such comparisons in a script. It examines the source, because the
// interpreter compares two strings without a call that could warn. fields returns
// the possible words of an attribute; false: any value.
func WrongWords(f *syntax.File, fields func(*syntax.DotExpr) (FieldWords, bool), hint func(string, []string) string) []WrongWord {
	var found []WrongWord
	syntax.Walk(f, func(n syntax.Node) bool {
		b, ok := n.(*syntax.BinaryExpr)
		if !ok {
			return true
		}
		membership := b.Op == syntax.IN || b.Op == syntax.NOT_IN
		if !membership && b.Op != syntax.EQL && b.Op != syntax.NEQ {
			return true
		}
		x, y := PlainExpr(b.X), PlainExpr(b.Y)
		dot, left := x.(*syntax.DotExpr)
		other := y
		if !left {
			if dot, ok = y.(*syntax.DotExpr); !ok {
				return true
			}
			other = x
		}
		w, ok := fields(dot)
		if !ok {
			return true
		}
		var texts []*syntax.Literal // that are compared with a word
		switch text, isText := stringLiteral(other); {
		case isText && w.Mask && !membership:
			found = append(found, WrongWord{text.TokenPos, fmt.Sprintf("%s is a tuple of words, never %s; write %[2]s in %[1]s", exprText(dot), text.Raw)})
		case isText && (!membership || !left): // x.f == "a", or "a" in x.f
			texts = append(texts, text)
		case !isText && membership == (left && !w.Mask): // x.f in ("a", "b"), or x.f == ("a", "b")
			texts = literalsOf(other)
		}
		for _, text := range texts {
			word := text.Value.(string)
			if slices.Contains(w.Words, word) || isUnknownWord(word) {
				continue
			}
			near := hint(word, w.Words)
			if near == "" {
				near = "; its values are " + strings.Join(w.Words, ", ")
			}
			verb := "is never"
			if w.Mask {
				verb = "never has"
			}
			found = append(found, WrongWord{text.TokenPos, fmt.Sprintf("%s %s %s%s", exprText(dot), verb, text.Raw, near)})
		}
		return true
	})
	return found
}

// WarnComparisons warns once of each comparison that always has the same result in a script
// that is about to run; globals are the names that it does not define.
func (r *Runtime) WarnComparisons(f *syntax.File, globals starlark.StringDict) {
	if r.Comparisons == nil || r.Quiet {
		return
	}
	for _, w := range r.Comparisons(f, globals) {
		r.WarnOnce("%s: %s", w.Pos, w.Text)
	}
}

// isUnknownWord reports whether word stands for a number that has no word.
func isUnknownWord(word string) bool {
	return strings.HasPrefix(word, "unknown(") && strings.HasSuffix(word, ")")
}

// PlainExpr returns e without parentheses around it.
func PlainExpr(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

func stringLiteral(e syntax.Expr) (*syntax.Literal, bool) {
	l, ok := e.(*syntax.Literal)
	if !ok || l.Token != syntax.STRING {
		return nil, false
	}
	return l, true
}

// literalsOf returns the string literals in a list or tuple.
func literalsOf(e syntax.Expr) []*syntax.Literal {
	var list []syntax.Expr
	switch e := e.(type) {
	case *syntax.ListExpr:
		list = e.List
	case *syntax.TupleExpr:
		list = e.List
	}
	var texts []*syntax.Literal
	for _, x := range list {
		if l, ok := stringLiteral(PlainExpr(x)); ok {
			texts = append(texts, l)
		}
	}
	return texts
}

// exprText returns an attribute as the script writes it, if that is short.
func exprText(e *syntax.DotExpr) string {
	switch x := PlainExpr(e.X).(type) {
	case *syntax.Ident:
		return x.Name + "." + e.Name.Name
	case *syntax.DotExpr:
		return exprText(x) + "." + e.Name.Name
	}
	return "." + e.Name.Name
}
