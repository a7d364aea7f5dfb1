//go:build linux && (amd64 || arm64)

package run

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// run executes a filter on a call, as the kernel does.
func (p program) run(t *testing.T, arch, number uint32, args ...uint64) string {
	t.Helper()
	var data [64]byte // struct seccomp_data
	binary.LittleEndian.PutUint32(data[offNumber:], number)
	binary.LittleEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[offArg0+8*i:], a)
	}
	a := uint32(0)
	for pc := 0; ; pc++ {
		in := p[pc]
		jump := func(ok bool) {
			if ok {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[in.K:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(a > in.K)
		case unix.BPF_RET | unix.BPF_K:
			return map[uint32]string{unix.SECCOMP_RET_ALLOW: "native", unix.SECCOMP_RET_USER_NOTIF: "reported"}[in.K]
		default:
			t.Fatalf("instruction %d: code %#x", pc, in.Code)
		}
	}
}

// The filter reports the calls that may be for devices, and no others.
func TestFilter(t *testing.T) {
	const native, reported = "native", "reported"
	p := filter(0x1b)
	cwd := uint64(0xffffffffffffff9c) // AT_FDCWD
	for _, number := range pathCalls {
		if got := p.run(t, auditArch, number, cwd, 0, 0, 0); got != reported {
			t.Errorf("call %d of a path: %s", number, got)
		}
	}
	for _, c := range []struct {
		number uint32
		args   []uint64
		want   string
	}{
		{unix.SYS_READ, []uint64{0, 0, 320}, native},
		{unix.SYS_READ, []uint64{firstNative - 1, 0, 320}, native},
		{unix.SYS_READ, []uint64{firstNative, 0, 320}, native},
		{unix.SYS_READ, []uint64{firstNative, 0, 1 << 20}, native},
		{unix.SYS_READ, []uint64{firstNative, 0, minNativeSize - 1}, reported},
		{unix.SYS_READ, []uint64{firstSupervised - 1, 0, 320}, native},
		{unix.SYS_READ, []uint64{firstSupervised, 0, 320}, reported},
		{unix.SYS_READ, []uint64{lastSupervised, 0, 0}, reported},
		{unix.SYS_READ, []uint64{lastSupervised + 1, 0, 320}, native},
		{unix.SYS_WRITE, []uint64{1, 0, 10}, native},
		{unix.SYS_WRITE, []uint64{firstNative, 0, maxNativeSize}, native},
		{unix.SYS_WRITE, []uint64{firstNative, 0, maxNativeSize + 1}, reported},
		{unix.SYS_WRITE, []uint64{firstNative, 0, minNativeSize - 1}, reported},
		{unix.SYS_WRITE, []uint64{firstSupervised, 0, maxNativeSize}, reported},
		{unix.SYS_WRITEV, []uint64{1, 0, 2}, native},
		{unix.SYS_WRITEV, []uint64{firstNative, 0, 2}, reported},
		{unix.SYS_WRITEV, []uint64{lastSupervised, 0, 2}, reported},
		{unix.SYS_DUP, []uint64{1}, native},
		{unix.SYS_DUP, []uint64{firstNative}, reported},
		{unix.SYS_FCNTL, []uint64{firstSupervised, unix.F_DUPFD}, reported},
		{unix.SYS_FCNTL, []uint64{firstSupervised, unix.F_DUPFD_CLOEXEC}, reported},
		{unix.SYS_FCNTL, []uint64{firstSupervised, unix.F_GETFL}, native},
		{unix.SYS_FCNTL, []uint64{3, unix.F_DUPFD}, native},
		{unix.SYS_IOCTL, []uint64{3, 0xc0281b04}, reported},
		{unix.SYS_IOCTL, []uint64{3, unix.TIOCGWINSZ}, native},
		{sysStatAt, []uint64{3, 0, 0, unix.AT_EMPTY_PATH}, native},
		{sysStatAt, []uint64{3, 0, 0, 0}, reported},
		{sysStatAt, []uint64{cwd, 0, 0, unix.AT_EMPTY_PATH}, reported},
		{unix.SYS_CLOSE, []uint64{firstSupervised}, native},
		{unix.SYS_MMAP, nil, native},
	} {
		if got := p.run(t, auditArch, c.number, c.args...); got != c.want {
			t.Errorf("call %d %v: got %s, want %s", c.number, c.args, got, c.want)
		}
		const i386 = unix.AUDIT_ARCH_I386
		if got := p.run(t, i386, c.number, c.args...); got != native {
			t.Errorf("call %d %v of 32 bits: %s", c.number, c.args, got)
		}
	}
}

// The numbers of calls are right for the architecture.
func TestNumbers(t *testing.T) {
	got := fmt.Sprintf("%#x %v %v", uint32(auditArch), pathCalls, []int{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_DUP, unix.SYS_FCNTL, unix.SYS_IOCTL, unix.SYS_SECCOMP})
	if got != wantNumbers {
		t.Errorf("got  %s\nwant %s", got, wantNumbers)
	}
}
