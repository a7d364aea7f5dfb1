//go:build !linux

package session

import "golang.org/x/sys/unix"

// ioctl requests for a terminal's mode.
const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)

// machineMemory is unknown.
func machineMemory() ByteSize { return maxMemory }
