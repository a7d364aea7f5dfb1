//go:build !linux

package nowait

import (
	"syscall"
	"time"
)

const (
	forReading = iota
	forWriting
)

// descriptor is a descriptor in the runtime's poller.
type descriptor struct{ Source }

func (d *descriptor) take(s Source) error {
	d.Source = s
	return nil
}

func (d *descriptor) number(of uintptr) uintptr { return of }

func (d *descriptor) close() error { return nil } // a waiter has closed it

// waiter tries something on a descriptor until it is done, and waits in between.
type waiter struct {
	fd     *descriptor
	raw    syscall.RawConn
	events int
	try    func(fd uintptr) bool
}

func (w *waiter) open(fd *descriptor, events int, try func(of uintptr) (done bool)) (err error) {
	w.fd, w.events, w.try = fd, events, try
	w.raw, err = fd.SyscallConn()
	return err
}

func (w *waiter) wait() error {
	if w.events == forReading {
		return w.raw.Read(w.try)
	}
	return w.raw.Write(w.try)
}

func (w *waiter) hold(f func(uintptr)) error { return w.raw.Control(f) }

func (w *waiter) interrupt() { w.fd.SetDeadline(time.Unix(1, 0)) }

func (w *waiter) close() error {
	if w.events == forWriting {
		return nil // the waiter for reading closes the descriptor
	}
	return w.fd.Close()
}

func yield() {}
