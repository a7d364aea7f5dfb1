package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// callTimeout is how long a call may take.
const callTimeout = 30 * time.Second

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
	line, err := json.Marshal(request{Version: controlVersion, Method: method, Args: args})
	if err != nil {
		return nil, err
	}
	if len(line) >= maxLine {
		return nil, fmt.Errorf("the arguments have %d bytes, want less than %d; use several calls", len(line), maxLine)
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

// Close ends the connection.
func (c *ControlClient) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnect()
}

func (c *ControlClient) disconnect() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// exchange sends a request, and reads its reply.
func (c *ControlClient) exchange(line []byte) (r reply, err error) {
	if c.conn == nil {
		if !supported {
			return r, errNotSupported
		}
		if c.conn, err = net.DialTimeout("unix", socketName(c.Name), callTimeout); err != nil {
			return r, fmt.Errorf("ibsim:%s: no control socket: the subnet is not served by this version of fabsh (by ibsim, perhaps); serve it with fabsh sim SPEC --listen %[1]s", c.Name)
		}
		c.lines = newScanner(c.conn)
	}
	c.conn.SetDeadline(time.Now().Add(callTimeout))
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
	return r, checkVersion(r.Version)
}

// newScanner returns a reader of the lines of a connection.
func newScanner(conn net.Conn) *bufio.Scanner {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	return lines
}
