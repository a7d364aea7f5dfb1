package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"fabsh/mad/engine"
)

// counted is a transport that counts what it sends.
type counted struct {
	engine.Transport
	sent, tried int
}

func (c *counted) Send(*engine.Datagram) error { c.sent++; return nil }

// TrySend sends every second datagram.
func (c *counted) TrySend(*engine.Datagram) (bool, error) {
	if c.tried++; c.tried%2 == 0 {
		return false, nil
	}
	c.sent++
	return true, nil
}

// TestMeter: in no minute more datagrams are sent than the limit, whatever the pauses, and a
// datagram that is tried and then sent counts once.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		m := &meter{perMinute: limit}
		to := &counted{}
		tr := &metered{to, m}
		var times []time.Time // of datagrams
		var stopped atomic.Int32
		for i := range 3000 {
			if i%10 == 0 {
				m.watch(func(error) { stopped.Add(1) })
			}
			before := to.sent
			sent, err := tr.TrySend(nil)
			if !sent && err == nil {
				err = tr.Send(nil)
			}
			var refused *engine.SendError
			if err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			if to.sent > before {
				times = append(times, time.Now())
			} else if m.err() == nil {
				t.Fatal("no reason for a datagram that was not sent")
			}
			time.Sleep(time.Duration(i%7) * 30 * time.Millisecond)
			if i%500 == 0 {
				time.Sleep(3 * time.Minute)
			}
		}
		synctest.Wait()
		for i := limit; i < len(times); i++ {
			if took := times[i].Sub(times[i-limit]); took < time.Minute {
				t.Fatalf("%d datagrams in %v", limit+1, took)
			}
		}
		if len(times) < 4*limit || stopped.Load() == 0 || m.sent() != to.sent {
			t.Errorf("%d datagrams, %d stops, %d counted", len(times), stopped.Load(), m.sent())
		}
	})
}

// TestMeterMessage: the message states when there is room again.
func TestMeterMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{perMinute: 1}
		m.take()
		time.Sleep(20 * time.Second)
		want := "limit of 1 datagram per minute exceeded; call again in 41 s and read less: fewer ports, or rows of the latest sweep (max_age)"
		if err := m.take(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		time.Sleep(41 * time.Second)
		if err := m.take(); err != nil {
			t.Error(err)
		}
	})
}

// TestSweepGate: sweeps begin at least an interval apart, and a wait ends with its context.
func TestSweepGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &sweepGate{interval: 5 * time.Second}
		began := time.Now()
		for i := range 3 {
			if err := g.pass(t.Context(), func(time.Duration) {}); err != nil || time.Since(began) != time.Duration(i)*5*time.Second {
				t.Errorf("sweep %d after %v: %v", i, time.Since(began), err)
			}
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBusy)
		defer cancel()
		if err := g.pass(ctx, func(time.Duration) {}); err != errBusy || time.Since(began) != 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestQueue: one request runs, as many as allowed wait, and others are refused.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2)
		leave, err := q.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan func(), 3)
		ctx, cancel := context.WithCancelCause(t.Context())
		for range 2 {
			go func() {
				if leave, err := q.enter(ctx); err == nil {
					entered <- leave
				} else {
					entered <- nil
				}
			}()
		}
		synctest.Wait()
		want := "busy: a call runs, and 2 calls wait; call again when they have ended"
		if _, err := q.enter(t.Context()); !errors.Is(err, errBusy) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		leave()
		leave = <-entered
		cancel(errBusy)
		if <-entered != nil {
			t.Error("two requests run")
		}
		leave()
		for range 4 { // those that have waited take no place
			leave, err := q.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				leave, err := q.enter(t.Context())
				if err != nil {
					t.Error(err)
					leave = nil
				}
				entered <- leave
			}()
			synctest.Wait()
			leave()
			if leave = <-entered; leave != nil {
				leave()
			}
		}
	})
}

