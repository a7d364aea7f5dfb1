//go:build linux

package run

import (
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_X86_64

// Calls that newer architectures do not have.
const (
	sysOpen     = unix.SYS_OPEN
	sysStat     = unix.SYS_STAT
	sysLstat    = unix.SYS_LSTAT
	sysAccess   = unix.SYS_ACCESS
	sysReadlink = unix.SYS_READLINK
	sysStatAt   = unix.SYS_NEWFSTATAT
)

// pathCalls are the calls that name a file.
var pathCalls = append(append([]uint32{sysOpen, sysStat, sysLstat, sysAccess, sysReadlink}, atCalls...), attributeCalls...)
