package format

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// PlanFile is a file of a plan of cables.
type PlanFile struct {
	Name string
	io.Reader
}

// LoadPlan reads a fabric from the files of a plan of cables, which are one plan: such as the sheets of
// links, nodes and server profiles as CSV. It recognises each by its content, as Load does.
//
// A single file may be any other topology too; open opens the files that it includes, as for Load.
func LoadPlan(files []PlanFile, o PlanOptions, open Opener) (*fabric.Fabric, error) {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	b := newPlanBook(strings.Join(names, ", "), o)
	b.many = len(files) > 1
	var problems []fabric.Problem
	for _, file := range files {
		more, err := b.addFile(file, open)
		if err != nil {
			return nil, err
		}
		problems = append(problems, more...)
	}
	f := b.loaded
	if f == nil {
		var err error
		if f, err = b.fabric(); err != nil {
			return nil, err
		}
	}
	return withProblems(f, problems), nil
}

// addFile adds a file to the plan.
func (b *planBook) addFile(file PlanFile, open Opener) ([]fabric.Problem, error) {
	plain, err := plainBytes(file, file.Name, maxArchive)
	if err != nil {
		return nil, err
	}
	if isTar(plain) {
		g := gathering{name: file.Name}
		if err := g.addTar(plain); err != nil {
			return nil, err
		}
		return b.addArchive(&g, open)
	}
	if isZip(plain) {
		data, z, err := readZip(plain, file.Name)
		switch {
		case err != nil:
			return nil, err
		case isWorkbook(z):
			b.start(KindPlan, file.Name)
			return nil, b.workbook(data)
		}
		g := gathering{name: file.Name}
		if err := g.addZip(z); err != nil {
			return nil, err
		}
		return b.addArchive(&g, open)
	}
	r, err := Bounded(utf8Text(plain, file.Name), file.Name, maxTopology)
	if err != nil {
		return nil, err
	}
	var problems []fabric.Problem
	r = cleaned(r, file.Name, func(kind fabric.ProblemKind, text string) {
		problems = append(problems, fabric.Problem{Kind: kind, Text: text})
	})
	in, f := sniffFile(r)
	switch {
	case b.Map != nil && (f == nil || f.plan == nil || f.kind == KindCables || f.kind == KindNDT):
		f = &planTables
	case f == nil:
		f = &planTables
	case f.plan == nil && f.load != nil && !b.many:
		b.loaded, err = f.load(in, file.Name, open)
		return problems, err
	case f.plan == nil:
		return nil, fmt.Errorf("%s: expected a plan of cables, but this is %s", file.Name, f.about)
	}
	b.start(f.kind, file.Name)
	return problems, f.plan(b, in)
}

// addArchive adds the plans among the files of an archive. A single archive may be any other topology with
// its tables.
func (b *planBook) addArchive(g *gathering, open Opener) (problems []fabric.Problem, err error) {
	if !b.many && !g.plansOnly() {
		b.loaded, err = g.load(open)
		return nil, err
	}
	b.many = true
	files := g.plans()
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no plan of cables among its %s; not read: %s", g.name, plural.Count(g.count, "file", "files"), cmp.Or(g.listed(), "none"))
	}
	for _, file := range files {
		file.Name = path.Join(g.name, file.Name)
		more, err := b.addFile(file, open)
		if err != nil {
			return nil, err
		}
		problems = append(problems, more...)
	}
	return append(problems, g.notRead()...), nil
}

// start begins a file. A plan of one file that a program wrote is read strictly.
func (b *planBook) start(kind FormatName, file string) {
	b.kind, b.file = kind, file
	b.strict = !b.many && b.Map == nil && (kind == KindCables || kind == KindNDT || kind == KindTopoConfig)
}

// planLoader returns the reader of a plan that is one file.
func planLoader(kind FormatName, read func(b *planBook, r io.Reader) error) func(io.Reader, string, Opener) (*fabric.Fabric, error) {
	return func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
		b := newPlanBook(name, PlanOptions{})
		b.start(kind, name)
		if err := read(b, r); err != nil {
			return nil, err
		}
		return b.fabric()
	}
}