// TestShorten: what is kept of an output.
func TestShorten(t *testing.T) {
	for _, x := range []struct {
		text    string
		maximum int
		want    string
		cuts    string
	}{
		{`{"a":1} [2]`, 100, `{"a":1} [2]`, ""},
		{"", 100, "", ""},
		{`[1, 2`, 100, `[1,2]`, "values[0] 2 of -1"},
		{`{"a": [1, 2], "b": "tru`, 100, `{"a":[1,2]}`, "values[0] 2 of -1"},
		{"hello", 100, `"hello"`, ""},
		{"[1, x", 100, `"[1, x"`, ""},
		{`"\u202e\u001b<>"`, 100, `"\u202e\u001b<>"`, ""},
		{`[` + strings.Repeat("1,", 999) + `1]`, 100, `[` + strings.Repeat("1,", 31) + `1]`, "values[0] 32 of 1000"},
		{`{"schema":"x/1","b":[` + strings.Repeat("1,", 999) + `1],"c":2}`, 100, `{"schema":"x/1","b":[` + strings.Repeat("1,", 31) + `1],"c":2}`, "values[0].b 32 of 1000"},
		{`"` + strings.Repeat("é", 1000) + `"`, 300, `"` + strings.Repeat("é", 128) + `"`, "values[0] 256 of 2000"},
		{strings.Repeat("1 ", 1000), 20, strings.TrimSpace(strings.Repeat("1 ", 8)), "values 8 of 1000"},
		{`{"` + strings.Repeat("x", 1000) + `":1}`, 100, `{}`, "values[0] 0 of 1"},
	} {
		values, cuts := shorten(x.text, x.maximum, allRows)
		var kept, shortened []string
		for _, v := range values {
			kept = append(kept, string(v))
		}
		for _, c := range cuts {
			shortened = append(shortened, fmt.Sprintf("%s %d of %d", c.At, c.Kept, c.Of))
		}
		if diff := cmp.Diff(x.want+"\n"+x.cuts, strings.Join(kept, " ")+"\n"+strings.Join(shortened, ", ")); diff != "" {
			t.Errorf("%.60s: -want +got\n%s", x.text, diff)
		}
	}
}

// FuzzShorten: whatever a script writes, what is kept is JSON, and not too long; without cuts it is
// all.
func FuzzShorten(f *testing.F) {
	f.Add(`{"schema":"a/1","b":[1,2,{"c":"d"}]} [] "x"`, 30)
	f.Add(`[[[[`, 10)
	f.Fuzz(func(t *testing.T, text string, maximum int) {
		maximum = max(0, min(maximum, 1<<12))
		values, cuts := shorten(text, maximum, allRows)
		length := 0
		for _, v := range values {
			length += len(v) + 1
			if !json.Valid(v) {
				t.Fatalf("%q", v)
			}
		}
		if length > max(maximum, 1) {
			t.Errorf("%d bytes, more than %d", length, maximum)
		}
		var all bytes.Buffer
		if json.Compact(&all, []byte(text)) == nil && len(cuts) == 0 {
			var want, got any
			json.Unmarshal([]byte(text), &want)
			if len(values) != 1 || json.Unmarshal(values[0], &got) != nil || !cmp.Equal(want, got) {
				t.Errorf("%q became %q", text, values)
			}
		}
	})
}

// FuzzLines: the lines of any input are those between its line ends.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nc"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(text), 16)
		var all []byte
		for {
			line, err := readLine(in)
			all = append(all, line...)
			if err == io.EOF {
				break
			}
			if err != nil || bytes.Count(line, []byte("\n")) != 1 || !bytes.HasSuffix(line, []byte("\n")) {
				t.Fatalf("%q: %v", line, err)
			}
			decode(lineOf(line))
		}
		if !bytes.Equal(all, text) {
			t.Errorf("got %q of %q", all, text)
		}
	})
}

func lineOf(text []byte) line { return line{text: text} }

// TestLongLine: a line that is too long is skipped, and the next is read.
func TestLongLine(t *testing.T) {
	in := bufio.NewReader(strings.NewReader(strings.Repeat("x", maxLine+1) + "\nnext\n"))
	if _, err := readLine(in); err != errTooLong {
		t.Error(err)
	}
	if text, err := readLine(in); string(text) != "next\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestUsedID: a request with the ID of another one that has no response is refused, and takes no
// place.
func TestUsedID(t *testing.T) {
	request := `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"
	var out strings.Builder
	c, err := Stdio(strings.NewReader(strings.Repeat(request, maxInFlight+2)), &out).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(t.Context()); err != io.EOF {
		t.Fatalf("the second: %v", err)
	}
	want := strings.Repeat(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"request ID 7 is in use; use each ID once"}}`+"\n", maxInFlight+1)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	id := first.(*jsonrpc.Request).ID
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if !c.(*connection).begin(id, []byte("7")) {
		t.Error("the ID stays in use after the response")
	}
}
