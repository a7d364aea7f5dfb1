package lang

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"
)

// Format is an output format of show.
type Format string

const (
	FormatText  Format = "text"  // for people
	FormatJSON  Format = "json"  // one document for each value
	FormatJSONL Format = "jsonl" // one line for each element
	FormatCSV   Format = "csv"   // a heading, then one line for each element
	// FormatRawCSV is CSV with unchanged texts. FormatCSV puts an apostrophe before
	// texts that a spreadsheet could run as formulas.
	FormatRawCSV Format = "csv-raw"
	// FormatProm is metrics for Prometheus; a dialect may follow: "prom=treydock".
	FormatProm Format = "prom"
)

// Dialect returns the text after FormatProm; isProm reports whether f is that format.
func (f Format) Dialect() (dialect string, isProm bool) {
	name, dialect, _ := strings.Cut(string(f), "=")
	return dialect, name == string(FormatProm)
}

// Formats are the formats of the option -o.
var Formats = []Format{FormatText, FormatJSON, FormatJSONL, FormatCSV, FormatProm}

// Show is show().
var Show = Builtin{
	Name:  "show",
	Group: GroupOutput,
	Params: []Param{
		{Name: "value", Kind: KindAny, Doc: "any value"},
		{Name: "format", Kind: KindText, Default: "None", Keyword: true, Doc: `"text", "json", "jsonl" or "csv", instead of that of -o`},
		{Name: "out", Kind: KindText, Default: "None", Keyword: true, Doc: "at the prompt: a file below the working directory to write to, as save does"},
		{Name: "overwrite", Kind: KindBool, Default: "False", Keyword: true, Doc: "with out: replace an existing file"},
		{Name: "pager", Kind: KindBool, Default: "False", Keyword: true, Doc: "at the prompt: show it in the pager, even if it is short"},
	},
	Doc: `Writes a value to standard output, in the format of -o.
As text, a record is shown as aligned fields and a list of records as a table. jsonl and csv write one line for each element. prom writes the numbers as metrics, at the end. With any format except text, print writes to standard error, so that standard output has only the output of show.`,
	Example: `
> show([{"lid": 1, "port": 3}, {"lid": 17, "port": None}])
lid  port
  1     3
 17     -
`,
	Run: Do(func(c *Call, a *showArgs) (starlark.Value, error) { return starlark.None, c.show(a) }),
}

// showArgs are the arguments of show.
type showArgs struct {
	Value       starlark.Value
	Format, Out *string
	Overwrite   bool
	Pager       bool
}

// show writes a value to standard output, to a file, or to the pager.
func (c *Call) show(a *showArgs) error {
	var format Format
	if a.Format != nil {
		format = Format(*a.Format)
		if !slices.Contains([]Format{FormatText, FormatJSON, FormatJSONL, FormatCSV}, format) {
			return ParamError("format", "got %q, want text, json, jsonl or csv", *a.Format)
		}
	}
	if a.Out != nil {
		suffix := cmp.Or(string(format), strings.TrimPrefix(filepath.Ext(*a.Out), "."))
		return c.save(a.Value, suffix, *a.Out, a.Overwrite)
	}
	if a.Overwrite {
		return ParamError("overwrite", "needs out, the file to replace")
	}
	if !a.Pager && format == "" {
		return ShowValue(c.Thread, a.Value)
	}
	format = cmp.Or(format, c.Runtime().Format)
	v, err := c.Runtime().ViewOf(c.Thread, a.Value, format)
	if err != nil {
		return err
	}
	text, err := render(v, format, page{}, c.Fiber().Stopped)
	if err != nil || !a.Pager {
		return errors.Join(err, c.Fiber().Sink.Emit(Stdout, text))
	}
	if err := c.mayUse("pager"); err != nil {
		return err
	}
	return c.Runtime().Typed.Page(text)
}

// Show writes v to the session's standard output, as the prompt does. A few functions,
// such as exit, run instead of being shown.
func (r *Runtime) Show(v starlark.Value) error { return r.Display(r, nil, v) }

