package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/mad"
)

// Completer proposes completions of the word before the cursor. It evaluates only names,
// attributes and constant indexes, and attributes do no I/O, so completion has no side effects.
// The type of the result of a call is known from the declaration of the function.
type Completer struct {
	Globals func() starlark.StringDict
	// Keywords returns the names that a call accepts by keyword; args are the source
	// texts of the arguments before the cursor.
	Keywords func(callee starlark.Value, args []string) []string
	// Words returns the possible texts of an argument. If isPath, files are proposed.
	Words func(callee starlark.Value, arg callArgument) (words []string, isPath bool)
	// Files returns the names that begin with prefix; directories end in a slash.
	Files func(prefix string) []string
	// Exports returns the names that a module defines.
	Exports func(module string) []string
	// Lead returns further words that may begin a text; nil: none.
	Lead func() []string
}

// callArgument is one argument of a call, a text that is being typed: by keyword, or else
// by position. Before are the source texts of the previous arguments.
type callArgument struct {
	Keyword string
	Before  []string
	Typed   string
}

// Complete returns the proposals for text, which ends at the cursor and may have
// several lines: each a whole word that replaces text[start:]. after is the text after
// the cursor.
func (c *Completer) Complete(text, after string) (words []string, start int) {
	at := locate(text)
	switch {
	case at.comment:
		return nil, len(text)
	case at.quote != "":
		return c.inString(text, after, at), at.start
	}
	start = len(text)
	for start > 0 && IsWordByte(text[start-1]) {
		start--
	}
	word := text[start:]
	if word != "" && word[0] >= '0' && word[0] <= '9' {
		return nil, len(text)
	}
	if start > 0 && text[start-1] == '.' {
		of := c.ShapeBefore(text[:start-1], after)
		return Matching(of.Attributes(), word), start
	}
	if at.call != nil && at.call.keyword == "" && strings.TrimSpace(text[at.call.argStart:start]) == "" {
		if callee := c.callee(at.call, text, after); callee != nil {
			for _, k := range c.Keywords(callee, at.call.args) {
				if !slices.Contains(at.call.given, k) {
					words = append(words, k+"=")
				}
			}
		}
		words = Matching(words, word)
	}
	if word == "" {
		return words, start // too many names to be useful
	}
	if start == 0 && c.Lead != nil {
		words = append(words, Matching(c.Lead(), word)...)
	}
	return append(words, Matching(c.names(), word)...), start
}

// keywords are the keywords of the language.
var keywords = []string{
	"and", "break", "continue", "def", "elif", "else", "for", "if", "in",
	"lambda", "load", "not", "or", "pass", "return", "while",
}

// IsKeyword reports whether a word is a keyword of the language.
func IsKeyword(word string) bool { return slices.Contains(keywords, word) }

