package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A Process is a server that runs as a program of its own, at the other ends of its streams.
type Process struct {
	In  io.WriteCloser
	Out io.ReadCloser
	// Wait returns the exit status when the program has ended; -1: a signal ended it.
	Wait func() int
}

// firstSignal is where exit statuses of programs begin that a forwarded signal has ended.
const firstSignal = 128

// Supervisor passes the messages of a client to a Process. A single step of a script can take all
// memory, or minutes, and cannot be stopped other than by the end of the process: the supervisor
// then answers what is in flight, and starts another process.
type Supervisor struct {
	Start func() (*Process, error)
	// Apart is the shortest time between two starts after the first. A new process counts datagrams from
	// 0, so that is also how long a client gets at most twice as many.
	Apart time.Duration

	outMu sync.Mutex // keeps lines whole
	out   io.Writer

	mu          sync.Mutex // guards the fields below
	changed     *sync.Cond
	process     *Process // that receives messages; nil: it is being started
	ended       bool     // no other process will be started
	inputEnded  chan struct{}
	pending     map[jsonrpc.ID]request
	initialize  []byte // the client's request that was accepted, for the next process
	initialized []byte // and its notification
}

// request is a request without a response.
type request struct {
	method string
	text   []byte // of initialize
}

// Serve serves a client until it closes the connection or the process ends otherwise; after ctx has
// ended, no other process is started. It returns the exit status of the last process.
func (s *Supervisor) Serve(ctx context.Context, in io.Reader, out io.Writer) (status int, err error) {
	s.out, s.pending, s.inputEnded = out, map[jsonrpc.ID]request{}, make(chan struct{})
	s.changed = sync.NewCond(&s.mu)
	go s.feed(in)
	defer s.set(func() { s.ended = true })
	var restarted time.Time
	for {
		p, err := s.Start()
		if err != nil {
			return 0, err
		}
		reads := true // the client
		lines := bufio.NewReader(p.Out)
		if err := s.greet(p, lines); err == nil {
			s.set(func() { s.process = p })
			if s.inputHasEnded() {
				p.In.Close()
			}
			reads = s.copyFrom(lines) == nil
		}
		s.set(func() { s.process = nil })
		p.In.Close()
		p.Out.Close() // if the client has closed its end, the process must not wait for a reader
		status := p.Wait()
		if status >= firstSignal || ctx.Err() != nil || !reads || !s.answerPending() {
			return status, nil
		}
		if wait := s.Apart - time.Since(restarted); !restarted.IsZero() && wait > 0 {
			select {
			case <-time.After(wait):
			case <-s.inputEnded: // all requests have their response
				return 0, nil
			case <-ctx.Done():
				return status, nil
			}
		}
		restarted = time.Now()
	}
}

// set changes the state.
func (s *Supervisor) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.changed.Broadcast()
}

func (s *Supervisor) inputHasEnded() bool {
	select {
	case <-s.inputEnded:
		return true
	default:
		return false
	}
}

// feed passes the messages of the client to the process of the time.
func (s *Supervisor) feed(in io.Reader) {
	r := bufio.NewReader(in)
	for {
		text, err := readLine(r)
		if err != nil && !errors.Is(err, errTooLong) && len(text) == 0 {
			close(s.inputEnded)
			if p := s.current(nil); p != nil {
				p.In.Close()
			}
			return
		}
		l := line{text: text}
		if errors.Is(err, errTooLong) {
			l = line{err: err}
		}
		if l.err == nil && isBlank(text) {
			continue
		}
		message, refusal := decode(l)
		if refusal != nil {
			text, _ := json.Marshal(refusal)
			s.write(text)
			continue
		}
		text = append(bytes.TrimRight(text, "\r\n"), '\n')
		p := s.current(func() { s.note(message, text) })
		if p == nil {
			return
		}
		p.In.Write(text) // if it fails, the process has ended, and the request gets its error
	}
}

// current waits for a process that receives messages, and then calls note, if any, before that
// process can be found to have ended; nil: the server ends.
func (s *Supervisor) current(note func()) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.process == nil && !s.ended {
		s.changed.Wait()
	}
	if s.process != nil && note != nil {
		note()
	}
	return s.process
}

// note records what another process will need. s.mu is held.
func (s *Supervisor) note(m jsonrpc.Message, text []byte) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	switch {
	case r.IsCall() && r.Method == "initialize":
		s.pending[r.ID] = request{r.Method, text}
	case r.IsCall():
		s.pending[r.ID] = request{method: r.Method}
	case r.Method == "notifications/initialized":
		s.initialized = text
	}
}

// greet repeats the begin of the session to a new process.
func (s *Supervisor) greet(p *Process, lines *bufio.Reader) error {
	s.mu.Lock()
	initialize, initialized := s.initialize, s.initialized
	s.mu.Unlock()
	if initialize == nil {
		return nil
	}
	if _, err := p.In.Write(initialize); err != nil {
		return err
	}
	if _, err := lines.ReadBytes('\n'); err != nil { // the client has the response of the first
		return err
	}
	_, err := p.In.Write(initialized)
	return err
}

// copyFrom passes the messages of a process to the client until the process ends. The error is
// that of writing to the client.
func (s *Supervisor) copyFrom(lines *bufio.Reader) error {
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // also a part of a message
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
		if m, err := jsonrpc.DecodeMessage(text); err == nil {
			if r, isResponse := m.(*jsonrpc.Response); isResponse {
				s.responded(r)
			}
		}
		if err := s.write(text); err != nil {
			return err
		}
	}
}

// responded records the response of a process.
func (s *Supervisor) responded(r *jsonrpc.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := s.pending[r.ID].text; text != nil && r.Error == nil {
		s.initialize = text
	}
	delete(s.pending, r.ID)
}

var errRestarted = errors.New("the server has started again, because a call took too much memory or time in one step, or failed; keep fewer values at a time, or have the operator raise --memory")

// answerPending answers the requests that a process has left; false: all have their response, or
// the session had not begun, or has ended.
func (s *Supervisor) answerPending() bool {
	s.mu.Lock()
	pending := s.pending
	s.pending = map[jsonrpc.ID]request{}
	goesOn := len(pending) > 0 && !s.inputHasEnded() && s.initialize != nil && s.initialized != nil
	s.mu.Unlock()
	if !goesOn {
		return false
	}
	for id, request := range pending {
		response := &jsonrpc.Response{ID: id}
		if request.method == "tools/call" {
			response.Result, _ = json.Marshal(failure(errRestarted))
		} else {
			response.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errRestarted.Error()}
		}
		if text, err := jsonrpc.EncodeMessage(response); err == nil {
			s.write(text)
		}
	}
	return true
}

func (s *Supervisor) write(text []byte) error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	_, err := s.out.Write(append(text, '\n'))
	return err
}
