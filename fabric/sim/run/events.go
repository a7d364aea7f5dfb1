//go:build linux && (amd64 || arm64)

package run

import "golang.org/x/sys/unix"

// pollEvents returns which of the events of poll(2) fd has now, and whether its other end is
// closed or in error. A signal, which Go's runtime sends to its threads, would end
// poll(2) without an answer.
func pollEvents(fd int, of int16) int16 {
	p := []unix.PollFd{{Fd: int32(fd), Events: of}}
	for {
		switch n, err := unix.Poll(p, 0); {
		case err == unix.EINTR:
		case err != nil || n == 0:
			return 0
		default:
			return p[0].Revents
		}
	}
}
