//go:build linux

package run

import (
	"syscall"

	"fabsh/mad"
)

// entry is what a read returns.
type entry struct {
	bytes    []byte // header and MAD
	returned bool   // the MAD is the program's own, without an answer
}

// Limits of what waits to be read; what comes beyond is dropped
// (MAX_UMAD_RECV_LIST_SIZE of newer kernels).
const (
	maxQueue      = 200000
	maxQueueBytes = 256 << 20
)

// push adds an entry to the queue. The port's lock is held.
func (f *deviceFile) push(e entry) {
	size := len(e.bytes)
	if f.closed || !e.returned && (len(f.queue) >= maxQueue || f.bytes+size > maxQueueBytes) {
		return
	}
	f.queue = append(f.queue, e)
	f.bytes += size
	f.wake()
}

// Read has a program read into a buffer of some size (ib_umad_read). copy copies bytes to
// it; if that fails, or the buffer is too small, the entry remains the first. empty:
// nothing waits, so that the program waits, or gets EAGAIN. drained is called when the
// queue has become empty; it must not call the file.
func (f *deviceFile) Read(size int, copy func(b []byte) bool, drained func()) (n int, errno syscall.Errno, empty bool) {
	f.port.mu.Lock()
	defer f.port.mu.Unlock()
	if size < f.header {
		return 0, syscall.EINVAL, false
	}
	if len(f.queue) == 0 {
		return 0, 0, true
	}
	b := f.queue[0].bytes
	first := b[:min(len(b), f.header+mad.Size)] // all of it, but of a transfer
	switch {
	case size < len(first):
		return 0, syscall.EINVAL, false
	case size < len(b):
		if !copy(first) {
			return 0, syscall.EFAULT, false
		}
		return 0, syscall.ENOSPC, false
	case !copy(b):
		return 0, syscall.EFAULT, false
	}
	f.pop()
	if len(f.queue) == 0 {
		drained()
	}
	return len(b), 0, false
}

// pop removes the first entry. The port's lock is held.
func (f *deviceFile) pop() {
	f.bytes -= len(f.queue[0].bytes)
	f.queue[0] = entry{}
	if f.queue = f.queue[1:]; len(f.queue) == 0 {
		f.queue = f.queue[:0:0]
	}
}

// Flush passes entries to send, the first ones first, until it returns false. wake, of
// Open, may call it: the port's lock is held then.
func (f *deviceFile) Flush(send func(b []byte) bool) (empty bool) {
	for len(f.queue) > 0 {
		if !send(f.queue[0].bytes) {
			return false
		}
		f.pop()
	}
	return true
}

// WithLock calls fn with the lock that is held when wake of Open is called.
func (f *deviceFile) WithLock(fn func()) {
	f.port.mu.Lock()
	defer f.port.mu.Unlock()
	fn()
}
