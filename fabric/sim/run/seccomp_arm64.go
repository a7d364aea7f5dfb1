//go:build linux

package run

import (
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

// Calls that this architecture does not have: numbers that no call has.
const (
	sysOpen = 1<<30 + iota
	sysStat
	sysLstat
	sysAccess
	sysReadlink
)

const sysStatAt = unix.SYS_FSTATAT

// pathCalls are the calls that name a file.
var pathCalls = append(append([]uint32{}, atCalls...), attributeCalls...)