// names returns all names and keywords, sorted.
func (c *Completer) names() []string {
	names := slices.Clone(keywords)
	for name := range c.Globals() {
		if !strings.Contains(name, " ") && name != "_" {
			names = append(names, name)
		}
	}
	for name := range starlark.Universe {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Shape returns the shape of the expression src between two texts, which define its variables.
func (c *Completer) Shape(src, before, after string) Shape {
	e, err := new(syntax.FileOptions).ParseExpr("", src, 0)
	if src == "" || err != nil {
		return Shape{}
	}
	return c.infer(e, scope{before, after})
}

// ShapeBefore returns the shape of the expression at the end of a text.
func (c *Completer) ShapeBefore(before, after string) Shape {
	return c.Shape(primaryBefore(before), before, after)
}

// ShapeAt returns the shape of the expression of a text that ends at an offset. The whole line
// may define its variables.
func (c *Completer) ShapeAt(text string, end int) Shape {
	line := len(text)
	if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
		line = end + n + 1
	}
	return c.Shape(primaryBefore(text[:end]), text[:line], text[line:])
}

// Inside returns the quote of the string that a text ends in, "#" in a comment, else "".
func (c *Completer) Inside(text string) string {
	at := locate(text)
	if at.comment {
		return "#"
	}
	return at.quote
}

// Call returns the function that a text is calling at its end, nil if it is unknown, and
// the argument there.
func (c *Completer) Call(text, after string) (*lang.Builtin, callArgument) {
	at := locate(text)
	if at.call == nil || at.comment {
		return nil, callArgument{}
	}
	f, _ := c.callee(at.call, text, after).(*lang.Function)
	if f == nil {
		return nil, callArgument{}
	}
	return f.Builtin, callArgument{Keyword: at.call.keyword, Before: at.call.args}
}

// callee returns the function that an open call calls; nil: unknown.
func (c *Completer) callee(call *openCall, text, after string) starlark.Value {
	of := c.Shape(call.callee, text, after)
	if of.Call != nil {
		return &lang.Function{Builtin: of.Call}
	}
	return of.Value
}

// inString proposes completions of the string under the cursor.
func (c *Completer) inString(text, after string, at location) []string {
	if words := c.comparedWords(text[:at.start-len(at.quote)], after); words != nil {
		return quotedMatches(words, text[at.start:], at.quote)
	}
	if at.call == nil || strings.TrimSpace(text[at.call.argStart:at.start-len(at.quote)]) != "" {
		return nil
	}
	typed := text[at.start:]
	arg := callArgument{at.call.keyword, at.call.args, typed}
	if at.call.callee == "load" {
		if len(arg.Before) == 0 {
			return c.Files(typed)
		}
		return quotedMatches(c.Exports(strings.Trim(arg.Before[0], `"'`)), typed, at.quote)
	}
	callee := c.callee(at.call, text, after)
	if callee == nil {
		return nil
	}
	words, isPath := c.Words(callee, arg)
	if isPath {
		return c.Files(typed)
	}
	return quotedMatches(words, typed, at.quote)
}

// quotedMatches returns the words that begin with typed, the text after quote, as the text of a
// string.
func quotedMatches(words []string, typed, quote string) []string {
	var out []string
	for _, w := range words {
		w = strings.ReplaceAll(w, `\`, `\\`)
		w = strings.ReplaceAll(w, quote[:1], `\`+quote[:1])
		if strings.HasPrefix(w, typed) {
			out = append(out, w)
		}
	}
	if len(out) == 1 {
		out[0] += quote
	}
	return out
}

// Matching returns the words that begin with prefix; without any, no private ones.
func Matching(words []string, prefix string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) && (prefix != "" || !strings.HasPrefix(w, "_")) {
			out = append(out, w)
		}
	}
	return out
}

// Evaluate returns the value of a chain of names, attributes and constant indexes; nil
// if src is anything else, or fails.
func (c *Completer) Evaluate(src string) starlark.Value {
	e, err := new(syntax.FileOptions).ParseExpr("", src, 0)
	if src == "" || err != nil {
		return nil
	}
	return c.value(e)
}

// value returns the value of a chain; nil: it is anything else, or fails.
func (c *Completer) value(e syntax.Expr) starlark.Value {
	switch e := e.(type) {
	case *syntax.Ident:
		if v, ok := c.Globals()[e.Name]; ok {
			return v
		}
		return starlark.Universe[e.Name]
	case *syntax.DotExpr:
		if h, ok := c.value(e.X).(starlark.HasAttrs); ok {
			if v, err := h.Attr(e.Name.Name); err == nil {
				return v
			}
		}
	case *syntax.IndexExpr:
		key := constant(e.Y)
		if key == nil {
			return nil
		}
		switch x := c.value(e.X).(type) {
		case starlark.Mapping:
			if v, found, err := x.Get(key); found && err == nil {
				return v
			}
		case starlark.Indexable:
			i, err := starlark.AsInt32(key)
			if err != nil {
				return nil
			}
			if i < 0 {
				i += x.Len()
			}
			if i >= 0 && i < x.Len() {
				return x.Index(i)
			}
		}
	}
	return nil
}

// constant returns the value of a literal; nil: e is anything else.
func constant(e syntax.Expr) starlark.Value {
	switch e := e.(type) {
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case string:
			return starlark.String(v)
		case int64:
			return starlark.MakeInt64(v)
		}
	case *syntax.UnaryExpr:
		if i, ok := constant(e.X).(starlark.Int); ok && e.Op == syntax.MINUS {
			return starlark.MakeInt(0).Sub(i)
		}
	}
	return nil
}

// KeywordsOf returns the names of a function's parameters; if it takes an attribute's
// fields by name, also the fields of the attribute that args name.
func KeywordsOf(callee starlark.Value, args []string) []string {
	var names []string
	for i, p := range paramsOf(callee) {
		switch {
		case p.Kind == records.KindFields:
			if a := attributeNamed(args); a != nil {
				for _, f := range a.Flat() {
					if a.Register == 0 || !f.ReadOnly && !f.W1C { // of a register, the fields that select
						names = append(names, f.Script)
					}
				}
			}
		case strings.HasPrefix(p.Name, "*"):
		case i >= len(args) || p.Keyword:
			names = append(names, p.Name)
		}
	}
	return names
}

// attributeNamed returns the attribute that the first of args names; nil: none.
func attributeNamed(args []string) *mad.Attribute {
	if len(args) == 0 {
		return nil
	}
	name := strings.Trim(args[0], `"'`)
	return cmp.Or(mad.ByName(name), mad.RegisterNamed(name))
}

// Known are the texts that a session knows besides the declarations.
type Known struct {
	Topics  func(base string) []string  // of help
	Targets func(typed string) []string // names of nodes and ports; nil: none are known
	Names   func() []string             // names of nodes; nil: none are known
}

// Words returns the texts that are valid for an argument.
func (k Known) Words(callee starlark.Value, arg callArgument) (words []string, isPath bool) {
	params := paramsOf(callee)
	i := len(arg.Before)
	if arg.Keyword != "" {
		i = slices.IndexFunc(params, func(p lang.Param) bool { return p.Name == arg.Keyword })
		if i < 0 {
			return fieldWords(attributeNamed(arg.Before), arg.Keyword), false
		}
	}
	if i >= len(params) {
		return nil, false
	}
	switch p := params[i]; p.Kind {
	case records.KindSMPAttribute:
		return datagrams.AttributeNames(mad.ClassSubn), false
	case records.KindPerfAttribute:
		return datagrams.AttributeNames(mad.ClassPerf), false
	case records.KindRecord:
		return datagrams.AttributeNames(mad.ClassSubnAdm), false
	case records.KindRegister:
		return datagrams.RegisterNames(), false
	case records.KindAttribute:
		return datagrams.OtherAttributeNames(), false
	case lang.KindTopic:
		base, _, isPart := strings.Cut(arg.Typed, ".")
		if !isPart {
			base = ""
		}
		return k.Topics(base), false
	case topology.KindTarget:
		if k.Targets != nil {
			return k.Targets(arg.Typed), false
		}
	case lang.KindChoice:
		return quotedWords(p.Doc), false
	case lang.KindPath:
		return nil, true
	default:
		if p.Kind != nil && p.Kind.Names { // or one of its words
			words := quotedWords(p.Doc)
			if k.Names != nil {
				words = append(words, k.Names()...)
			}
			return words, false
		}
	}
	return nil, false
}

// fieldWords returns the words of an enumerated field.
func fieldWords(a *mad.Attribute, field string) []string {
	if a == nil {
		return nil
	}
	for _, f := range a.Flat() {
		if f.Script == field && f.Words != nil {
			return slices.Sorted(maps.Keys(f.Words.Code()))
		}
	}
	return nil
}

// quotedWords returns the words between double quotes in doc.
func quotedWords(doc string) []string {
	var words []string
	for i, part := range strings.Split(doc, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

// membership returns what is before "in [" or "not in (" at the end of a text, whose list or tuple
// is open.
func membership(text string) (left string, ok bool) {
	open := strings.LastIndexAny(text, "[](){}\n")
	if open < 0 || text[open] != '[' && text[open] != '(' {
		return "", false
	}
	isPart := func(text string) bool { return text != "" && isWord(text[len(text)-1]) }
	left, ok = strings.CutSuffix(strings.TrimRight(text[:open], spaces), "in")
	if !ok {
		return "", false
	}
	if shorter, isNot := strings.CutSuffix(strings.TrimRight(left, spaces), "not"); isNot && strings.TrimRight(left, spaces) != left && !isPart(shorter) {
		return shorter, true
	}
	return left, !isPart(left)
}

// spaces are those of isSpace.
const spaces = " \t\n\f\r"

// comparedWords returns the words that the attribute before a comparison may have: before
// ends where the string begins, as in `port.state == "`.
func (c *Completer) comparedWords(before, after string) []string {
	before = strings.TrimRight(before, " \t")
	left, equal := strings.CutSuffix(before, "==")
	if !equal {
		left, equal = strings.CutSuffix(before, "!=")
	}
	if !equal {
		if left, equal = membership(before); !equal {
			return nil
		}
	}
	e, err := new(syntax.FileOptions).ParseExpr("", primaryBefore(left), 0)
	if err != nil {
		return nil
	}
	dot, ok := e.(*syntax.DotExpr)
	if !ok {
		return nil
	}
	return Words(c.infer(dot.X, scope{left, after}).TypeName(), dot.Name.Name)
}
