//go:build linux && (amd64 || arm64)

package run

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemCall is a system call that waits for its answer (struct seccomp_notif).
type systemCall struct {
	ID     uint64
	Thread uint32 // that makes it
	flags  uint32
	Number int32
	arch   uint32
	ip     uint64
	Args   [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// addFD is struct seccomp_notif_addfd.
type addFD struct {
	id       uint64
	flags    uint32
	source   uint32
	number   uint32
	newFlags uint32
}

// listener receives calls. Answers may be given from any goroutine.
type listener struct {
	fd     int
	thread atomic.Int32 // that serves
	closed atomic.Bool
	ended  chan struct{}
}

// newListener returns the listener that Install made, or ErrUnsupported.
func newListener(fd int) (*listener, error) {
	l := &listener{fd: fd, ended: make(chan struct{})}
	// The answer to a call that does not exist shows whether the kernel knows the request.
	a := addFD{flags: unix.SECCOMP_ADDFD_FLAG_SEND, source: uint32(fd)}
	if l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a)) != unix.ENOENT {
		unix.Close(fd)
		return nil, errNoListener
	}
	// Linux 6.6: who reports and who answers take turns on one processor, which halves the cost.
	unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return l, nil
}

func (l *listener) ioctl(request uintptr, p unsafe.Pointer) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(p))
	return errno
}

// Serve calls handle with each call, one after the other, until Close.
func (l *listener) Serve(handle func(*systemCall)) {
	defer close(l.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.thread.Store(int32(unix.Gettid()))
	var c systemCall
	for !l.closed.Load() {
		c = systemCall{} // the kernel refuses another
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&c)))
		switch errno {
		case 0:
			handle(&c)
		case unix.EINTR, unix.ENOENT: // ENOENT: the caller was killed meanwhile, or all are gone
			if errno == unix.ENOENT && l.deserted() {
				return
			}
		default:
			return
		}
	}
}

// deserted reports whether no program is left that could make a call.
func (l *listener) deserted() bool {
	return pollEvents(l.fd, 0)&unix.POLLHUP != 0
}

// Close ends Serve. Calls that come later fail with ENOSYS.
func (l *listener) Close() {
	l.closed.Store(true)
	for {
		if t := l.thread.Load(); t != 0 { // Go has a handler for this signal, which ignores it
			unix.Tgkill(unix.Getpid(), int(t), unix.SIGURG)
		}
		select {
		case <-l.ended:
			unix.Close(l.fd)
			return
		default:
			runtime.Gosched()
		}
	}
}

// Proceed has the kernel execute the call after all.
func (l *listener) Proceed(c *systemCall) {
	r := response{id: c.ID, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// Answer returns a value from the call, or an error if errno is not 0.
func (l *listener) Answer(c *systemCall, value int64, errno unix.Errno) {
	r := response{id: c.ID, value: value, errno: -int32(errno)}
	if errno != 0 {
		r.value = 0
	}
	l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // ENOENT: the caller is gone
}

// Inject returns a copy of descriptor fd from the call. It has the given number, or any
// if that is negative. closeOnExec is for the copy.
func (l *listener) Inject(c *systemCall, fd, number int, closeOnExec bool) unix.Errno {
	a := addFD{id: c.ID, flags: unix.SECCOMP_ADDFD_FLAG_SEND, source: uint32(fd)}
	if number >= 0 {
		a.flags |= unix.SECCOMP_ADDFD_FLAG_SETFD
		a.number = uint32(number)
	}
	if closeOnExec {
		a.newFlags = unix.O_CLOEXEC
	}
	// A signal to this thread, as the runtime sends to preempt goroutines, would interrupt the
	// request after it has answered the call, and before the descriptor is there.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, &before); err != nil {
		return callErrno(err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
}

func callErrno(err error) unix.Errno {
	if e, ok := err.(unix.Errno); ok {
		return e
	}
	return unix.EIO
}

// Valid reports whether the caller still waits: only then its thread's number is its own.
func (l *listener) Valid(c *systemCall) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&c.ID)) == 0
}

// PathArguments returns where the arguments of a call that names a file are: the folder
// (unix.AT_FDCWD: the caller's), the address of the path, and the rest.
func (c *systemCall) PathArguments() (folder int32, path uint64, rest []uint64) {
	switch c.Number {
	case sysOpen, sysStat, sysLstat, sysAccess, sysReadlink, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR:
		return unix.AT_FDCWD, c.Args[0], c.Args[1:]
	}
	return int32(c.Args[0]), c.Args[1], c.Args[2:]
}

// callKind is what a call does.
type callKind uint8

// The calls that a filter reports.
const (
	callOpen callKind = 1 + iota
	callOpen2
	callStat
	callStatx
	callAccess
	callReadlink
	callAttribute
	callIoctl
	callDuplicate // dup, or F_DUPFD and F_DUPFD_CLOEXEC of fcntl
	callRead
	callWrite
	callWriteList // writev
)

// Kind returns what the call does.
func (c *systemCall) Kind() callKind {
	switch c.Number {
	case sysOpen, unix.SYS_OPENAT:
		return callOpen
	case unix.SYS_OPENAT2:
		return callOpen2
	case sysStat, sysLstat, sysStatAt:
		return callStat
	case unix.SYS_STATX:
		return callStatx
	case sysAccess, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2:
		return callAccess
	case sysReadlink, unix.SYS_READLINKAT:
		return callReadlink
	case unix.SYS_IOCTL:
		return callIoctl
	case unix.SYS_DUP, unix.SYS_FCNTL:
		return callDuplicate
	case unix.SYS_READ:
		return callRead
	case unix.SYS_WRITE:
		return callWrite
	case unix.SYS_WRITEV:
		return callWriteList
	}
	return callAttribute
}
