package lang

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"

	"go.starlark.net/starlark"
)

// Format is how show renders values.
type Format string

const (
	FormatText  Format = "text"  // for people
	FormatJSON  Format = "json"  // one document a value
	FormatJSONL Format = "jsonl" // one line an element
	FormatCSV   Format = "csv"   // one line an element, a heading before them
	// FormatRawCSV is CSV whose texts begin as they are. In FormatCSV an
	// apostrophe goes before those that a spreadsheet would carry out.
	FormatRawCSV Format = "csv-raw"
	// FormatProm is metrics for Prometheus; a dialect may follow: "prom=treydock".
	FormatProm Format = "prom"
)

// Dialect is what follows FormatProm; isProm: f is that format.
func (f Format) Dialect() (dialect string, isProm bool) {
	name, dialect, _ := strings.Cut(string(f), "=")
	return dialect, name == string(FormatProm)
}

// Formats are those that -o names.
var Formats = []Format{FormatText, FormatJSON, FormatJSONL, FormatCSV, FormatProm}

// Show is show().
var Show = Builtin{
	Name:   "show",
	Group:  GroupOutput,
	Params: []Param{{Name: "value", Kind: KindAny, Doc: "any value"}},
	Doc: `Writes a value to stdout, in the format that -o names.
As text, a record shows as aligned fields and a list of records as a table; jsonl and csv write one line for each element, prom the metrics that its numbers make up, at the end. With any format but text, print goes to stderr, so that stdout holds nothing but what show writes.`,
	Example: `
> show([{"lid": 1, "port": 3}, {"lid": 17, "port": None}])
lid  port
  1     3
 17     -
`,
	Run: Do(func(c *Call, a *struct{ Value starlark.Value }) (starlark.Value, error) {
		return starlark.None, ShowValue(c.Thread, a.Value)
	}),
}

// Show renders v on the session's stdout, as the prompt does. Of a few
// functions, such as exit, the name alone acts.
func (r *Runtime) Show(v starlark.Value) error { return r.Display(r, v) }

// ShowValue is Show from within an evaluation.
func ShowValue(t *starlark.Thread, v starlark.Value) error {
	f := FiberOf(t)
	return f.Runtime.Display(f.Sink, v)
}

// Display writes v to out in the format of the session.
func (r *Runtime) Display(out sink, v starlark.Value) error {
	if f, ok := v.(*Function); ok && f.Bare != nil {
		return f.Bare(r)
	}
	if _, ok := r.Format.Dialect(); ok {
		return r.Measure(v)
	}
	width := 0
	if r.Width != nil {
		width = r.Width()
	}
	text, err := render(v, r.Format, width)
	if d, ok := v.(Drawn); ok && r.Format == FormatText {
		text = d.Draw(width, r.Blocks != nil && r.Blocks())
	}
	if err != nil {
		return err
	}
	if r.Format == FormatJSON {
		if r.shown++; r.shown == 2 {
			r.WarnOnce("-o json writes one document for each show(), and this is the second: -o jsonl writes one line for each element")
		}
	}
	return out.Emit(Stdout, text)
}

// Render gives v in a format; text ends with a newline unless it is empty.
func Render(v starlark.Value, format Format) (string, error) { return render(v, format, 0) }

// render is Render for a screen of some width; 0: there is no limit.
func render(v starlark.Value, format Format, width int) (string, error) {
	switch format {
	case FormatJSON:
		data, err := encodeJSON(v)
		if err != nil {
			return "", err
		}
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			return "", err
		}
		return b.String() + "\n", nil
	case FormatJSONL:
		var b strings.Builder
		for _, e := range elements(v) {
			data, err := encodeJSON(e)
			if err != nil {
				return "", err
			}
			b.Write(data)
			b.WriteByte('\n')
		}
		return b.String(), nil
	case FormatCSV:
		return renderCSV(v, spreadsheetSafe)
	case FormatRawCSV:
		return renderCSV(v, func(text string) string { return text })
	}
	return renderText(v, width), nil
}

// renderCSV writes one line for each element of v. Elements with named facts
// have a heading; lists are rows as they are; other values a column "value". What
// is a text goes through text.
func renderCSV(v starlark.Value, text func(string) string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	list := elements(v)
	rows := make([][]Fact, len(list))
	for i, e := range list {
		if row, ok := factsOf(e); ok {
			rows[i] = row
		} else if it, ok := e.(starlark.Iterable); ok && len(ColumnsOf(rows)) == 0 {
			var line []string
			for x := range starlark.Elements(it) {
				line = append(line, csvCell(x, text))
			}
			if err := w.Write(line); err != nil {
				return "", err
			}
		} else {
			rows[i] = []Fact{{Name: "value", Value: e}}
		}
	}
	if columns := ColumnsOf(rows); len(columns) > 0 {
		headings := make([]string, len(columns))
		for i, name := range columns {
			headings[i] = text(Harmless(name))
		}
		if err := w.Write(headings); err != nil {
			return "", err
		}
		for _, row := range rows {
			line := make([]string, len(columns))
			for i, name := range columns {
				line[i] = csvCell(find(row, name).Value, text)
			}
			if err := w.Write(line); err != nil {
				return "", err
			}
		}
	}
	w.Flush()
	return b.String(), w.Error()
}

// spreadsheetSafe puts an apostrophe before a text that a spreadsheet would take
// for a formula (OWASP, CSV injection).
func spreadsheetSafe(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t", rune(text[0])) {
		return "'" + text
	}
	return text
}

// csvCell is valid UTF-8, without control characters but line breaks and tabs.
func csvCell(v starlark.Value, text func(string) string) string {
	switch v := v.(type) {
	case starlark.NoneType:
		return ""
	case starlark.String:
		return text(Harmless(string(v)))
	case starlark.Bool, starlark.Int, starlark.Float:
		return strings.ToLower(v.String())
	case starlark.Tuple: // the words of a mask
		if words, ok := joinWords(v, " "); ok {
			return text(Harmless(words))
		}
	}
	encoded := jsonText(v)
	var s string
	if json.Unmarshal([]byte(encoded), &s) == nil { // a time, a route, ...
		return text(Harmless(s))
	}
	return encoded
}

// joinWords joins a tuple of nothing but texts.
func joinWords(t starlark.Tuple, sep string) (string, bool) {
	words := make([]string, len(t))
	for i, v := range t {
		s, ok := starlark.AsString(v)
		if !ok {
			return "", false
		}
		words[i] = s
	}
	return strings.Join(words, sep), true
}
