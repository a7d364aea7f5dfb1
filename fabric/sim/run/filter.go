//go:build linux && (amd64 || arm64)

// Package notify has the kernel report system calls of programs to their supervisor, by
// seccomp user notification (seccomp_unotify(2)), and gives the answers. It knows nothing
// of InfiniBand.
//
//	filter.go      which system calls are reported
//	install.go     the filter of this thread
//	listener.go    the calls that come, and their answers
//	events.go      the events of a file
//	memory.go      the caller's memory
//	calls_*.go     the numbers of calls, by architecture
//
// What a filter reports may be changed by the caller while it is read: this is for
// views of files, not for security.

package run

import (
	"math"

	"golang.org/x/sys/unix"
)

// Descriptors within these ranges are supervised: of the second all reads and writes are
// reported, of the first only those of less than leastNative bytes, and writes of more
// than nativeSize; the others are the kernel's. A filter sees numbers, not what they stand
// for. RLIMIT_NOFILE is rarely below 256, and shells have 255 for themselves.
const (
	firstNative     = 190
	firstSupervised = 210
	lastSupervised  = 249

	leastNative = 100
	nativeSize  = 320
)

// atCalls name a file relative to a folder. The arguments are the folder, the path and
// the rest.
var atCalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, sysStatAt, unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT,
}

// attributeCalls are for extended attributes of a path: ls -l makes them.
var attributeCalls = []uint32{unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR}

// Offsets in struct seccomp_data; of arguments, those of the low halves.
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
	for _, io := range []struct{ call, most uint32 }{{unix.SYS_READ, math.MaxUint32}, {unix.SYS_WRITE, nativeSize}} {
		p.unless(unix.BPF_JEQ, io.call, 9)
		p.load(offArg0)
		p.unless(unix.BPF_JGE, firstNative, 6)
		p.when(unix.BPF_JGT, lastSupervised, 5)
		p.when(unix.BPF_JGE, firstSupervised, 3)
		p.load(offArg2)
		p.when(unix.BPF_JGT, io.most, 1)
		p.when(unix.BPF_JGE, leastNative, 1)
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
