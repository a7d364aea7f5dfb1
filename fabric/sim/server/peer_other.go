//go:build !linux

package server

import (
	"errors"
	"net"
)

// Only Linux has sockets with abstract names.
const supported = false

var errNotSupported = errors.New("a simulated subnet is served, and controlled, only on Linux")

func peerOf(net.Conn) (Peer, error) { return Peer{PID: -1, UID: -1}, errNotSupported }