// readTextTable reads a table of comma-separated values.
func readTextTable(b *planBook, r io.Reader) error {
	t := &csvTable{csvLines: &csvLines{lines: newLines(r, b.file)}, book: b}
	if err := b.read(t); err != nil {
		return err
	}
	b.bytes += t.lines.bytes
	if t.cut {
		b.endsWithin(t.lines.at)
	}
	return nil
}

// csvTable is a table as text.
type csvTable struct {
	*csvLines
	book  *planBook
	cells []string
}

func (t *csvTable) err() error { return t.lines.err }

func (t *csvTable) at() (pos, string) {
	source := "line " + strconv.Itoa(t.lines.at.line)
	if t.book.many {
		source = t.lines.at.file + " " + source
	}
	return t.lines.at, source
}

func (t *csvTable) next() ([]string, bool) {
	for t.lines.next() {
		text := bytes.TrimPrefix(t.text, []byte(byteOrderMark))
		if t.comma == 0 {
			comma, h := splitHeader(text, t.book.Map)
			if t.text = text; h == nil {
				comma = separator(text)
			}
			if h == nil && !t.book.Map.numbered() {
				t.cells = t.cells[:0]
				splitCSV(text, comma, func(field []byte, _ bool) { t.cells = append(t.cells, string(bytes.TrimSpace(field))) })
				return t.cells, true
			}
			t.comma = comma
		} else if len(bytes.TrimSpace(text)) == 0 || text[0] == '#' {
			continue
		}
		t.book.bytes = t.lines.bytes
		if !t.split() {
			return nil, false
		}
		t.cells = t.cells[:0]
		for _, f := range t.fields {
			t.cells = append(t.cells, string(f))
		}
		return t.cells, true
	}
	return nil, false
}

// separator returns the separator that is the most frequent in a line.
func separator(text []byte) byte {
	best := byte(',')
	for _, c := range []byte{';', '\t'} {
		if bytes.Count(text, []byte{c}) > bytes.Count(text, []byte{best}) {
			best = c
		}
	}
	return best
}

// splitHeader returns the separator by which a line is a header, and the header; nil: it is not one.
func splitHeader(text []byte, m PlanMap) (byte, *planHeader) {
	for _, comma := range []byte{',', ';', '\t'} {
		if bytes.IndexByte(text, comma) < 0 {
			continue
		}
		var cells []string
		if !splitCSV(text, comma, func(field []byte, _ bool) { cells = append(cells, cleanCell(string(field))) }) {
			continue
		}
		var h *planHeader
		if m == nil {
			h = headerOf(cells)
		} else {
			h = m.header(cells)
		}
		if h != nil {
			return comma, h
		}
	}
	return 0, nil
}

// dateText matches a date as spreadsheets write it into CSV, where a port such as 1/2 was meant.
var dateText = regexp.MustCompile(`(?i)^(\d{1,2}[-. ](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|m\x{e4}r|mai|okt|dez)\.?([-. ]\d{2,4})?|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[-. ]\d{1,4}|\d{4}-\d{2}-\d{2}( \d{2}:\d{2}(:\d{2})?)?|\d{1,2}[/.]\d{1,2}[/.](19|20)\d{2})$`)

// floatText matches a number with a fraction.
var floatText = regexp.MustCompile(`^\d+[.,]\d+$`)

// doubtText returns why a text may not be what its author wrote.
func doubtText(text string) string {
	switch {
	case text == "" || strings.IndexByte("0123456789#JFMASONDjfmasond", text[0]) < 0 || bareNumber(text): // at once: most cells
	case dateText.MatchString(text):
		return fmt.Sprintf("the date %q, which a spreadsheet may have made of a port such as 1/2; format the column as text and type the port again", text)
	case floatText.MatchString(text):
		return fmt.Sprintf("the number %q with a fraction; format the column as text and type the port again", text)
	case strings.HasPrefix(text, "#") && strings.HasSuffix(text, "!"), text == "#N/A", text == "#NAME?":
		return fmt.Sprintf("the error %q of a formula", text)
	}
	return ""
}

func (t *csvTable) doubt(_ int, text string) string {
	if t.book.strict {
		return ""
	}
	return doubtText(text)
}

// Limits of workbooks. A cell takes about 40 bytes of a file, and some hundreds of memory.
const (
	maxWorkbook = 32 << 20  // bytes, packed
	maxUnzipped = 128 << 20 // bytes
	maxSheets   = 256
)

