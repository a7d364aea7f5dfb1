//go:build linux && (amd64 || arm64)

package run

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel reports system calls of programs to their supervisor by seccomp user notification
// (seccomp_unotify(2)): a filter selects them, a listener receives and answers them. Nothing
// here depends on InfiniBand. What a filter reports may be changed by the caller while it is
// read: this is for views of files, not for security.

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

// newListener returns the listener that installFilter made, or errNoListener.
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
		return errnoOf(err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
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

const pageSize = 4096 // the least of all; a string is read by these

// Read copies the caller's memory to b; false: not all of it is there, or the caller is
// gone.
func (l *listener) Read(c *systemCall, address uint64, b []byte) bool {
	return l.readSome(c, address, b) == len(b)
}

func (l *listener) readSome(c *systemCall, address uint64, b []byte) int {
	if len(b) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}
	n, err := unix.ProcessVMReadv(int(c.Thread), local, remote, 0)
	if err != nil || !l.Valid(c) { // the number may be another thread's by now
		return -1
	}
	return n
}

// Path reads a path from the caller's memory.
func (l *listener) Path(c *systemCall, address uint64) (path string, ok bool) {
	var b [unix.PathMax]byte
	for have := 0; have < len(b); {
		at := address + uint64(have)
		end := min(len(b), have+pageSize-int(at%pageSize)) // the next page may not be there
		n := l.readSome(c, at, b[have:end])
		if n <= 0 {
			return "", false
		}
		if i := bytes.IndexByte(b[have:have+n], 0); i >= 0 {
			return string(b[:have+i]), true
		}
		have += n
	}
	return "", false
}

// Write copies the parts to the caller's memory, one behind the other.
func (l *listener) Write(c *systemCall, address uint64, parts ...[]byte) bool {
	// What is opened belongs to the process that had the number then, for as long as it
	// is open: if that is the caller, it is the caller's memory that is written.
	var name [32]byte
	path := append(strconv.AppendUint(append(name[:0], "/proc/"...), uint64(c.Thread), 10), "/mem"...)
	fd, err := unix.Open(string(path), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !l.Valid(c) {
		return false
	}
	for _, b := range parts {
		if n, err := unix.Pwrite(fd, b, int64(address)); n != len(b) || err != nil {
			return len(b) == 0 && err == nil
		}
		address += uint64(len(b))
	}
	return true
}

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

// Descriptors within these ranges are supervised: of the second all reads and writes are
// reported, of the first only calls of less than minNativeSize bytes, and writes of more
// than maxNativeSize; the others are the kernel's. A filter sees numbers, not what they stand
// for. RLIMIT_NOFILE is rarely below 256, and shells have 255 for themselves.
const (
	firstNative     = 190
	firstSupervised = 210
	lastSupervised  = 249

	minNativeSize = 100
	maxNativeSize = 320
)

// atCalls name a file relative to a folder. The arguments are the folder, the path and
// the rest.
var atCalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, sysStatAt, unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT,
}

// attributeCalls are for extended attributes of a path: ls -l makes them.
var attributeCalls = []uint32{unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR}

// Offsets in struct seccomp_data; of arguments, the low halves.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24
	offArg2   = 32
	offArg3   = 40
)

// program is a filter under construction: what it does not report is allowed.
type program []unix.SockFilter

func (p *program) add(code uint16, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, K: k})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }

func (p *program) answer(action uint32) { p.add(unix.BPF_RET|unix.BPF_K, action) }

// unless skips the next n instructions if the comparison with k fails.
func (p *program) unless(compare uint16, k uint32, n uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | compare, K: k, Jf: n})
}

// when skips the next n instructions if the comparison with k holds.
func (p *program) when(compare uint16, k uint32, n uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | compare, K: k, Jt: n})
}

