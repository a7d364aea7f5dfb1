package prompt

import (
	"errors"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

// A LineReader is a source of lines: a terminal with editing, or a pipe. ReadLine
// returns one line without its end; io.EOF at the end of the input, or of a statement
// that a terminal has returned completely; errInterrupted, with the text typed so far,
// after Ctrl-C.
type LineReader interface {
	ReadLine(prompt string) (string, error)
	Close() error
}

var errInterrupted = errors.New("interrupted")

// morePrompt stands before a line that continues a statement.
const morePrompt = "... "

// statements cuts lines into statements. A statement is one line; or several,
// while a bracket, a string or a backslash is open; or, after if, for, while
// or def, all that is indented under it. Such a block ends at a line that
// begins in column 0.
//
// syntax.FileOptions.ParseCompoundStmt does this as well, but it ends a block
// at a comment, and loses the line that follows a pasted block.
type statements struct {
	in     LineReader
	line   int    // lines read so far
	held   string // a line read too far
	isHeld bool
	text   strings.Builder // of all lines
}

// source is all that was read so far.
func (s *statements) source() string { return s.text.String() }

// next returns the next statement and the number of its first line. Blank and comment
// lines before it are skipped. With an error, text is what was read and is lost.
func (s *statements) next(prompt string) (text string, first int, err error) {
	var b strings.Builder
	var open scanState
	block := false
	for {
		p := prompt
		if b.Len() > 0 {
			p = morePrompt
		}
		l, err := s.read(p)
		if err == io.EOF && b.Len() > 0 {
			return b.String(), first, nil
		}
		if err != nil {
			return b.String() + l, 0, err
		}
		switch {
		case b.Len() == 0:
			if idle(l) {
				continue
			}
			first = s.line
			block = check.HasWord(l, "if", "for", "while", "def")
		case block && !open.inside():
			if !idle(l) && !indented(l) && !continuesBlock(l) {
				s.held, s.isHeld = l, true
				s.line--
				return b.String(), first, nil
			}
		}
		b.WriteString(l)
		b.WriteByte('\n')
		open.scan(l)
		if !open.inside() && open.last == ':' {
			block = true // or something similar: try, with, a misspelt for
		}
		if !block && !open.inside() {
			return b.String(), first, nil
		}
	}
}

func (s *statements) read(prompt string) (string, error) {
	if s.isHeld {
		s.isHeld = false
		s.line++
		return s.held, nil
	}
	l, err := s.in.ReadLine(prompt)
	l = strings.TrimSuffix(l, "\r")
	if err == nil {
		s.line++
		s.text.WriteString(l + "\n")
	}
	return l, err
}

// isWhole reports whether text, as typed, needs no further line. At a terminal a block
// ends at an empty line, or, where that would be indented, at a second one, so that its
// result does not wait for the next statement.
func isWhole(text string) bool {
	var open scanState
	lines := strings.Split(text, "\n")
	block, begun, head := false, false, false
	for _, l := range lines {
		if !open.inside() {
			head = check.HasWord(strings.TrimLeft(l, " \t"), "if", "for", "while", "def", "elif", "else")
		}
		switch {
		case !begun && idle(l):
			continue
		case !begun, block && !open.inside() && !idle(l) && !indented(l) && !continuesBlock(l):
			begun, block = true, check.HasWord(l, "if", "for", "while", "def")
		}
		open.scan(l)
		if head && !open.inside() && !open.colon {
			return true // the parser reports the missing colon, at this line
		}
		if !open.inside() && open.last == ':' {
			block = true
		}
		begun = block || open.inside()
	}
	last := lines[len(lines)-1]
	switch {
	case open.inside():
		return false
	case !block, last == "":
		return true
	}
	return strings.TrimSpace(last) == "" && strings.TrimSpace(lines[len(lines)-2]) == ""
}

// idle reports whether l is blank or a comment.
func idle(l string) bool {
	l = strings.TrimLeft(l, " \t")
	return l == "" || l[0] == '#'
}

func indented(l string) bool { return l != "" && (l[0] == ' ' || l[0] == '\t') }

func continuesBlock(l string) bool { return check.HasWord(l, "else", "elif") }

// scanState is what may be open at the end of a line.
type scanState struct {
	depth     int    // brackets
	quote     string // of the open string: `"`, `'`, `"""` or `'''`; "" outside
	backslash bool   // the line ends in a backslash
	colon     bool   // it, or a line that it continues, has a colon outside of brackets
	last      byte   // the last byte of the line that is neither blank nor comment
}

// inside reports whether the statement cannot end here.
func (s *scanState) inside() bool { return s.depth > 0 || s.quote != "" || s.backslash }

// scan scans one line.
func (s *scanState) scan(l string) {
	if !s.inside() {
		s.colon = false
	}
	s.backslash, s.last = false, 0
	for i := 0; i < len(l); i++ {
		c := l[i]
		if c != ' ' && c != '\t' && (c != '#' || s.quote != "") {
			s.last = c
		}
		if s.quote != "" {
			switch {
			case c == '\\':
				i++
				s.backslash = i == len(l)
			case strings.HasPrefix(l[i:], s.quote):
				i += len(s.quote) - 1
				s.quote, s.last = "", '"'
			}
			continue
		}
		switch c {
		case '#':
			return
		case '(', '[', '{':
			s.depth++
		case ')', ']', '}':
			s.depth = max(0, s.depth-1)
		case ':':
			s.colon = s.colon || s.depth == 0
		case '\\':
			s.backslash = i == len(l)-1
		case '"', '\'':
			s.quote = l[i : i+1]
			if t := strings.Repeat(s.quote, 3); strings.HasPrefix(l[i:], t) {
				s.quote = t
				i += 2
			}
		}
	}
	// A plain string ends with its line, at the latest: the parser reports it.
	if len(s.quote) == 1 && !s.backslash {
		s.quote = ""
	}
}

// An interp runs statement after statement in one growing set of globals, as
// Python's prompt does: a function sees what its globals are now, not what
// they were when it was defined, and may call one that is yet to come.
//
// starlark.ExecREPLChunk gives each chunk a copy of the globals, so that
// functions keep stale values. Here every statement is a program of its own,
// whose predeclared names are the shared map: those the interpreter looks up
// when they are used. Names that the statement itself assigns are the
// program's globals; their values so far are given to it by an assignment put
// before it (x += 1 is run as x = <x so far>; x += 1), and copied back after.
//
// What remains: a function defined inside an if, for or while block keeps the
// values that this block's own names had when the block ended.
type interp struct {
	opts    *syntax.FileOptions
	globals starlark.StringDict // the session's names and the user's
	show    func(starlark.Value) error
	check   func(*syntax.File)   // checks the statements before they run; may be nil
	made    func(starlark.Value) // called with what is assigned; may be nil
}

func newInterp(opts *syntax.FileOptions, predeclared starlark.StringDict, show func(starlark.Value) error) *interp {
	o := *opts
	o.LoadBindsGlobally = true // what is loaded at the prompt is for the prompt
	globals := make(starlark.StringDict, len(predeclared))
	maps.Copy(globals, predeclared)
	return &interp{opts: &o, globals: globals, show: show}
}

// exec runs the statements of src, the first of which is on the given line of the named
// file. The value of an expression is shown, and kept in _, unless it is None.
func (x *interp) exec(thread *starlark.Thread, file string, line int, src string) error {
	if err := lang.PlainText(file, line, src); err != nil {
		return err
	}
	f, err := x.opts.Parse(file, syntax.FilePortion{Content: []byte(src), FirstLine: int32(line), FirstCol: 1}, 0)
	if err != nil {
		return err
	}
	if x.check != nil {
		x.check(f)
	}
	for _, stmt := range f.Stmts {
		if e, ok := stmt.(*syntax.ExprStmt); ok {
			err = x.eval(thread, e.X)
		} else {
			err = x.run(thread, file, stmt)
		}
		if err != nil {
			return x.undefined(err)
		}
	}
	return nil
}

// lastValue is the name of the value that was shown last.
const lastValue = "_"

func (x *interp) eval(thread *starlark.Thread, e syntax.Expr) error {
	v, err := starlark.EvalExprOptions(x.opts, thread, e, x.globals)
	if err != nil || v == starlark.None {
		return err
	}
	x.globals[lastValue] = v
	return x.show(v)
}

func (x *interp) run(thread *starlark.Thread, file string, stmt syntax.Stmt) error {
	f := &syntax.File{Options: x.opts, Path: file, Stmts: []syntax.Stmt{stmt}}
	known := x.globals.Has
	if _, ok := stmt.(*syntax.DefStmt); ok {
		// The name may be defined by the time of the call. The language's own names are
		// not looked up in the session's, unless the session has one by then.
		known = func(name string) bool { return x.globals.Has(name) || !starlark.Universe.Has(name) }
	}
	assigned, err := assignedNames(f, known)
	if err != nil {
		return err
	}
	for _, name := range assigned {
		if v, ok := x.globals[name]; ok {
			alias := name + " so far" // no spelling of the language's
			x.globals[alias] = v
			defer delete(x.globals, alias)
			f.Stmts = append([]syntax.Stmt{assign(syntax.Start(stmt), name, alias)}, f.Stmts...)
		}
	}
	prog, err := starlark.FileProgram(f, known)
	if err != nil {
		return err
	}
	results, err := prog.Init(thread, x.globals)
	maps.Copy(x.globals, results) // those before an error too
	if x.made != nil {
		for _, v := range results {
			x.made(v)
		}
	}
	return err
}

// assignedNames returns the globals that f assigns, as resolution finds them; f is
// resolved again when it is compiled.
func assignedNames(f *syntax.File, known func(string) bool) ([]string, error) {
	if err := resolve.File(f, known, starlark.Universe.Has); err != nil {
		return nil, err
	}
	var names []string
	for _, b := range f.Module.(*resolve.Module).Globals {
		names = append(names, b.First.Name)
	}
	return names, nil
}

func assign(pos syntax.Position, to, from string) syntax.Stmt {
	return &syntax.AssignStmt{
		OpPos: pos,
		Op:    syntax.EQ,
		LHS:   &syntax.Ident{NamePos: pos, Name: to},
		RHS:   &syntax.Ident{NamePos: pos, Name: from},
	}
}

var uninitialized = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`internal error: predeclared variable (\w+) is uninitialized`)
})

// undefined replaces the interpreter's message about a name that was accepted in a
// function and never defined.
func (x *interp) undefined(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if ee, ok := e.(*starlark.EvalError); ok {
			ee.Msg = uninitialized().ReplaceAllString(ee.Msg, "undefined: $1")
		}
	}
	return err
}
