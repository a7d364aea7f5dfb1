package shell

import "golang.org/x/sys/unix"

// ioctl requests for a terminal's mode.
const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)
