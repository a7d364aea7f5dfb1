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

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// module is a loaded file; it runs once.
type module struct {
	globals starlark.StringDict
	err     error
	done    bool
}

// load implements the load statement: @std//x.star, @examples//x.star, //x.star (from the root
// of the package that loads it), x.star beside the file that loads it, or below a directory of
// -I.
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
func (in *Interpreter) Exports(name string) []string {
	return in.ExportsFrom("", name)
}

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
