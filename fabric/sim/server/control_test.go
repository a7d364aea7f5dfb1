package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	if _, err := c.Call("unlink", fmt.Appendf(nil, "%q", strings.Repeat("x", maxControlLine))); err == nil || !strings.Contains(err.Error(), "use several calls") {
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
		"x\n":                                 `{"version":1,"error":"invalid character 'x' looking for beginning of value"}`,
		"{\"version\":1,\"args\":\n":          `{"version":1,"error":"unexpected end of JSON input"}`,
		"{\"version\":2}\n":                   `{"version":1,"error":"version 2 of the control of a simulated subnet, want 1; use the same fabsh at both ends"}`,
		strings.Repeat(" ", maxControlLine+1): `{"version":1,"error":"invalid request: bufio.Scanner: token too long"}`,
	} {
		conn, err := net.Dial("unix", controlSocketName(name))
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

// TestSlowReader: a program that does not read its replies keeps neither others waiting nor
// its connection.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &ControlServer{handle: echo}
		slow, end := net.Pipe()
		begun := time.Now()
		closed := make(chan time.Duration, 1)
		go func() { s.execute(end, Peer{}); closed <- time.Since(begun) }()
		fmt.Fprintln(slow, `{"version":1,"method":"unlink","args":{}}`)
		synctest.Wait()
		other, end2 := net.Pipe()
		go s.execute(end2, Peer{})
		fmt.Fprintln(other, `{"version":1,"method":"link","args":{}}`)
		if got, err := bufio.NewReader(other).ReadString('\n'); got != `{"version":1,"result":["link",{}]}`+"\n" || err != nil || time.Since(begun) != 0 {
			t.Errorf("another program gets %q, %v after %v", got, err, time.Since(begun))
		}
		other.Close()
		if got := <-closed; got != controlTimeout {
			t.Errorf("the connection ended after %v, want %v", got, controlTimeout)
		}
		slow.Close()
	})
}

// TestConnections: programs beyond the bound are refused, and are served when others end.
func TestConnections(t *testing.T) {
	name := serveControl(t, nil, echo)
	var conns []net.Conn
	for range maxControlConnections {
		c, err := net.Dial("unix", controlSocketName(name))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintln(c, `{"version":1,"method":"link","args":{}}`)
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil { // it has its slot
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	c := &ControlClient{Name: name}
	defer c.Close()
	if _, err := c.Call("link", []byte("{}")); err == nil || err.Error() != "more than 64 connections to the control socket" {
		t.Errorf("one more: %v", err)
	}
	for _, c := range conns {
		c.Close()
	}
	for end := time.Now().Add(time.Minute); ; {
		if _, err := c.Call("link", []byte("{}")); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatalf("after the others have ended: %v", err)
		}
	}
}

// TestLongReply: a result that is too long becomes an error.
func TestLongReply(t *testing.T) {
	long := fmt.Appendf(nil, "%q", strings.Repeat("x", maxControlLine))
	c := &ControlClient{Name: serveControl(t, nil, func(Peer, string, []byte) ([]byte, error) { return long, nil })}
	defer c.Close()
	want := fmt.Sprintf("the result has %d bytes, which is too long for one reply", len(long))
	if _, err := c.Call("flows", []byte("{}")); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// FuzzRequests: whatever a program sends, each valid request gets a reply, the first invalid
// one an error, and the handler receives no invalid one.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"version":1,"method":"unlink","args":{"port":"leaf-1/2"}}` + "\n"))
	f.Add([]byte(`{"version":1,"method":"fail","args":{}}` + "\n" + `{"version":1,"method":"flows"}` + "\n"))
	f.Add([]byte(`{"version":2,"method":"flows","args":{}}` + "\n"))
	f.Add([]byte("\n"))
	f.Add([]byte(`{"version":1,"method":5}`))
	f.Add([]byte(`[1]` + "\n\x00\xff"))
	f.Fuzz(func(t *testing.T, input []byte) {
		calls := 0
		s := &ControlServer{handle: func(_ Peer, method string, args []byte) ([]byte, error) {
			calls++
			if args != nil && !json.Valid(args) {
				t.Errorf("invalid arguments: %q", args)
			}
			if method == "fail" {
				return nil, errors.New("no such port")
			}
			return args, nil
		}}
		program, end := net.Pipe()
		go func() { program.Write(input); end.SetReadDeadline(time.Now()) }()
		ended := make(chan bool)
		go func() { defer close(ended); defer end.Close(); s.execute(end, Peer{}) }()
		out, _ := io.ReadAll(program)
		<-ended
		replies := bytes.Split(out, []byte("\n"))
		refused := 0
		for _, line := range replies[:len(replies)-1] {
			var r controlReply
			if err := json.Unmarshal(line, &r); err != nil || r.Version != controlVersion {
				t.Errorf("reply %q: %v", line, err)
			}
			if r.Error != "" && r.Error != "no such port" {
				refused++
			}
		}
		if len(replies[len(replies)-1]) > 0 || refused > 1 || len(replies)-1 != calls+refused {
			t.Errorf("%d calls, %d replies, %d of them refuse\n%s", calls, len(replies)-1, refused, out)
		}
	})
}

// FuzzReplies: whatever the process that serves the subnet sends, a call ends.
func FuzzReplies(f *testing.F) {
	for _, line := range []string{`{"version":1,"result":{"a":1}}`, `{"version":1,"error":"no such port"}`, `{"version":2}`, `{}`, `x`, ``, `{"version":1,"result":`} {
		f.Add([]byte(line + "\n"))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		program, end := net.Pipe()
		c := &ControlClient{Name: "x", conn: program, lines: newControlScanner(program)}
		go func() {
			bufio.NewReader(end).ReadBytes('\n')
			end.Write(input)
			end.Close()
		}()
		result, err := c.Call("flows", []byte("{}"))
		if err == nil && result != nil && !json.Valid(result) {
			t.Errorf("result %q", result)
		}
		if err != nil && result != nil {
			t.Errorf("result %q and error %v", result, err)
		}
		c.Close()
		end.Close()
	})
}

// Close ends the connection.
func (c *ControlClient) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnect()
}

// Close closes the socket. It ends Serve.
func (s *ControlServer) Close() error { return s.listener.Close() }
