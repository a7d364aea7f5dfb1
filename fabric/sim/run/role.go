//go:build linux && (amd64 || arm64)

package run

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The roles: the first argument of this program when it executes itself.
const (
	keeperRole  = "__sim-run-keeper"
	starterRole = "__sim-run-starter"
)

// unsupported is what the starter sends for errNoListener.
const unsupported = "unsupported"

// Descriptors of keeper and starter.
const (
	controlFD  = 3
	listenerFD = 4
)

// becomeRole does what the first of the program's arguments says; it returns if that is no
// role of this package.
func becomeRole(args []string) {
	if len(args) < 6 {
		return
	}
	switch args[1] {
	case keeperRole:
		os.Exit(keep(args[0], args[2:]))
	case starterRole:
		become(args[3:])
	}
}

// become turns this process into the command. The exit statuses are those of a shell.
func become(args []string) {
	runtime.LockOSThread()
	path, argv := args[1], args[2:]
	ioctlType, _ := strconv.ParseUint(args[0], 10, 8)
	environment := syscall.Environ()
	unix.CloseOnExec(controlFD) // another copy of it
	unix.CloseOnExec(listenerFD)
	listener, err := installFilter(uint8(ioctlType))
	if err != nil {
		text := err.Error()
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EPERM) {
			text = unsupported
		}
		unix.Sendmsg(listenerFD, []byte(text), nil, nil, 0)
		os.Exit(127)
	}
	// From here to exec this thread opens nothing: nothing answers yet.
	if unix.Sendmsg(listenerFD, []byte("ok"), unix.UnixRights(listener), nil, 0) != nil {
		os.Exit(127)
	}
	err = syscall.Exec(path, argv, environment)
	unix.Write(2, []byte("fabsh: "+argv[0]+": "+err.Error()+"\n"))
	if errors.Is(err, unix.ENOENT) {
		os.Exit(127)
	}
	os.Exit(126)
}
