//go:build !linux

package server

import (
	"errors"
	"net"
	"time"
)

// Only Linux has sockets with abstract names, by which the programs find each other, and
// libumad2sim.

var errNotLinux = errors.New("only on Linux: the programs find a simulated fabric by an abstract socket name, which other systems do not have")

var errAgain, errGone = errors.New("not now"), errors.New("the other end is gone")

type (
	socket  int
	address struct{}
	batch   struct{}
	poller  struct{}
)

const eventToken = -1

func bind(string) (socket, error)                                 { return -1, errNotLinux }
func (socket) connect(string) error                               { return errNotLinux }
func (socket) close()                                             {}
func (socket) readFrom([]byte, *address) (n, user int, err error) { return 0, unknownUser, errNotLinux }
func (socket) writeTo([]byte, *address)                           {}
func (socket) read(*batch) (int, error)                           { return 0, errNotLinux }
func (*batch) forReading()                                        {}
func (*batch) user(int) int                                       { return unknownUser }
func (*batch) message(int) *message                               { return nil }
func (socket) write(*batch, []message) (int, error)               { return 0, errNotLinux }
func newPoller() (*poller, error)                                 { return nil, errNotLinux }
func (*poller) close()                                            {}
func (*poller) add(socket, int32) error                           { return errNotLinux }
func (*poller) change(socket, int32, bool, bool) error            { return errNotLinux }
func (*poller) wake()                                             {}
func (*poller) wait(time.Duration, func(int32, bool, bool)) error { return errNotLinux }
func yield()                                                      {}

const controlSupported = false

var errControlNotSupported = errors.New("a simulated subnet is served, and controlled, only on Linux")

func peerOf(net.Conn) (Peer, error) { return Peer{PID: -1, UID: -1}, errControlNotSupported }
