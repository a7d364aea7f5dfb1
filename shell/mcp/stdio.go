package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxLine is the maximum length of a message, in bytes. Scripts are much shorter.
	maxLine = 4 << 20
	// maxInFlight is how many requests may be without their response: a client that reads no
	// responses is not read either.
	maxInFlight = 256
)

// Stdio returns the transport of a client that sends and receives lines. Unlike the SDK's, it
// answers a malformed line by an error, and goes on with the next.
func Stdio(in io.Reader, out io.Writer) mcp.Transport { return &stdio{in, out} }

type stdio struct {
	in  io.Reader
	out io.Writer
}

// Connect implements mcp.Transport.
func (t *stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &connection{out: t.out, lines: make(chan line), closed: make(chan struct{}), ids: map[jsonrpc.ID]json.RawMessage{}, inFlight: make(chan struct{}, maxInFlight)}
	go c.readLines(bufio.NewReader(t.in))
	return c, nil
}

// connection is a connection of lines.
type connection struct {
	lines    chan line // closed at the end of the input
	inFlight chan struct{}

	mu  sync.Mutex // keeps lines whole
	out io.Writer

	idsMu sync.Mutex                     // guards ids
	ids   map[jsonrpc.ID]json.RawMessage // of requests without their response, as they came

	once   sync.Once
	closed chan struct{}
}

// line is a line of the input, or why it is not one.
type line struct {
	text []byte
	err  error
}

var errTooLong = fmt.Errorf("message of more than %d bytes", maxLine)

func (c *connection) readLines(in *bufio.Reader) {
	defer close(c.lines)
	for {
		text, err := readLine(in)
		if err != nil && !errors.Is(err, errTooLong) && len(text) == 0 {
			return
		}
		l := line{text: text}
		if errors.Is(err, errTooLong) {
			l = line{err: err}
		}
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
	}
}

// readLine returns the next line, which may lack its end, or errTooLong for one that it skipped.
func readLine(in *bufio.Reader) (text []byte, err error) {
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		if len(text)+len(part) > maxLine {
			tooLong, text = true, nil
		}
		if !tooLong {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case tooLong:
			return nil, errTooLong
		default:
			return text, err
		}
	}
}

// Read returns the next message. It answers lines that are not one.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		var ok bool
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l, ok = <-c.lines:
			if !ok {
				return nil, io.EOF
			}
		}
		if isBlank(l.text) && l.err == nil {
			continue
		}
		message, id, refused := decode(l)
		if refused != nil {
			if err := c.writeLine(refused); err != nil {
				return nil, err
			}
			continue
		}
		if r, isRequest := message.(*jsonrpc.Request); isRequest && r.IsCall() {
			if !c.begin(r.ID, id) {
				if err := c.writeLine(refusalOf(jsonrpc.CodeInvalidRequest, fmt.Sprintf("request ID %s is in use; use each ID once", id))); err != nil {
					return nil, err
				}
				continue
			}
			select {
			case c.inFlight <- struct{}{}:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-c.closed:
				return nil, io.EOF
			}
		}
		return message, nil
	}
}

func isBlank(text []byte) bool {
	for _, b := range text {
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return false
		}
	}
	return true
}

// refusal is the response to what is not a message (JSON-RPC 2.0, section 5.1).
type refusal struct {
	Version string         `json:"jsonrpc"`
	ID      any            `json:"id"`
	Error   *jsonrpc.Error `json:"error"`
}

func refusalOf(code int64, text string) *refusal {
	return &refusal{"2.0", nil, &jsonrpc.Error{Code: code, Message: text}}
}

// begin notes a request; false: another one with its ID has no response yet. The SDK does not
// answer such a request, which would be in flight for ever.
func (c *connection) begin(id jsonrpc.ID, came json.RawMessage) bool {
	c.idsMu.Lock()
	defer c.idsMu.Unlock()
	if c.ids[id] != nil {
		return false
	}
	c.ids[id] = came
	return true
}

// end forgets a request, whose ID the client may use again after it has read the response. It
// returns the ID as it came.
func (c *connection) end(id jsonrpc.ID) (came json.RawMessage) {
	c.idsMu.Lock()
	defer c.idsMu.Unlock()
	came = c.ids[id]
	delete(c.ids, id)
	return came
}

// decode returns the message in a line and its ID as it came, or its refusal.
func decode(l line) (jsonrpc.Message, json.RawMessage, *refusal) {
	refuse := func(code int64, text string) (jsonrpc.Message, json.RawMessage, *refusal) {
		return nil, nil, refusalOf(code, text)
	}
	switch {
	case l.err != nil:
		return refuse(jsonrpc.CodeInvalidRequest, l.err.Error()+"; send less")
	case !json.Valid(l.text):
		return refuse(jsonrpc.CodeParseError, "malformed JSON; send one message in each line")
	}
	message, err := jsonrpc.DecodeMessage(l.text)
	if err != nil {
		return refuse(jsonrpc.CodeInvalidRequest, "not a message of JSON-RPC 2.0; batches are not supported")
	}
	id, refused := idOf(message, l.text)
	if refused != nil {
		return nil, nil, refused
	}
	return message, id, nil
}

// Write sends a message.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	var text []byte
	var err error
	if r, isResponse := m.(*jsonrpc.Response); isResponse {
		text, err = encodeResponse(r, c.end(r.ID))
		defer func() {
			select {
			case <-c.inFlight:
			default:
			}
		}()
	} else {
		text, err = jsonrpc.EncodeMessage(m)
	}
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	return c.write(text)
}

func (c *connection) writeLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.write(text)
}

func (c *connection) write(text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}

// Close ends the connection.
func (c *connection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// SessionID returns no name: there is one session.
func (c *connection) SessionID() string { return "" }
