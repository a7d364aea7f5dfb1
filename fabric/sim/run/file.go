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
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open gives the caller a descriptor of a file.
func (s *supervisor) open(c *systemCall, m *host, p string, e *treeEntry, flags uint64) {
	writes := flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
	switch {
	case flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		s.Answer(c, 0, unix.EEXIST)
	case flags&unix.O_DIRECTORY != 0 && e.Kind != entryFolder:
		s.Answer(c, 0, unix.ENOTDIR)
	case flags&unix.O_PATH != 0:
		fd, errno := m.openBelow(p, unix.O_PATH)
		s.inject(c, fd, -1, flags, errno)
	case e.Kind == entryUMAD:
		s.openUMAD(c, m.ports[e.Port], flags)
	case e.Kind == entryISSM:
		s.openISSM(*c, m.ports[e.Port], flags)
	case e.Kind == entryVerb:
		s.Answer(c, 0, unix.ENXIO)
	case writes && e.Kind == entryFolder:
		s.Answer(c, 0, unix.EISDIR)
	case writes:
		s.Answer(c, 0, unix.EACCES)
	case e.Kind == entryFolder:
		fd, errno := m.openBelow(p, unix.O_RDONLY|unix.O_DIRECTORY)
		s.inject(c, fd, -1, flags, errno)
	default:
		fd, errno := s.textFile(e)
		s.inject(c, fd, -1, flags, errno)
	}
}

// inject gives the caller a copy of fd, and closes it.
func (s *supervisor) inject(c *systemCall, fd, number int, flags uint64, errno unix.Errno) (given bool) {
	if errno == 0 {
		errno = s.Inject(c, fd, number, flags&unix.O_CLOEXEC != 0)
		unix.Close(fd)
	}
	if errno == unix.EBADF && number >= 0 { // beyond RLIMIT_NOFILE
		errno = unix.EMFILE
	}
	if errno != 0 {
		s.Answer(c, 0, errno)
	}
	return errno == 0
}

// textFile returns a file with the text of now, open for reading.
func (s *supervisor) textFile(e *treeEntry) (int, unix.Errno) {
	text, ok := e.Read()
	if !ok { // reads fail with EINVAL, as of all files that cannot be read
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		return fd, errnoOf(err)
	}
	fd, known := s.texts[text]
	if !known {
		var errno unix.Errno
		if fd, errno = newText(text); errno != 0 {
			return -1, errno
		}
		if len(s.texts) == maxTexts {
			for text, fd := range s.texts {
				unix.Close(fd)
				delete(s.texts, text)
			}
		}
		s.texts[text] = fd
	}
	again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return again, errnoOf(err)
}

// maxTexts is how many texts are kept.
const maxTexts = 256

// newText returns a file with a text that nothing can change.
func newText(text string) (int, unix.Errno) {
	fd, err := unix.MemfdCreate("sysfs", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, errnoOf(err)
	}
	if _, err = unix.Write(fd, []byte(text)); err == nil {
		err = unix.Fchmod(fd, 0o444)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		unix.Close(fd)
		return -1, errnoOf(err)
	}
	return fd, 0
}

// file is an open umad or issm file. The program has one end of a pair of sockets, whose
// last close is the end of file at the other. Its reads and writes come as calls; poll is
// the kernel's own: while something waits to be read, a message is in the socket.
type file struct {
	inode uint64 // of the program's end
	ours  int
	umad  *umadFile // nil: issm
	end   func()    // called when the program has closed it; once
}

// newFile makes the pair, and returns the program's end too.
func (s *supervisor) newFile(flags uint64) (f *file, theirs int, errno unix.Errno) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, errnoOf(err)
	}
	var st unix.Stat_t
	err = unix.Fstat(p[0], &st)
	if err == nil {
		err = unix.SetNonblock(p[0], flags&unix.O_NONBLOCK != 0)
	}
	if err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, -1, errnoOf(err)
	}
	return &file{inode: st.Ino, ours: p[1]}, p[0], 0
}

