// Package script reads and runs scripts: it finds files and modules, compiles them, and reads a
// command line by the signature of an entry function.
//
// An [Interpreter] compiles and runs the scripts of a session, and its load statements. An [Entry]
// reads the words of a command line as arguments of a script's entry function, such as main. A
// [Folder] lists the shipped scripts of one kind, and finds a script by its name. A [Scenario] is a
// script that changes a simulated fabric at given times. [Format] formats a script.
//
// An Interpreter is used by one goroutine at a time; [Interpreter.Beside] returns one that may run
// concurrently. A Scenario is played by one goroutine, while others may read its actions.
package script

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// Interpreter compiles and runs the scripts of a session.
type Interpreter struct {
	Runtime *lang.Runtime
	// Globals are the predeclared names of all scripts.
	Globals starlark.StringDict
	// Include are directories with modules, besides the directory of the script.
	Include []string
	// Flags are the flags of the program, for errors about such a flag among a script's options.
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

// module is a loaded file; it runs once.
type module struct {
	globals starlark.StringDict
	err     error
	done    bool
}

// load implements the load statement: @std//x.star, @examples//x.star, //x.star (from the root
// of the package that loads it), x.star beside the file that loads it, or below a directory of
// Include.
func (in *Interpreter) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	f := lang.FiberOf(t)
	from := t.CallFrame(0).Pos.Filename()
	key, src, err := in.Find(f.Context, from, name)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(key, "<") { // as in positions of typed code, which may save files
		return nil, fmt.Errorf("%s: names of modules cannot begin with <", key)
	}
	m := in.modules[key]
	if m == nil {
		m = new(module)
		in.modules[key] = m
		chain := append(f.Loads[:len(f.Loads):len(f.Loads)], key)
		m.globals, m.err = in.runModule(f, chain, key, src)
		m.done = true
		if m.err != nil && !lang.Catchable(f, m.err) {
			delete(in.modules, key) // it was stopped: the next load may succeed
		}
	}
	if !m.done {
		if i := slices.Index(f.Loads, key); i >= 0 {
			return nil, fmt.Errorf("load cycle: %s", strings.Join(append(f.Loads[i:len(f.Loads):len(f.Loads)], key), " -> "))
		}
		return nil, fmt.Errorf("%s is being loaded by another item of parallel(); load it before parallel()", key)
	}
	return m.globals, m.err
}

// Exports lists the names that a module defines, sorted, without running it; none if the file
// does not exist or has errors.
func (in *Interpreter) Exports(name string) []string { return in.ExportsFrom("", name) }

// ExportsFrom is Exports for load(name) in a file.
func (in *Interpreter) ExportsFrom(file, name string) []string {
	_, src, err := in.Find(context.Background(), file, name)
	if err != nil {
		return nil
	}
	return in.ExportsOf(name, src)
}

// ExportsOf lists the names that a module with a text defines, sorted; none if it has errors.
func (in *Interpreter) ExportsOf(name, src string) []string {
	f, _, err := starlark.SourceProgramOptions(&lang.Dialect, name, src, in.Globals.Has)
	if err != nil {
		return nil
	}
	var names []string
	for _, b := range f.Module.(*resolve.Module).Globals {
		if !strings.HasPrefix(b.First.Name, "_") {
			names = append(names, b.First.Name)
		}
	}
	slices.Sort(names)
	return names
}

// runModule runs a module's top level in a thread of its own, which cannot
// change the fabric.
func (in *Interpreter) runModule(f *lang.Fiber, chain []string, key, src string) (starlark.StringDict, error) {
	inner := *f
	inner.Loads = chain
	t, release := lang.NewThread(&inner, key)
	defer release()
	_, prog, err := in.Compile(key, src)
	if err != nil {
		return nil, err
	}
	globals, err := prog.Init(t, in.Globals)
	globals.Freeze()
	return globals, err
}

// Find finds the file of `load(name)` in file from. key is its name in messages.
func (in *Interpreter) Find(ctx context.Context, from, name string) (key, src string, err error) {
	pkg, file, embedded := strings.Cut(name, "//")
	if embedded && pkg == "" { // "//x.star": the root of from's own package
		pkg, _, embedded = strings.Cut(from, "//")
		if !embedded {
			pkg = ""
		}
	} else if !embedded {
		file = name
		if p, dir, ok := strings.Cut(from, "//"); ok {
			pkg, file, embedded = p, path.Join(path.Dir(dir), name), true
		}
	}
	if embedded && pkg != "" {
		tree, ok := packages()[pkg]
		if !ok {
			return "", "", fmt.Errorf("unknown package %s%s", pkg, fabric.DidYouMean(pkg, []string{"@std", "@examples"}))
		}
		if file = path.Clean(file); !fs.ValidPath(file) {
			return "", "", fmt.Errorf("%s: outside of package %s", name, pkg)
		}
		data, err := fs.ReadFile(tree, file)
		if err != nil {
			return "", "", fmt.Errorf("no such file in %s%s", pkg, fabric.DidYouMean(file, filesOf(tree)))
		}
		return pkg + "//" + file, string(data), nil
	}
	// Beside the file that loads, then the directories of -I.
	var tried []string
	dirs := append([]string{filepath.Dir(in.Runtime.Files.Abs(from))}, in.Include...)
	if strings.HasPrefix(name, "//") {
		dirs = append([]string{in.Runtime.Files.Home}, in.Include...)
	}
	for i, dir := range dirs {
		if i == 0 && len(dirs) > 1 && in.Runtime.Files.Sealed() && !in.Runtime.Files.MayRead(dir) {
			continue // of code that is not in a file
		}
		p := filepath.Join(in.Runtime.Files.Abs(dir), file)
		if filepath.IsAbs(file) {
			p = filepath.Clean(file)
		}
		data, err := in.Runtime.Files.Read(ctx, p)
		if err == nil {
			if text, ok := in.Unsaved[p]; ok {
				data = []byte(text)
			}
			return in.Runtime.Files.Short(p), string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		tried = append(tried, in.Runtime.Files.Short(p))
		if filepath.IsAbs(file) {
			break
		}
	}
	return "", "", fmt.Errorf("no such file; searched %s", strings.Join(tried, ", "))
}

// Embedded lists the names of all embedded modules, as load takes them, sorted.
func Embedded() []string {
	var names []string
	for name, tree := range packages() {
		for _, file := range filesOf(tree) {
			names = append(names, name+"//"+file)
		}
	}
	slices.Sort(names)
	return names
}

// EmbeddedSource returns the text of an embedded module.
func EmbeddedSource(name string) (string, error) {
	pkg, file, _ := strings.Cut(name, "//")
	tree, ok := packages()[pkg]
	if !ok {
		return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	text, err := fs.ReadFile(tree, file)
	return string(text), err
}

// filesOf lists the modules of an embedded tree.
func filesOf(tree fs.FS) []string {
	var names []string
	fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".star") {
			names = append(names, p)
		}
		return nil
	})
	return names
}
