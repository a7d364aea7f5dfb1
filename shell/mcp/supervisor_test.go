package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Messages of a session.
const (
	initializeLine  = `{"jsonrpc":"2.0","id":1,"method":"initialize"}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// answersAs is a process that answers each request by its name and ID, or refuses it, and ends with a status when
// a message has the word "end N".
func answersAs(name string, seen *[]string) *Process {
	in, fromSupervisor := io.Pipe()
	toSupervisor, out := io.Pipe()
	ended, killed := make(chan int, 1), make(chan struct{})
	end := func(status int) {
		in.Close()
		out.Close()
		ended <- status
	}
	go func() {
		lines := bufio.NewScanner(in)
		status := 0
		for status == 0 && lines.Scan() {
			*seen = append(*seen, name+" "+lines.Text())
			var id int
			if _, err := fmt.Sscanf(lines.Text(), `{"jsonrpc":"2.0","id":%d`, &id); err == nil && strings.Contains(lines.Text(), "refuse") {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32600,"message":"refused"}}`+"\n", id)
			} else if err == nil && !strings.Contains(lines.Text(), "end") {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"result":{"of":%q}}`+"\n", id, name)
			}
			if strings.Contains(lines.Text(), "hang") {
				<-killed
				end(-1)
				return
			}
			if _, after, ok := strings.Cut(lines.Text(), "end "); ok {
				time.Sleep(time.Second) // in virtual time
				fmt.Sscan(after, &status)
			}
		}
		end(status)
	}()
	return &Process{In: fromSupervisor, Out: toSupervisor, Wait: func() int { return <-ended }, Kill: func() { close(killed) }}
}

// supervised is a running Supervisor.
type supervised struct {
	t      *testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	from   io.Closer // what out reads
	seen   []string  // what processes have received
	starts []time.Duration
	gone   chan struct{}
	ended  chan int
}

func supervise(ctx context.Context, t *testing.T) *supervised {
	in, toSupervisor := io.Pipe()
	fromSupervisor, out := io.Pipe()
	u := &supervised{t: t, in: toSupervisor, out: bufio.NewReader(fromSupervisor), from: fromSupervisor, gone: make(chan struct{}), ended: make(chan int, 1)}
	began := time.Now()
	s := &Supervisor{Apart: time.Minute, Gone: u.gone, Start: func() (*Process, error) {
		u.starts = append(u.starts, time.Since(began))
		return answersAs(fmt.Sprint("process", len(u.starts)), &u.seen), nil
	}}
	go func() {
		status, err := s.Serve(ctx, in, out)
		if err != nil {
			t.Error(err)
		}
		out.Close()
		u.ended <- status
	}()
	return u
}

// send sends lines; each but a notification has a response, which is returned.
func (u *supervised) send(lines ...string) (got string) {
	for _, line := range lines {
		io.WriteString(u.in, line+"\n")
		if line != initializedLine {
			text, _ := u.out.ReadString('\n')
			got += text
		}
	}
	return got
}

func callLine(id int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"x":%q}}`, id, text)
}

// TestSupervisor: when a call ends the process, it is answered, the next process gets the begin of
// the session and the next call, and the second restart is a minute after the first.
func TestSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := supervise(t.Context(), t)
		const failed = `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"schema\":\"mcp_result/2\",\"status\":2,\"meaning\":\"the call did not run\",\"server\":[\"the server has started again, because a call took too much memory or time in one step, or failed; keep fewer values at a time, or select in the script\"],\"fabric_data\":{\"values\":[]}}"}],"isError":true}}` + "\n"
		answer := func(id, process int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"of":"process%d"}}`+"\n", id, process)
		}
		for _, x := range []struct{ line, want string }{
			{initializeLine, answer(1, 1)},
			{initializedLine, ""},
			{"{", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"malformed JSON; send one message in each line"}}` + "\n"},
			{callLine(2, "a"), answer(2, 1)},
			{callLine(3, "end 2"), failed},
			{callLine(4, "b"), answer(4, 2)},
			{callLine(3, "end -1"), failed},
			{callLine(5, "c"), answer(5, 3)},
		} {
			if diff := cmp.Diff(x.want, u.send(x.line)); diff != "" {
				t.Errorf("%s: -want +got\n%s", x.line, diff)
			}
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, time.Minute + time.Second}, u.starts); diff != "" {
			t.Errorf("starts: -want +got\n%s", diff)
		}
		u.in.Close()
		if status := <-u.ended; status != 0 {
			t.Errorf("status %d", status)
		}
		var want []string
		for i, lines := range [][]string{{callLine(2, "a"), callLine(3, "end 2")}, {callLine(4, "b"), callLine(3, "end -1")}, {callLine(5, "c")}} {
			for _, line := range append([]string{initializeLine, initializedLine}, lines...) {
				want = append(want, fmt.Sprintf("process%d %s", i+1, line))
			}
		}
		if diff := cmp.Diff(want, u.seen); diff != "" {
			t.Errorf("received: -want +got\n%s", diff)
		}
	})
}

// TestSupervisorKilled: a process that is killed, or fails, without a request in flight is replaced
// too, also before the session has begun.
func TestSupervisorKilled(t *testing.T) {
	const end = `{"jsonrpc":"2.0","method":"end `
	for _, begin := range [][]string{{initializeLine, initializedLine}, {initializeLine}, nil} {
		for _, status := range []string{"-1", "143", "2"} {
			if status == "2" && len(begin) < 2 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				u := supervise(t.Context(), t)
				u.send(begin...)
				io.WriteString(u.in, end+status+"\"}\n")
				time.Sleep(2 * time.Second)
				if got, want := u.send(callLine(2, "a")), `{"jsonrpc":"2.0","id":2,"result":{"of":"process2"}}`+"\n"; got != want {
					t.Errorf("%v, %s: got %s, want %s", begin, status, got, want)
				}
				u.in.Close()
				if status := <-u.ended; status != 0 || len(u.starts) != 2 {
					t.Errorf("status %d after %d starts", status, len(u.starts))
				}
			})
		}
	}
}

