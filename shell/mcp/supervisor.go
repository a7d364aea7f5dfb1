package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
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
	// Kill ends the program at once, whatever it does.
	Kill func()
}

const (
	// firstSignal is where exit statuses of programs begin that a signal has ended.
	firstSignal = 128
	// signalTime is how long after the process the supervisor may get a signal that a terminal sends
	// to both.
	signalTime = 500 * time.Millisecond
	// LeaveTime is how long a process may go on after its client is gone.
	LeaveTime = 500 * time.Millisecond
)

// Supervisor passes the messages of a client to a Process. A single step of a script can take all
// memory, or minutes, and cannot be stopped other than by the end of the process: the supervisor
// then answers what is in flight, and starts another process, as if it is killed. When the client is
// gone, the process ends, within LeaveTime.
type Supervisor struct {
	Start func() (*Process, error)
	// Apart is the shortest time between two starts after the first.
	Apart time.Duration
	// Serves reports that a session may have begun otherwise than by messages; nil: it has not.
	Serves func() bool
	// Gone is closed when the client no longer reads; it may be nil.
	Gone <-chan struct{}

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
	id     json.RawMessage // as it came
	method string
	text   []byte // of initialize
	sent   bool   // to a process
}

// Serve serves a client until it is gone, or the process ends before a session has begun, other than
// by a signal; after ctx has ended, no other process is started. It returns the exit status of the
// last process.
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
		ended := make(chan struct{})
		go s.leave(p, ended)
		reads := true // the client
		lines := bufio.NewReader(p.Out)
		if err := s.greet(p, lines); err == nil {
			s.set(func() { s.process = p })
			reads = s.copyFrom(lines) == nil
		}
		s.set(func() { s.process = nil })
		p.In.Close()
		p.Out.Close() // if the client has closed its end, the process must not wait for a reader
		status := p.Wait()
		close(ended)
		killed := status < 0 || status >= firstSignal
		if status >= firstSignal && !s.clientIsGone() {
			select {
			case <-ctx.Done():
			case <-time.After(signalTime):
			}
		}
		switch {
		case s.clientIsGone():
			return max(0, status), nil // -1: of Kill
		case ctx.Err() != nil || !reads || !killed && !s.hasBegun():
			return status, nil
		}
		s.answerPending()
		if wait := s.Apart - time.Since(restarted); !restarted.IsZero() && wait > 0 {
			select {
			case <-time.After(wait):
			case <-s.inputEnded: // all requests have their response
				return 0, nil
			case <-s.Gone:
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

// clientIsGone reports whether the client has closed the connection, or one direction of it.
func (s *Supervisor) clientIsGone() bool {
	select {
	case <-s.inputEnded:
		return true
	case <-s.Gone:
		return true
	default:
		return false
	}
}

// leave ends a process when the client is gone: by the end of its input, then by force.
func (s *Supervisor) leave(p *Process, ended <-chan struct{}) {
	select {
	case <-s.inputEnded:
	case <-s.Gone:
	case <-ended:
		return
	}
	p.In.Close()
	select {
	case <-time.After(LeaveTime):
		p.Kill()
	case <-ended:
	}
}

// hasBegun reports whether the client has begun a session.
func (s *Supervisor) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialize != nil && s.initialized != nil || s.Serves != nil && s.Serves()
}

// feed passes the messages of the client to the process of the time.
func (s *Supervisor) feed(in io.Reader) {
	r := bufio.NewReader(in)
	for {
		text, err := readLine(r)
		if err != nil && !errors.Is(err, errTooLong) && len(text) == 0 {
			close(s.inputEnded)
			return
		}
		l := line{text: text}
		if errors.Is(err, errTooLong) {
			l = line{err: err}
		}
		if l.err == nil && isBlank(text) {
			continue
		}
		message, id, refusal := decode(l)
		if refusal != nil {
			text, _ := json.Marshal(refusal)
			s.write(text)
			continue
		}
		text = append(bytes.TrimRight(text, "\r\n"), '\n')
		for isSent := false; !isSent; {
			p := s.current(func() { s.note(message, id, text) })
			if p == nil {
				return
			}
			_, err := p.In.Write(text)
			isSent = s.sent(p, message, err)
		}
	}
}

// sent notes that a process has received a message, unless err is set; false: the process has ended
// before that, and the next one gets the request.
func (s *Supervisor) sent(p *Process, m jsonrpc.Message, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, isRequest := m.(*jsonrpc.Request)
	if !isRequest || !r.IsCall() {
		return true // what the next one needs, it gets from greet
	}
	for err != nil && s.process == p && !s.ended {
		s.changed.Wait()
	}
	request, isPending := s.pending[r.ID]
	if !isPending || s.ended {
		return true
	}
	request.sent = err == nil && s.process == p
	s.pending[r.ID] = request
	return request.sent
}

// current waits for a process that receives messages, and then calls note before that process can
// be found to have ended; nil: the server ends.
func (s *Supervisor) current(note func()) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.process == nil && !s.ended {
		s.changed.Wait()
	}
	if s.process != nil {
		note()
	}
	return s.process
}

// note records what another process will need. s.mu is held.
func (s *Supervisor) note(m jsonrpc.Message, id json.RawMessage, text []byte) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	switch {
	case r.IsCall() && r.Method == "initialize":
		s.pending[r.ID] = request{id: id, method: r.Method, text: text}
	case r.IsCall():
		s.pending[r.ID] = request{id: id, method: r.Method}
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

var errRestarted = errors.New("the server has started again, because a call took too much memory or time in one step, or failed; keep fewer values at a time, or select in the script")

// answerPending answers the requests that a process has received and left.
func (s *Supervisor) answerPending() {
	s.mu.Lock()
	pending := maps.Clone(s.pending)
	maps.DeleteFunc(pending, func(_ jsonrpc.ID, r request) bool { return !r.sent })
	maps.DeleteFunc(s.pending, func(_ jsonrpc.ID, r request) bool { return r.sent })
	s.mu.Unlock()
	for id, request := range pending {
		response := &jsonrpc.Response{ID: id}
		if request.method == "tools/call" {
			response.Result, _ = json.Marshal(failure(errRestarted))
		} else {
			response.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errRestarted.Error()}
		}
		if text, err := encodeResponse(response, request.id); err == nil {
			s.write(text)
		}
	}
}

func (s *Supervisor) write(text []byte) error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	_, err := s.out.Write(append(text, '\n'))
	return err
}