// isWorkbook reports whether a zip archive is a workbook of Excel.
func isWorkbook(z *zip.Reader) bool {
	return slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == "xl/workbook.xml" })
}

// workbook adds the sheets of a workbook. Macros and links to other files are ignored.
func (b *planBook) workbook(data []byte) (err error) {
	defer func() { // excelize has no promise for damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: the workbook is damaged: %v; save it again as .xlsx", b.file, r)
		}
	}()
	if len(data) > maxWorkbook {
		return fmt.Errorf("%s: expected a workbook of at most %d MB; save its sheets as CSV", b.file, maxWorkbook>>20)
	}
	// Both limits are equal so that nothing is written to temporary files.
	x, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{RawCellValue: true, UnzipSizeLimit: maxUnzipped, UnzipXMLSizeLimit: maxUnzipped})
	if err != nil {
		return fmt.Errorf("%s: the workbook cannot be read: %w; save it again as .xlsx, without a password", b.file, err)
	}
	defer x.Close()
	note := func(format string, args ...any) {
		b.problems = append(b.problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: b.file + ": " + fmt.Sprintf(format, args...)})
	}
	x.Pkg.Range(func(key, part any) bool {
		data, ok := part.([]byte)
		b.merged = ok && strings.HasPrefix(fmt.Sprint(key), "xl/worksheets/") && bytes.Contains(data, []byte("mergeCell "))
		return !b.merged
	})
	for _, part := range []struct{ prefix, text string }{{"xl/vbaProject", "macros are ignored"}, {"xl/externalLinks/", "links to other files are ignored; their stored values are used"}} {
		found := false
		x.Pkg.Range(func(key, _ any) bool {
			found = found || strings.HasPrefix(fmt.Sprint(key), part.prefix)
			return !found
		})
		if found {
			note("%s", part.text)
		}
	}
	sheets := x.GetSheetList()
	if len(sheets) > maxSheets {
		return fmt.Errorf("%s: expected at most %d sheets, not %d", b.file, maxSheets, len(sheets))
	}
	b.bytes += int64(len(data))
	read := 0
	for _, sheet := range sheets {
		if visible, err := x.GetSheetVisible(sheet); err == nil && !visible {
			note("sheet %q is hidden and was not read; unhide it to read it", fabric.Clip(sheet))
			continue
		}
		rows, err := x.Rows(sheet)
		if err != nil {
			note("sheet %q has no rows: %v", fabric.Clip(sheet), err)
			continue
		}
		t := &sheetTable{book: b, x: x, sheet: sheet, rows: rows}
		err = b.read(t)
		rows.Close()
		if err != nil {
			return err
		}
		if t.headed = t.headed || b.Map != nil; t.num > 0 && !t.headed {
			note("sheet %q has no header with two ends and was not read", fabric.Clip(sheet))
		} else if t.headed {
			read++
		}
	}
	return nil
}

// sheetTable is a sheet of a workbook.
type sheetTable struct {
	book   *planBook
	x      *excelize.File
	sheet  string
	rows   *excelize.Rows
	num    int // of the row
	headed bool
	failed error
	merges []mergedCells // by their first row, as far as the rows read have not reached it
	within []mergedCells // that the row is in
	looked bool          // for merged cells
}

// mergedCells is a range of cells that show one text.
type mergedCells struct {
	col, top, bottom int // the first column
	text             string
}

func (t *sheetTable) err() error { return t.failed }

func (t *sheetTable) at() (pos, string) {
	source := fmt.Sprintf("sheet %s row %d", t.sheet, t.num)
	if t.book.many {
		source = t.book.file + " " + source
	}
	return pos{t.book.file + " sheet " + t.sheet, t.num}, source
}

func (t *sheetTable) next() ([]string, bool) {
	if !t.rows.Next() {
		if err := t.rows.Error(); err != nil {
			t.failed = fmt.Errorf("%s: sheet %s after row %d: %w", t.book.file, t.sheet, t.num, err)
		}
		return nil, false
	}
	t.num++
	cells, err := t.rows.Columns()
	if err != nil {
		t.failed = fmt.Errorf("%s: sheet %s row %d: %w", t.book.file, t.sheet, t.num, err)
		return nil, false
	}
	if !t.headed {
		for i := range cells {
			cells[i] = cleanCell(cells[i])
		}
		t.headed = t.book.headerOf(cells) != nil
		return cells, true
	}
	if slices.ContainsFunc(cells, func(c string) bool { return c != "" }) {
		cells = t.fill(cells)
	}
	return cells, true
}

