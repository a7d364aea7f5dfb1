package server

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const supported = true

var errNotSupported error

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
