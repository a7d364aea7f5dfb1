package format

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"fabsh/fabric"
)

// planSheetColumns are the columns of a plan that is written.
var planSheetColumns = []string{"A-Rack", "A-U", "A-Node", "A-Type", "A-Port", "Z-Rack", "Z-U", "Z-Node", "Z-Type", "Z-Port", "Protocol", "Label", "Length"}

// planSheet calls row with the cells of each cable of f, in the order of the fabric. A row reads again as
// the same cable.
func planSheet(f *fabric.Fabric, row func(cells []string) error) error {
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || p == q {
			continue
		}
		var cells []string
		for _, end := range []*fabric.Port{p, q} {
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
			cells = append(cells, n.Place().Rack, n.Place().Unit, name, kind, port)
		}
		c := p.PlanCable()
		if err := row(append(cells, "ib", c.Label, c.Length)); err != nil {
			return err
		}
	}
	return nil
}

// cutLastWord cuts a text at its last blank.
func cutLastWord(text string) (before, word string, ok bool) {
	i := strings.LastIndexByte(text, ' ')
	if i <= 0 || strings.TrimSpace(text[:i]) != text[:i] {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// writePlanText writes the cables of f as an A/Z sheet in CSV. A text that a spreadsheet could run as a
// formula has an apostrophe before it, which the reader removes.
func writePlanText(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriter(w)
	out.WriteString(strings.Join(planSheetColumns, ",") + "\n")
	err := planSheet(f, func(cells []string) error {
		for i, c := range cells {
			if i > 0 {
				out.WriteByte(',')
			}
			if c != "" && strings.IndexByte("=+-@", c[0]) >= 0 {
				c = "'" + c
			}
			out.WriteString(quoteCSV(c))
		}
		return out.WriteByte('\n')
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// WritePlanWorkbook writes the cables of f as an A/Z sheet in a workbook of Excel. All cells are texts.
func WritePlanWorkbook(w io.Writer, f *fabric.Fabric) error {
	x := excelize.NewFile()
	defer x.Close()
	const sheet = "Links"
	if err := x.SetSheetName("Sheet1", sheet); err != nil {
		return err
	}
	out, err := x.NewStreamWriter(sheet)
	if err != nil {
		return err
	}
	num := 0
	put := func(cells []string) error {
		num++
		row := make([]any, len(cells))
		for i, c := range cells {
			row[i] = c
		}
		return out.SetRow(fmt.Sprintf("A%d", num), row)
	}
	if err := put(planSheetColumns); err != nil {
		return err
	}
	if err := planSheet(f, put); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return x.Write(w)
}
