//go:build linux && (amd64 || arm64)

package run

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// umadFile is an open umad file.
type umadFile struct {
	*deviceFile
	native    bool          // most of its reads and writes are the kernel's
	signalled bool          // a message is in the socket. Guarded by the port's lock
	held      []systemCall  // reads that wait. Guarded by the supervisor's lock
	arrived   chan struct{} // something came; for the held reads
}

func (s *supervisor) openUMAD(c *systemCall, p *port, flags uint64) {
	f, theirs, errno := s.newFile(flags)
	if errno != 0 {
		s.Answer(c, 0, errno)
		return
	}
	u := &umadFile{native: isFast(c.Thread), arrived: make(chan struct{}, 1)}
	f.umad = u
	if u.native {
		u.deviceFile = p.Open(true, func() { f.flush() })
		s.giveFile(c, f, theirs, flags, u.Close)
		return
	}
	u.deviceFile = p.Open(false, func() {
		if !u.signalled {
			u.signalled = true
			send(f.ours, []byte{0})
		}
		select {
		case u.arrived <- struct{}{}:
		default:
		}
	})
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-u.arrived:
				s.retryReads(f)
			case <-stop:
				return
			}
		}
	}()
	s.giveFile(c, f, theirs, flags, func() {
		close(stop)
		u.Close()
	})
}

// flush sends what waits through the socket, as long as that takes it. The port's lock is
// held.
func (f *file) flush() {
	u := f.umad
	if u.signalled { // somebody waits for room
		return
	}
	u.signalled = !u.Flush(func(b []byte) bool {
		return send(f.ours, b) != unix.EAGAIN
	})
	if u.signalled {
		fd := int32(f.ours)
		go func() {
			unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLOUT}}, 1000)
			u.WithLock(func() {
				u.signalled = false
				f.flush()
			})
		}()
	}
}

// fast are programs whose reads and writes the kernel executes, unless SIM_FAST=0. A call
// that is reported costs 5 us alone, without its answer: more than the simulator's work for
// an SMP. ibnetdiscover takes four times as long with all calls reported, OpenSM twice.
var fast = []string{"ibnetdiscover", "opensm"}

// isFast reports whether the kernel executes most reads and writes of a thread's program:
// SIM_FAST in its environment decides, or its name.
func isFast(thread uint32) bool {
	switch variable(thread, "SIM_FAST") {
	case "0":
		return false
	case "1":
		return true
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", thread))
	return err == nil && slices.Contains(fast, filepath.Base(exe))
}

// fileAt returns the file that is a descriptor of the caller; nil: another file.
func (s *supervisor) fileAt(c *systemCall, fd uint64) *file {
	var name [48]byte
	b := append(strconv.AppendUint(append(name[:0], "/proc/"...), uint64(c.Thread), 10), "/fd/"...)
	var st unix.Stat_t
	if unix.Stat(string(strconv.AppendInt(b, int64(int32(fd)), 10)), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[st.Ino]
}

func (s *supervisor) ioctl(c *systemCall) {
	f := s.fileAt(c, c.Args[0])
	if f == nil {
		s.Proceed(c)
		return
	}
	if f.umad == nil {
		s.Answer(c, 0, unix.ENOTTY)
		return
	}
	request := uint32(c.Args[1])
	argument := make([]byte, ioctlArgumentSize(request))
	if !s.Read(c, c.Args[2], argument) {
		s.Answer(c, 0, unix.EFAULT)
		return
	}
	changed, offset, errno, commit := f.umad.Ioctl(request, argument)
	if errno == unix.EINVAL { // another program's agent, which is gone?
		s.endClosed()
		changed, offset, errno, commit = f.umad.Ioctl(request, argument)
	}
	written := len(changed) == 0 || s.Write(c, c.Args[2]+uint64(offset), changed)
	if !written && errno == 0 {
		errno = unix.EFAULT
	}
	if commit != nil {
		commit(written)
	}
	s.Answer(c, 0, errno)
}

// write sends what the caller has in its memory.
func (s *supervisor) write(c *systemCall) {
	f := s.fileAt(c, c.Args[0])
	switch {
	case f == nil:
		s.Proceed(c)
		return
	case f.umad == nil:
		s.Answer(c, 0, unix.EINVAL)
		return
	}
	n, errno := s.writePart(c, f, c.Args[1], c.Args[2])
	s.Answer(c, int64(n), errno)
}

// writePart writes size bytes of the caller's memory.
func (s *supervisor) writePart(c *systemCall, f *file, address, size uint64) (int, unix.Errno) {
	if size > maxUmadWrite {
		return 0, unix.ENOMEM
	}
	b := make([]byte, size)
	if !s.Read(c, address, b) {
		return 0, unix.EFAULT
	}
	return f.umad.deviceFile.Write(b)
}

// writev writes the parts of a list, each a MAD of its own: files without a write_iter of
// their own get them one by one, until one fails (fs/read_write.c, do_loop_readv_writev).
func (s *supervisor) writev(c *systemCall) {
	f := s.fileAt(c, c.Args[0])
	if f == nil || f.umad == nil {
		s.Proceed(c)
		return
	}
	const most, size = 1024, 16 // IOV_MAX, struct iovec
	if c.Args[2] > most {
		s.Answer(c, 0, unix.EINVAL)
		return
	}
	list := make([]byte, size*c.Args[2])
	if !s.Read(c, c.Args[1], list) {
		s.Answer(c, 0, unix.EFAULT)
		return
	}
	total, errno := 0, unix.Errno(0)
	for ; len(list) > 0 && errno == 0; list = list[size:] {
		var n int
		n, errno = s.writePart(c, f, binary.NativeEndian.Uint64(list), binary.NativeEndian.Uint64(list[8:]))
		total += n
	}
	if total > 0 {
		errno = 0
	}
	s.Answer(c, int64(total), errno)
}

// read gives the caller what waits for it.
func (s *supervisor) read(c *systemCall) {
	switch f := s.fileAt(c, c.Args[0]); {
	case f == nil:
		s.Proceed(c)
	case f.umad == nil, f.umad.native && c.Args[2] < leastNative:
		s.Answer(c, 0, unix.EINVAL)
	case f.umad.native:
		s.Proceed(c)
	case s.tryRead(c, f):
	case s.nonblocking(c):
		s.Answer(c, 0, unix.EAGAIN)
	default:
		s.mu.Lock()
		f.umad.held = append(f.umad.held, *c)
		s.mu.Unlock()
		select { // it may have come meanwhile
		case f.umad.arrived <- struct{}{}:
		default:
		}
	}
}

// tryRead answers a read unless nothing waits.
func (s *supervisor) tryRead(c *systemCall, f *file) bool {
	size := int(min(c.Args[2], 1<<31-1))
	n, errno, empty := f.umad.deviceFile.Read(size, func(b []byte) bool {
		return s.listener.Write(c, c.Args[1], b)
	}, func() { s.unsignal(c, f) })
	if empty {
		return false
	}
	s.Answer(c, int64(n), errno)
	return true
}

// retryReads answers the reads that wait, as much as there is.
func (s *supervisor) retryReads(f *file) {
	s.mu.Lock()
	held := f.umad.held
	f.umad.held = nil
	s.mu.Unlock()
	var left []systemCall
	for i := range held {
		if c := &held[i]; s.Valid(c) && !s.tryRead(c, f) {
			left = append(left, *c)
		}
	}
	s.mu.Lock()
	f.umad.held = append(left, f.umad.held...)
	s.mu.Unlock()
}

// nonblocking reports whether the caller's descriptor does not block.
func (s *supervisor) nonblocking(c *systemCall) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", c.Thread, int32(c.Args[0])))
	_, b, ok := bytes.Cut(b, []byte("flags:\t"))
	if err != nil || !ok {
		return false
	}
	b, _, _ = bytes.Cut(b, []byte("\n"))
	flags, _ := strconv.ParseUint(string(b), 8, 64)
	return flags&unix.O_NONBLOCK != 0
}

// unsignal takes the message from the program's end of the socket: the queue is empty.
// The port's lock is held.
func (s *supervisor) unsignal(c *systemCall, f *file) {
	fd := s.copyOf(c, f)
	if fd < 0 {
		return
	}
	var b [1]byte
	unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT)
	f.umad.signalled = false
	unix.Close(fd)
}

