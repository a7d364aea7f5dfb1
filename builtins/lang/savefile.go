package lang

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

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
	defer func() { err = tidy(rename(err, path)) }()
	if f.base != nil {
		return replace(f.base, f.Abs(path), data)
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
