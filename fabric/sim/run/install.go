//go:build linux && (amd64 || arm64)

package run

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoListener is the error of a host that cannot supervise programs this way.
var errNoListener = errors.New("this host cannot supervise programs: it needs Linux 5.14 or newer, and a container that allows seccomp user notification and has no listener of its own")

// installFilter gives the calling thread, and all programs that it becomes or starts, a filter
// that reports calls to the listener, which it returns. The thread must not open or stat
// anything before it executes a program: nothing answers yet.
func installFilter(ioctlType uint8) (listener int, err error) {
	code := filter(ioctlType)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	set := func(flags uintptr) (uintptr, unix.Errno) {
		fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		return fd, errno
	}
	// Linux 5.19: signals, such as SIGURG of Go programs, do not abort a call that is
	// being answered.
	fd, errno := set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errno == unix.EINVAL {
		fd, errno = set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}
