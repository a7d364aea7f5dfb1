package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
		if got := <-closed; got != callTimeout {
			t.Errorf("the connection ended after %v, want %v", got, callTimeout)
		}
		slow.Close()
	})
}

// TestConnections: programs beyond the bound are refused, and are served when others end.
func TestConnections(t *testing.T) {
	name := serveControl(t, nil, echo)
	var conns []net.Conn
	for range maxConnections {
		c, err := net.Dial("unix", socketName(name))
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
	long := fmt.Appendf(nil, "%q", strings.Repeat("x", maxLine))
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
			var r reply
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
		c := &ControlClient{Name: "x", conn: program, lines: newScanner(program)}
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
