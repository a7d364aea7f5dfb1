package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// maxConnections bounds what programs can make the server hold.
const maxConnections = 64

// ControlHandler executes a method with arguments in JSON for a program, and returns its result in
// JSON. Only one call runs at a time.
type ControlHandler func(from Peer, method string, args []byte) ([]byte, error)

// ControlServer accepts the calls of programs of the user who runs it.
type ControlServer struct {
	listener net.Listener
	handle   ControlHandler
	user     int // who may call

	mu    sync.Mutex // held during a call
	slots chan struct{}
}

// ListenControl creates the socket of a subnet that is served by that name. Programs wait until
// Serve runs.
func ListenControl(name string, handle ControlHandler) (*ControlServer, error) {
	if !supported {
		return nil, errNotSupported
	}
	l, err := net.Listen("unix", socketName(name))
	if err != nil {
		return nil, fmt.Errorf("control socket of %q: %w", name, err)
	}
	return &ControlServer{listener: l, handle: handle, user: os.Getuid(), slots: make(chan struct{}, maxConnections)}, nil
}

// Close closes the socket. It ends Serve.
func (s *ControlServer) Close() error { return s.listener.Close() }

// Serve answers calls until ctx ends or the socket is closed, and waits for the calls that
// run.
func (s *ControlServer) Serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			cancel() // ends the connections
			return
		}
		select {
		case s.slots <- struct{}{}:
		default:
			refuse(conn, fmt.Errorf("more than %d connections to the control socket", maxConnections))
			continue
		}
		running.Go(func() {
			defer func() { <-s.slots }()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			defer conn.Close()
			s.answer(conn)
		})
	}
}

// answer executes the requests of a connection.
func (s *ControlServer) answer(conn net.Conn) {
	from, err := peerOf(conn)
	if err != nil || from.UID != s.user {
		refuse(conn, fmt.Errorf("permission denied: only the user who serves the subnet may change it, and you are user %d", from.UID))
		return
	}
	s.execute(conn, from)
}

// execute executes the requests of a program that may call.
func (s *ControlServer) execute(conn net.Conn, from Peer) {
	lines := newScanner(conn)
	for lines.Scan() {
		var req request
		err := json.Unmarshal(lines.Bytes(), &req)
		if err == nil {
			err = checkVersion(req.Version)
		}
		if err != nil {
			refuse(conn, err)
			return
		}
		r := reply{Version: controlVersion}
		s.mu.Lock()
		r.Result, err = s.handle(from, req.Method, req.Args)
		s.mu.Unlock()
		if err != nil {
			r.Error = err.Error()
		}
		if !send(conn, r) {
			return
		}
	}
	if err := lines.Err(); err != nil { // too long
		refuse(conn, fmt.Errorf("invalid request: %w", err))
	}
}

// refuse replies with an error, and closes the connection.
func refuse(conn net.Conn, err error) {
	send(conn, reply{Version: controlVersion, Error: err.Error()})
	conn.Close()
}

// send sends a reply, and reports whether the program has taken it in time. A reply that is
// too long becomes an error.
func send(conn net.Conn, r reply) bool {
	line, err := json.Marshal(r)
	if err != nil || len(line) >= maxLine {
		line, _ = json.Marshal(reply{Version: controlVersion, Error: fmt.Sprintf("the result has %d bytes, which is too long for one reply", len(r.Result))})
	}
	conn.SetWriteDeadline(time.Now().Add(callTimeout)) // a program that does not read keeps no slot
	_, err = conn.Write(append(line, '\n'))
	return err == nil
}
