// Package lock has locks between processes: a file that one process holds at a time.
//
//	lock.go  Acquire and Release

package format

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrLockHeld reports that another process holds the lock.
var ErrLockHeld = errors.New("another run is in progress")

// FileLock is a lock that this process holds. The end of the process releases it,
// however it ends.
type FileLock struct{ f *os.File }

// AcquireLock acquires the lock file at path, or fails with ErrHeld. It does not wait. Only
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
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
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
	// Who it is is only for messages: the lock itself is the kernel's.
	f.Chmod(0o600) // one of before had another mode
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
