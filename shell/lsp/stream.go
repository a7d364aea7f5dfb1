package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// Bounds of a message, in bytes.
const (
	maxMessage = 16 << 20 // a document of 1 MiB takes up to 6 MiB in JSON
	maxSkipped = 1 << 30  // a longer one is more likely a wrong length
)

// stream has the messages of an editor, each after a header with its length. Unlike that of the
// library, it answers what is not a message by an error, and reads the next one, as long as the
// header has the length.
type stream struct {
	in     *bufio.Reader
	closer io.Closer

	mu  sync.Mutex // keeps messages whole
	out io.Writer
}

func newStream(in io.ReadCloser, out io.Writer) *stream {
	return &stream{in: bufio.NewReader(in), closer: in, out: out}
}

// errorResponse is the response to what is not a request (JSON-RPC 2.0, section 5.1).
type errorResponse struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // null: unknown
	Error   *jsonrpc2.Error `json:"error"`
}

// Read returns the next message.
func (s *stream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		length, err := s.header()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				s.refuse(nil, jsonrpc2.ParseError, err.Error())
			}
			return nil, 0, err
		}
		if length > maxMessage {
			err = s.refuse(nil, jsonrpc2.InvalidRequest, fmt.Sprintf("message of %d bytes, more than %d; send less", length, maxMessage))
			if err == nil {
				_, err = io.CopyN(io.Discard, s.in, length)
			}
			if err != nil {
				return nil, 0, within(err)
			}
			continue
		}
		text := make([]byte, length)
		if _, err := io.ReadFull(s.in, text); err != nil {
			return nil, 0, within(err)
		}
		message, refusal := decode(text)
		if refusal == nil {
			return message, length, nil
		}
		if err := s.write(refusal); err != nil {
			return nil, 0, err
		}
	}
}

// within returns an error of reading within a message.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read message: %w", err)
}

// header reads a header, and returns the length of the message after it.
func (s *stream) header() (length int64, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := s.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, errors.New("message header: line too long; " + framing)
		case errors.Is(err, io.EOF) && first && len(line) == 0:
			return 0, io.EOF
		case err != nil:
			return 0, within(err)
		}
		name, value, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		switch {
		case name == "" && length < 0:
			return 0, errors.New("message header: no Content-Length; " + framing)
		case name == "":
			return length, nil
		case !strings.EqualFold(name, jsonrpc2.HdrContentLength):
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 || n > maxSkipped || length >= 0 && n != length {
			return 0, fmt.Errorf("message header: invalid Content-Length %q; %s", strings.TrimSpace(value), framing)
		}
		length = n
	}
}

// framing is the remedy if the begin of the next message is unknown.
const framing = "restart the server: it cannot find the next message"

// decode returns the message in a text, or its refusal.
func decode(text []byte) (jsonrpc2.Message, *errorResponse) {
	if !json.Valid(text) {
		return nil, refusal(nil, jsonrpc2.ParseError, "malformed JSON")
	}
	var parts struct {
		Version               string `json:"jsonrpc"`
		ID                    json.RawMessage
		Method                *string
		Params, Result, Error json.RawMessage
	}
	err := json.Unmarshal(text, &parts)
	if err != nil || parts.Version != "2.0" || parts.Method == nil && parts.Result == nil && parts.Error == nil || parts.Method != nil && *parts.Method == "" {
		return nil, refusal(parts.ID, jsonrpc2.InvalidRequest, "not a message of JSON-RPC 2.0; batches are not supported")
	}
	message, err := jsonrpc2.DecodeMessage(text)
	if err != nil {
		return nil, refusal(parts.ID, jsonrpc2.InvalidRequest, "not a message of JSON-RPC 2.0: its id is not a string or a 32-bit integer")
	}
	return message, nil
}

func refusal(id json.RawMessage, code jsonrpc2.Code, text string) *errorResponse {
	if len(id) == 0 || strings.ContainsAny(string(id[:1]), "[{tf") {
		id = json.RawMessage("null")
	}
	return &errorResponse{"2.0", id, jsonrpc2.NewError(code, text)}
}

func (s *stream) refuse(id json.RawMessage, code jsonrpc2.Code, text string) error {
	return s.write(refusal(id, code, text))
}

// Write sends a message.
func (s *stream) Write(ctx context.Context, m jsonrpc2.Message) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return 0, s.write(m)
}

func (s *stream) write(m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = fmt.Fprintf(s.out, "%s: %d\r\n\r\n%s", jsonrpc2.HdrContentLength, len(text), text)
	return err
}

// Close closes the input.
func (s *stream) Close() error { return s.closer.Close() }
