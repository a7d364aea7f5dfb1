package session

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ioctl requests for a terminal's mode.
const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

// uptime returns the boot of the machine, "" if unknown, and the time since then, suspension
// included (proc_sys_kernel(5), clock_gettime(2)).
func uptime() (boot string, up time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var at unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(at.Nano())
}

// machineMemory returns the memory of the machine, in bytes.
func machineMemory() ByteSize {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return maxMemory
	}
	return ByteSize(info.Totalram) * ByteSize(info.Unit)
}

// InForeground reports whether the terminal sends its signals, such as that of Ctrl-C, to
// this process and to those that it starts.
func InForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
