//go:build !linux

package control

import (
	"errors"
	"net"
)

// Only Linux has sockets with abstract names.
const supported = false

var errNotSupported = errors.New("a simulated subnet is served, and controlled, only on Linux")

func userOf(net.Conn) (int, error) { return -1, errNotSupported }
