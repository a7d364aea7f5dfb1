package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// serveControl serves a handler by a name of this test, and returns it.
func serveControl(t testing.TB, change func(*ControlServer), handle ControlHandler) string {
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
	s, err := ListenControl(name, handle)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return name
}

// echo returns a call as its result.
func echo(_ Peer, method string, args []byte) ([]byte, error) {
	if method == "fail" {
		return nil, errors.New("fail: no such port")
	}
	return fmt.Appendf(nil, "[%q,%s]", method, args), nil
}

// TestCall: a call arrives with its arguments, and its result or error comes back.
func TestCall(t *testing.T) {
	c := &ControlClient{Name: serveControl(t, nil, echo)}
	defer c.Close()
	for range 2 {
		if got, err := c.Call("unlink", []byte(`{"port":"leaf-1/2"}`)); string(got) != `["unlink",{"port":"leaf-1/2"}]` || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
		if got, err := c.Call("fail", []byte(`{}`)); got != nil || err == nil || err.Error() != "fail: no such port" {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if _, err := c.Call("unlink", fmt.Appendf(nil, "%q", strings.Repeat("x", maxLine))); err == nil || !strings.Contains(err.Error(), "use several calls") {
		t.Errorf("long arguments: %v", err)
	}
}

// TestPeer: the handler receives the process and the user of the program that calls.
func TestPeer(t *testing.T) {
	var got Peer
	c := &ControlClient{Name: serveControl(t, nil, func(from Peer, _ string, _ []byte) ([]byte, error) { got = from; return []byte("null"), nil })}
	defer c.Close()
	if _, err := c.Call("unlink", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if want := (Peer{PID: os.Getpid(), UID: os.Getuid()}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestControlOtherUser: calls of other users are refused.
func TestControlOtherUser(t *testing.T) {
	c := &ControlClient{Name: serveControl(t, func(s *ControlServer) { s.user++ }, echo)}
	defer c.Close()
	want := fmt.Sprintf("permission denied: only the user who serves the subnet may change it, and you are user %d", os.Getuid())
	if got, err := c.Call("unlink", []byte("{}")); got != nil || err == nil || err.Error() != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// TestNotServed: ibsim's own server has no control socket.
func TestNotServed(t *testing.T) {
	c := &ControlClient{Name: "nobody-serves-this"}
	want := "ibsim:nobody-serves-this: no control socket: the subnet is not served by this version of fabsh (by ibsim, perhaps); serve it with fabsh sim SPEC --listen nobody-serves-this"
	if _, err := c.Call("unlink", []byte("{}")); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestEnded: when the server has ended, calls on an open connection and on a new one say so.
func TestEnded(t *testing.T) {
	name := "TestEnded-" + strconv.Itoa(os.Getpid())
	s, err := ListenControl(name, echo)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(ctx) }()
	c := &ControlClient{Name: name}
	defer c.Close()
	if _, err := c.Call("unlink", []byte("{}")); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
	for _, want := range []string{
		"ibsim:" + name + ": the process that serves the subnet closed the connection; if it has ended, serve the subnet again: fabsh sim SPEC --listen " + name,
		"ibsim:" + name + ": no control socket: the subnet is not served by this version of fabsh (by ibsim, perhaps); serve it with fabsh sim SPEC --listen " + name,
	} {
		if _, err := c.Call("unlink", []byte("{}")); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestInvalidRequests: a request that is damaged, too long or of another version is refused
// and ends the connection.
func TestInvalidRequests(t *testing.T) {
	name := serveControl(t, nil, echo)
	for request, want := range map[string]string{
		"x\n":                          `{"version":1,"error":"invalid character 'x' looking for beginning of value"}`,
		"{\"version\":1,\"args\":\n":   `{"version":1,"error":"unexpected end of JSON input"}`,
		"{\"version\":2}\n":            `{"version":1,"error":"version 2 of the control of a simulated subnet, want 1; use the same fabsh at both ends"}`,
		strings.Repeat(" ", maxLine+1): `{"version":1,"error":"invalid request: bufio.Scanner: token too long"}`,
	} {
		conn, err := net.Dial("unix", socketName(name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, request)
		lines := bufio.NewScanner(conn)
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("%.20q: got %s\nwant %s", request, lines.Text(), want)
		}
		if lines.Scan() {
			t.Errorf("%.20q: the connection is still open", request)
		}
		conn.Close()
	}
}
