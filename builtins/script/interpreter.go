// Package script reads and runs scripts: it finds files and modules, compiles them, and
// reads a command line by the signature of an entry function.
//
//	interpreter.go  reads, compiles and runs the top levels of scripts
//	module.go       the load statement, and the embedded modules
//	entry.go        the command line of an entry function's signature; usage.go: its help
//	distribute.go   options of a command line that go to several scripts
//	program.go      describes a script without running it
//	shipped.go      the modules of @std// and @examples//, and the shipped scripts by kind
package script

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// Interpreter compiles and runs the scripts of a session.
type Interpreter struct {
	Runtime *lang.Runtime
	// Globals are the predeclared names of all scripts.
	Globals starlark.StringDict
	// Include are directories with modules, besides that of the script.
	Include []string
	// Flags are those of the program, for errors about such a flag among a script's options.
	Flags []string
	// Sources are the texts of all code that ran, by file name, for messages that quote
	// their lines.
	Sources map[string]string
	// Unsaved are the texts of files, by their absolute paths, that an editor has open. load
	// reads them in place of the files.
	Unsaved map[string]string

	modules map[string]*module
}

// New returns the interpreter of a runtime, whose load statements it runs.
func New(r *lang.Runtime, include, flags []string) *Interpreter {
	in := &Interpreter{Runtime: r, Include: include, Flags: flags, Sources: map[string]string{}, modules: map[string]*module{}}
	r.Load = in.load
	*lang.StateOf[*Interpreter](r) = in
	return in
}

// Of returns the interpreter of a runtime.
func Of(r *lang.Runtime) *Interpreter { return *lang.StateOf[*Interpreter](r) }

// Beside returns an interpreter that may run concurrently with in: with its settings, streams
// and modules, and a runtime of its own.
func (in *Interpreter) Beside() *Interpreter {
	b := *in
	b.Runtime = in.Runtime.Beside()
	*lang.StateOf[*Interpreter](b.Runtime) = &b
	return &b
}

// Read reads a script that the command line names, a file or one of the embedded ones,
// and makes its directory readable instead of the working directory.
func (in *Interpreter) Read(ctx context.Context, path string) (string, error) {
	if strings.HasPrefix(path, "@") {
		_, src, err := in.Find(ctx, "", path)
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return src, err
	}
	src, err := in.Runtime.Files.ReadNamed(ctx, path)
	if err != nil {
		return "", err
	}
	return string(src), in.Runtime.Files.Confine(filepath.Dir(path))
}

// Compile compiles a whole file, and prints warnings about it.
func (in *Interpreter) Compile(path, src string) (*syntax.File, *starlark.Program, error) {
	in.Sources[path] = src
	if err := lang.PlainText(path, 1, src); err != nil {
		return nil, nil, err
	}
	file, prog, err := starlark.SourceProgramOptions(&lang.Dialect, path, src, in.Globals.Has)
	if err == nil {
		in.Runtime.WarnComparisons(file, in.Globals)
	}
	return file, prog, err
}

// Script is a script whose top level has run.
type Script struct {
	Doc     string // its docstring
	Globals starlark.StringDict
}

// Function returns the function that the script defines by that name, nil without one.
func (s *Script) Function(name string) *starlark.Function {
	fn, _ := s.Globals[name].(*starlark.Function)
	return fn
}

// Run runs the top level of a script.
func (in *Interpreter) Run(t *starlark.Thread, path, src string) (*Script, error) {
	file, prog, err := in.Compile(path, src)
	if err != nil {
		return nil, err
	}
	globals, err := prog.Init(t, in.Globals)
	if err != nil {
		return nil, err
	}
	return &Script{Doc: Docstring(file), Globals: globals}, nil
}

// Open reads a script that the command line names, and evaluates fn with the text.
func (in *Interpreter) Open(ctx context.Context, path string, fn func(t *starlark.Thread, src string) error) error {
	src, err := in.Read(ctx, path)
	if err != nil {
		return err
	}
	return in.Runtime.Evaluate(ctx, path, func(t *starlark.Thread) error { return fn(t, src) })
}

// RunOne runs the top level of one of several scripts, and passes it to fn. notExit returns the
// error of exit(), which must not end the others.
func (in *Interpreter) RunOne(ctx context.Context, file string, notExit func(error) error, fn func(*Script) error) error {
	return in.Open(ctx, file, func(t *starlark.Thread, src string) error {
		s, err := in.Run(t, file, src)
		var exit *lang.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("%s: %w", file, notExit(err))
		}
		if err != nil {
			return err
		}
		return fn(s)
	})
}