// giveFile gives the caller the program's end of a file, and has ended called when the
// program has closed its last copy of it.
func (s *supervisor) giveFile(c *systemCall, f *file, theirs int, flags uint64, ended func()) {
	number := freeNumber(c.Thread, f.umad != nil && f.umad.native, 0)
	f.end = sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.files, f.inode)
		s.mu.Unlock()
		ended()
	})
	s.mu.Lock()
	s.files[f.inode] = f
	s.mu.Unlock()
	errno := unix.Errno(0)
	if number < 0 {
		unix.Close(theirs)
		errno = unix.EMFILE
	}
	s.inject(c, theirs, number, flags, errno)
	go func() { // an end of file comes at once if the caller did not get it
		var b [maxNativeSize]byte
		for {
			n, err := receiveMessage(f.ours, b[:])
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 && hungUp(f.ours) {
				break
			}
			if f.umad != nil && f.umad.native {
				f.umad.WriteAccepted(b[:n])
			}
		}
		f.end()
		s.mu.Lock() // endClosed may read it
		defer s.mu.Unlock()
		unix.Close(f.ours)
		f.ours = -1
	}()
}

// endClosed ends the files that programs have closed. The kernel does so within close(2).
func (s *supervisor) endClosed() {
	var closed []*file
	s.mu.Lock()
	for _, f := range s.files {
		if hungUp(f.ours) {
			closed = append(closed, f)
		}
	}
	s.mu.Unlock()
	for _, f := range closed {
		f.end()
	}
}

// hungUp reports whether the other end is closed: an empty message looks like it.
func hungUp(fd int) bool {
	return pollEvents(fd, unix.POLLRDHUP) != 0
}

// freeNumber is a free number among the supervised descriptors of a process, at least
// least; -1: they are all in use.
func freeNumber(thread uint32, native bool, least int) int {
	first, last := firstSupervised, lastSupervised
	if native {
		first, last = firstNative, firstSupervised-1
	}
	for n := max(first, least); n <= last; n++ {
		var st unix.Stat_t
		if unix.Lstat(fmt.Sprintf("/proc/%d/fd/%d", thread, n), &st) != nil {
			return n
		}
	}
	return -1
}

// openISSM opens the issm file of a port, once no other program has it open.
func (s *supervisor) openISSM(c systemCall, p *port, flags uint64) {
	if !s.Valid(&c) {
		return
	}
	errno := p.OpenSM()
	if errno == unix.EAGAIN {
		s.endClosed()
		errno = p.OpenSM()
	}
	if errno == unix.EAGAIN && flags&unix.O_NONBLOCK == 0 {
		s.mu.Lock()
		p.waiting = append(p.waiting, func() { s.openISSM(c, p, flags) })
		s.mu.Unlock()
		return
	}
	if errno != 0 {
		s.Answer(&c, 0, errno)
		return
	}
	ended := func() {
		p.CloseSM()
		s.mu.Lock()
		next := p.waiting
		p.waiting = nil
		s.mu.Unlock()
		for _, open := range next {
			open()
		}
	}
	f, theirs, errno := s.newFile(flags)
	if errno != 0 {
		ended()
		s.Answer(&c, 0, errno)
		return
	}
	s.giveFile(&c, f, theirs, flags, ended)
}

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
			sendMessage(f.ours, []byte{0})
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
	if u.signalled { // a goroutine waits for room
		return
	}
	u.signalled = !u.Flush(func(b []byte) bool {
		return sendMessage(f.ours, b) != unix.EAGAIN
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

// fastPrograms are programs whose reads and writes the kernel executes, unless SIM_FAST=0. A call
// that is reported costs 5 us alone, without its answer: more than the simulator's work for
// an SMP. ibnetdiscover takes four times as long with all calls reported, OpenSM twice.
var fastPrograms = []string{"ibnetdiscover", "opensm"}

// isFast reports whether the kernel executes most reads and writes of a thread's program:
// SIM_FAST in its environment decides, or its name.
func isFast(thread uint32) bool {
	switch environmentOf(thread, "SIM_FAST") {
	case "0":
		return false
	case "1":
		return true
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", thread))
	return err == nil && slices.Contains(fastPrograms, filepath.Base(exe))
}

// fileAt returns the umad or issm file of a descriptor of the caller; nil: another file.
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
	case f.umad == nil, f.umad.native && c.Args[2] < minNativeSize:
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

// Calls that do not block are raw ones: Go's scheduler need not know of them (see package
// mad/internal/nowait).

// receiveMessage waits for a message on a socket.
func receiveMessage(fd int, b []byte) (int, error) {
	for range 2 {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EAGAIN {
			return 0, errno
		}
	}
	return unix.Read(fd, b)
}

// sendMessage sends a message, or returns an error at once.
func sendMessage(fd int, b []byte) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno
}
