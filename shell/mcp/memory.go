package mcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
)

// What a server remembers from one call to the next: the sweep, the results that were shortened,
// and for the next process, the count of datagrams.

// DefaultMaxAge is how old a sweep may be that a call uses, unless it says otherwise.
const DefaultMaxAge = time.Minute

// sweep is a sweep of the fabric.
type sweep struct {
	found *fabric.Fabric
	at    time.Time
}

// keepSweep keeps the sweep of a call, with the time of its begin.
func (s *Server) keepSweep(c *call) {
	f := s.session.Env.Fabric()
	if f == nil || f.Scope() != "" { // a part
		return
	}
	c.mu.Lock()
	at := c.swept
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.found != f {
		if at.IsZero() {
			at = s.servedAt
		}
		if at.IsZero() { // a file
			at = c.began
		}
		s.last = &sweep{f, at}
	}
	if s.first == nil && f.Complete() {
		s.first = f
	}
}

// recent returns the latest sweep if the running call may use it; nil: it sweeps.
func (s *Server) recent() *fabric.Fabric {
	c := s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil || s.last == nil || !s.last.found.Complete() || time.Since(s.last.at) > c.maxAge {
		return nil
	}
	return s.last.found
}

// age returns the seconds since the latest sweep began.
func (s *Server) age() *int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return nil
	}
	seconds := int(time.Since(s.last.at).Seconds())
	return &seconds
}

// First returns the first complete sweep of the server; nil: none.
func (s *Server) First() *fabric.Fabric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// maxResults and maxResultBytes limit the results that can be read further.
const (
	maxResults     = 16
	maxResultBytes = 32 << 20
)

// results are the latest results that were shortened. It is safe for concurrent use.
type results struct {
	mu    sync.Mutex
	count int
	list  []result
}

type result struct {
	name, text string
	of         any // the session of the client: another one does not get it
}

// add keeps a result, and returns its name.
func (r *results) add(of any, text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	name := "r" + strconv.Itoa(r.count)
	r.list = append(r.list, result{name, text, of})
	bytes := 0
	for _, x := range r.list {
		bytes += len(x.text)
	}
	for len(r.list) > 1 && (len(r.list) > maxResults || bytes > maxResultBytes) {
		bytes -= len(r.list[0].text)
		r.list = r.list[1:]
	}
	return name
}

// find returns a result of a session; "" is the latest.
func (r *results) find(of any, name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.list) - 1; i >= 0; i-- {
		if x := r.list[i]; x.of == of && (name == "" || x.name == name) {
			return x.text, nil
		}
	}
	return "", fmt.Errorf("unknown result %q; call the tool again, and use the result of its answer", fabric.Clip(name))
}

// more answers a call for more of an earlier result.
func (s *Server) more(of any, a Arguments) *Result {
	r := &Result{Schema: resultName, Meaning: meaningOf(0), Data: Data{Values: []json.RawMessage{}}}
	refuse := func(err error) *Result {
		r.Status, r.Meaning, r.Server = lang.StatusUsage, "the call did not run", []string{"more: " + lang.OneLine(err.Error())}
		return r
	}
	text, err := s.results.find(of, a.Text("result"))
	if err != nil {
		return refuse(err)
	}
	value, err := valueAt(text, a.Text("at"))
	if err != nil {
		return refuse(err)
	}
	from, rows, maximum := max(0, a.number("from")), a.number("rows"), maxOutput
	if rows == 0 {
		rows, maximum = defaultRows, maxAnswer
	}
	var list []json.RawMessage
	var long string
	switch {
	case json.Unmarshal(value, &list) == nil:
		from = min(from, len(list))
		end := min(from+rows, len(list))
		r.Data.Values, r.Data.Cut = shorten(joined(list[from:end]), maximum, rows)
		r.Server = []string{fmt.Sprintf("values are elements %d to %d of %d, from 0", from, from+len(r.Data.Values)-1, len(list))}
	case json.Unmarshal(value, &long) == nil:
		from = min(from, len(long))
		end := min(from+maximum/2, len(long))
		r.Data.Values = []json.RawMessage{json.RawMessage(lang.QuoteJSON(strings.ToValidUTF8(long[from:end], "")))}
		r.Server = []string{fmt.Sprintf("bytes %d to %d of %d, from 0", from, end-1, len(long))}
	default:
		r.Data.Values, r.Data.Cut = shorten(string(value), maximum, rows)
	}
	if r.Data.Values == nil {
		r.Data.Values = []json.RawMessage{}
	}
	return r
}

