// Package nowait reads and writes descriptors that are in the runtime's poller,
// and says when it is about to wait.
//
// Its system calls are raw: as none of them waits, the runtime is not told of
// them. Otherwise its monitor takes a thread that other processes displace
// within one for blocked, and gives its processor to another; where there is
// one processor only, that doubles the cost of a datagram.
package nowait

import (
	"syscall"
	"unsafe"
)

// Conn is an open descriptor. One goroutine reads and one writes at a time.
type Conn struct {
	raw     syscall.RawConn
	before  func() (again bool)
	in, out transfer
	// The functions that RawConn takes: made once, for each is an allocation.
	read, write func(fd uintptr) (done bool)
	try         func(fd uintptr)
}

// transfer is one system call's.
type transfer struct {
	b     []byte
	n     int
	errno syscall.Errno
}

// New makes a Conn of a file or socket, which it does not own.
func New(s syscall.Conn) (*Conn, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{raw: raw}
	c.read = func(fd uintptr) bool {
		for {
			c.in.call(syscall.SYS_READ, fd)
			if c.in.errno != syscall.EAGAIN {
				return true
			}
			if c.before == nil || !c.before() {
				return false
			}
		}
	}
	c.write = func(fd uintptr) bool {
		c.out.call(syscall.SYS_WRITE, fd)
		return c.out.errno != syscall.EAGAIN
	}
	c.try = func(fd uintptr) { c.out.call(syscall.SYS_WRITE, fd) }
	return c, nil
}

// BeforeWait has Read call f each time before it waits. If f returns true,
// Read looks again first, for something may have come meanwhile.
func (c *Conn) BeforeWait(f func() (again bool)) { c.before = f }

// Read reads once, and waits until it can. Errors of the kernel are a
// syscall.Errno; others say that the descriptor was closed, or its deadline
// has passed.
func (c *Conn) Read(b []byte) (int, error) {
	c.in.b = b
	return c.in.result(c.raw.Read(c.read))
}

// Write writes once, and waits until it can.
func (c *Conn) Write(b []byte) (int, error) {
	c.out.b = b
	return c.out.result(c.raw.Write(c.write))
}

// TryWrite writes once; it fails with EAGAIN where it would have to wait.
func (c *Conn) TryWrite(b []byte) (int, error) {
	c.out.b = b
	return c.out.result(c.raw.Control(c.try))
}

// call has number read or write fd, and interrupted begin anew.
func (t *transfer) call(number, fd uintptr) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.b))), uintptr(len(t.b)))
		t.n, t.errno = int(n), errno
		if errno != syscall.EINTR {
			return
		}
	}
}

// result is what came of t.
func (t *transfer) result(err error) (int, error) {
	t.b = nil
	switch {
	case err != nil:
		return 0, err
	case t.errno != 0:
		return 0, t.errno
	}
	return t.n, nil
}
