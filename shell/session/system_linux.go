package session

import "golang.org/x/sys/unix"

// ioctl requests for a terminal's mode.
const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

// machineMemory returns the memory of the machine, in bytes.
func machineMemory() ByteSize {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return maxMemory
	}
	return ByteSize(info.Totalram) * ByteSize(info.Unit)
}
