package builtins

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// RunFile runs a script and then, if it defines one, its entry function with
// what args say.
func (s *Session) RunFile(ctx context.Context, path string, args []string) error {
	src, err := s.readScript(ctx, path)
	if err != nil {
		return err
	}
	s.subject = strings.TrimSuffix(filepath.Base(path), ".star")
	t, release := s.mainThread(ctx, path)
	defer release()
	return finish(ctx, path, func() error {
		file, prog, err := s.compile(path, src)
		if err != nil {
			return err
		}
		// Before anything is done: whoever says --dry-run counts on it.
		if len(args) > 0 && !mayHaveEntry(file) {
			return noEntry(path)
		}
		// The globals are not frozen: an entry function may fill a table that
		// stands at the top of its script.
		globals, err := prog.Init(t, s.predeclared)
		if err != nil {
			return err
		}
		entry := findEntry(globals)
		if entry == nil {
			if len(args) > 0 {
				return noEntry(path)
			}
			return nil
		}
		return s.runEntry(t, newEntry(filepath.Base(path), entry), args)
	})
}

// compile makes a program of a whole file, and warns of what is odd in it.
func (s *Session) compile(path, src string) (*syntax.File, *starlark.Program, error) {
	s.sources[path] = src
	if err := lang.PlainText(path, 1, src); err != nil {
		return nil, nil, err
	}
	file, prog, err := starlark.SourceProgramOptions(&lang.Dialect, path, src, s.predeclared.Has)
	if err == nil {
		s.WarnWords(file)
	}
	return file, prog, err
}

func noEntry(path string) error {
	return fmt.Errorf("%s takes no arguments: it defines no main(), audit() or route()", path)
}

// readScript reads a script that the command line names, a file or one of the
// embedded ones, and makes its folder readable instead of the working directory.
func (s *Session) readScript(ctx context.Context, path string) (string, error) {
	if strings.HasPrefix(path, "@") {
		_, src, err := s.findModule(ctx, "", path)
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return src, err
	}
	src, err := s.Files.ReadNamed(ctx, path)
	if err != nil {
		return "", err
	}
	return string(src), s.Files.Confine(filepath.Dir(path))
}

// RunCode runs a piece of code, as with -c, and shows the value of its last
// expression unless that is None. name stands for a file in messages.
func (s *Session) RunCode(ctx context.Context, name, code string) error {
	t, release := s.mainThread(ctx, name)
	defer release()
	return finish(ctx, name, func() error {
		s.sources[name] = code
		file, err := lang.Dialect.Parse(name, code, 0)
		if err != nil {
			return err
		}
		s.WarnWords(file)
		last := captureLast(file)
		prog, err := starlark.FileProgram(file, s.predeclared.Has)
		if err != nil {
			return err
		}
		globals, err := prog.Init(t, s.predeclared)
		if err != nil || !last || globals[lastName] == starlark.None {
			return err
		}
		return lang.ShowValue(t, globals[lastName])
	})
}

// mainThread is NewThread; release unties the thread from ctx.
func (s *Session) mainThread(ctx context.Context, name string) (*starlark.Thread, func()) {
	return lang.NewThread(&lang.Fiber{Runtime: s.Runtime, Context: ctx, Sink: s.Runtime, Account: &s.Account}, name)
}

// NewThread makes a thread to run code of the session: its prints go to the
// session's streams, load knows the session's modules, and when ctx ends the
// thread stops at its next instruction and whatever it waits for ends. A
// thread serves one evaluation: cancellation is for good.
func (s *Session) NewThread(ctx context.Context, name string) *starlark.Thread {
	t, _ := s.mainThread(ctx, name)
	return t
}

// finish runs a whole evaluation: an error after the end of ctx is the end of
// ctx, whatever the script made of it.
func finish(ctx context.Context, what string, fn func() error) error {
	err := lang.Protect(what, fn)
	if err != nil && ctx.Err() != nil {
		return &lang.StopError{Cause: context.Cause(ctx), At: err}
	}
	return err
}

// lastName is the global that holds the last expression of a piece of code.
const lastName = "_"

// captureLast turns a last statement that is an expression into an assignment
// to lastName.
func captureLast(f *syntax.File) bool {
	if len(f.Stmts) == 0 {
		return false
	}
	i := len(f.Stmts) - 1
	expr, ok := f.Stmts[i].(*syntax.ExprStmt)
	if !ok {
		return false
	}
	start, _ := expr.Span()
	f.Stmts[i] = &syntax.AssignStmt{
		OpPos: start,
		Op:    syntax.EQ,
		LHS:   &syntax.Ident{NamePos: start, Name: lastName},
		RHS:   expr.X,
	}
	return true
}
