package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/builtins/lang"
)

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
