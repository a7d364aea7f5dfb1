package prompt

import (
	"errors"
	"maps"
	"regexp"
	"sync"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

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

func (x *interp) eval(thread *starlark.Thread, e syntax.Expr) error {
	v, err := starlark.EvalExprOptions(x.opts, thread, e, x.globals)
	if err != nil || v == starlark.None {
		return err
	}
	x.globals["_"] = v
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