// ShowValue is Show from within an evaluation.
func ShowValue(t *starlark.Thread, v starlark.Value) error {
	f := FiberOf(t)
	return f.Runtime.Display(f.Sink, t, v)
}

// Display writes v to out in the format of the session. The thread is nil outside an
// evaluation.
func (r *Runtime) Display(out sink, t *starlark.Thread, v starlark.Value) error {
	if f, ok := v.(*Function); ok && f.Bare != nil {
		return f.Bare(r)
	}
	v, err := r.ViewOf(t, v, r.Format)
	if err != nil {
		return err
	}
	if _, ok := r.Format.Dialect(); ok {
		return r.Measure(v)
	}
	width := 0
	if r.Width != nil {
		width = r.Width()
	}
	var stopped func() error
	if t != nil {
		stopped = FiberOf(t).Stopped
	}
	text, err := render(v, r.Format, page{width, r.Whole}, stopped)
	if d, ok := v.(Drawn); ok && r.Format == FormatText {
		text = d.Draw(width, r.Shaded != nil && r.Shaded())
	}
	if err != nil {
		return err
	}
	if r.Shown != nil {
		r.Shown(v)
	}
	if r.Format == FormatJSON {
		if r.shown++; r.shown == 2 && !r.Documents {
			r.WarnOnce("-o json writes one document for each show(), and this is the second; -o jsonl writes one line for each element")
		}
	}
	return out.Emit(Stdout, text)
}

// Render returns v in a format; the text ends with a newline unless it is empty.
func Render(v starlark.Value, format Format) (string, error) { return render(v, format, page{}, nil) }

// page is where text is shown.
type page struct {
	width int    // columns of the terminal; 0: unlimited
	whole string // how the user sees the columns that a table leaves out, as Runtime.Whole
}

// render is Render for a page. JSON ends with the error of
// stopped, if that is not nil.
func render(v starlark.Value, format Format, page page, stopped func() error) (string, error) {
	switch format {
	case FormatJSON:
		data, err := encodeJSON(v, stopped)
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
		for _, e := range Elements(v) {
			data, err := encodeJSON(e, stopped)
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
	return renderText(v, page), nil
}

// renderCSV writes one line for each element of v. Elements with named facts get a
// heading; lists become rows; other values get a column "value". The function text
// converts texts.
func renderCSV(v starlark.Value, text func(string) string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	list := Elements(v)
	rows := make([][]Fact, len(list))
	for i, e := range list {
		if row, ok := FactsOf(e); ok {
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
				line[i] = csvCell(findFact(row, name).Value, text)
			}
			if err := w.Write(line); err != nil {
				return "", err
			}
		}
	}
	w.Flush()
	return b.String(), w.Error()
}

// spreadsheetSafe puts an apostrophe before a text that a spreadsheet could run as a
// formula (OWASP, CSV injection), and before a part after a semicolon, which separates
// cells in some countries. Spaces and invisible characters before a formula are skipped
// by spreadsheets, and full-width signs are taken for their ASCII form.
func spreadsheetSafe(text string) string {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		formula := strings.TrimLeftFunc(part, func(r rune) bool {
			return r != '\t' && (unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Mn))
		})
		if first, _ := utf8.DecodeRuneInString(formula); formula != "" && strings.ContainsRune("=+-@\t\uff1d\uff0b\uff0d\uff20", first) {
			parts[i] = "'" + part
		}
	}
	return strings.Join(parts, ";")
}

// SafeCell returns a text as -o csv writes it: valid UTF-8, without control characters, and with an
// apostrophe where a spreadsheet could run it as a formula.
func SafeCell(text string) string { return spreadsheetSafe(Harmless(text)) }

// csvCell returns v as valid UTF-8, without control characters except line breaks and
// tabs.
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

// maxColumns is the maximum number of columns of a table; records with more fields are
// shown one below the other.
const maxColumns = 16

// displayed is a value with its own text form, of several lines.
type displayed interface{ Display() string }

