package session

import (
	"io"
	"os"
	"strconv"
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

// readTyped reads what was typed at the terminal f. It fails with EAGAIN instead of waiting;
// of other files it reads as f does. O_NONBLOCK would be for all programs that have f, so it
// opens the terminal again.
func readTyped(f *os.File, p []byte) (int, error) {
	if !isTerminal(f) {
		return f.Read(p)
	}
	again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil { // a terminal of another user, or /proc is missing
		return f.Read(p)
	}
	defer unix.Close(again)
	switch n, err := unix.Read(again, p); {
	case err != nil:
		return 0, &os.PathError{Op: "read", Path: f.Name(), Err: err}
	case n == 0:
		return 0, io.EOF
	default:
		return n, nil
	}
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

// WaitHangup waits until the last reader of f, a pipe, a socket or a terminal, is gone (poll(2),
// POLLERR and POLLHUP), and reports whether it is. For other files it may never return.
func WaitHangup(f *os.File) bool {
	c, err := f.SyscallConn() // f.Fd() would make it block for all processes that have it
	fds := make([]unix.PollFd, 1)
	if err != nil || c.Control(func(fd uintptr) { fds[0].Fd = int32(fd) }) != nil {
		return false
	}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR, err == unix.EAGAIN:
		case err != nil:
			return false
		case fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		case fds[0].Revents != 0: // closed
			return false
		}
	}
}
