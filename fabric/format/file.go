package format

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// WriteFile replaces the file at path by the output of write. It writes a temporary
// file in the same directory, and renames it to path when it is complete, so that
// there is never half a file. After an error the old file is unchanged.
//
// A pipe is written directly. WriteFile waits until ctx ends for a reader that comes
// later, and for what it reads. After that it writes only to a reader that exists.
func WriteFile(ctx context.Context, path string, write func(io.Writer) error) error {
	return replaceFile(ctx, path, write, nil, 0)
}

// WritePrivate is WriteFile for a file that only its owner may read: mode 0600, even
// where an existing file has another mode.
func WritePrivate(ctx context.Context, path string, write func(io.Writer) error) error {
	return replaceFile(ctx, path, write, nil, 0o600)
}

// WriteChecked is WriteFile with a check, unless that is nil: check is called with
// the name of the temporary file before the rename. path must then not be a pipe
// or device.
func WriteChecked(path string, write func(io.Writer) error, check func(name string) error) error {
	return replaceFile(context.Background(), path, write, check, 0)
}

// WriteOwn is WriteFile for a file that only fabsh itself writes, such as its state: the file is
// never written through a symbolic link, and anything but a regular file is kept. mode is that of
// a new file.
func WriteOwn(path string, mode os.FileMode, write func(io.Writer) error) error {
	path, err := ownPath(path)
	if err != nil {
		return err
	}
	if st, err := os.Lstat(path); err == nil {
		if !st.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file; not replaced, move it away", path)
		}
		mode = st.Mode().Perm()
	}
	return rename(path, write, nil, mode)
}

// replaceFile implements WriteFile, WritePrivate and WriteChecked. mode 0: the mode of the
// existing file, else 0644.
func replaceFile(ctx context.Context, path string, write func(io.Writer) error, check func(name string) error, mode os.FileMode) (err error) {
	if path, err = Target(path); err != nil { // a symbolic link stays one
		return err
	}
	if isStream(path) {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
	}
	old := os.FileMode(0o644)
	if st, err := os.Stat(path); err == nil {
		if !st.Mode().IsRegular() && check != nil {
			return fmt.Errorf("%s: not a regular file; cannot be replaced", path)
		}
		if !st.Mode().IsRegular() { // a pipe or device: a rename would remove it
			return writeThrough(ctx, path, st.Mode(), write)
		}
		old = st.Mode().Perm()
	}
	return rename(path, write, check, cmp.Or(mode, old))
}

