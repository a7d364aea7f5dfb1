package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"fabsh/builtins/lang"
)

// Output that is too long is shortened in its structure, so that it stays JSON: each list and each
// dict without a schema keeps its first elements, at most so many that all fits.

// Cut is a list, a dict or a text of which only the begin is kept.
type Cut struct {
	At   string `json:"at"` // values[0].findings
	Kept int    `json:"kept"`
	Of   int    `json:"of"` // -1: unknown, because the output ended
}

// maxCuts is how many cuts are listed: one of each kind of place.
const maxCuts = 8

// elementIndex matches the index of an element of a value in a place.
var elementIndex = regexp.MustCompile(`\[[0-9]+\]`)

// kindsOf returns the first cut of each kind of place: of lists of the same name in different
// elements of a list, the first.
func kindsOf(cuts []Cut) (list []Cut) {
	seen := map[string]bool{}
	for _, c := range cuts {
		kind := elementIndex.ReplaceAllString(c.At, "[]")
		if kind == "values[]" {
			kind = c.At // values are of different kinds
		}
		if !seen[kind] && len(list) < maxCuts {
			seen[kind] = true
			list = append(list, c)
		}
	}
	return list
}

// summaryRows is up to how many rows an answer is a summary.
const summaryRows = 64

// allRows is the limit of elements that leaves lists whole.
const allRows = 1 << 16

// shorten returns the values in a text of JSON documents, in at most maximum bytes, with at most so
// many elements of each list. A document that ends early is closed.
// Text that is not JSON becomes one string.
func shorten(text string, maximum, rows int) (values []json.RawMessage, cuts []Cut) {
	for limit := rows; ; limit /= 2 { // elements
		s := shortener{decoder: json.NewDecoder(strings.NewReader(text)), limit: limit, left: maximum, isFirst: limit == rows, isSummary: rows <= summaryRows}
		s.decoder.UseNumber()
		values = s.all()
		if s.invalid {
			return shorten(lang.QuoteJSON(text), maximum, rows)
		}
		if !s.full {
			return values, kindsOf(s.cuts)
		}
		if limit == 0 {
			return nil, []Cut{{At: "values", Of: -1}}
		}
	}
}

// shortener copies documents.
type shortener struct {
	decoder *json.Decoder
	limit   int  // elements of a list; a text has 16 times as many bytes
	isFirst bool // texts are not shortened
	// isSummary means that inner lists are shortened more than outer ones.
	isSummary bool
	depth     int // lists around the current place
	left      int // bytes that may still be written
	full      bool
	ended     bool // the text ended within a document
	invalid   bool // the text is not JSON
	out       bytes.Buffer
	cuts      []Cut
}

// all copies all documents.
func (s *shortener) all() (values []json.RawMessage) {
	count := 0
	for !s.full && !s.ended {
		token, err := s.decoder.Token()
		if err != nil {
			s.invalid = !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
			break
		}
		count++
		if count > max(s.limit, 1) {
			s.skip(token)
			continue
		}
		s.out.Reset()
		s.value(token, fmt.Sprintf("values[%d]", count-1))
		s.left-- // a comma
		values = append(values, bytes.Clone(s.out.Bytes()))
	}
	if count > max(s.limit, 1) {
		s.cut("values", max(s.limit, 1), count)
	}
	return values
}

func (s *shortener) cut(at string, kept, of int) { s.cuts = append(s.cuts, Cut{at, kept, of}) }

func (s *shortener) write(text string) {
	if s.left -= len(text); s.left < 0 {
		s.full = true
		return
	}
	s.out.WriteString(text)
}

// value copies the value that begins with a token.
func (s *shortener) value(token json.Token, at string) {
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			s.list(at)
		} else {
			s.object(at)
		}
	case string:
		s.text(token, at)
	case nil:
		s.write("null")
	default:
		s.write(fmt.Sprint(token))
	}
}

// text copies a string.
func (s *shortener) text(text, at string) {
	if most := max(256, 16*s.limit); len(text) > most && !s.isFirst {
		s.cut(at, most, len(text))
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	s.write(lang.QuoteJSON(text))
}

// next returns the next token, unless the text has ended.
func (s *shortener) next() (json.Token, bool) {
	if s.ended || s.full {
		return nil, false
	}
	token, err := s.decoder.Token()
	if err != nil {
		s.ended = true
		s.invalid = !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
		return nil, false
	}
	return token, true
}

// list copies a list whose bracket is read.
func (s *shortener) list(at string) {
	s.write("[")
	s.depth++
	defer func(limit int) { s.depth, s.limit = s.depth-1, limit }(s.limit)
	if s.depth > 1 && s.isSummary {
		s.limit /= 4
	}
	n := 0
	for {
		token, ok := s.next()
		if !ok || token == json.Delim(']') {
			break
		}
		if n++; n > s.limit {
			s.skip(token)
			continue
		}
		if n > 1 {
			s.write(",")
		}
		s.value(token, fmt.Sprintf("%s[%d]", at, n-1))
	}
	s.close("]", at, n, n > s.limit)
}

// object copies an object whose brace is read. A value of fabsh, whose first member is its schema,
// keeps all members.
func (s *shortener) object(at string) {
	s.write("{")
	n, whole := 0, false
	for {
		name, ok := s.next()
		if !ok || name == json.Delim('}') {
			break
		}
		n++
		whole = whole || n == 1 && name == "schema"
		token, ok := s.next()
		if !ok {
			break
		}
		if n > s.limit && !whole {
			s.skip(token)
			continue
		}
		if n > 1 {
			s.write(",")
		}
		s.write(lang.QuoteJSON(fmt.Sprint(name)) + ":")
		s.value(token, at+"."+fmt.Sprint(name))
	}
	s.close("}", at, n, n > s.limit && !whole)
}

// close ends a list or an object of n elements.
func (s *shortener) close(bracket, at string, n int, isCut bool) {
	s.write(bracket)
	switch {
	case s.ended:
		s.cut(at, min(n, s.limit), -1)
	case isCut:
		s.cut(at, s.limit, n)
	}
}

// skip reads the rest of the value that begins with a token.
func (s *shortener) skip(token json.Token) {
	depth := 0
	for ok := true; ok; token, ok = s.next() {
		if d, isDelim := token.(json.Delim); isDelim {
			if d == '[' || d == '{' {
				depth++
			} else {
				depth--
			}
		}
		if depth == 0 {
			return
		}
	}
}
