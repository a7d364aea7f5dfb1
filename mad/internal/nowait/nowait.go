// Package nowait reads and writes non-blocking descriptors, and calls a function
// before it waits. A Conn is an open descriptor; one goroutine may read and another write.
//
// It makes raw system calls, unknown to the Go scheduler, because they do not
// block. With ordinary ones, the runtime's monitor considers a thread that the
// kernel preempts within the call as blocked, and passes its P to another thread;
// on one processor that doubles the cost of a datagram.
package nowait

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Conn is an open descriptor. At most one goroutine reads and one writes at a time.
type Conn struct {
	fd      descriptor
	before  func() (again bool)
	yields  bool
	in, out transfer
	try     func(of uintptr) // made once, because each is an allocation
}

// Source is an argument of New: a socket of package net, or an *os.File that the
// runtime's poller supports. Both do not block.
type Source interface {
	syscall.Conn
	io.Closer
	SetDeadline(time.Time) error
}

// transfer is one direction: the buffer and the result of one system call, and the
// waiter for the next.
type transfer struct {
	b     []byte
	n     int
	errno syscall.Errno
	ready waiter
}

// New returns a Conn of the open descriptor of s, and takes it over: afterwards s is
// closed, or belongs to the Conn.
func New(s Source) (*Conn, error) {
	c := &Conn{}
	if err := c.fd.take(s); err != nil {
		return nil, err
	}
	err := c.in.ready.open(&c.fd, forReading, func(of uintptr) bool {
		for yielded := false; ; {
			c.in.call(syscall.SYS_READ, c.fd.number(of))
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
	})
	if err != nil {
		c.fd.close()
		return nil, err
	}
	err = c.out.ready.open(&c.fd, forWriting, func(of uintptr) bool {
		c.out.call(syscall.SYS_WRITE, c.fd.number(of))
		return c.out.errno != syscall.EAGAIN
	})
	if err != nil {
		c.in.ready.close()
		c.fd.close()
		return nil, err
	}
	c.try = func(of uintptr) { c.out.call(syscall.SYS_WRITE, c.fd.number(of)) }
	return c, nil
}

// BeforeWait makes Read call f each time before it waits. If f returns true,
// Read tries once more before it waits.
func (c *Conn) BeforeWait(f func() (again bool)) { c.before = f }

// YieldBeforeWait makes Read yield the processor once before it waits, and try once
// more. It is for a peer that is a process on this machine: if it shares a processor
// with us, it can answer all pending requests meanwhile. Otherwise the first answer
// wakes us, and each answer costs two switches of the processor and the poller's
// calls: three times the time of a sweep.
func (c *Conn) YieldBeforeWait() { c.yields = true }

// Read waits until there is something to read, and reads once. Errors of the
// kernel are of type syscall.Errno; os.ErrClosed and os.ErrDeadlineExceeded mean
// that Close or Interrupt ended it.
func (c *Conn) Read(b []byte) (int, error) {
	c.in.b = b
	return c.in.result(c.in.ready.wait())
}

// Write waits until it can write, and writes once.
func (c *Conn) Write(b []byte) (int, error) {
	c.out.b = b
	return c.out.result(c.out.ready.wait())
}

// TryWrite writes once; it fails with EAGAIN if it would have to wait.
func (c *Conn) TryWrite(b []byte) (int, error) {
	c.out.b = b
	return c.out.result(c.out.ready.hold(c.try))
}

// Control calls f with the descriptor, which stays open meanwhile. It is safe for
// concurrent use.
func (c *Conn) Control(f func(fd uintptr)) error {
	return ended(c.out.ready.hold(func(of uintptr) { f(c.fd.number(of)) }))
}

// Interrupt ends the waiting of Read and Write, now and later.
func (c *Conn) Interrupt() {
	c.in.ready.interrupt()
	c.out.ready.interrupt()
}

// Close closes the descriptor when all reads and writes have ended.
func (c *Conn) Close() error {
	if err := c.in.ready.close(); err != nil {
		return ended(err) // closed before
	}
	return errors.Join(c.out.ready.close(), c.fd.close())
}

// call makes system call number, read or write, on fd; it repeats it after EINTR.
func (t *transfer) call(number, fd uintptr) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.b))), uintptr(len(t.b)))
		t.n, t.errno = int(n), errno
		if errno != syscall.EINTR {
			return
		}
	}
}

// result returns the result of t; err is the waiter's error.
func (t *transfer) result(err error) (int, error) {
	t.b = nil
	switch {
	case err != nil:
		return 0, ended(err)
	case t.errno != 0:
		return 0, t.errno
	}
	return t.n, nil
}

// ended returns the error of Close or Interrupt for error err of the runtime's poller.
func ended(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return os.ErrClosed
}
