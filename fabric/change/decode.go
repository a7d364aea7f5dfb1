package change

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric/format"
	"fabsh/mad"
)

// Limits of a plan's file.
const (
	maxFile   = 256 << 20 // bytes: 10^6 blocks
	maxSets   = 1 << 20
	maxNodes  = 1 << 17
	maxLinks  = 1 << 20
	maxRounds = 1 << 16
	maxText   = 1 << 16 // bytes of one text
	maxNested = 6       // brackets in brackets
)

// LoadPlan reads the file of a plan. It trusts nothing in it: anything that Save would not
// write is an error, and memory is bounded by the file's length. name is for messages.
func LoadPlan(r io.Reader, name string) (*Plan, error) {
	r, err := format.Bounded(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	f := &fileReader{dec: json.NewDecoder(&plainJSON{r: r})}
	f.dec.UseNumber()
	p, err := f.plan()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// fileReader reads JSON token by token: each name of an object is known and comes
// once, and no value is larger than it may be.
type fileReader struct {
	dec     *json.Decoder
	made    Plan
	targets []Target
}

func (f *fileReader) plan() (*Plan, error) {
	p := &f.made
	known := false
	err := f.object("the plan", map[string]func() error{
		"format": func() error {
			text, err := f.text()
			if err == nil && text != fileFormat && text != formerFormat {
				err = fmt.Errorf("got %q, want %q: not a plan, or of another version", text, fileFormat)
			}
			known = err == nil
			return err
		},
		"from":    member(&p.From, f.text),
		"manager": member(&p.Base.Manager, f.manager),
		"choice":  member(&p.Choice, f.choice),
		"static": func() error {
			p.Static = true
			return f.list("switches", maxNodes, f.disabled)
		},
		"report":  member(&p.Recorded, f.report),
		"nodes":   func() error { return f.list("nodes", maxNodes, f.node) },
		"links":   func() error { return f.list("links", maxLinks, f.link) },
		"targets": func() error { return f.list("targets", maxNodes, f.target) },
		"sets":    func() error { return f.list("sets", maxSets, f.set) },
		// Files of the former format have none.
		"certificate": member(&p.Certificate, f.certificate),
	})
	if err != nil {
		return nil, err
	}
	if _, err := f.dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the plan")
	}
	if !known {
		return nil, fmt.Errorf("missing format: %q", fileFormat)
	}
	return p, nil
}

// object reads an object. All of its members must be there, once.
func (f *fileReader) object(what string, members map[string]func() error) error {
	t, err := f.token()
	if err != nil {
		return err
	}
	return f.members(what, t, members)
}

// members is object, of which the first token was read.
func (f *fileReader) members(what string, open json.Token, members map[string]func() error) error {
	if open != json.Delim('{') {
		return fmt.Errorf("%s: got %s, want {", what, tokenText(open))
	}
	var seen []string
	for f.dec.More() {
		t, err := f.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		read := members[name]
		switch {
		case read == nil:
			return fmt.Errorf("%s: unknown member %.40q", what, name)
		case slices.Contains(seen, name):
			return fmt.Errorf("%s: duplicate %q", what, name)
		}
		seen = append(seen, name)
		if err := read(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if names := missing(members, seen); names != "" {
		return fmt.Errorf("%s: missing %s", what, names)
	}
	return f.delimiter('}', what)
}

// optional are members that may be missing.
var optional = map[string]bool{"old": true, "new": true, "fields": true, "line": true, "choice": true, "static": true, "between": true, "certificate": true, "credit_loop": true, "effect": true}

// missing returns the missing members, sorted.
func missing(members map[string]func() error, seen []string) string {
	var names []string
	for name := range members {
		if !slices.Contains(seen, name) && !optional[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// list reads a list of at most limit elements. Its errors name the element, from 0.
func (f *fileReader) list(what string, limit int, element func() error) error {
	if err := f.delimiter('[', what); err != nil {
		return err
	}
	for n := 0; f.dec.More(); n++ {
		if n == limit {
			return fmt.Errorf("more than %d", limit)
		}
		if err := element(); err != nil {
			return fmt.Errorf("%d: %w", n, err)
		}
	}
	return f.delimiter(']', what)
}

func (f *fileReader) delimiter(want json.Delim, what string) error {
	t, err := f.token()
	if err == nil && t != want {
		err = fmt.Errorf("%s: got %s, want %v", what, tokenText(t), want)
	}
	return err
}

func (f *fileReader) token() (json.Token, error) {
	t, err := f.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", f.dec.InputOffset(), err)
	}
	return t, nil
}

func tokenText(t json.Token) string {
	if s, ok := t.(string); ok {
		return fmt.Sprintf("%.40q", s)
	}
	return fmt.Sprintf("%.40v", t)
}

func (f *fileReader) text() (string, error) {
	t, err := f.token()
	s, ok := t.(string)
	if err == nil && !ok {
		err = fmt.Errorf("got %s, want a string", tokenText(t))
	}
	return s, err
}

// number reads a number of at most limit.
func (f *fileReader) number(limit uint64) (uint64, error) {
	t, err := f.token()
	if err != nil {
		return 0, err
	}
	text, ok := t.(json.Number)
	n, bad := strconv.ParseUint(text.String(), 10, 64)
	if !ok || bad != nil || n > limit {
		return 0, fmt.Errorf("got %s, want a whole number up to %d", tokenText(t), limit)
	}
	return n, nil
}

func (f *fileReader) bool() (bool, error) {
	t, err := f.token()
	b, ok := t.(bool)
	if err == nil && !ok {
		err = fmt.Errorf("got %s, want true or false", tokenText(t))
	}
	return b, err
}

// member reads the value of a member.
func member[T any](into *T, read func() (T, error)) func() error {
	return func() (err error) { *into, err = read(); return err }
}

// count reads a number of at most limit.
func count[T ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](f *fileReader, into *T, limit T) func() error {
	return func() error {
		n, err := f.number(uint64(limit))
		*into = T(n)
		return err
	}
}

// ints reads a list of exactly this many numbers.
func (f *fileReader) ints(limits ...int) ([]int, error) {
	var ints []int
	err := f.list("numbers", len(limits), func() error {
		n, err := f.number(uint64(limits[len(ints)]))
		ints = append(ints, int(n))
		return err
	})
	if err == nil && len(ints) < len(limits) {
		err = fmt.Errorf("%d numbers, want %d", len(ints), len(limits))
	}
	return ints, err
}

func (f *fileReader) guid() (mad.GUID, error) {
	s, err := f.text()
	if err != nil {
		return 0, err
	}
	n, bad := strconv.ParseUint(s, 0, 64)
	if bad != nil || mad.GUID(n).String() != s {
		return 0, fmt.Errorf("got %.40q, want a GUID as 0x and 16 lower-case digits", s)
	}
	return mad.GUID(n), nil
}

// word reads a word of an enumeration.
func word[T ~uint8](f *fileReader, into *T, words *mad.Words) func() error {
	return func() error {
		s, err := f.text()
		if err != nil {
			return err
		}
		code, ok := words.Code[s]
		if !ok {
			digits := strings.TrimSuffix(strings.TrimPrefix(s, "unknown("), ")")
			var bad error
			if code, bad = strconv.ParseUint(digits, 10, 8); bad != nil || words.Text(code) != s {
				return fmt.Errorf("%.40q: invalid %s", s, words.Name)
			}
		}
		*into = T(code)
		return nil
	}
}

// plainJSON is r, as long as no text in it is longer than maxText and no more
// brackets are open than maxNested: so the decoder holds no more than that.
type plainJSON struct {
	r       io.Reader
	nested  int
	text    int // bytes of the text so far; 0: outside
	escaped bool
	plain   int // bytes outside of texts without a mark
}

func (p *plainJSON) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	for _, c := range b[:n] {
		if e := p.take(c); e != nil {
			return 0, e
		}
	}
	return n, err
}

func (p *plainJSON) take(c byte) error {
	if p.text > 0 {
		p.text++
		switch {
		case p.text > maxText:
			return fmt.Errorf("string of more than %d bytes", maxText)
		case p.escaped:
			p.escaped = false
		case c == '\\':
			p.escaped = true
		case c == '"':
			p.text = 0
		}
		return nil
	}
	switch p.plain++; c {
	case '"':
		p.text, p.plain = 1, 0
	case '{', '[':
		p.nested++
		p.plain = 0
	case '}', ']':
		p.nested--
		p.plain = 0
	case ',', ':':
		p.plain = 0
	}
	switch {
	case p.nested > maxNested:
		return fmt.Errorf("more than %d nested brackets", maxNested)
	case p.plain > maxText:
		return fmt.Errorf("more than %d bytes that do not belong to a plan", maxText)
	}
	return nil
}

const maxPort = math.MaxUint8
