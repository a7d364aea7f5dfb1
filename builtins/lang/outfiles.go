package lang

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

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
	if err := replace(f.out.fs, rel, data); err != nil {
		return "", tidy(rename(err, f.Short(abs)))
	}
	return f.Short(abs), nil
}

// replace writes data to the file called name in fs.
func replace(fs afero.Fs, name string, data []byte) (err error) {
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
	lock(file)
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
			if lock(f) {
				fs.Remove(name)
			}
			f.Close()
		}
	}
}

// lock locks a file until it is closed; false: another process holds the lock, or the
// file system has no locks.
func lock(f afero.File) bool {
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
