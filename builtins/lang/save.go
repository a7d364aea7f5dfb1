package lang

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Save is save().
var Save = Builtin{
	Name:  "save",
	Group: GroupOutput,
	Params: []Param{
		{Name: "value", Kind: KindAny, Doc: "any value"},
		{Name: "path", Kind: KindText, Doc: "a file below the working directory; its suffix is the format: csv, json, jsonl, txt (as shown), svg of a matrix, html of a report, fab of a fabric (a snapshot)"},
		{Name: "overwrite", Kind: KindBool, Default: "False", Keyword: true, Doc: "replace an existing file"},
	},
	Doc: `Saves a value in a file. Only a statement typed at the prompt may save.
The file is written completely or not at all. Names that begin with a dot, symbolic links and directories that do not exist are refused. Functions of modules cannot save, whoever calls them; scripts use fs.write with --out.`,
	Example: `
> save(discover().switches, "switches.csv"); fs.exists("switches.csv")
True
`,
	Run: Do(func(c *Call, a *struct {
		Value     starlark.Value
		Path      string
		Overwrite bool
	}) (starlark.Value, error) {
		if n := len(a.Path); n > maxPath {
			return nil, ParamError("path", "got a text of %d bytes, and a path has at most %d; write save(VALUE, PATH)", n, maxPath)
		}
		suffix := strings.TrimPrefix(filepath.Ext(a.Path), ".")
		return starlark.None, c.save(a.Value, suffix, a.Path, a.Overwrite)
	}),
}

// Saved is implemented by values with file formats of their own.
type Saved interface {
	// SaveAs returns what writes the value in the format of files with this suffix, such
	// as "svg"; nil: it has no such format.
	SaveAs(suffix string) func(io.Writer) error
}

// Typed is a statement that a user types at a terminal, while it runs. Only it may save
// files in the working directory.
type Typed struct {
	Thread *starlark.Thread
	// File is the file name of typed code in positions. No module has such a name.
	File string
	// Source returns all typed text.
	Source func() string
	// Page shows text in a pager.
	Page func(text string) error
}

// mayUse returns an error unless c is called by a typed statement itself, or by functions
// that were typed: not by, or through, a function of a module, a builtin or parallel().
func (c *Call) mayUse(what string) error {
	typed := c.Runtime().Typed
	if typed == nil || c.Thread != typed.Thread {
		return Errorf("%s: only statements typed at the prompt may do this; scripts write below the directory of --out: fs.write", what)
	}
	for depth := 1; depth < c.Thread.CallStackDepth(); depth++ {
		fn, ok := c.Thread.DebugFrame(depth).Callable().(*starlark.Function)
		if !ok || fn.Position().Filename() != typed.File {
			return Errorf("%s: only statements typed at the prompt may do this, and here %s calls it; call it in the statement itself", what, c.Thread.DebugFrame(depth).Callable().Name())
		}
	}
	if name := c.Builtin.Name; !calledBy(name, typed.Source(), c.Thread.CallFrame(1).Pos) {
		return Errorf("%s: only a call of %s by its own name may do this; write %[2]s(...)", what, name)
	}
	return nil
}

// calledBy reports whether the call whose parenthesis is at a position is written name(...).
// A module may export a function under another name, as if it only computed.
func calledBy(name, source string, paren syntax.Position) bool {
	lines := strings.Split(source, "\n")
	if paren.Line < 1 || int(paren.Line) > len(lines) {
		return false
	}
	text := []rune(lines[paren.Line-1])
	if paren.Col < 1 || int(paren.Col) > len(text) {
		return false
	}
	before, ok := strings.CutSuffix(strings.TrimRight(string(text[:paren.Col-1]), " \t"), name)
	last, _ := utf8.DecodeLastRuneInString(before)
	return ok && (before == "" || last != '.' && last != '_' && !unicode.IsLetter(last) && !unicode.IsDigit(last))
}

// saveSuffixes are the suffixes of the files that save writes.
var saveSuffixes = []string{"csv", "json", "jsonl", "txt", "svg", "html", "fab"}

// maxPath is the maximum length of a path in bytes (PATH_MAX of Linux).
const maxPath = 4096

// save writes v to the file at path in the format of files with this suffix.
func (c *Call) save(v starlark.Value, suffix, path string, overwrite bool) error {
	if err := c.mayUse(path); err != nil {
		return err
	}
	data, err := c.encodeFile(v, suffix)
	if err != nil {
		return Errorf("%s: %w", path, err)
	}
	return c.Block(func(context.Context) error {
		if err := c.Runtime().Files.SaveTyped(path, data, overwrite); err != nil {
			return Errorf("%w", err)
		}
		return nil
	})
}