// fill gives empty cells the text of the merged cells that they are part of.
func (t *sheetTable) fill(cells []string) []string {
	if !t.looked {
		t.looked = true
		var merged []excelize.MergeCell
		if t.book.merged {
			merged, _ = t.x.GetMergeCells(t.sheet)
		}
		for _, m := range merged {
			left, top, err1 := excelize.CellNameToCoordinates(m.GetStartAxis())
			_, bottom, err2 := excelize.CellNameToCoordinates(m.GetEndAxis())
			if err1 == nil && err2 == nil {
				t.merges = append(t.merges, mergedCells{left, top, bottom, m.GetCellValue()})
			}
		}
		slices.SortStableFunc(t.merges, func(a, b mergedCells) int { return cmp.Compare(a.top, b.top) })
	}
	for len(t.merges) > 0 && t.merges[0].top <= t.num {
		t.within, t.merges = append(t.within, t.merges[0]), t.merges[1:]
	}
	t.within = slices.DeleteFunc(t.within, func(m mergedCells) bool { return m.bottom < t.num })
	for _, m := range t.within { // down, not across: columns differ
		for len(cells) < m.col {
			cells = append(cells, "")
		}
		if cells[m.col-1] == "" {
			cells[m.col-1] = m.text
		}
	}
	return cells
}

func (t *sheetTable) doubt(col int, text string) string {
	if why := doubtText(text); why != "" {
		return why
	}
	name, err := excelize.CoordinatesToCellName(col+1, t.num)
	if err != nil {
		return ""
	}
	switch {
	case text == "":
		if formula, err := t.x.GetCellFormula(t.sheet, name); err == nil && formula != "" {
			return fmt.Sprintf("the formula of cell %s without a stored value; save the workbook after it was computed", name)
		}
	case len(text) >= 5 && bareNumber(text): // no port: a number of days since 1900, if the style is a date's
		if style, err := t.x.GetCellStyle(t.sheet, name); err == nil {
			if s, err := t.x.GetStyle(style); err == nil && isDateFormat(s) {
				days, _ := strconv.ParseFloat(text, 64)
				when, err := excelize.ExcelDateToTime(days, false)
				if err == nil {
					return fmt.Sprintf("the date %s of cell %s, which a spreadsheet made of a port such as %d/%d; format the column as text and type the port again",
						when.Format("2006-01-02"), name, int(when.Month()), when.Day())
				}
			}
		}
	}
	return ""
}

// isDateFormat reports whether a style shows numbers as dates.
func isDateFormat(s *excelize.Style) bool {
	if s.CustomNumFmt != nil {
		return strings.ContainsAny(strings.ToLower(*s.CustomNumFmt), "ymd")
	}
	return s.NumFmt >= 14 && s.NumFmt <= 22 || s.NumFmt >= 27 && s.NumFmt <= 36 || s.NumFmt >= 45 && s.NumFmt <= 47 || s.NumFmt >= 50 && s.NumFmt <= 58
}

// looksLikeTable reports whether a file begins with a table of comma-separated values of at least four
// columns.
func looksLikeTable(head []byte) bool {
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return bytes.Count(line, []byte{separator(line)}) >= 3 && line[0] != '[' && bytes.IndexByte(line, '=') < 0
		}
	}
	return false
}

// LoadAdapters reads a file hca_mapping.csv of NVIDIA's Cable Validation Tool: a header port,hca-name and
// lines such as 1,mlx5_0. The names of network interfaces are allowed in place of numbers.
func LoadAdapters(r io.Reader, name string) (map[string]string, error) {
	r, err := Bounded(r, name, maxList)
	if err != nil {
		return nil, err
	}
	b := newPlanBook(name, PlanOptions{})
	b.start(KindPlan, name)
	if err := readTextTable(b, r); err != nil {
		return nil, err
	}
	if len(b.adapters) == 0 {
		return nil, fmt.Errorf("%s: expected a header port,hca-name and lines such as 1,mlx5_0", name)
	}
	return b.adapters, nil
}
