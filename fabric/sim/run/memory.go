//go:build linux && (amd64 || arm64)

package run

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

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
