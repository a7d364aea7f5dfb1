package nowait

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A descriptor in the runtime's poller wakes a waiting thread with each datagram that
// arrives and each that the peer receives, although the reader is working. That costs
// more than the datagram, and a processor that the peer could use. So each direction
// has its own epoll instance, which the runtime waits for instead of the descriptor,
// and which is armed only while something is waiting (epoll(7): EPOLLONESHOT, and an
// instance within another).

const (
	forReading = syscall.EPOLLIN
	forWriting = syscall.EPOLLOUT
)

// descriptor is a descriptor that is not in the runtime's poller.
type descriptor int

// take sets d to the descriptor of s, and closes s.
func (d *descriptor) take(s Source) error {
	defer s.Close()
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var fd uintptr
	var errno syscall.Errno
	err = raw.Control(func(of uintptr) {
		fd, _, errno = syscall.RawSyscall(syscall.SYS_FCNTL, of, syscall.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("fcntl", errno)
	}
	*d = descriptor(fd)
	return err
}

// number returns the number of d; of is the argument of a waiter's functions.
func (d *descriptor) number(of uintptr) uintptr { return uintptr(*d) }

func (d *descriptor) close() error { return os.NewSyscallError("close", syscall.Close(int(*d))) }

// waiter tries something on a descriptor until it is done, and waits in between.
type waiter struct {
	epoll *os.File
	raw   syscall.RawConn          // epoll's
	try   func(epoll uintptr) bool // the argument of raw: made once
}

// open makes w wait for events of fd; try is the function that it tries.
func (w *waiter) open(fd *descriptor, events uint32, try func(of uintptr) (done bool)) error {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	err = syscall.SetNonblock(epoll, true) // os gives the poller no others
	if err == nil {
		e := syscall.EpollEvent{Events: syscall.EPOLLONESHOT}
		err = syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, int(*fd), &e)
	}
	w.epoll = os.NewFile(uintptr(epoll), "epoll")
	w.raw, _ = w.epoll.SyscallConn() // it fails for nil
	if err != nil {
		w.epoll.Close()
		return os.NewSyscallError("epoll_ctl", err)
	}
	armed := false
	w.try = func(epoll uintptr) bool {
		if armed && reported(epoll) {
			armed = false
		}
		done := try(epoll)
		if done == armed {
			armed = !done
			e := syscall.EpollEvent{Events: syscall.EPOLLONESHOT}
			if armed {
				e.Events |= events
			}
			syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_MOD, int(*fd), &e)
			if !armed {
				reported(epoll)
			}
		}
		return done
	}
	return nil
}

// reported takes the event of epoll, if any, which disarms it. An event that is not
// taken stays, and the next one would wake no waiter.
func reported(epoll uintptr) bool {
	var e syscall.EpollEvent
	n, _, _ := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&e)), 1, 0, 0, 0)
	return n == 1
}

// wait tries until it is done.
func (w *waiter) wait() error { return w.raw.Read(w.try) }

// hold calls f without waiting, and keeps the descriptor open meanwhile.
func (w *waiter) hold(f func(uintptr)) error { return w.raw.Control(f) }

// interrupt ends wait, now and later.
func (w *waiter) interrupt() { w.epoll.SetReadDeadline(time.Unix(1, 0)) }

// close ends wait and waits until nothing holds the descriptor.
func (w *waiter) close() error { return w.epoll.Close() }

// yield lets other processes run on this processor, if any are waiting.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
