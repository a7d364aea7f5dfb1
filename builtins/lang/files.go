package lang

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/afero"
	"go.starlark.net/starlark"
)

// Files are the files that scripts may access: they read below a few roots and write
// below one. os.Root refuses a link that leads out of its root.
type Files struct {
	base    afero.Fs // nil: the operating system's
	Cwd     string   // absolute
	Home    string   // absolute: load("//x.star") searches here first
	roots   []root
	out     *root           // nil: scripts may not write
	named   map[string]bool // absolute: files that the command line names, in any directory
	secrets []fs.FileInfo   // files that scripts may not read under any name
	scoped  bool            // within Scope
	sealed  bool            // after Seal
}

type root struct {
	dir   string // absolute
	fs    afero.Fs
	open  *os.Root // nil for files of base
	given bool     // given on the command line; else it is only the working directory
}

// NewFiles makes the directories dir and include readable, and out, unless it is
// empty, writable. base replaces the files of the operating system; nil: they are
// used.
func NewFiles(base afero.Fs, dir string, include []string, out string) (*Files, error) {
	f := &Files{base: base}
	var err error
	switch {
	case base != nil:
		f.Cwd = filepath.Join("/", dir)
	default:
		if f.Cwd, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	f.Home = f.Cwd
	if err := f.add(f.Cwd, false); err != nil {
		f.Close()
		return nil, err
	}
	for _, d := range include {
		if err := f.add(d, true); err != nil {
			f.Close()
			return nil, fmt.Errorf("-I: %w", err)
		}
	}
	if out != "" {
		if err := f.writeTo(out); err != nil {
			f.Close()
			return nil, fmt.Errorf("--out: %w", err)
		}
	}
	return f, nil
}

// Confine makes the directory of a script readable, and the working directory no longer,
// unless the command line also gives it: a script may be run from any directory.
func (f *Files) Confine(dir string) error {
	f.Home = f.Abs(dir)
	if f.sealed {
		return nil
	}
	if err := f.add(dir, true); err != nil {
		return err
	}
	f.Leave()
	return nil
}

// Leave makes the working directory no longer readable, unless the command line gives it.
func (f *Files) Leave() {
	f.roots = slices.DeleteFunc(f.roots, func(r root) bool {
		if !r.given && r.open != nil && !f.scoped {
			r.open.Close()
		}
		return !r.given
	})
}

// Seal makes the directories of include the only ones, for good: neither the working directory,
// nor that of a script, nor a file that a command line names can be read besides. Relative names
// are of files below the first of these directories that has them.
func (f *Files) Seal() {
	f.sealed, f.named = true, nil
	f.roots = slices.DeleteFunc(f.roots, func(r root) bool {
		if !r.given && r.open != nil {
			r.open.Close()
		}
		return !r.given
	})
	f.Cwd = "/"
	if len(f.roots) > 0 {
		f.Cwd = f.roots[0].dir
	}
	f.Home = f.Cwd
}

// Sealed reports whether Seal was called.
func (f *Files) Sealed() bool { return f.sealed }

// MayRead reports whether there is a root above a directory, so that a script may read there.
func (f *Files) MayRead(dir string) bool {
	return slices.ContainsFunc(f.roots, func(r root) bool {
		rel, err := filepath.Rel(r.dir, f.Abs(dir))
		return err == nil && filepath.IsLocal(rel)
	})
}

// Scope lets a script have its own directories and files, until end is called.
func (f *Files) Scope() (end func()) {
	before := *f
	f.roots, f.named, f.scoped = slices.Clone(f.roots), maps.Clone(f.named), true
	return func() {
		for _, r := range f.roots {
			if r.open != nil && !slices.ContainsFunc(before.roots, func(old root) bool { return old.open == r.open }) {
				r.open.Close()
			}
		}
		f.roots, f.named, f.Home, f.scoped = before.roots, before.named, before.Home, before.scoped
	}
}

// Forbid prevents scripts from reading a file under any name.
func (f *Files) Forbid(secret ...fs.FileInfo) { f.secrets = append(f.secrets, secret...) }

// add makes a directory readable.
func (f *Files) add(dir string, given bool) error {
	dir = f.Abs(dir)
	for i := range f.roots {
		if r := &f.roots[i]; r.dir == dir {
			r.given = r.given || given
			return nil
		}
	}
	r, err := f.root(dir)
	if err != nil {
		return err
	}
	r.fs, r.given = afero.NewReadOnlyFs(r.fs), given
	f.roots = append(f.roots, r)
	return nil
}

// writeTo makes a directory writable and readable.
func (f *Files) writeTo(dir string) error {
	r, err := f.root(f.Abs(dir))
	if err != nil {
		return err
	}
	f.out = &r
	return f.add(dir, true)
}

// root opens a directory. It stays open even if another gets its name.
func (f *Files) root(dir string) (root, error) {
	if f.base != nil {
		return root{dir: dir, fs: afero.NewBasePathFs(f.base, dir)}, nil
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return root{}, &fileError{f.Short(dir), "no such directory", err}
		}
		return root{}, tidy(rename(err, f.Short(dir)))
	}
	return root{dir: dir, fs: rootFs{afero.FromIOFS{FS: r.FS()}, r}, open: r}, nil
}

// Close closes the directories.
func (f *Files) Close() error {
	var all error
	for _, r := range f.roots {
		if r.open != nil {
			all = errors.Join(all, r.open.Close())
		}
	}
	if f.out != nil && f.out.open != nil {
		all = errors.Join(all, f.out.open.Close())
	}
	f.roots, f.out = nil, nil
	return all
}

