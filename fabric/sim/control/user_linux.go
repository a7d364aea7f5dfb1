package control

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const supported = true

var errNotSupported error

// userOf returns the ID of the user at the other end (SO_PEERCRED of unix(7)).
func userOf(conn net.Conn) (user int, err error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return -1, errors.New("not a Unix socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var who *unix.Ucred
	bad := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(bad, err); err != nil {
		return -1, err
	}
	return int(who.Uid), nil
}
