package server

import (
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"fabsh/mad/ibsim"
)

// socket is a non-blocking socket of datagrams. Calls that cannot block are raw system
// calls: Go's scheduler need not know of them (see package mad/internal/nowait).
type socket int

// errAgain reports that there is nothing to read, or no room to write.
var errAgain = errors.New("not now")

// errGone reports that the other end is closed.
var errGone = errors.New("the other end is gone")

// bind creates a socket with an abstract name, which has a NUL at its end.
func bind(name string) (socket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if err := unix.Bind(fd, abstract(name)); err != nil {
		unix.Close(fd)
		if err == unix.EADDRINUSE {
			return -1, errInUse
		}
		return -1, err
	}
	return socket(fd), nil
}

func abstract(name string) *unix.SockaddrUnix { return &unix.SockaddrUnix{Name: "@" + name + "\x00"} }

// connect connects s to the socket of that name, so that only its owner can send to s.
// Calling it again shows whether the socket still exists.
func (s socket) connect(name string) error {
	switch err := unix.Connect(int(s), abstract(name)); err {
	case nil, unix.EAGAIN:
		return nil
	case unix.ECONNREFUSED, unix.ENOENT:
		return errGone
	default:
		return err
	}
}

func (s socket) close() { unix.Close(int(s)) }

// address is the name of a socket in the form of the kernel.
type address struct {
	raw  unix.RawSockaddrUnix
	size uint32
}

// credentials is room for the control message that identifies the sender of a datagram
// (SCM_CREDENTIALS of unix(7)), and for no other: file descriptors are not accepted.
type credentials [4]uint64

// user returns the ID of the user who sent the datagram; unknownUser if it is unknown.
func (c *credentials) user() int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(c))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_CREDENTIALS || int(h.Len) != unix.CmsgLen(unix.SizeofUcred) {
		return unknownUser
	}
	return int((*unix.Ucred)(unsafe.Add(unsafe.Pointer(c), unix.CmsgLen(0))).Uid)
}

// receive makes m receive credentials.
func (c *credentials) receive(m *unix.Msghdr) {
	*c = credentials{}
	m.Control = (*byte)(unsafe.Pointer(c))
	m.SetControllen(len(c) * 8)
}

// readFrom reads one datagram, and returns its sender.
func (s socket) readFrom(b []byte, from *address) (n, user int, err error) {
	*from = address{}
	var who credentials
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	m := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&from.raw)), Namelen: uint32(unsafe.Sizeof(from.raw)), Iov: &v}
	m.SetIovlen(1)
	who.receive(&m)
	r, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s), uintptr(unsafe.Pointer(&m)), 0)
	from.size = m.Namelen
	return int(r), who.user(), outcome(errno)
}

// writeTo sends one datagram; one that cannot be sent now is lost.
func (s socket) writeTo(b []byte, to *address) {
	unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0,
		uintptr(unsafe.Pointer(&to.raw)), uintptr(to.size))
}

func outcome(errno unix.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS:
		return errAgain
	case unix.ECONNREFUSED, unix.ENOTCONN, unix.EPIPE, unix.ECONNRESET, unix.EPERM:
		return errGone
	}
	return errno
}

// batch is the arguments of such a call: struct mmsghdr of recvmmsg(2).
type batch struct {
	headers [batchSize]struct {
		unix.Msghdr
		n uint32
	}
	vectors [batchSize]unix.Iovec
	// To read: one byte more than a message, so that a longer one is seen.
	buffers [batchSize][ibsim.MessageSize + 1]byte
	users   [batchSize]credentials
}

// forReading makes b the arguments of read, which leaves them unchanged.
func (b *batch) forReading() {
	for i := range b.headers {
		b.vectors[i].Base = &b.buffers[i][0]
		b.vectors[i].SetLen(len(b.buffers[i]))
		b.set(i)
	}
}

// read reads up to batchSize datagrams into the batch, which is for reading.
func (s socket) read(b *batch) (int, error) {
	for i := range b.headers { // the kernel has written the lengths of the last call
		b.users[i].receive(&b.headers[i].Msghdr)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s), uintptr(unsafe.Pointer(&b.headers[0])), batchSize, 0, 0, 0)
	return int(n), outcome(errno)
}

// message returns the i-th message that read has read; nil if its size is wrong.
func (b *batch) message(i int) *message {
	if b.headers[i].n != ibsim.MessageSize {
		return nil
	}
	return (*message)(b.buffers[i][:ibsim.MessageSize])
}

// user returns the ID of the user who sent the i-th datagram.
func (b *batch) user(i int) int { return b.users[i].user() }

// write sends the first messages of list, and returns how many.
func (s socket) write(b *batch, list []message) (int, error) {
	list = list[:min(len(list), batchSize)]
	for i := range list {
		b.vectors[i].Base = &list[i][0]
		b.vectors[i].SetLen(ibsim.MessageSize)
		b.set(i)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(len(list)), 0, 0, 0)
	if errno != 0 {
		n = 0
	}
	return int(n), outcome(errno)
}

func (b *batch) set(i int) {
	b.headers[i].Msghdr = unix.Msghdr{Iov: &b.vectors[i]}
	b.headers[i].SetIovlen(1)
}

// poller waits for sockets.
type poller struct {
	epoll, event int
	events       [32]unix.EpollEvent
}

// eventToken is the token of wake.
const eventToken = -1

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &poller{epoll: epoll, event: event}
	return p, p.add(socket(event), eventToken)
}

func (p *poller) close() {
	unix.Close(p.event)
	unix.Close(p.epoll)
}

// add waits for s to be readable; wait reports it by the token.
func (p *poller) add(s socket, token int32) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: token}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, int(s), &e)
}

// change waits for s to be readable, writable, or both.
func (p *poller) change(s socket, token int32, read, write bool) error {
	e := unix.EpollEvent{Fd: token}
	if read {
		e.Events |= unix.EPOLLIN
	}
	if write {
		e.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, int(s), &e)
}

// wake ends wait, now or the next one.
func (p *poller) wake() {
	one := [8]byte{1}
	unix.Write(p.event, one[:])
}

// yield lets other processes run.
func yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// wait calls ready with the token of each socket that is readable or writable, as soon as
// there is one, or until the time has elapsed; below 0: unlimited.
func (p *poller) wait(timeout time.Duration, ready func(token int32, read, write bool)) error {
	ms := -1
	if timeout >= 0 {
		ms = int(timeout / time.Millisecond)
	}
	n, err := unix.EpollWait(p.epoll, p.events[:], ms)
	if err != nil {
		if err == unix.EINTR {
			return nil
		}
		return fmt.Errorf("epoll: %w", err)
	}
	for _, e := range p.events[:n] {
		if e.Fd == eventToken {
			var count [8]byte
			unix.Read(p.event, count[:])
		}
		ready(e.Fd, e.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0, e.Events&unix.EPOLLOUT != 0)
	}
	return nil
}

// controlSupported reports whether the system has sockets with abstract names.
const controlSupported = true

var errControlNotSupported error

// peerOf returns the program at the other end (SO_PEERCRED of unix(7)).
func peerOf(conn net.Conn) (Peer, error) {
	unknown := Peer{PID: -1, UID: -1}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return unknown, errors.New("not a Unix socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return unknown, err
	}
	var who *unix.Ucred
	bad := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(bad, err); err != nil {
		return unknown, err
	}
	return Peer{PID: int(who.Pid), UID: int(who.Uid)}, nil
}
