// Package server connects other programs to a simulated subnet, through the sockets of
// ibsim, the simulator of linux-rdma: OpenSM and the tools of infiniband-diags with
// libumad2sim preloaded (ibsim-run), and fabsh itself (-F ibsim:NAME).
//
// Server is one loop for all clients, without a goroutine for any; Server.Console executes the
// commands of ibsim's console. ControlServer and ControlClient are a second way in, for programs
// of the user who serves the subnet, which change it while it runs: they carry calls of methods
// and their results in JSON, and know no methods.
//
// Server.Do and Server.Console may be called from any goroutine; a ControlClient is safe for
// concurrent use.
//
// Sources: linux-rdma/ibsim, tag ibsim-0.12: include/ibsim.h (messages),
// ibsim/ibsim.c (sockets), umad2sim/sim_client.c (what clients send).
package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim"
)

// Options control how a subnet is served.
type Options struct {
	// Name is the name of the sockets: the IBSIM_SOCKNAME of clients. "": "sim".
	Name string
	// Log receives lines on clients that attach, detach, or are refused. Nil: no log.
	Log func(text string)
	// AnyUser serves programs of all users, not only of the user who runs the server.
	AnyUser bool
}

// Server serves a subnet to clients.
type Server struct {
	Options
	subnet   *sim.Subnet
	names    *sim.Names
	poll     *poller
	control  socket
	user     int       // the user who is served
	clients  []*client // by number; nil: the place is free
	checked  time.Time // when dead clients were last dropped
	in, out  batch
	incoming sim.Message
	quitting bool
	busy     *client // that was read from last; nil: it had nothing more
	rounds   int     // since the others were served

	mu      sync.Mutex // guards all below, and the queues of clients
	working bool       // the loop will send what is queued
	dirty   []*client  // something was queued for them
	posted  []func()   // by Do
	closed  bool
}

// DefaultName is the name of the sockets if none is given.
const DefaultName = "sim"

// ErrName reports a name that is invalid for a socket.
var ErrName = fmt.Errorf("a socket's name has at most %d bytes", ibsim.MaxName)

var errInUse = errors.New("the socket name is in use")

// checkEvery is how soon a client that died is noticed.
const checkEvery = 250 * time.Millisecond

// Listen creates the sockets of the subnet that was made from f. Clients wait until Serve
// runs.
func Listen(s *sim.Subnet, f *fabric.Fabric, o Options) (*Server, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if len(o.Name) > ibsim.MaxName {
		return nil, fmt.Errorf("listen at %q: %w", o.Name, ErrName)
	}
	control, err := bind(o.Name + ":ctl")
	switch {
	case errors.Is(err, errInUse):
		return nil, fmt.Errorf("listen at %q: another simulator has that name in this network namespace; end it, or take another name", o.Name)
	case err != nil:
		return nil, fmt.Errorf("listen at %q: %w", o.Name, err)
	}
	srv := &Server{Options: o, subnet: s, names: sim.NewNames(f, s.SM.Node()), control: control, user: os.Getuid()}
	srv.in.forReading()
	if srv.poll, err = newPoller(); err == nil {
		err = srv.poll.add(control, controlToken)
	}
	if err != nil {
		control.close()
		return nil, fmt.Errorf("listen at %q: %w", o.Name, err)
	}
	return srv, nil
}

// unknownUser is the ID of an unknown user.
const unknownUser = -1

// serves reports whether the datagrams of a user are served.
func (s *Server) serves(user int) bool { return s.AnyUser || user == s.user }

// Tokens of the poller; the token of a client is its number.
const controlToken = -2

// Serve answers clients until ctx ends. The sockets are closed then.
func (s *Server) Serve(ctx context.Context) error {
	defer s.close()
	stop := context.AfterFunc(ctx, s.poll.wake)
	defer stop()
	for ctx.Err() == nil && !s.quitting {
		if !s.readAgain() {
			if err := s.wait(); err != nil {
				return err
			}
		}
		s.mu.Lock()
		posted := s.posted
		s.posted = nil
		s.mu.Unlock()
		for _, f := range posted {
			f()
		}
		s.flush()
		if now := time.Now(); len(s.clients) > 0 && now.Sub(s.checked) >= checkEvery {
			s.checked = now
			s.dropDead()
			s.subnet.Programs.ReturnExpired(now)
		}
	}
	if s.quitting {
		return ErrQuit
	}
	return nil
}