// encodeFile returns the contents of a file with this suffix. A table has the rows and columns of
// the session's view.
func (c *Call) encodeFile(v starlark.Value, suffix string) ([]byte, error) {
	format := Format(suffix)
	switch {
	case format == FormatCSV || format == FormatRawCSV || format == FormatJSON || format == FormatJSONL || format == FormatText:
	case suffix == "txt":
		format = FormatText
	case slices.Contains(saveSuffixes, suffix):
		c.Runtime().warnWhole(v)
		if s, ok := v.(Saved); ok {
			if write := s.SaveAs(suffix); write != nil {
				var b bytes.Buffer
				err := write(&b)
				return b.Bytes(), err
			}
		}
		if s, ok := v.(starlark.String); ok && suffix != "fab" && strings.HasPrefix(string(s), "<") {
			return []byte(s), nil // report() returns a page
		}
		return nil, Errorf("%s cannot be saved as %s; svg is for a matrix, html for report(), fab for a fabric", v.Type(), suffix)
	default:
		return nil, Errorf("unknown format %q; supported: %s", suffix, strings.Join(saveSuffixes, ", "))
	}
	v, err := c.Runtime().ViewOf(c.Thread, v, format)
	if err != nil {
		return nil, err
	}
	text, err := Render(v, format)
	return []byte(text), err
}

// SaveTyped writes a file below the working directory, for a statement that a user has
// typed. It goes from directory to directory, each opened below the last, so that no
// symbolic link is followed, even if one appears meanwhile. After a failure nothing has
// changed.
func (f *Files) SaveTyped(path string, data []byte, overwrite bool) (err error) {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	switch {
	case path == "" || !filepath.IsLocal(path) || strings.HasSuffix(path, "/"):
		return fmt.Errorf("%s: not a file below the working directory; give a relative path that does not lead up", path)
	case slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, ".") }):
		return fmt.Errorf("%s: names that begin with a dot are refused", path)
	case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%q: names with control characters are refused", path)
	}
	defer func() { err = shortError(renamePath(err, path)) }()
	if f.base != nil {
		return replaceFile(f.base, f.Abs(path), data)
	}
	dir, err := os.OpenRoot(f.Cwd)
	if err != nil {
		return err
	}
	defer func() { dir.Close() }()
	for _, part := range parts[:len(parts)-1] {
		next, err := openDirectory(dir, part)
		if err != nil {
			return err
		}
		dir.Close()
		dir = next
	}
	return f.saveIn(dir, parts[len(parts)-1], data, overwrite)
}

var errLink = errors.New("is a symbolic link, which is refused")

// openDirectory opens a directory of dir, unless it is a symbolic link.
func openDirectory(dir *os.Root, name string) (*os.Root, error) {
	st, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case st.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%s %w", name, errLink)}
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(st, now) {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("was replaced meanwhile")}
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// newMode is the mode of new files, which the umask restricts.
const newMode fs.FileMode = 0o644

// saveIn writes a file in dir: a temporary one, which then gets the name.
func (f *Files) saveIn(dir *os.Root, name string, data []byte, overwrite bool) (err error) {
	refuse := func(why error) error { return &fs.PathError{Op: "write", Path: name, Err: why} }
	mode := newMode // a replaced file keeps its own
	switch st, err := dir.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case st.Mode()&fs.ModeSymlink != 0:
		return refuse(errLink)
	case !st.Mode().IsRegular():
		return refuse(errors.New("is not a regular file, so it cannot be replaced"))
	case slices.ContainsFunc(f.secrets, func(secret os.FileInfo) bool { return os.SameFile(secret, st) }):
		return refuse(errors.New("contains keys, and is not replaced"))
	case !overwrite:
		return refuse(errExists)
	default:
		mode = st.Mode().Perm()
	}
	temp := "." + name + ".fabsh-" + rand.Text()[:8]
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer dir.Remove(temp) // does nothing after it was renamed
	if mode != newMode {   // the umask may have taken more
		err = file.Chmod(mode)
	}
	if err == nil {
		_, err = file.Write(data)
	}
	// Without Sync, a crash of the machine could leave an empty file with the new name.
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if overwrite {
		return dir.Rename(temp, name)
	}
	// A link does not replace a file that another program has created meanwhile.
	switch err := dir.Link(temp, name); {
	case errors.Is(err, fs.ErrExist):
		return refuse(errExists)
	case err == nil:
		return nil
	}
	err = renameNew(dir, temp, name) // the file system has no links
	if errors.Is(err, fs.ErrExist) {
		return refuse(errExists)
	}
	return err
}

var errExists = errors.New("exists; overwrite=True replaces it")
