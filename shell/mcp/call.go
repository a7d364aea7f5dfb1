package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// call is a call of a tool that runs in the session.
type call struct {
	began time.Time
	ctx   context.Context // ends when the call is cancelled, exceeds a limit, or ends
	sent  int             // datagrams of the server before it

	mu    sync.Mutex
	doing string // what its progress is
}

// sweep is a sweep of the fabric.
type sweep struct {
	found *fabric.Fabric
	at    time.Time
}

// callTool answers a call of a tool.
func (s *Server) callTool(ctx context.Context, r *mcp.CallToolRequest, t *Tool, a Arguments) (*mcp.CallToolResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := s.ended()
	defer context.AfterFunc(ended, func() { stop(context.Cause(ended)) })() // the SDK waits for calls
	if t.Run == nil {
		return s.help(ctx, t, a)
	}
	leave, err := s.jobs.enter(ctx)
	if err != nil {
		return failure(err), nil
	}
	defer leave()
	if err := s.session.Renew(); err != nil {
		return failure(err), nil
	}
	s.output.reset()
	defer s.meter.watch(stop)()
	c := &call{began: time.Now(), ctx: ctx, sent: s.meter.sent()}
	s.setCall(c)
	defer s.setCall(nil)
	defer s.notify(r, c)()
	return s.run(c, t, a).answer(), nil
}

// help answers a call that needs no fabric.
func (s *Server) help(ctx context.Context, t *Tool, a Arguments) (*mcp.CallToolResult, error) {
	leave, err := s.texts.enter(ctx)
	if err != nil {
		return failure(err), nil
	}
	defer leave()
	text, err := t.Help(a)
	if err != nil {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: lang.OneLine(err.Error())}}, IsError: true}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: truncated(text)}}}, nil
}

// truncated returns at most maxOutput bytes of a text, with a message if there are more.
func truncated(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	return lang.Harmless(text[:maxOutput]) + fmt.Sprintf("\n\noutput truncated: %d bytes, more than %d; ask for a narrower topic\n", len(text), maxOutput)
}

// run evaluates a call within the limits of the session.
func (s *Server) run(c *call, t *Tool, a Arguments) *Result {
	limit := s.program.StartTime()
	d := s.program.StartDeadline(limit)
	s.session.Runner.LimitTo(d)
	defer d.Stop()
	var limited *lang.LimitError
	status := s.session.Runner.Evaluate(func(ctx context.Context) error {
		defer func() { errors.As(context.Cause(ctx), &limited) }()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
		err := session.Named(t.Name, lang.Protect(t.Name, func() error { return t.Run(ctx, s.session, a) }))
		if beyond := s.meter.err(); beyond != nil {
			s.output.reset() // requests that were not sent are no faults of the fabric
			return beyond
		}
		return err
	})
	if limited != nil {
		runtime.GC() // what the call has left, such as stacks, must not count for the next one
	}
	if s.meter.err() == nil {
		s.keepSweep()
	}
	r := &Result{Schema: resultName, Status: status, Meaning: meaningOf(status)}
	r.Data, r.Server = s.output.data(t.IsText != nil && t.IsText(a))
	if late := d != nil && limit.Over(); late {
		r.Server = append(r.Server, "the time of the call was over before it ended: read less, or have the operator raise --deadline")
	}
	return r
}

// keepSweep keeps the latest sweep of the session.
func (s *Server) keepSweep() {
	f := s.session.Env.Fabric()
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.found != f {
		s.last = &sweep{f, time.Now()}
	}
	if s.first == nil && f.Complete() {
		s.first = f
	}
}

// First returns the first complete sweep of the server; nil: none.
func (s *Server) First() *fabric.Fabric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *Server) setCall(c *call) {
	s.mu.Lock()
	s.call = c
	s.mu.Unlock()
}

// current returns the call that runs; nil: none.
func (s *Server) current() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.call
}

// beforeSweep waits until the fabric may be swept again.
func (s *Server) beforeSweep(ctx context.Context) error {
	return s.sweep.pass(ctx, func(wait time.Duration) {
		s.progress(fmt.Sprintf("waiting for %v: the fabric is swept at most once in %v", wait.Round(time.Second), s.options.SweepInterval))
	})
}

// progress receives what the running call does.
func (s *Server) progress(doing string) {
	if c := s.current(); c != nil {
		c.mu.Lock()
		c.doing = doing
		c.mu.Unlock()
	}
}

// notifyEvery is how often a client gets the progress of a call.
const notifyEvery = 500 * time.Millisecond

// notify sends the progress of a call to a client that requests it, until end is called.
func (s *Server) notify(r *mcp.CallToolRequest, c *call) (end func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(notifyEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			r.Session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: time.Since(c.began).Seconds(), Message: s.doing(c)})
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// doing returns the progress of a call in words.
func (s *Server) doing(c *call) string {
	c.mu.Lock()
	doing := c.doing
	c.mu.Unlock()
	parts := []string{plural.Count(s.meter.sent()-c.sent, "datagram", "datagrams") + " sent"}
	if doing != "" {
		parts = slices.Insert(parts, 0, doing)
	}
	text := parts[0]
	for _, p := range parts[1:] {
		text += "; " + p
	}
	return text
}

