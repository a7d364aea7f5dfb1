package builtins

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

// load implements the load statement: @std//x.star, @examples//x.star, //x.star
// (from the root of the package that says so), x.star beside the file that
// says so, or below a folder of -I.
func (s *Session) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	f := lang.FiberOf(t)
	from := t.CallFrame(0).Pos.Filename()
	key, src, err := s.findModule(f.Context, from, name)
	if err != nil {
		return nil, err
	}
	m := s.modules[key]
	if m == nil {
		m = new(module)
		s.modules[key] = m
		chain := append(f.Loads[:len(f.Loads):len(f.Loads)], key)
		m.globals, m.err = s.runModule(f, chain, key, src)
		m.done = true
		if m.err != nil && !lang.Catchable(f, m.err) {
			delete(s.modules, key) // it was stopped: the next load may do better
		}
	}
	if !m.done {
		if i := slices.Index(f.Loads, key); i >= 0 {
			return nil, fmt.Errorf("cycle of loads: %s", strings.Join(append(f.Loads[i:len(f.Loads):len(f.Loads)], key), " -> "))
		}
		return nil, fmt.Errorf("%s is being loaded by another item of parallel: load it first, outside", key)
	}
	return m.globals, m.err
}

// Exports are the names that the module of that name defines, sorted; none
// where there is no such file, or it has errors. Nothing of it runs.
func (s *Session) Exports(name string) []string {
	_, src, err := s.findModule(context.Background(), "", name)
	if err != nil {
		return nil
	}
	return s.exportsOf(name, src)
}

// exportsOf are the names that a module with that text defines.
func (s *Session) exportsOf(name, src string) []string {
	f, _, err := starlark.SourceProgramOptions(&lang.Dialect, name, src, s.predeclared.Has)
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
func (s *Session) runModule(f *lang.Fiber, chain []string, key, src string) (starlark.StringDict, error) {
	inner := *f
	inner.Loads = chain
	t, release := lang.NewThread(&inner, key)
	defer release()
	_, prog, err := s.compile(key, src)
	if err != nil {
		return nil, err
	}
	globals, err := prog.Init(t, s.predeclared)
	globals.Freeze()
	return globals, err
}

// findModule finds the file that `load(name)` in file from means. key is its
// name in messages.
func (s *Session) findModule(ctx context.Context, from, name string) (key, src string, err error) {
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
			return "", "", fmt.Errorf("%s leads out of package %s", name, pkg)
		}
		data, err := fs.ReadFile(tree, file)
		if err != nil {
			return "", "", fmt.Errorf("no such file in %s%s", pkg, fabric.DidYouMean(file, modulesOf(tree)))
		}
		return pkg + "//" + file, string(data), nil
	}
	// Beside the file that loads, then the folders of -I.
	var tried []string
	dirs := append([]string{filepath.Dir(s.Files.Abs(from))}, s.include...)
	if strings.HasPrefix(name, "//") {
		dirs = append([]string{s.Files.Home}, s.include...)
	}
	for _, dir := range dirs {
		p := filepath.Join(s.Files.Abs(dir), file)
		if filepath.IsAbs(file) {
			p = filepath.Clean(file)
		}
		data, err := s.Files.Read(ctx, p)
		if err == nil {
			return s.Files.Short(p), string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		tried = append(tried, s.Files.Short(p))
		if filepath.IsAbs(file) {
			break
		}
	}
	return "", "", fmt.Errorf("no such file; looked for %s", strings.Join(tried, ", "))
}

// modulesOf lists the modules of an embedded tree.
func modulesOf(tree fs.FS) []string {
	var names []string
	fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".star") {
			names = append(names, p)
		}
		return nil
	})
	return names
}
