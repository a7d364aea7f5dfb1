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

// write makes a file below the folder of --out, and returns its name: a
// temporary one in the same folder, which then takes the place of the one at
// path. After a failure all is as before, but for folders on the way.
func (f *Files) Write(path string, data []byte) (string, error) {
	if f.out == nil {
		return "", fmt.Errorf("%s: scripts may write only to the folder that --out DIR names, and there is no --out", path)
	}
	rel := filepath.Clean(path)
	if filepath.IsAbs(path) {
		rel, _ = filepath.Rel(f.out.dir, rel) // "" fails below
	}
	if !filepath.IsLocal(rel) || rel == "." {
		return "", fmt.Errorf("%s: scripts may write only files below %s, the folder of --out", path, f.Short(f.out.dir))
	}
	abs := filepath.Join(f.out.dir, rel)
	if err := replace(f.out.fs, rel, data); err != nil {
		return "", tidy(rename(err, f.Short(abs)))
	}
	return f.Short(abs), nil
}

// replace makes name in fs a file of data.
func replace(fs afero.Fs, name string, data []byte) (err error) {
	if st, err := fs.Stat(name); err == nil && !st.Mode().IsRegular() {
		return &os.PathError{Op: "write", Path: name, Err: errors.New("is no regular file, so it cannot be replaced")}
	}
	dir, base := filepath.Split(name)
	if dir = filepath.Clean(dir); dir != "." {
		switch err := fs.MkdirAll(dir, 0o755); {
		case errors.Is(err, os.ErrExist): // as what is no folder
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
	// Or a crash of the machine could leave the new name with nothing in it.
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = fs.Rename(temp, name)
	}
	if err != nil {
		fs.Remove(temp)
	}
	return err
}

// staleAfter is the age of a temporary file that nobody has locked from which it
// is taken for a leftover.
const staleAfter = 10 * time.Second

// removeStale removes the temporary files whose names begin so, of writers that
// were killed. What cannot be removed stays.
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

// lock locks a file until it is closed; false: another has, or there are no locks.
func lock(f afero.File) bool {
	file, ok := f.(*os.File)
	return ok && syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// rootFs is afero over os.Root, with what writing takes. What it embeds reads.
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
