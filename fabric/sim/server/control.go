package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Peer is a program that calls.
type Peer struct {
	PID int `json:"pid"` // process ID, at the time it connected
	UID int `json:"uid"` // user ID
}

// maxControlConnections bounds what programs can make the server hold.
const maxControlConnections = 64

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
	if !controlSupported {
		return nil, errControlNotSupported
	}
	l, err := net.Listen("unix", controlSocketName(name))
	if err != nil {
		return nil, fmt.Errorf("control socket of %q: %w", name, err)
	}
	return &ControlServer{listener: l, handle: handle, user: os.Getuid(), slots: make(chan struct{}, maxControlConnections)}, nil
}

// Serve answers calls until ctx ends, and waits for the calls that run. It closes the socket.
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
			refuseControl(conn, fmt.Errorf("more than %d connections to the control socket", maxControlConnections))
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
		refuseControl(conn, fmt.Errorf("permission denied: only the user who serves the subnet may change it, and you are user %d", from.UID))
		return
	}
	s.execute(conn, from)
}

// execute executes the requests of a program that may call.
func (s *ControlServer) execute(conn net.Conn, from Peer) {
	lines := newControlScanner(conn)
	for lines.Scan() {
		var req controlRequest
		err := json.Unmarshal(lines.Bytes(), &req)
		if err == nil {
			err = checkControlVersion(req.Version)
		}
		if err != nil {
			refuseControl(conn, err)
			return
		}
		r := controlReply{Version: controlVersion}
		s.mu.Lock()
		r.Result, err = s.handle(from, req.Method, req.Args)
		s.mu.Unlock()
		if err != nil {
			r.Error = err.Error()
		}
		if !sendControlReply(conn, r) {
			return
		}
	}
	if err := lines.Err(); err != nil { // too long
		refuseControl(conn, fmt.Errorf("invalid request: %w", err))
	}
}

// refuseControl replies with an error, and closes the connection.
func refuseControl(conn net.Conn, err error) {
	sendControlReply(conn, controlReply{Version: controlVersion, Error: err.Error()})
	conn.Close()
}

// sendControlReply sends a reply, and reports whether the program has taken it in time. A reply that is
// too long becomes an error.
func sendControlReply(conn net.Conn, r controlReply) bool {
	line, err := json.Marshal(r)
	if err != nil || len(line) >= maxControlLine {
		line, _ = json.Marshal(controlReply{Version: controlVersion, Error: fmt.Sprintf("the result has %d bytes, which is too long for one reply", len(r.Result))})
	}
	conn.SetWriteDeadline(time.Now().Add(controlTimeout)) // a program that does not read keeps no slot
	_, err = conn.Write(append(line, '\n'))
	return err == nil
}

// controlTimeout is how long a call may take.
const controlTimeout = 30 * time.Second

// ControlClient calls methods of a subnet that another process serves. It connects at the first
// call. It is safe for concurrent use.
type ControlClient struct {
	Name string // of the sockets

	mu    sync.Mutex // held during a call
	conn  net.Conn   // nil: not connected
	lines *bufio.Scanner
}

// Call calls a method with arguments in JSON, and returns its result in JSON.
func (c *ControlClient) Call(method string, args []byte) ([]byte, error) {
	line, err := json.Marshal(controlRequest{Version: controlVersion, Method: method, Args: args})
	if err != nil {
		return nil, err
	}
	if len(line) >= maxControlLine {
		return nil, fmt.Errorf("the arguments have %d bytes, want less than %d; use several calls", len(line), maxControlLine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.exchange(append(line, '\n'))
	if err != nil {
		c.disconnect()
		return nil, err
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r.Result, nil
}

func (c *ControlClient) disconnect() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// exchange sends a request, and reads its reply.
func (c *ControlClient) exchange(line []byte) (r controlReply, err error) {
	if c.conn == nil {
		if !controlSupported {
			return r, errControlNotSupported
		}
		if c.conn, err = net.DialTimeout("unix", controlSocketName(c.Name), controlTimeout); err != nil {
			return r, fmt.Errorf("ibsim:%s: no control socket: the subnet is not served by this version of fabsh (by ibsim, perhaps); serve it with fabsh sim SPEC --listen %[1]s", c.Name)
		}
		c.lines = newControlScanner(c.conn)
	}
	c.conn.SetDeadline(time.Now().Add(controlTimeout))
	_, sent := c.conn.Write(line)
	if !c.lines.Scan() { // a server that refuses the connection has written why
		err := errors.Join(sent, c.lines.Err())
		if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, bufio.ErrTooLong) {
			return r, fmt.Errorf("ibsim:%s: the process that serves the subnet closed the connection; if it has ended, serve the subnet again: fabsh sim SPEC --listen %[1]s", c.Name)
		}
		return r, fmt.Errorf("ibsim:%s: no reply of the process that serves the subnet: %w", c.Name, err)
	}
	if err := json.Unmarshal(c.lines.Bytes(), &r); err != nil {
		return r, fmt.Errorf("ibsim:%s: invalid reply: %w", c.Name, err)
	}
	return r, checkControlVersion(r.Version)
}

// newControlScanner returns a reader of the lines of a connection.
func newControlScanner(conn net.Conn) *bufio.Scanner {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxControlLine)
	return lines
}

// A connection of the control is a stream socket with an abstract name beside the sockets of
// ibsim. A request and its reply are a line of JSON each.

// controlVersion is the version of the messages. A request of another version is refused.
const controlVersion = 1

// maxControlLine is the maximum size of a request or a reply, in bytes.
const maxControlLine = 1 << 20

// controlRequest is a call of a method.
type controlRequest struct {
	Version int             `json:"version"`
	Method  string          `json:"method"`
	Args    json.RawMessage `json:"args"` // an object
}

// controlReply is its result, or why it failed.
type controlReply struct {
	Version int             `json:"version"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// controlSocketName returns the name of the socket of a subnet that is served by that name. The @
// stands for a NUL: the name is abstract, and no file.
func controlSocketName(name string) string { return "@" + name + ":control" }

// checkControlVersion returns an error if the other end has another version.
func checkControlVersion(version int) error {
	if version != controlVersion {
		return fmt.Errorf("version %d of the control of a simulated subnet, want %d; use the same fabsh at both ends", version, controlVersion)
	}
	return nil
}