// TestClientGone: when the client has closed one direction, a process that computes is ended within
// a second, and no other is started.
func TestClientGone(t *testing.T) {
	for name, leave := range map[string]func(u *supervised){"input": func(u *supervised) { u.in.Close() }, "output": func(u *supervised) { close(u.gone) }} {
		for _, last := range []string{"end hang", "end -1", ""} {
			synctest.Test(t, func(t *testing.T) {
				u := supervise(t.Context(), t)
				u.send(initializeLine, initializedLine)
				if last != "" {
					io.WriteString(u.in, callLine(2, last)+"\n")
				}
				synctest.Wait()
				began := time.Now()
				leave(u)
				if status, took := <-u.ended, time.Since(began); status != 0 || took > time.Second || len(u.starts) != 1 {
					t.Errorf("%s, %s: status %d after %v and %d starts", name, last, status, took, len(u.starts))
				}
				u.in.Close()
			})
		}
	}
}

// TestSupervisorEnds: before the session has begun, after a signal for both and after the end of the
// input, the end of the process is the end of the server.
func TestSupervisorEnds(t *testing.T) {
	for name, x := range map[string]struct {
		lines []string
		want  int
	}{
		"at the begin": {[]string{initializeLine, callLine(2, "end 3")}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := supervise(t.Context(), t)
			go u.send(x.lines...)
			if status := <-u.ended; status != x.want || len(u.starts) != 1 {
				t.Errorf("%s: status %d after %d starts", name, status, len(u.starts))
			}
			u.in.Close()
		})
	}
	synctest.Test(t, func(t *testing.T) { // a terminal signals both, the process first
		ctx, cancel := context.WithCancel(t.Context())
		u := supervise(ctx, t)
		u.send(initializeLine, initializedLine)
		io.WriteString(u.in, callLine(2, "end 130")+"\n")
		time.Sleep(time.Second + signalTime/2)
		cancel()
		if status := <-u.ended; status != 130 || len(u.starts) != 1 {
			t.Errorf("status %d after %d starts", status, len(u.starts))
		}
		u.in.Close()
	})
	synctest.Test(t, func(t *testing.T) { // the input ends before the process
		u := supervise(t.Context(), t)
		u.send(initializeLine, initializedLine)
		io.WriteString(u.in, callLine(2, "end 2")+"\n")
		u.in.Close()
		if status := <-u.ended; status != 2 || len(u.starts) != 1 {
			t.Errorf("status %d after %d starts", status, len(u.starts))
		}
	})
	for want, end := range map[int]func(u *supervised, cancel func()){ // while it waits for the second restart
		2: func(_ *supervised, cancel func()) { cancel() },
		0: func(u *supervised, _ func()) { u.in.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			u := supervise(ctx, t)
			u.send(initializeLine, initializedLine, callLine(2, "end 2"), callLine(3, "end 2"))
			began := time.Now()
			end(u, cancel)
			if status := <-u.ended; status != want || len(u.starts) != 2 || time.Since(began) > 0 {
				t.Errorf("status %d, want %d, after %d starts and %v", status, want, len(u.starts), time.Since(began))
			}
			u.in.Close()
		})
	}
	synctest.Test(t, func(t *testing.T) { // a message waits for the second restart
		ctx, cancel := context.WithCancel(t.Context())
		u := supervise(ctx, t)
		u.send(initializeLine, initializedLine, callLine(2, "end 2"), callLine(3, "end 2"))
		go u.send(callLine(4, "a"))
		synctest.Wait()
		cancel()
		if status := <-u.ended; status != 2 || len(u.starts) != 2 {
			t.Errorf("status %d after %d starts", status, len(u.starts))
		}
		u.in.Close()
	})
	synctest.Test(t, func(t *testing.T) { // a signal ends the process like a failure
		ctx, cancel := context.WithCancel(t.Context())
		u := supervise(ctx, t)
		u.send(initializeLine, initializedLine)
		io.WriteString(u.in, callLine(2, "end 2")+"\n")
		cancel()
		if status := <-u.ended; status != 2 || len(u.starts) != 1 {
			t.Errorf("status %d after %d starts", status, len(u.starts))
		}
		u.in.Close()
	})
	synctest.Test(t, func(t *testing.T) { // the client closes its end, and the process has more to write
		u := supervise(t.Context(), t)
		u.send(initializeLine, initializedLine)
		u.from.Close()
		go u.send(callLine(2, "a"), callLine(3, "b"), callLine(4, "c"))
		if status := <-u.ended; status != 0 || len(u.starts) != 1 {
			t.Errorf("status %d after %d starts", status, len(u.starts))
		}
		u.in.Close()
	})
}

// TestSupervisorRefused: the next process gets the request initialize that was accepted.
func TestSupervisorRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := supervise(t.Context(), t)
		u.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":"refuse"}`, initializeLine, initializedLine, callLine(2, "end 2"), callLine(3, "a"))
		u.in.Close()
		if status := <-u.ended; status != 0 {
			t.Errorf("status %d", status)
		}
		want := []string{"process2 " + initializeLine, "process2 " + initializedLine, "process2 " + callLine(3, "a")}
		if diff := cmp.Diff(want, u.seen[len(u.seen)-len(want):]); diff != "" {
			t.Errorf("received: -want +got\n%s", diff)
		}
	})
}