// Result is the result of a call. What comes from the fabric, or from a script, is in Data alone.
type Result struct {
	Schema  string   `json:"schema"`
	Status  int      `json:"status"`
	Meaning string   `json:"meaning"`
	Server  []string `json:"server,omitempty"` // fixed texts
	Data    Data     `json:"fabric_data"`
}

// Data is what a call has shown.
type Data struct {
	Values   []json.RawMessage `json:"values"`
	Messages []string          `json:"messages,omitempty"`
	Cut      []Cut             `json:"cut,omitempty"`
}

const resultName = "mcp_result/1"

// resultSchema returns the JSON schema of a Result.
func resultSchema() map[string]any {
	describe := func(kind, text string) map[string]any {
		return map[string]any{"type": kind, "description": text}
	}
	values := describe("array", "what was shown: each value of fabsh is an object with a member schema; "+schemasURI+" describes them")
	messages := describe("array", "warnings, errors, and what a script printed: a line each")
	cut := describe("array", "lists and texts that were shortened because the output is too long: their place, how much is kept, and of how much")
	return map[string]any{
		"type":     "object",
		"required": []string{"schema", "status", "meaning", "fabric_data"},
		"properties": map[string]any{
			"schema":  map[string]any{"const": resultName},
			"status":  describe("integer", "the exit status of the same command: 0 clean, 1 findings, 2 usage or script error, 3 fabric or host error, 130 cancelled"),
			"meaning": describe("string", "the status in words"),
			"server":  describe("array", "remarks of the server, such as limits"),
			"fabric_data": map[string]any{
				"type": "object", "required": []string{"values"}, "description": untrusted,
				"properties": map[string]any{"values": values, "messages": messages, "cut": cut},
			},
		},
	}
}

// meanings are the exit statuses in words.
var meanings = map[int]string{
	lang.StatusClean:       "clean",
	lang.StatusFindings:    "findings, or exit(1) of a script",
	lang.StatusUsage:       "usage or script error: fabric_data.messages has the cause and the remedy",
	lang.StatusFabric:      "fabric or host error: something did not answer, and fabric_data.values may lack it",
	lang.StatusInterrupted: "cancelled",
}

func meaningOf(status int) string {
	if text, ok := meanings[status]; ok {
		return text
	}
	return "exit status of a script"
}

const (
	// maxOutput is the maximum length of Data, in bytes.
	maxOutput = 64 << 10
	// maxMessages is how much of that are messages.
	maxMessages = 8 << 10
	// maxShown is how much of the values is kept to be shortened.
	maxShown = 8 << 20
)

// output captures what a call writes.
type output struct{ shown, messages capture }

// reset discards everything.
func (o *output) reset() {
	o.shown.reset(maxShown)
	o.messages.reset(maxMessages)
}

// capture keeps the begin of a stream. It is safe for concurrent use.
type capture struct {
	mu   sync.Mutex
	text bytes.Buffer
	max  int
	lost int // bytes beyond max
}

func (c *capture) reset(maximum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text, c.max, c.lost = bytes.Buffer{}, maximum, 0
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.max == 0 {
		c.max = maxMessages
	}
	keep := min(len(p), c.max-c.text.Len())
	c.text.Write(p[:keep])
	c.lost += len(p) - keep
	return len(p), nil
}

// String returns what is kept.
func (c *capture) String() string {
	text, _ := c.take()
	return text
}

func (c *capture) take() (text string, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String(), c.lost
}

// data returns what a call has shown, shortened to maxOutput; notes are remarks on that.
func (o *output) data(isText bool) (d Data, notes []string) {
	messages, lost := o.messages.take()
	for line := range strings.Lines(messages) {
		d.Messages = append(d.Messages, lang.OneLine(strings.TrimSuffix(line, "\n")))
	}
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("messages truncated: %d bytes more; print less", lost))
	}
	length := 0
	for _, m := range d.Messages {
		length += len(m) + len(`"",`)
	}
	shown, lost := o.shown.take()
	if isText && shown != "" {
		shown = lang.QuoteJSON(shown)
	}
	d.Values, d.Cut = shorten(shown, maxOutput-length)
	if d.Values == nil {
		d.Values = []json.RawMessage{}
	}
	if len(d.Cut) > 0 || lost > 0 {
		notes = append(notes, fmt.Sprintf("output truncated: %d bytes, more than %d; show less: select in a script, or name one audit, report or node", len(shown)+lost, maxOutput))
	}
	return d, notes
}

// answer returns the response of a call.
func (r *Result) answer() *mcp.CallToolResult {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(r) // values are valid JSON
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	isError := r.Status != lang.StatusClean && r.Status != lang.StatusFindings && len(r.Data.Values) == 0
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: isError || r.Status == lang.StatusUsage}
}

// failure returns the response of a call that did not run.
func failure(err error) *mcp.CallToolResult {
	r := &Result{Schema: resultName, Status: lang.StatusUsage, Meaning: "the call did not run", Server: []string{lang.OneLine(err.Error())}, Data: Data{Values: []json.RawMessage{}}}
	return r.answer()
}

