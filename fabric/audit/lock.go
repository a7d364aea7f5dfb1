package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrLocked: another run holds the lock.
var ErrLocked = errors.New("another run is under way")

// Held is a lock that this process has. The end of the process gives it back,
// however it ends.
type Held struct{ f *os.File }

// Lock takes the lock file at path, or fails with ErrLocked. It does not wait.
func Lock(path string) (*Held, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(holder))); err == nil {
			return nil, fmt.Errorf("%w: process %d holds %s", ErrLocked, pid, path)
		}
		return nil, fmt.Errorf("%w: it holds %s", ErrLocked, path)
	}
	// Who it is is only for messages: the lock itself is the kernel's.
	if f.Truncate(0) == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Held{f}, nil
}

// Unlock gives the lock back. The file stays: to remove it would let two runs in.
func (h *Held) Unlock() { h.f.Close() }