// RenderText returns v as text for people, with a newline at the end.
func RenderText(v starlark.Value) string { return renderText(v, page{}) }

// renderText is RenderText for a page.
func renderText(v starlark.Value, page page) string {
	width := page.width
	text := v.String() + "\n"
	if c, ok := v.(Changed); ok {
		if lines, ok := renderChanges([]starlark.Value{c}, width); ok {
			return lines
		}
	}
	switch v := v.(type) {
	case starlark.String: // the whole result: a file, a report
		if strings.Contains(string(v), "\n") {
			return strings.TrimSuffix(string(v), "\n") + "\n"
		}
	case *tableValue:
		if v.blocks {
			return Fit(v.Display(), width)
		}
		return tableText(v.title, v.columns, v.rows, page)
	case displayed:
		text = v.Display()
	case *Failure:
	case Factual:
		text = Aligned(v.Facts())
	case starlark.IterableMapping:
	case starlark.Iterable:
		if tooMany(starlark.Len(v)) != nil {
			break
		}
		list := Collect(v)
		if lines, ok := renderChanges(list, width); ok {
			return lines
		}
		if rows, ok := renderRows(list, page); ok {
			return rows
		}
	}
	return Fit(text, width)
}

// Aligned returns facts as text, one in each line.
func Aligned(facts []Fact) string {
	var b strings.Builder
	width := 0
	for _, f := range facts {
		if !f.Code {
			width = max(width, text.StringWidthWithoutEscSequences(f.Name))
		}
	}
	for _, f := range facts {
		if !f.Code {
			line := text.Pad(f.Name, width, ' ') + "  " + f.Cell()
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// renderRows renders a list of values with named facts as a table, or one below the
// other if they have too many. A failure takes the place of the value, with its
// target.
func renderRows(list []starlark.Value, page page) (string, bool) {
	rows, known, ok := factRows(list)
	if !ok {
		return "", false
	}
	columns := ColumnsOf(known)
	if len(columns) <= maxColumns {
		for i, v := range list {
			if e, ok := v.(*Failure); ok {
				rows[i] = e.row(columns[0])
			}
		}
		if page.width > 0 {
			columns = guidsLast(columns, known)
		}
		return tableText("", columns, rows, page), true
	}
	return Fit(blocksText(rows), page.width), true
}

// factRows returns the facts of values, and of those that are not failures; a failure has its target
// and its text. The result is false if there are other values, or only failures.
func factRows(list []starlark.Value) (rows, known [][]Fact, ok bool) {
	rows = make([][]Fact, len(list))
	for i, v := range list {
		if _, ok := v.(*Failure); ok {
			continue
		}
		row, ok := FactsOf(v)
		if !ok {
			return nil, nil, false
		}
		rows[i] = withoutCodes(row)
		known = append(known, rows[i])
	}
	columns := ColumnsOf(known)
	if len(columns) == 0 {
		return nil, nil, false
	}
	for i, v := range list {
		if e, ok := v.(*Failure); ok {
			rows[i] = []Fact{e.row(columns[0])[0], {Name: "error", Value: starlark.String(e.brief())}}
		}
	}
	return rows, known, true
}

// blocksText returns rows as text, one below the other.
func blocksText(rows [][]Fact) string {
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Aligned(row))
	}
	return b.String()
}

// guidsLast moves columns of long identifiers to the end, so that a narrow terminal
// leaves them out first.
func guidsLast(columns []string, rows [][]Fact) []string {
	var first, last []string
	for i, name := range columns {
		long := i > 0
		for _, row := range rows {
			s, ok := findFact(row, name).Value.(starlark.String)
			long = long && (findFact(row, name).Value == starlark.None || ok && identifier().MatchString(string(s)))
		}
		if long {
			last = append(last, name)
		} else {
			first = append(first, name)
		}
	}
	return append(first, last...)
}

// identifier matches a 64-bit number in hexadecimal, such as a GUID.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0x[0-9a-f]{16}$`) })

func withoutCodes(row []Fact) []Fact {
	out := make([]Fact, 0, len(row))
	for _, f := range row {
		if !f.Code {
			out = append(out, f)
		}
	}
	return out
}

// Cell returns a fact's value for people: strings without quotes, words joined, "-" for
// no value.
func (f *Fact) Cell() string {
	switch v := f.Value.(type) {
	case starlark.NoneType:
		return "-"
	case starlark.String:
		return OneLine(string(v))
	case starlark.Int:
		if f.Hex > 0 {
			return hexText(v, f.Hex)
		}
	case starlark.Float:
		return fmt.Sprintf("%.6g", float64(v))
	case starlark.Tuple:
		return cellOfTuple(v, f.Hex)
	case *Failure:
		return OneLine(v.String())
	case Named:
		return OneLine(v.Name())
	case *starlark.List:
		if names, ok := namesOf(v); ok {
			return OneLine(strings.Join(names, ", "))
		}
	}
	return OneLine(f.Value.String())
}

// namesOf returns the names of a list of nodes, ports or other values with names; false: it has
// others.
func namesOf(list *starlark.List) (names []string, ok bool) {
	for v := range starlark.Elements(list) {
		n, ok := v.(Named)
		if !ok {
			return nil, false
		}
		names = append(names, n.Name())
	}
	return names, len(names) > 0
}

// short returns a long list as its length, its first and its last element: "4 ports: leaf-1/5
// ... leaf-2/1"; other values as Cell does.
func (f *Fact) short() string {
	list, ok := f.Value.(starlark.Indexable)
	_, isList := f.Value.(*starlark.List)
	_, isTuple := f.Value.(starlark.Tuple)
	if !ok || !isList && !isTuple || list.Len() < longList {
		return f.Cell()
	}
	first, last := Fact{Value: list.Index(0), Hex: f.Hex}, Fact{Value: list.Index(list.Len() - 1), Hex: f.Hex}
	noun := ""
	if strings.HasSuffix(f.Name, "s") {
		noun = " " + OneLine(f.Name)
	}
	return fmt.Sprintf("%d%s: %s ... %s", list.Len(), noun, first.Cell(), last.Cell())
}

// longList is the number of elements from which a list is long.
const longList = 4

// cellOfTuple joins words with commas and numbers with spaces.
func cellOfTuple(t starlark.Tuple, hex int) string {
	if len(t) == 0 {
		return "-"
	}
	if text, ok := joinWords(t, ", "); ok {
		return OneLine(text)
	}
	parts := make([]string, len(t))
	for i, v := range t {
		f := Fact{Value: v, Hex: hex}
		parts[i] = f.Cell()
	}
	return strings.Join(parts, " ")
}

// Changed is a value that a function may have changed in the fabric. As text, it shows what
// changed; the other formats have the whole value.
type Changed interface {
	starlark.Value
	// Changes returns a line for each change; nil: no function has changed the value.
	Changes() []string
}

// Drawn is a value that is shown as a picture with lines of at most width columns; 0:
// unlimited. If shaded is true, a cell may be a rune of Cell.
type Drawn interface {
	Draw(width int, shaded bool) string
}

// renderChanges renders values that were changed, or the failures of some; false: there are
// others.
func renderChanges(list []starlark.Value, width int) (string, bool) {
	var b strings.Builder
	changed := false
	for _, v := range list {
		var lines []string
		switch v := v.(type) {
		case Changed:
			lines = v.Changes()
			changed = changed || lines != nil
		case *Failure:
			target := v.row("")[0]
			lines = []string{target.Cell() + ": error: " + OneLine(v.brief())}
		}
		if lines == nil {
			return "", false
		}
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return Fit(b.String(), width), changed
}

// jsonText returns v as a line of JSON, for messages and cells, or its repr if it cannot
// be encoded.
func jsonText(v starlark.Value) string {
	data, err := encodeJSON(v, nil)
	if err != nil {
		return v.String()
	}
	return string(data)
}
