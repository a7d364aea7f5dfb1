package lang

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/afero"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Files are the files that scripts may access: they read below a few roots and write
// below one. os.Root refuses a link that leads out of its root.
type Files struct {
	base    afero.Fs // nil: the operating system's
	Cwd     string   // absolute
	Home    string   // absolute: load("//x.star") searches here first
	roots   []root
	out     *root                       // nil: scripts may not write
	named   map[string]bool             // absolute: files that the command line names, in any directory
	secrets []fs.FileInfo               // files that scripts may not read under any name
	scoped  bool                        // within Scope
	sealed  bool                        // after Seal
	secret  func(beginning []byte) bool // reports whether a file holds keys; nil: before Seal
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

// Seal makes the directories of include the only readable ones, permanently: neither the working
// directory, nor the directory of a script, nor a file that a command line names can be read.
// A relative name is looked up below each of these directories, in their order. A file is refused if
// secret reports that its beginning holds keys.
func (f *Files) Seal(secret func(beginning []byte) bool) {
	f.sealed, f.named, f.secret = true, nil, secret
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

// Include makes a directory readable, as one of the command line is.
func (f *Files) Include(dir string) error { return f.add(dir, true) }

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
		return root{}, shortError(renamePath(err, f.Short(dir)))
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
			return nil, shortError(renamePath(err, f.Short(path)))
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

// Directory is a directory that a script names: the files in it that scripts may read. No link leads out
// of it.
type Directory struct {
	fs.FS
	files *Files
	root  *os.Root // nil for files of base
	name  string   // for messages
}

// OpenDirectory opens a directory that a script names, below a root or named by the command line; nil: the path
// is that of something else.
func (f *Files) OpenDirectory(path string) (*Directory, error) {
	abs := f.Abs(path)
	d := &Directory{files: f, name: f.Short(path)}
	if f.named[abs] && f.base == nil && !f.sealed {
		if st, err := os.Stat(abs); err != nil || !st.IsDir() {
			return nil, nil
		}
		return d.open(os.OpenRoot(abs))
	}
	for _, r := range f.roots {
		rel, err := filepath.Rel(r.dir, abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if st, err := r.fs.Stat(filepath.ToSlash(rel)); err != nil || !st.IsDir() {
			return nil, nil
		}
		if r.open != nil {
			return d.open(r.open.OpenRoot(rel))
		}
		d.FS = afero.NewIOFS(afero.NewBasePathFs(f.base, abs))
		return d, nil
	}
	return nil, nil
}

func (d *Directory) open(root *os.Root, err error) (*Directory, error) {
	if err != nil {
		return nil, shortError(renamePath(err, d.name))
	}
	d.FS, d.root = root.FS(), root
	return d, nil
}

// Open opens a file of the directory, or one below it.
func (d *Directory) Open(name string) (fs.File, error) {
	file, err := d.FS.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	at, seekable := file.(io.ReaderAt)
	switch {
	case err != nil, st.IsDir():
		return file, err
	case slices.ContainsFunc(d.files.secrets, func(secret os.FileInfo) bool { return os.SameFile(secret, st) }),
		d.files.secret != nil && st.Mode().IsRegular() && (!seekable || d.files.secret(beginning(at))):
		file.Close()
		return nil, errors.New("contains keys; scripts may not read it")
	}
	return file, nil
}

// Close closes the directory.
func (d *Directory) Close() error {
	if d.root == nil {
		return nil
	}
	return d.root.Close()
}

// exists fails if scripts cannot open a file at path. It does not open a pipe that the
// command line names, which can be read only once.
func (f *Files) exists(ctx context.Context, path string) error {
	if abs := f.Abs(path); f.named[abs] {
		_, err := f.underlying().Stat(abs)
		return shortError(renamePath(err, path))
	}
	file, err := f.Open(ctx, path)
	if err != nil {
		return err
	}
	return file.Close()
}

// underlying returns the underlying file system.
func (f *Files) underlying() afero.Fs {
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
		err = shortError(renamePath(err, shown))
	case st.IsDir():
		err = fmt.Errorf("%s: is a directory", shown)
	case !mayBePipe && !st.Mode().IsRegular():
		err = fmt.Errorf("%s: is not a regular file; scripts may read only regular files", shown)
	case slices.ContainsFunc(f.secrets, func(secret os.FileInfo) bool { return os.SameFile(secret, st) }):
		err = fmt.Errorf("%s: contains keys; scripts may not read it", shown)
	case f.secret != nil && f.secret(beginning(file)):
		err = fmt.Errorf("%s: contains keys; remove it from the directories of -I", shown)
	default:
		return file, nil
	}
	file.Close()
	return nil, err
}

// beginning returns the first bytes of a regular file, whose position stays.
func beginning(file io.ReaderAt) []byte {
	b := make([]byte, 64<<10)
	n, _ := file.ReadAt(b, 0) // an error follows when it is read
	return b[:n]
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
			return nil, shortError(renamePath(err, path))
		}
		return readUntil(ctx, file), nil
	}
	ctx, cancel := untilDeadline(ctx)
	file, err := OpenNamed(ctx, f.Abs(path))
	if err != nil {
		cancel()
		return nil, shortError(renamePath(err, path))
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

// renamePath replaces the path in a file system's error by the name that the user knows.
func renamePath(err error, path string) error {
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

// shortError shortens the Go library's error to "name: no such file".
func shortError(err error) error {
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

// FSModule is the module fs, for files.
var FSModule = &starlarkstruct.Module{
	Name: "fs",
	Members: starlark.StringDict{
		"exists": NewFunction(&FSExists),
		"read":   NewFunction(&FSRead),
		"write":  NewFunction(&FSWrite),
	},
}

// FSExists is fs.exists.
var FSExists = Builtin{
	Name:   "fs.exists",
	Group:  GroupRest,
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "a file below the directory of the script, of -I or of --out; for code of -c, from a pipe or at the prompt, also below the working directory"}},
	Doc:    "Reports whether a file exists and can be read.",
	Example: `
> fs.exists("net.topo"), fs.exists("net.tpo")
(True, False)
`,
	Run: Do(func(c *Call, a *struct{ Path string }) (starlark.Value, error) {
		err := c.Block(func(ctx context.Context) error { return c.Runtime().Files.exists(ctx, a.Path) })
		if errors.Is(err, fs.ErrNotExist) {
			return starlark.False, nil
		}
		return starlark.Bool(err == nil), err
	}),
}

// FSRead is fs.read.
var FSRead = Builtin{
	Name:   "fs.read",
	Group:  GroupRest,
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "a file below the directory of the script, of -I or of --out; for code of -c, from a pipe or at the prompt, also below the working directory"}},
	Doc:    "Returns the text of a whole regular file of at most 64 MB.\nA file that an option or argument of the command line names can be in any directory. The file of --keys cannot be read.",
	Example: `
> fs.read("roots.guids")
0x2c90300000100 # leaf-1
`,
	Run: Do(func(c *Call, a *struct{ Path string }) (starlark.Value, error) {
		var data []byte
		err := c.Block(func(ctx context.Context) (err error) {
			data, err = c.Runtime().Files.Read(ctx, a.Path)
			return err
		})
		if err != nil {
			return nil, err
		}
		return starlark.String(data), nil
	}),
}

