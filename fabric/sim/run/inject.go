//go:build linux && (amd64 || arm64)

package run

import (
	"fmt"
	"strconv"
	"sync"

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
		var b [nativeSize]byte
		for {
			n, err := receive(f.ours, b[:])
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
