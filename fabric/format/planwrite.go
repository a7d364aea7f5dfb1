package format

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"fabsh/fabric"
)

// planEndColumns are the columns of an end of a plan that is written; after the first is "A-" or "Z-".
var planEndColumns = []string{"Hall", "Row", "Rack", "U", "Node", "Type", "Role", "Rail", "Model", "Firmware", "Serial", "SM", "Port"}

// planAlways are the columns that a plan has even if they are empty.
var planAlways = []string{"Rack", "U", "Node", "Type", "Port", "Protocol", "Label", "Length"}

// PlanFacts is what is known of a device besides its name and place, as a plan has it.
type PlanFacts struct {
	Model, Firmware, Serial string
	Manager                 bool // it runs a subnet manager
}

// planSheet returns the rows of a plan: the names of the columns, and each cable of f, in the order of the
// fabric. A row reads again as the same cable. Columns without any cell are left out. facts returns what is
// known of a node; nil: only what f has as a plan.
func planSheet(f *fabric.Fabric, facts func(n *fabric.Node) PlanFacts) [][]string {
	var header []string
	for _, end := range []string{"A-", "Z-"} {
		for _, c := range planEndColumns {
			header = append(header, end+c)
		}
	}
	rows := [][]string{append(header, "Protocol", "Width", "Speed", "Label", "Length")}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || p == q {
			continue
		}
		var cells []string
		for _, end := range []*fabric.Port{p, q} {
			cells = append(cells, planEndCells(end, facts)...)
		}
		c := p.PlanCable()
		rows = append(rows, append(cells, "ib", p.Width(), p.Speed(), c.Label, c.Length))
	}
	used := make([]bool, len(rows[0]))
	for i, name := range rows[0] {
		_, column, _ := strings.Cut(name, "-")
		used[i] = slices.Contains(planAlways, name) || slices.Contains(planAlways, column) || slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" })
	}
	for r, row := range rows {
		kept := row[:0]
		for i, cell := range row {
			if used[i] {
				kept = append(kept, cell)
			}
		}
		rows[r] = kept
	}
	return rows
}

// planEndCells returns the cells of an end.
func planEndCells(end *fabric.Port, facts func(n *fabric.Node) PlanFacts) []string {
	n := end.Node()
	name, port := planName(n), strconv.Itoa(end.Num())
	kind := "Switch"
	if !n.IsSwitch() {
		kind = "Host"
		host, adapter, ok := cutLastWord(name)
		switch {
		case ok && isHCA(strings.ToLower(adapter)) && end.Num() == 1:
			name, port = host, adapter
		case ok && isHCA(strings.ToLower(adapter)):
			name, port = host, adapter+"/P"+port
		default: // a number alone would be an adapter's
			port = "P" + port
		}
	}
	var known PlanFacts
	if facts != nil {
		known = facts(n)
	}
	role, rail := "", ""
	if p := n.Fabric().Plan(); p != nil {
		of := func(list []string) string {
			if list == nil {
				return ""
			}
			return list[n.ID()]
		}
		known.Model, known.Firmware, known.Serial = cmp.Or(known.Model, of(p.Models)), cmp.Or(known.Firmware, of(p.Firmware)), cmp.Or(known.Serial, of(p.Serials))
		if role, rail = of(p.Roles), of(p.Rails); strings.EqualFold(role, kind) {
			role = ""
		}
		known.Manager = known.Manager || slices.Contains(p.Managers, n.Name()) || slices.Contains(p.Managers, name) || slices.Contains(p.Managers, n.GUID().String())
	}
	manager := ""
	if known.Manager {
		manager = "yes"
	}
	place := n.Place()
	return []string{place.Hall, place.Row, place.Rack, place.Unit, name, kind, role, rail, known.Model, known.Firmware, known.Serial, manager, port}
}

// cutLastWord cuts a text at its last blank.
func cutLastWord(text string) (before, word string, ok bool) {
	i := strings.LastIndexByte(text, ' ')
	if i <= 0 || strings.TrimSpace(text[:i]) != text[:i] {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// writePlanText writes the cables of f as an A/Z sheet in CSV, with what f has as a plan.
func writePlanText(w io.Writer, f *fabric.Fabric) error { return WritePlanText(w, f, nil) }

// WritePlanText writes the cables of f as an A/Z sheet in CSV. facts returns what is known of a node; nil:
// only what f has as a plan. A text that a spreadsheet could run as a formula has an apostrophe before it,
// which the reader removes.
func WritePlanText(w io.Writer, f *fabric.Fabric, facts func(n *fabric.Node) PlanFacts) error {
	out := bufio.NewWriter(w)
	for _, cells := range planSheet(f, facts) {
		for i, c := range cells {
			if i > 0 {
				out.WriteByte(',')
			}
			if c != "" && strings.IndexByte("=+-@", c[0]) >= 0 {
				c = "'" + c
			}
			out.WriteString(quoteCSV(c))
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}

// WritePlanWorkbook writes the cables of f as an A/Z sheet in a workbook of Excel, and a sheet of the
// partitions if f has them as a plan. All cells are texts. facts is as for WritePlanText.
func WritePlanWorkbook(w io.Writer, f *fabric.Fabric, facts func(n *fabric.Node) PlanFacts) error {
	x := excelize.NewFile()
	defer x.Close()
	const links = "Links"
	if err := x.SetSheetName("Sheet1", links); err != nil {
		return err
	}
	if err := planWorksheet(x, links, planSheet(f, facts)); err != nil {
		return err
	}
	if p := f.Plan(); p != nil && len(p.Partitions) > 0 {
		const partitions = "Partitions"
		if _, err := x.NewSheet(partitions); err != nil {
			return err
		}
		rows := [][]string{{"Partition"}}
		for _, name := range p.Partitions {
			rows = append(rows, []string{name})
		}
		if err := planWorksheet(x, partitions, rows); err != nil {
			return err
		}
	}
	return x.Write(w)
}

// maxPlanColumn is the width of a column that holds long texts, in characters.
const maxPlanColumn = 40

// planWorksheet writes rows to a sheet. Columns are as wide as their texts, and the first row stays visible.
func planWorksheet(x *excelize.File, sheet string, rows [][]string) error {
	out, err := x.NewStreamWriter(sheet)
	if err != nil {
		return err
	}
	for i := range rows[0] {
		width := 0
		for _, row := range rows {
			width = max(width, utf8.RuneCountInString(row[i]))
		}
		if err := out.SetColWidth(i+1, i+1, float64(min(width, maxPlanColumn)+2)); err != nil {
			return err
		}
	}
	if err := out.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	for i, cells := range rows {
		row := make([]any, len(cells))
		for j, c := range cells {
			row[j] = c
		}
		if err := out.SetRow("A"+strconv.Itoa(i+1), row); err != nil {
			return err
		}
	}
	return out.Flush()
}