// FSWrite is fs.write, which replaces whole files by renaming.
var FSWrite = Builtin{
	Name:  "fs.write",
	Group: GroupRest,
	Params: []Param{
		{Name: "path", Kind: KindPath, Doc: "the file, in the directory of --out; missing directories are created"},
		{Name: "data", Kind: KindAny, Doc: "a string, or bytes"},
	},
	Doc: `Writes a file in the directory of --out and returns its path.
The file is replaced atomically: readers never see a part of it, and after a failure the old file is unchanged. Links that lead out of the directory are refused. A module cannot write while it is being loaded.`,
	Example: `
> fs.write("reports/lids.txt", "1\n2\n")
"out/reports/lids.txt"
> fs.read("out/reports/lids.txt")
1
2
`,
	Run: Do(func(c *Call, a *struct {
		Path string
		Data starlark.Value
	}) (starlark.Value, error) {
		if loads := c.Fiber().Loads; len(loads) > 0 {
			return nil, c.Refuse("refused: a module cannot write files while it is being loaded (%s); write in a function that the script calls", loads[len(loads)-1])
		}
		var data []byte
		switch v := a.Data.(type) {
		case starlark.String:
			data = []byte(v)
		case starlark.Bytes:
			data = []byte(v)
		default:
			return nil, ParamError("data", "got %s, want string or bytes; json.encode(x) and str(x) return strings", v.Type())
		}
		path, err := c.Runtime().Files.Write(a.Path, data)
		if err != nil {
			return nil, err
		}
		return starlark.String(path), nil
	}),
}