// Output that is too long is shortened in its structure, so that it stays JSON: each list and each
// dict without a schema keeps its first elements, at most so many that all fits.

// Cut is a list, a dict or a text of which only the begin is kept.
type Cut struct {
	At   string `json:"at"` // values[0].findings
	Kept int    `json:"kept"`
	Of   int    `json:"of"` // -1: unknown, because the output ended
}

// maxCuts is how many cuts are listed.
const maxCuts = 20

// shorten returns the values in a text of JSON documents, in at most maximum bytes. A document
// that ends early is closed.
// Text that is not JSON becomes one string.
func shorten(text string, maximum int) (values []json.RawMessage, cuts []Cut) {
	for limit := 1 << 16; ; limit /= 2 { // elements
		s := shortener{decoder: json.NewDecoder(strings.NewReader(text)), limit: limit, left: maximum}
		s.decoder.UseNumber()
		values = s.all()
		if s.invalid {
			return shorten(lang.QuoteJSON(text), maximum)
		}
		if !s.full {
			return values, s.cuts[:min(len(s.cuts), maxCuts)]
		}
		if limit == 0 {
			return nil, []Cut{{At: "values", Of: -1}}
		}
	}
}

// shortener copies documents.
type shortener struct {
	decoder *json.Decoder
	limit   int // elements of a list; a text has 16 times as many bytes
	left    int // bytes that may still be written
	full    bool
	ended   bool // the text ended within a document
	invalid bool // the text is not JSON
	out     bytes.Buffer
	cuts    []Cut
}

// all copies all documents.
func (s *shortener) all() (values []json.RawMessage) {
	count := 0
	for !s.full && !s.ended {
		token, err := s.decoder.Token()
		if err != nil {
			s.invalid = !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
			break
		}
		count++
		if count > max(s.limit, 1) {
			s.skip(token)
			continue
		}
		s.out.Reset()
		s.value(token, fmt.Sprintf("values[%d]", count-1))
		s.left-- // a comma
		values = append(values, bytes.Clone(s.out.Bytes()))
	}
	if count > max(s.limit, 1) {
		s.cut("values", max(s.limit, 1), count)
	}
	return values
}

func (s *shortener) cut(at string, kept, of int) { s.cuts = append(s.cuts, Cut{at, kept, of}) }

func (s *shortener) write(text string) {
	if s.left -= len(text); s.left < 0 {
		s.full = true
		return
	}
	s.out.WriteString(text)
}

// value copies the value that begins with a token.
func (s *shortener) value(token json.Token, at string) {
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			s.list(at)
		} else {
			s.object(at)
		}
	case string:
		s.text(token, at)
	case nil:
		s.write("null")
	default:
		s.write(fmt.Sprint(token))
	}
}

// text copies a string.
func (s *shortener) text(text, at string) {
	if most := max(256, 16*s.limit); len(text) > most {
		s.cut(at, most, len(text))
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	s.write(lang.QuoteJSON(text))
}

// next returns the next token, unless the text has ended.
func (s *shortener) next() (json.Token, bool) {
	if s.ended || s.full {
		return nil, false
	}
	token, err := s.decoder.Token()
	if err != nil {
		s.ended = true
		s.invalid = !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
		return nil, false
	}
	return token, true
}

// list copies a list whose bracket is read.
func (s *shortener) list(at string) {
	s.write("[")
	n := 0
	for {
		token, ok := s.next()
		if !ok || token == json.Delim(']') {
			break
		}
		if n++; n > s.limit {
			s.skip(token)
			continue
		}
		if n > 1 {
			s.write(",")
		}
		s.value(token, fmt.Sprintf("%s[%d]", at, n-1))
	}
	s.close("]", at, n, n > s.limit)
}

// object copies an object whose brace is read. A value of fabsh, whose first member is its schema,
// keeps all members.
func (s *shortener) object(at string) {
	s.write("{")
	n, whole := 0, false
	for {
		name, ok := s.next()
		if !ok || name == json.Delim('}') {
			break
		}
		n++
		whole = whole || n == 1 && name == "schema"
		token, ok := s.next()
		if !ok {
			break
		}
		if n > s.limit && !whole {
			s.skip(token)
			continue
		}
		if n > 1 {
			s.write(",")
		}
		s.write(lang.QuoteJSON(fmt.Sprint(name)) + ":")
		s.value(token, at+"."+fmt.Sprint(name))
	}
	s.close("}", at, n, n > s.limit && !whole)
}

// close ends a list or an object of n elements.
func (s *shortener) close(bracket, at string, n int, isCut bool) {
	s.write(bracket)
	switch {
	case s.ended:
		s.cut(at, min(n, s.limit), -1)
	case isCut:
		s.cut(at, s.limit, n)
	}
}

// skip reads the rest of the value that begins with a token.
func (s *shortener) skip(token json.Token) {
	depth := 0
	for ok := true; ok; token, ok = s.next() {
		if d, isDelim := token.(json.Delim); isDelim {
			if d == '[' || d == '{' {
				depth++
			} else {
				depth--
			}
		}
		if depth == 0 {
			return
		}
	}
}