// Abs returns the absolute form of path, which may be relative to the working directory.
func (f *Files) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	if f.sealed && filepath.IsLocal(path) {
		for _, r := range f.roots {
			if _, err := r.fs.Stat(filepath.ToSlash(path)); err == nil {
				return filepath.Join(r.dir, path)
			}
		}
	}
	return filepath.Join(f.Cwd, path)
}

// Short returns path for messages: relative to the working directory if it is below it.
func (f *Files) Short(path string) string {
	if rel, err := filepath.Rel(f.Cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Open opens a file that a script names. It must be a regular file below a root. A file
// that the command line names may also be a pipe. Reading ends with ctx or at the
// deadline.
func (f *Files) Open(ctx context.Context, path string) (*File, error) {
	abs := f.Abs(path)
	if f.named[abs] {
		file, err := f.OpenNamed(ctx, path)
		if err != nil {
			return nil, err
		}
		return f.allowed(file, path, true)
	}
	for _, r := range f.roots {
		rel, err := filepath.Rel(r.dir, abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		// Do not wait for the writer of a pipe.
		file, err := r.fs.OpenFile(filepath.ToSlash(rel), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, tidy(rename(err, f.Short(path)))
		}
		return f.allowed(readUntil(ctx, file), f.Short(path), false)
	}
	if len(f.roots) == 0 {
		return nil, fmt.Errorf("%s: scripts may not read files here; an operator allows directories with -I", path)
	}
	var dirs []string
	for _, r := range f.roots {
		dirs = append(dirs, f.Short(r.dir))
	}
	return nil, fmt.Errorf("%s: scripts may not read here, only below %s; allow its directory with -I", path, strings.Join(dirs, ", "))
}

// exists fails if scripts cannot open a file at path. It does not open a pipe that the
// command line names, which can be read only once.
func (f *Files) exists(ctx context.Context, path string) error {
	if abs := f.Abs(path); f.named[abs] {
		_, err := f.under().Stat(abs)
		return tidy(rename(err, path))
	}
	file, err := f.Open(ctx, path)
	if err != nil {
		return err
	}
	return file.Close()
}

// under returns the underlying file system.
func (f *Files) under() afero.Fs {
	if f.base != nil {
		return f.base
	}
	return afero.NewOsFs()
}

// allowed returns file if scripts may read it. Messages call it shown.
func (f *Files) allowed(file *File, shown string, mayBePipe bool) (*File, error) {
	st, err := file.Stat()
	switch {
	case err != nil:
		err = tidy(rename(err, shown))
	case st.IsDir():
		err = fmt.Errorf("%s: is a directory", shown)
	case !mayBePipe && !st.Mode().IsRegular():
		err = fmt.Errorf("%s: is not a regular file; scripts may read only regular files", shown)
	case slices.ContainsFunc(f.secrets, func(secret os.FileInfo) bool { return os.SameFile(secret, st) }):
		err = fmt.Errorf("%s: contains keys; scripts may not read it", shown)
	default:
		return file, nil
	}
	file.Close()
	return nil, err
}

// OpenNamed opens a file that the command line names, in any directory. Reading ends
// with ctx or at the deadline.
func (f *Files) OpenNamed(ctx context.Context, path string) (*File, error) {
	if f.sealed {
		return f.Open(ctx, path)
	}
	if f.base != nil {
		file, err := f.base.Open(f.Abs(path))
		if err != nil {
			return nil, tidy(rename(err, path))
		}
		return readUntil(ctx, file), nil
	}
	ctx, cancel := untilDeadline(ctx)
	file, err := OpenNamed(ctx, f.Abs(path))
	if err != nil {
		cancel()
		return nil, tidy(rename(err, path))
	}
	return file.alsoRelease(cancel), nil
}

func readUntil(ctx context.Context, file afero.File) *File {
	ctx, cancel := untilDeadline(ctx)
	return newFile(ctx, file).alsoRelease(cancel)
}

// Read reads a whole file that a script names. It ends with ctx.
func (f *Files) Read(ctx context.Context, path string) ([]byte, error) {
	file, err := f.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return readWhole(file, f.Short(path))
}

// ReadNamed reads a whole file that the command line names, in any directory.
func (f *Files) ReadNamed(ctx context.Context, path string) ([]byte, error) {
	file, err := f.OpenNamed(ctx, path)
	if err != nil {
		return nil, err
	}
	return readWhole(file, path)
}

// rename replaces the path in a file system's error by the name that the user knows.
func rename(err error, path string) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	why := pe.Err
	for errors.As(why, &pe) { // os.Root also has the part of the path that failed
		why = pe.Err
	}
	return &fs.PathError{Op: pe.Op, Path: path, Err: why}
}

// tidy shortens the Go library's error to "name: no such file".
func tidy(err error) error {
	var pe *fs.PathError
	switch {
	case !errors.As(err, &pe):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &fileError{pe.Path, "no such file", err}
	default:
		return &fileError{pe.Path, pe.Err.Error(), err}
	}
}

type fileError struct {
	path, why string
	err       error
}

func (e *fileError) Error() string { return e.path + ": " + e.why }
func (e *fileError) Unwrap() error { return e.err }

// Allow allows scripts to read a file that the command line names.
func (f *Files) Allow(v starlark.Value) {
	if name, ok := v.(starlark.String); ok && name != "" && !f.sealed {
		if f.named == nil {
			f.named = map[string]bool{}
		}
		f.named[filepath.Clean(f.Abs(string(name)))] = true
	}
}
