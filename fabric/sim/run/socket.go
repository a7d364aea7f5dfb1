//go:build linux && (amd64 || arm64)

package run

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that do not block are raw ones: Go's scheduler need not know of them (see package
// mad/internal/nowait).

// receive waits for a message on a socket.
func receive(fd int, b []byte) (int, error) {
	for range 2 {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EAGAIN {
			return 0, errno
		}
	}
	return unix.Read(fd, b)
}

// send sends a message, or returns an error at once.
func send(fd int, b []byte) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno
}