// filter returns the program. Calls have the type of ioctl requests that are reported in
// their second byte. Programs of another architecture (32 bits) are not seen.
func filter(ioctlType uint8) program {
	var p program
	p.load(offArch)
	p.unless(unix.BPF_JEQ, auditArch, 1)
	p.add(unix.BPF_JMP|unix.BPF_JA, 1)
	p.answer(unix.SECCOMP_RET_ALLOW)
	p.load(offNumber)
	// fstat, as glibc calls it: a descriptor, and an empty path.
	p.unless(unix.BPF_JEQ, sysStatAt, 7)
	p.load(offArg0)
	p.when(unix.BPF_JGE, 1<<31, 4) // AT_FDCWD
	p.load(offArg3)
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, unix.AT_EMPTY_PATH)
	p.unless(unix.BPF_JEQ, unix.AT_EMPTY_PATH, 1)
	p.answer(unix.SECCOMP_RET_ALLOW)
	p.load(offNumber)
	for _, call := range pathCalls {
		p.unless(unix.BPF_JEQ, call, 1)
		p.answer(unix.SECCOMP_RET_USER_NOTIF)
	}
	for _, io := range []struct{ call, most uint32 }{{unix.SYS_READ, math.MaxUint32}, {unix.SYS_WRITE, maxNativeSize}} {
		p.unless(unix.BPF_JEQ, io.call, 9)
		p.load(offArg0)
		p.unless(unix.BPF_JGE, firstNative, 6)
		p.when(unix.BPF_JGT, lastSupervised, 5)
		p.when(unix.BPF_JGE, firstSupervised, 3)
		p.load(offArg2)
		p.when(unix.BPF_JGT, io.most, 1)
		p.when(unix.BPF_JGE, minNativeSize, 1)
		p.answer(unix.SECCOMP_RET_USER_NOTIF)
		p.answer(unix.SECCOMP_RET_ALLOW)
	}
	for _, call := range []uint32{unix.SYS_DUP, unix.SYS_WRITEV} {
		p.unless(unix.BPF_JEQ, call, 5)
		p.load(offArg0)
		p.unless(unix.BPF_JGE, firstNative, 2)
		p.when(unix.BPF_JGT, lastSupervised, 1)
		p.answer(unix.SECCOMP_RET_USER_NOTIF)
		p.answer(unix.SECCOMP_RET_ALLOW)
	}
	p.unless(unix.BPF_JEQ, unix.SYS_FCNTL, 8)
	p.load(offArg0)
	p.unless(unix.BPF_JGE, firstNative, 5)
	p.when(unix.BPF_JGT, lastSupervised, 4)
	p.load(offArg1)
	p.when(unix.BPF_JEQ, unix.F_DUPFD, 1)
	p.unless(unix.BPF_JEQ, unix.F_DUPFD_CLOEXEC, 1)
	p.answer(unix.SECCOMP_RET_USER_NOTIF)
	p.answer(unix.SECCOMP_RET_ALLOW)
	p.unless(unix.BPF_JEQ, unix.SYS_IOCTL, 4)
	p.load(offArg1)
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xff00)
	p.unless(unix.BPF_JEQ, uint32(ioctlType)<<8, 1)
	p.answer(unix.SECCOMP_RET_USER_NOTIF)
	p.answer(unix.SECCOMP_RET_ALLOW)
	return p
}

// errNoListener is the error of a host that cannot supervise programs this way.
var errNoListener = errors.New("this host cannot supervise programs: it needs Linux 5.14 or newer, and a container that allows seccomp user notification and has no listener of its own")

// installFilter gives the calling thread, and all programs that it becomes or starts, a filter
// that reports calls to the listener, which it returns. The thread must not open or stat
// anything before it executes a program: nothing answers yet.
func installFilter(ioctlType uint8) (listener int, err error) {
	code := filter(ioctlType)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	set := func(flags uintptr) (uintptr, unix.Errno) {
		fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		return fd, errno
	}
	// Linux 5.19: signals, such as SIGURG of Go programs, do not abort a call that is
	// being answered.
	fd, errno := set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errno == unix.EINVAL {
		fd, errno = set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}
