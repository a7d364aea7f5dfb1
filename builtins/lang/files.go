package lang

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/afero"
	"go.starlark.net/starlark"
)

// Files is what scripts may read: the folders below a few roots; and where they
// may write. A link that leads out of its root is refused by os.Root.
type Files struct {
	base  afero.Fs // nil: the operating system's
	Cwd   string   // absolute
	roots []root
	out   *root           // nil: scripts may not write
	named map[string]bool // absolute: files that the command line names, wherever they lie
}

type root struct {
	dir  string // absolute
	fs   afero.Fs
	open *os.Root // nil for files of base
}

// NewFiles makes the folders dir and include readable, and out, unless it is
// empty, writable. base stands for the files of the operating system; nil: it
// is they.
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
	for _, d := range append([]string{"."}, include...) {
		if err := f.Add(d); err != nil {
			f.Close()
			if d != "." {
				err = fmt.Errorf("-I: %w", err)
			}
			return nil, err
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

// add makes a folder readable.
func (f *Files) Add(dir string) error {
	dir = f.Abs(dir)
	for _, r := range f.roots {
		if r.dir == dir {
			return nil
		}
	}
	r, err := f.root(dir)
	if err != nil {
		return err
	}
	r.fs = afero.NewReadOnlyFs(r.fs)
	f.roots = append(f.roots, r)
	return nil
}

// writeTo makes a folder writable, and readable.
func (f *Files) writeTo(dir string) error {
	r, err := f.root(f.Abs(dir))
	if err != nil {
		return err
	}
	f.out = &r
	return f.Add(dir)
}

// root opens a folder, which stays the one of that name now.
func (f *Files) root(dir string) (root, error) {
	if f.base != nil {
		return root{dir: dir, fs: afero.NewBasePathFs(f.base, dir)}, nil
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return root{}, &fileError{f.Short(dir), "there is no such folder", err}
		}
		return root{}, Tidy(Rename(err, f.Short(dir)))
	}
	return root{dir: dir, fs: rootFs{afero.FromIOFS{FS: r.FS()}, r}, open: r}, nil
}

// Close gives the folders back.
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

// Abs is path from the root; relative ones are of the working directory.
func (f *Files) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.Cwd, path)
}

// short is path as people write it: relative to the working directory where
// it lies below that.
func (f *Files) Short(path string) string {
	if rel, err := filepath.Rel(f.Cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// open opens a file that a script names. It must lie below a root.
func (f *Files) Open(path string) (afero.File, error) {
	abs := f.Abs(path)
	if f.named[abs] {
		return openFile(f.under(), abs, path)
	}
	for _, r := range f.roots {
		rel, err := filepath.Rel(r.dir, abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		return openFile(r.fs, filepath.ToSlash(rel), f.Short(path))
	}
	var dirs []string
	for _, r := range f.roots {
		dirs = append(dirs, f.Short(r.dir))
	}
	return nil, fmt.Errorf("%s: scripts may not read there, only below %s; allow its folder with -I", path, strings.Join(dirs, ", "))
}

// openFile opens a file of fs, which people know as shown.
func openFile(fs afero.Fs, name, shown string) (afero.File, error) {
	file, err := fs.Open(name)
	if err != nil {
		return nil, Tidy(Rename(err, shown))
	}
	if st, err := file.Stat(); err == nil && st.IsDir() {
		file.Close()
		return nil, fmt.Errorf("%s: is a folder", shown)
	}
	return file, nil
}

// under are all files that there are.
func (f *Files) under() afero.Fs {
	if f.base != nil {
		return f.base
	}
	return afero.NewOsFs()
}

// read reads a whole file that a script names.
func (f *Files) Read(path string) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return afero.ReadAll(file)
}

// ReadNamed reads a file that the command line names, wherever it lies.
func (f *Files) ReadNamed(path string) ([]byte, error) {
	data, err := afero.ReadFile(f.under(), f.Abs(path))
	if err != nil {
		return nil, Tidy(Rename(err, path))
	}
	return data, nil
}

// Rename puts the name that the user knows into a file system's error.
func Rename(err error, path string) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	why := pe.Err
	for errors.As(why, &pe) { // os.Root tells where on the way, too
		why = pe.Err
	}
	return &fs.PathError{Op: pe.Op, Path: path, Err: why}
}

// Tidy leaves "name: no such file" of the Go library's error.
func Tidy(err error) error {
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

// allow lets scripts read a file that the command line names.
func (f *Files) Allow(v starlark.Value) {
	if name, ok := v.(starlark.String); ok && name != "" {
		if f.named == nil {
			f.named = map[string]bool{}
		}
		f.named[filepath.Clean(f.Abs(string(name)))] = true
	}
}
