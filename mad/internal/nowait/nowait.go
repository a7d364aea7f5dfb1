// Package nowait reads and writes non-blocking descriptors that are in the
// runtime's poller, and calls a function before it waits.
//
// It makes raw system calls, of which the Go scheduler does not know: they do
// not block. With ordinary ones, the runtime's monitor takes a thread that the
// kernel preempts within the call for blocked, and hands its P to another
// thread; on one processor that doubles the cost of a datagram.
package nowait

import (
	"syscall"
	"unsafe"
)

// Conn is an open descriptor. At most one goroutine reads and one writes at a time.
type Conn struct {
	raw     syscall.RawConn
	before  func() (again bool)
	yields  bool
	in, out transfer
	// The functions that RawConn takes: made once, for each is an allocation.
	read, write func(fd uintptr) (done bool)
	try         func(fd uintptr)
}

// transfer is the buffer and the result of one system call.
type transfer struct {
	b     []byte
	n     int
	errno syscall.Errno
}

// New makes a Conn of a file or socket, which the caller closes.
func New(s syscall.Conn) (*Conn, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{raw: raw}
	c.read = func(fd uintptr) bool {
		for yielded := false; ; {
			c.in.call(syscall.SYS_READ, fd)
			switch {
			case c.in.errno != syscall.EAGAIN:
				return true
			case c.before != nil && c.before():
			case c.yields && !yielded:
				yielded = true
				yield()
			default:
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

// BeforeWait makes Read call f each time before it waits. If f returns true,
// Read tries once more before it waits.
func (c *Conn) BeforeWait(f func() (again bool)) { c.before = f }

// YieldBeforeWait makes Read yield the processor once before it waits, and try once
// more. That is for a peer that is a process of this machine: where it shares a
// processor with us, it answers all that it has got meanwhile. Else the first answer
// wakes us, and each costs two switches of the processor and the poller's calls:
// three times the time of a sweep.
func (c *Conn) YieldBeforeWait() { c.yields = true }

// Read waits until there is something to read, and reads once. Errors of the
// kernel are of type syscall.Errno; others say that the descriptor was closed,
// or that its deadline has passed.
func (c *Conn) Read(b []byte) (int, error) {
	c.in.b = b
	return c.in.result(c.raw.Read(c.read))
}

// Write waits until it can write, and writes once.
func (c *Conn) Write(b []byte) (int, error) {
	c.out.b = b
	return c.out.result(c.raw.Write(c.write))
}

// TryWrite writes once; it fails with EAGAIN where it would have to wait.
func (c *Conn) TryWrite(b []byte) (int, error) {
	c.out.b = b
	return c.out.result(c.raw.Control(c.try))
}

// call makes system call number, read or write, on fd; after EINTR again.
func (t *transfer) call(number, fd uintptr) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.b))), uintptr(len(t.b)))
		t.n, t.errno = int(n), errno
		if errno != syscall.EINTR {
			return
		}
	}
}

// result is the result of t; err is that of the RawConn.
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