// rename writes a temporary file beside path, and renames it to path.
func rename(path string, write func(io.Writer) error, check func(name string) error, mode os.FileMode) (err error) {
	f, err := createTemp(path)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok { // its name is another each time
			err = &fs.PathError{Op: pe.Op, Path: filepath.Dir(path), Err: pe.Err}
		}
		return fmt.Errorf("%s: temporary file beside it: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = named(err, f.Name(), path)
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	if err := write(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	// Without this, a crash of the machine could leave an empty file.
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if check != nil {
		if err := check(f.Name()); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}

// named returns err with the name of the file that was to be written in place of the temporary
// name, which is random and means nothing to users.
func named(err error, temp, path string) error {
	if link, ok := errors.AsType[*os.LinkError](err); ok && link.Old == temp {
		return &fs.PathError{Op: link.Op, Path: path, Err: link.Err}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == temp {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	return err
}

// writeThrough writes to the pipe or device at path.
func writeThrough(ctx context.Context, path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := openThrough(ctx, path, mode)
	if err != nil {
		return err
	}
	if ctx.Err() == nil {
		defer context.AfterFunc(ctx, func() { f.SetWriteDeadline(time.Unix(1, 0)) })()
	}
	err = write(f)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// OpenIncluded is OpenRegular as an Opener, with errors in the form of FileError.
func OpenIncluded(name string) (io.ReadCloser, error) {
	f, err := OpenRegular(name)
	if err != nil {
		return nil, FileError(err)
	}
	return f, nil
}

// FileError returns err as "path: cause" if it is about a file, else unchanged.
func FileError(err error) error {
	var pe *fs.PathError
	switch {
	case !errors.As(err, &pe):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", pe.Path)
	}
	return fmt.Errorf("%s: %w", pe.Path, pe.Err)
}

// Opener opens a file that another includes. name is relative to where the
// including file is.
type Opener func(name string) (io.ReadCloser, error)

// OpenRegular opens a file whose name comes from another file or the system, not from
// the command line, so a stranger may have chosen it. It must be a regular file, or a
// directory to be listed: a pipe could block.
func OpenRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return onlyRegular(f, true)
}

// onlyRegular closes f unless it is a regular file, or a directory where that is allowed.
func onlyRegular(f *os.File, orFolder bool) (*os.File, error) {
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() && !(orFolder && st.IsDir()) {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Bounded returns a reader of r that fails after more than max bytes. If r is a longer file, the
// error is returned at once.
func Bounded(r io.Reader, name string, max int64) (io.Reader, error) {
	b := &bounded{Reader: r, name: name, max: max, left: max}
	if f, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if st, err := f.Stat(); err == nil && st.Size() > max {
			return nil, b.tooLong()
		}
	}
	return b, nil
}

type bounded struct {
	io.Reader
	name      string
	max, left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.tooLong()
	}
	return n, err
}

func (b *bounded) tooLong() error {
	return fmt.Errorf("%s: expected at most %d MB", b.name, b.max>>20)
}

// Create opens the file at path, empty, with the treatment of symbolic links of Target. access is
// os.O_RDWR, or os.O_WRONLY, which waits for the reader of a pipe.
func Create(path string, access int) (*os.File, error) {
	target, err := Target(path)
	if err != nil {
		return nil, err
	}
	flags := access | os.O_CREATE | os.O_TRUNC
	if !isStream(target) {
		flags |= syscall.O_NOFOLLOW // there is no link now, and none may come between
	}
	return os.OpenFile(target, flags, 0o666)
}

// OpenPlain opens a regular file that fabsh itself has written, or with os.O_CREATE will. The
// file is never opened through a symbolic link: its directory may be another user's.
func OpenPlain(path string, flag int) (*os.File, error) {
	path, err := ownPath(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is a symbolic link, which is not followed; move it away")}
	}
	if err != nil {
		return nil, err
	}
	return onlyRegular(f, false)
}

// readerInterval is the time between attempts to open a pipe that has no reader.
const readerInterval = 20 * time.Millisecond

// openThrough opens a pipe or device to write to. A pipe is never opened in a way that
// blocks, which nothing could end.
func openThrough(ctx context.Context, path string, mode os.FileMode) (*os.File, error) {
	flag := os.O_WRONLY
	if !isStream(path) {
		flag |= syscall.O_NOFOLLOW // there is no link now, and none may come between
	}
	if mode&os.ModeNamedPipe == 0 {
		return os.OpenFile(path, flag, 0)
	}
	for {
		f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(readerInterval):
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

// IsOwn reports whether the file belongs to the user who runs this process.
func IsOwn(st fs.FileInfo) bool { return Owner(st) == os.Geteuid() }

// Owner returns the ID of the user who owns the file; if it is unknown, the ID of the user who
// runs this process.
func Owner(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid)
	}
	return os.Geteuid()
}

// tempMark is in the names of all temporary files: .NAME.fabsh-RANDOM.
const tempMark = ".fabsh-"

// staleAfter is the age from which a temporary file without a lock counts as
// abandoned: its writer locks it at once.
const staleAfter = 10 * time.Second

// createTemp creates a temporary file beside path, and removes the temporary files that killed
// writers of path have left. The file is locked until it is closed.
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

// removeStale removes the abandoned temporary files whose names begin with prefix. Errors are
// ignored.
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

// lock locks f until it is closed, or fails if another process has locked it.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// ErrLockHeld reports that another process holds the lock.
var ErrLockHeld = errors.New("another run is in progress")

// FileLock is a lock that this process holds. The end of the process releases it,
// however it ends.
type FileLock struct{ f *os.File }

// AcquireLock acquires the lock file at path, or fails with ErrLockHeld. It does not wait. Only
// the user who owns the file can acquire it.
func AcquireLock(path string) (*FileLock, error) {
	f, err := OpenPlain(path, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, fs.ErrPermission) {
		if st, e := os.Lstat(path); e == nil {
			return nil, fmt.Errorf("%s: owned by user %d, the only one who can lock it: %w", path, Owner(st), fs.ErrPermission)
		}
	}
	if err != nil {
		return nil, err
	}
	// In a directory of another user it may be a file that must not be emptied.
	if st, err := f.Stat(); err != nil || st.Sys().(*syscall.Stat_t).Nlink != 1 {
		f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s: not a lock file: it has another name (a hard link)", path))
	}
	if err := lock(f); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(holder))); err == nil {
			return nil, fmt.Errorf("%w: process %d holds %s", ErrLockHeld, pid, path)
		}
		return nil, fmt.Errorf("%w: it holds %s", ErrLockHeld, path)
	}
	// The process ID is only for messages: the lock itself is the kernel's.
	f.Chmod(0o600) // older lock files had another mode
	if f.Truncate(0) == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &FileLock{f}, nil
}

// Release releases the lock; on a nil lock, or one already released, it does nothing. The
// file stays: to remove it would let two processes in.
func (l *FileLock) Release() {
	if l != nil {
		// A child between fork(2) and execve(2) has the file open too: Close alone would
		// leave it locked.
		syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN)
		l.f.Close()
	}
}