// duplicate gives the caller another descriptor of a file, with a number that is
// supervised too.
func (s *supervisor) duplicate(c *systemCall) {
	f := s.fileAt(c, c.Args[0])
	if f == nil {
		s.Proceed(c)
		return
	}
	flags, least := uint64(0), 0
	if c.Number == unix.SYS_FCNTL {
		least = int(int32(c.Args[2]))
		if c.Args[1] == unix.F_DUPFD_CLOEXEC {
			flags = unix.O_CLOEXEC
		}
	}
	number := freeNumber(c.Thread, f.umad != nil && f.umad.native, least)
	fd := s.copyOf(c, f)
	switch {
	case number < 0:
		unix.Close(fd)
		s.Answer(c, 0, unix.EMFILE)
	case fd < 0:
		s.Answer(c, 0, unix.EBADF)
	default:
		s.inject(c, fd, number, flags, 0)
	}
}

// copyOf returns a copy of the descriptor that is the first argument of a call, if it is
// still that file; -1 otherwise.
func (s *supervisor) copyOf(c *systemCall, f *file) int {
	s.pidfd.Lock()
	defer s.pidfd.Unlock()
	for range 2 { // the second time, of the process that has the number now
		pidfd, ok := s.pidfds[c.Thread]
		if !ok {
			var err error
			if pidfd, err = unix.PidfdOpen(processOf(c.Thread), 0); err != nil {
				return -1
			}
			if len(s.pidfds) >= maxPidfds {
				for thread, fd := range s.pidfds {
					unix.Close(fd)
					delete(s.pidfds, thread)
				}
			}
			s.pidfds[c.Thread] = pidfd
		}
		if fd, err := unix.PidfdGetfd(pidfd, int(int32(c.Args[0])), 0); err == nil {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Ino == f.inode {
				return fd
			}
			unix.Close(fd)
		}
		unix.Close(pidfd)
		delete(s.pidfds, c.Thread)
	}
	return -1
}

// maxPidfds is how many processes are kept open.
const maxPidfds = 256

// processOf returns the process of a thread.
func processOf(thread uint32) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	_, b, _ = bytes.Cut(b, []byte("\nTgid:\t"))
	b, _, _ = bytes.Cut(b, []byte("\n"))
	pid, _ := strconv.Atoi(string(b))
	return pid
}