// readAgain reads from the client that was read from last, without querying the poller:
// it has often sent more. After some rounds the others are served.
func (s *Server) readAgain() bool {
	const rounds = 16
	c := s.busy
	if c == nil || c.gone || s.rounds == rounds {
		s.busy, s.rounds = nil, 0
		return false
	}
	s.rounds++
	if s.readClient(c) == 0 {
		yield() // with two processors, it may be about to send some more
		if s.readClient(c) == 0 {
			s.busy, s.rounds = nil, 0
			return false
		}
	}
	return true
}

// wait waits until there is work.
func (s *Server) wait() error {
	timeout := time.Duration(-1)
	if len(s.clients) > 0 {
		timeout = checkEvery
	}
	if !s.rest() {
		timeout = 0
	}
	err := s.poll.wait(timeout, s.ready)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = true
	return err
}

// rest ends the time in which the loop sends what is queued; it returns false if
// there is something left.
func (s *Server) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = len(s.dirty) > 0 || len(s.posted) > 0
	return !s.working
}

// Do makes the loop call f, between the requests of clients; it does nothing after Serve
// has returned.
func (s *Server) Do(f func()) (done bool) {
	finished := make(chan struct{})
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.posted = append(s.posted, func() { defer close(finished); f() })
	s.poll.wake()
	s.mu.Unlock()
	<-finished
	return true
}

// quit ends Serve.
func (s *Server) quit() {
	s.Do(func() { s.quitting = true })
}

func (s *Server) ready(token int32, read, write bool) {
	switch {
	case token == controlToken:
		s.readControl()
	case token >= 0 && int(token) < len(s.clients) && s.clients[token] != nil:
		c := s.clients[token]
		if write {
			s.push(c)
		}
		if read {
			s.readClient(c)
		}
	}
}

// flush sends what is queued.
func (s *Server) flush() {
	for {
		s.mu.Lock()
		list := s.dirty
		s.dirty = nil
		for _, c := range list {
			c.dirty = false
		}
		s.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, c := range list {
			if !c.gone {
				s.push(c)
			}
		}
	}
}

func (s *Server) close() {
	for _, c := range s.clients {
		if c != nil {
			s.drop(c, "")
		}
	}
	s.control.close()
	s.mu.Lock()
	posted := s.posted
	s.posted, s.closed = nil, true
	s.poll.close()
	s.mu.Unlock()
	for _, f := range posted {
		f()
	}
}

func (s *Server) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(fmt.Sprintf(format, args...))
	}
}

// message is a message on the socket.
type message [ibsim.MessageSize]byte

// decode reads a message of a client.
func (m *message) decode(to *sim.Message) {
	to.DLID, to.SLID = ibsim.GetLID(m[ibsim.OffDLID:]), ibsim.GetLID(m[ibsim.OffSLID:])
	to.DQP, to.SQP = binary.BigEndian.Uint32(m[ibsim.OffDQP:]), binary.BigEndian.Uint32(m[ibsim.OffSQP:])
	to.Undelivered = false
	to.Length = mad.Size
	if n := binary.BigEndian.Uint64(m[ibsim.OffLength:]); n < mad.Size {
		to.Length = int(n)
	}
	copy(to.MAD[:], m[ibsim.OffMAD:])
}

// encode writes m as a message to a client.
func (m *message) encode(from *sim.Message) {
	clear(m[:ibsim.OffMAD])
	ibsim.PutLID(m[ibsim.OffDLID:], from.DLID)
	ibsim.PutLID(m[ibsim.OffSLID:], from.SLID)
	binary.BigEndian.PutUint32(m[ibsim.OffDQP:], from.DQP)
	binary.BigEndian.PutUint32(m[ibsim.OffSQP:], from.SQP)
	if from.Undelivered {
		binary.BigEndian.PutUint32(m[ibsim.OffStatus:], ibsim.StatusUndelivered)
	}
	binary.BigEndian.PutUint64(m[ibsim.OffLength:], uint64(from.Length))
	copy(m[ibsim.OffMAD:], from.MAD[:])
}
