//go:build !linux

package session

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ioctl requests for a terminal's mode.
const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)

// uptime is unknown.
func uptime() (boot string, up time.Duration) { return "", 0 }

// machineMemory is unknown.
func machineMemory() ByteSize { return maxMemory }

// readTyped reads what was typed at the terminal f.
func readTyped(f *os.File, p []byte) (int, error) { return f.Read(p) }

// InForeground reports whether the terminal sends its signals to this process. It is used
// on Linux only.
func InForeground() bool { return false }

// WaitHangup is known on Linux only.
func WaitHangup(*os.File) bool { return false }