// Write writes a file below the directory of --out and returns its name. It writes a
// temporary file in the same directory and renames it to path. After a failure
// nothing has changed, except that directories may have been created.
func (f *Files) Write(path string, data []byte) (string, error) {
	if f.out == nil {
		return "", fmt.Errorf("%s: scripts may write only to the directory of --out; give --out DIR", path)
	}
	rel := filepath.Clean(path)
	if filepath.IsAbs(path) {
		rel, _ = filepath.Rel(f.out.dir, rel) // on failure "", which is refused below
	}
	if !filepath.IsLocal(rel) || rel == "." {
		return "", fmt.Errorf("%s: scripts may write only below %s, the directory of --out", path, f.Short(f.out.dir))
	}
	abs := filepath.Join(f.out.dir, rel)
	err := checkLinks(f.out.open, rel, maxLinks)
	if err == nil {
		err = replaceFile(f.out.fs, rel, data)
	}
	if err != nil {
		return "", shortError(renamePath(err, f.Short(abs)))
	}
	return f.Short(abs), nil
}

// maxLinks is the maximum number of symbolic links in a path (path_resolution(7)).
const maxLinks = 40

// checkLinks returns an error if one of the directories of name, below r, is a symbolic link of a
// user other than root and the one who runs this process. The root itself refuses links that lead
// out. r is nil for files in memory.
func checkLinks(r *os.Root, name string, links int) error {
	at, dirs := "", strings.Split(filepath.Dir(name), string(filepath.Separator))
	for _, dir := range dirs {
		at = filepath.Join(at, dir)
		if r == nil || links == 0 || !filepath.IsLocal(at) {
			return nil // the root refuses it, or it is in memory
		}
		st, err := r.Lstat(at)
		if err != nil {
			return nil // of a missing directory; others are found again
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() && sys.Uid != 0 {
			return &os.PathError{Op: "write", Path: name, Err: fmt.Errorf("%s is a symbolic link of another user; choose another directory", at)}
		}
		to, err := r.Readlink(at)
		if err != nil {
			return err
		}
		if err := checkLinks(r, filepath.Join(filepath.Dir(at), to, "file"), links-1); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes data to the file called name in fs.
func replaceFile(fs afero.Fs, name string, data []byte) (err error) {
	if st, err := fs.Stat(name); err == nil && !st.Mode().IsRegular() {
		return &os.PathError{Op: "write", Path: name, Err: errors.New("is not a regular file, so it cannot be replaced")}
	}
	dir, base := filepath.Split(name)
	if dir = filepath.Clean(dir); dir != "." {
		switch err := fs.MkdirAll(dir, 0o755); {
		case errors.Is(err, os.ErrExist): // a part of the path is not a directory
			return &os.PathError{Op: "mkdir", Path: name, Err: errors.New("not a directory")}
		case err != nil:
			return err
		}
	}
	prefix := "." + base + ".fabsh-"
	removeStale(fs, dir, prefix)
	temp := filepath.Join(dir, prefix+rand.Text()[:8])
	file, err := fs.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	lockFile(file)
	_, err = file.Write(data)
	// Without Sync, a crash of the machine could leave an empty file with the new name.
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = fs.Rename(temp, name)
	}
	if err != nil {
		fs.Remove(temp)
	}
	return err
}

// staleAfter is the age from which an unlocked temporary file is considered left over.
const staleAfter = 10 * time.Second

// removeStale removes the temporary files with the prefix that killed writers have left
// behind. Files that cannot be removed stay.
func removeStale(fs afero.Fs, dir, prefix string) {
	entries, _ := afero.ReadDir(fs, dir)
	for _, e := range entries {
		if !e.Mode().IsRegular() || !strings.HasPrefix(e.Name(), prefix) || time.Since(e.ModTime()) < staleAfter {
			continue
		}
		name := filepath.Join(dir, e.Name())
		if f, err := fs.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			if lockFile(f) {
				fs.Remove(name)
			}
			f.Close()
		}
	}
}

// lockFile locks a file until it is closed; false: another process holds the lock, or the
// file system has no locks.
func lockFile(f afero.File) bool {
	file, ok := f.(*os.File)
	return ok && syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// rootFs is an afero file system over os.Root. The embedded one reads; rootFs adds
// writing.
type rootFs struct {
	afero.Fs
	root *os.Root
}

func (f rootFs) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	return f.root.OpenFile(name, flag, perm)
}

func (f rootFs) MkdirAll(path string, perm os.FileMode) error { return f.root.MkdirAll(path, perm) }
func (f rootFs) Rename(from, to string) error                 { return f.root.Rename(from, to) }
func (f rootFs) Remove(name string) error                     { return f.root.Remove(name) }
