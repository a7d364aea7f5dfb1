package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Result is the result of a call. What comes from the fabric, or from a script, is in Data alone.
type Result struct {
	Schema  string `json:"schema"`
	Status  int    `json:"status"`
	Meaning string `json:"meaning"`
	// Name is what the tool more calls this result, if something was left out.
	Name string `json:"result,omitempty"`
	// Age is the seconds since the sweep that the call used began; nil: it used none.
	Age *int `json:"age_s,omitempty"`
	// CountersAge is the seconds since the oldest of the counters were read that the call took from
	// earlier calls; nil: it took none.
	CountersAge *int     `json:"counters_age_s,omitempty"`
	Server      []string `json:"server,omitempty"` // fixed texts
	Data        Data     `json:"fabric_data"`
}

// Data is what a call has shown.
type Data struct {
	Lines    []string          `json:"lines,omitempty"` // what the prompt prints of values that were cut
	Values   []json.RawMessage `json:"values"`
	Messages []string          `json:"messages,omitempty"`
	Cut      []Cut             `json:"cut,omitempty"`
}

const resultName = "mcp_result/2"

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
	// maxAnswer is the maximum length of Data, in bytes, unless a call asks for more rows; the
	// whole answer stays below 6 KB.
	maxAnswer = 4800
	// defaultRows is how many elements of a list an answer has, unless a call asks for more.
	defaultRows = 20
	// maxOutput is the maximum length of Data, in bytes.
	maxOutput = 64 << 10
	// maxMessages is how much of that are messages, and of maxAnswer a quarter.
	maxMessages = 8 << 10
	// maxShown is how much of the values is kept to be shortened.
	maxShown = 8 << 20
)

// output captures what a call writes.
type output struct {
	shown, messages capture

	mu     sync.Mutex // guards values
	values []starlark.Value
}

// maxLines and maxValueLine limit the lines of values, in number and bytes.
const (
	maxLines     = 5
	maxValueLine = 240
)

// shownValue receives a value that is shown.
func (o *output) shownValue(v starlark.Value) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, named := v.(interface{ Schema() string }); named && len(o.values) < maxLines {
		o.values = append(o.values, v)
	}
}

// lines returns the first line that the prompt prints of each value that has a schema.
func (o *output) lines() (list []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.values {
		text, err := lang.Render(v, lang.FormatText)
		if err != nil {
			continue
		}
		line, _, _ := strings.Cut(text, "\n")
		if len(line) > maxValueLine {
			line = strings.ToValidUTF8(line[:maxValueLine], "") + "..."
		}
		list = append(list, lang.OneLine(line))
	}
	return list
}

// reset discards everything.
func (o *output) reset() {
	o.mu.Lock()
	o.values = nil
	o.mu.Unlock()
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

// ownRemedies replaces remedies of the operator by what an agent can do.
var ownRemedies = strings.NewReplacer("exceeded by the script; raise --max-steps", "exceeded by the script; do less in one call", ", or raise --memory", ", or select in the script")

// messageLines returns the messages, in at most maximum bytes, and how many bytes are left out.
func (o *output) messageLines(maximum int) (lines []string, lost int) {
	text, lost := o.messages.take()
	text = ownRemedies.Replace(text)
	for line := range strings.Lines(text) {
		line = lang.OneLine(strings.TrimSuffix(line, "\n"))
		if maximum -= len(line) + len(`"",`); maximum < 0 {
			lost += len(line) + 1
			continue
		}
		lines = append(lines, line)
	}
	return lines, lost
}

// data returns what a call has shown, with at most so many rows of each list; 0: a summary. notes
// are remarks on what is left out, and all is what was shown.
func (o *output) data(isText bool, rows int) (d Data, notes []string, all string) {
	maximum, messages := maxOutput, maxMessages
	if rows == 0 {
		rows, maximum, messages = defaultRows, maxAnswer, maxAnswer/4
	}
	var lost int
	if d.Messages, lost = o.messageLines(messages); lost > 0 {
		notes = append(notes, fmt.Sprintf("messages truncated: %d bytes more; print less, or give rows", lost))
	}
	length := 0
	for _, m := range d.Messages {
		length += len(m) + len(`"",`)
	}
	all, lost = o.shown.take()
	if isText && all != "" {
		all = lang.QuoteJSON(all)
	}
	d.Values, d.Cut = shorten(all, maximum-length, rows)
	if d.Values == nil {
		d.Values = []json.RawMessage{}
	}
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("output truncated: %d bytes, more than %d; show less: select in a script, or name one audit, report or node", len(all)+lost, maxShown))
	}
	return d, notes, all
}

// answer returns the response of a call.
func (r *Result) answer() *mcp.CallToolResult {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(r) // values are valid JSON
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	isError := r.Status != lang.StatusClean && r.Status != lang.StatusFindings && len(r.Data.Values) == 0
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, IsError: isError || r.Status == lang.StatusUsage}
}

// failure returns the response of a call that did not run.
func failure(err error) *mcp.CallToolResult {
	r := &Result{Schema: resultName, Status: lang.StatusUsage, Meaning: "the call did not run", Server: []string{lang.OneLine(err.Error())}, Data: Data{Values: []json.RawMessage{}}}
	return r.answer()
}
