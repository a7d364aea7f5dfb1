package format

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Target is the file that writing to path writes: a symbolic link is followed if it
// is the user's own and leads to a file of theirs, because anyone may create one
// in a directory such as /tmp. /dev/stdout and the like are links too. "-" is refused:
// elsewhere it means standard output, which also gets text.
func Target(path string) (string, error) {
	if path == "-" {
		return "", errors.New("-: ambiguous; use /dev/stdout for standard output, ./- for a file of that name")
	}
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeSymlink == 0 || isStream(path) {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	switch {
	case !IsOwn(st):
		return "", fmt.Errorf("%s: symbolic link of another user", path)
	case errors.Is(err, fs.ErrNotExist):
		next, err := os.Readlink(path)
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		return next, err
	case err != nil:
		return "", err
	}
	if st, err = os.Lstat(target); err == nil && st.Mode().IsRegular() && !IsOwn(st) {
		return "", fmt.Errorf("%s: symbolic link to a file of another user, %s", path, target)
	}
	return target, nil
}

// Create is os.Create, but for symbolic links: see Target.
func Create(path string) (*os.File, error) {
	target, err := Target(path)
	if err != nil {
		return nil, err
	}
	flags := os.O_RDWR | os.O_CREATE | os.O_TRUNC
	if !isStream(path) {
		flags |= syscall.O_NOFOLLOW // there is no link now, and none may come between
	}
	return os.OpenFile(target, flags, 0o666)
}

// OpenPlain opens a regular file that fabsh itself has written, or with os.O_CREATE will,
// and follows no symbolic link: its directory may be another user's.
func OpenPlain(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	return onlyRegular(f, false)
}

// looksForReader is how often a pipe is tried without a reader.
const looksForReader = 20 * time.Millisecond

// openThrough opens a pipe or device to write to. A pipe is never opened in a way that
// blocks, which nothing could end.
func openThrough(ctx context.Context, path string, mode os.FileMode) (*os.File, error) {
	if mode&os.ModeNamedPipe == 0 {
		return os.OpenFile(path, os.O_WRONLY, 0)
	}
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(looksForReader):
		}
	}
}

// isStream reports whether path stands for an open file of this process.
func isStream(path string) bool {
	path = filepath.Clean(path)
	switch path {
	case "/dev/stdout", "/dev/stderr", "/dev/stdin":
		return true
	}
	return strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// IsOwn reports whether the file is one of the user who runs this process.
func IsOwn(st fs.FileInfo) bool { return Owner(st) == os.Geteuid() }

// Owner returns the ID of the user who owns the file; where unknown, that of the user who
// runs this process.
func Owner(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid)
	}
	return os.Geteuid()
}