// joined returns values as a text of documents.
func joined(list []json.RawMessage) string {
	var b strings.Builder
	for _, v := range list {
		b.Write(v)
		b.WriteByte('\n')
	}
	return b.String()
}

// valueAt returns the value at a place in a text of JSON documents: values, or
// values[0].nodes[3].ports.
func valueAt(text, at string) (json.RawMessage, error) {
	unknown := func() error { return fmt.Errorf("at: no such place; use one of cut, such as values[0].nodes") }
	decoder := json.NewDecoder(strings.NewReader(text))
	var list []json.RawMessage
	for {
		var v json.RawMessage
		if err := decoder.Decode(&v); err != nil {
			break // the end, or a document that was cut
		}
		list = append(list, v)
	}
	value, err := json.Marshal(list)
	rest, ok := strings.CutPrefix(at, "values")
	if at == "" {
		ok = true
	}
	if !ok || err != nil {
		return nil, unknown()
	}
	for rest != "" {
		switch {
		case rest[0] == '[':
			number, after, ok := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(number)
			var elements []json.RawMessage
			if !ok || err != nil || json.Unmarshal(value, &elements) != nil || i < 0 || i >= len(elements) {
				return nil, unknown()
			}
			value, rest = elements[i], after
		case rest[0] == '.':
			var members map[string]json.RawMessage
			if json.Unmarshal(value, &members) != nil {
				return nil, unknown()
			}
			name := "" // a name may have dots: the longest that is a member
			for candidate := range members {
				if strings.HasPrefix(rest[1:], candidate) && len(candidate) > len(name) {
					name = candidate
				}
			}
			if name == "" {
				return nil, unknown()
			}
			value, rest = members[name], rest[1+len(name):]
		default:
			return nil, unknown()
		}
	}
	return value, nil
}

// state is what a process leaves for the next one, if it is ended: the count of datagrams, and the
// latest sweep. It is written and read in frames over pipes.
type state struct {
	Counts [61]int   `json:"counts"`
	Second int64     `json:"second"`
	At     time.Time `json:"at,omitzero"` // of the sweep
}

// maxState is the maximum length of a frame; a snapshot of 11,664 hosts has some megabytes.
const maxState = 256 << 20

// Keep writes the state to out after each call that changed it, and each second in which datagrams
// are sent, until ctx ends. Errors end it: a server without it works.
func (s *Server) Keep(ctx context.Context, out io.Writer) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	sent := -1 // the first time it is written in any case
	var written *sweep
	var snapshot []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		now := s.meter.sent()
		if now == sent && last == written {
			continue
		}
		sent = now
		if last != written {
			var b bytes.Buffer
			if err := format.WriteSnapshot(&b, last.found); err != nil {
				return
			}
			snapshot, written = b.Bytes(), last
		}
		x := s.meter.state()
		if written != nil {
			x.At = written.at
		}
		if WriteFrame(out, x.frame(snapshot)) != nil {
			return
		}
	}
}

// frame returns the state in bytes.
func (x state) frame(snapshot []byte) []byte {
	head, _ := json.Marshal(x)
	return append(append(head, '\n'), snapshot...)
}

// Restore takes over what an earlier process has kept.
func (s *Server) Restore(frame []byte) error {
	head, snapshot, ok := bytes.Cut(frame, []byte("\n"))
	var x state
	if !ok || json.Unmarshal(head, &x) != nil {
		return errors.New("mcp: invalid state of the earlier process")
	}
	s.meter.restore(x)
	if len(snapshot) == 0 {
		return nil
	}
	f, err := format.ReadSnapshot(bytes.NewReader(snapshot), "the latest sweep")
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &sweep{f, x.At}
	if f.Complete() {
		s.first = f
	}
	return nil
}

// WriteFrame writes the length of a frame, and the frame.
func WriteFrame(out io.Writer, frame []byte) error {
	text := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(frame)), uint64(len(frame)))
	_, err := out.Write(append(text, frame...))
	return err
}

// ReadFrame reads what WriteFrame has written.
func ReadFrame(in io.Reader) ([]byte, error) {
	var length [8]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(length[:])
	if n > maxState {
		return nil, fmt.Errorf("state of %d bytes, more than %d", n, maxState)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(in, frame)
	return frame, err
}
