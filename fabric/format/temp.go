package format

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tempMark is in the names of all temporary files: .NAME.fabsh-RANDOM.
const tempMark = ".fabsh-"

// staleAfter is the age of a temporary file without a lock from which it
// is taken for a leftover: its writer locks it at once.
const staleAfter = 10 * time.Second

// createTemp makes a temporary file beside path, and removes those that writers
// of path have left that were killed. As long as the file is open it is locked.
func createTemp(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	prefix := "." + name + tempMark
	removeStale(filepath.Clean(dir+"."), prefix)
	f, err := os.CreateTemp(filepath.Clean(dir+"."), prefix)
	if err != nil {
		return nil, err
	}
	lock(f) // without locks, the age decides
	return f, nil
}

// removeStale removes the leftovers whose names begin so. What cannot be removed
// stays.
func removeStale(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if st, err := f.Stat(); err == nil && time.Since(st.ModTime()) > staleAfter && lock(f) == nil {
			os.Remove(path)
		}
		f.Close()
	}
}

// lock locks f until it is closed, unless another has.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
